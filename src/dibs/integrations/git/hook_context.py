"""What a git hook knows of its surroundings: its repository, and which hooks of the same command ran before.

GIT_DIR may differ from the current directory. Hooks share no state, but the command line of git shows which of
them have run: of a commit's hooks, only the first warns that the board is unreadable.
"""

from __future__ import annotations

import os
from os.path import abspath, basename, isabs, join, normpath, realpath

from dibs.board.identity import ancestors
from dibs.board.locate import FOLDER_IN_GIT, Place, Repository, foreign_in
from dibs.machine import this_machine
from dibs.safe_files import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env")
"""Options of git itself that take the next word as value."""


def place_of(git_dir: str, found: Place, environment: Mapping[str, str]) -> Place:
    """The place of the board of a git directory; `found` if that is the same repository."""
    folder = abspath(git_dir)
    repository = found.repository
    if repository is not None and realpath(repository.git_dir) == realpath(folder):
        return found
    is_bare = realpath(os.getcwd()) == realpath(folder)
    worktree = "" if is_bare else os.getcwd()
    foreign = foreign_in(worktree or folder, folder)
    shared = folder if foreign else common_dir(folder)
    foreign = foreign or foreign_in(worktree or folder, shared)
    repository = Repository(worktree, folder, realpath(shared), foreign)
    if environment.get("DIBS_BOARD"):
        return found.but(repository=repository)
    return found.but(folder=join(repository.common_dir, FOLDER_IN_GIT), repository=repository)


def common_dir(folder: str) -> str:
    """The common git directory of a linked work tree's git directory."""
    shared = "".join(lines(join(folder, "commondir"))[:1]).strip()
    if not shared:
        return folder
    return shared if isabs(shared) else normpath(join(folder, shared))


def already_warned() -> bool:
    """Whether `pre-commit` certainly ran before this hook, and so has printed the same warning."""
    machine = this_machine()
    for process in ancestors(machine):
        words = machine.words(process.pid)
        if words and basename(words[0]) == "git":
            return is_verified_commit(words[1:])
    return False


def is_verified_commit(words: list[str]) -> bool:
    """Whether git makes a commit with all its hooks. False in doubt."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in WITH_VALUE else 1
    return words[at : at + 1] == ["commit"] and not any(map(may_skip, words[at + 1 :]))


def may_skip(word: str) -> bool:
    """Whether the word may mean `--no-verify`, in any form (also a message that looks like it)."""
    if word.startswith("--"):
        return word.startswith("--no-v")
    return word.startswith("-") and "n" in word
