"""Finds the repository that a hook runs for: GIT_DIR may differ from the current directory."""

from __future__ import annotations

import os
from os.path import abspath, isabs, join, normpath, realpath

from dibs.board.limited_files import lines
from dibs.board.locate import FOLDER_IN_GIT, Place, Repository, foreign_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


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
