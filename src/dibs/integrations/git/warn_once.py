"""Suppresses repeated warnings: of a commit's hooks, only the first warns that the board is unreadable.

Hooks share no state. The command line of git shows which hooks have run before.
"""

from __future__ import annotations

from os.path import basename

from dibs.board.identity import ancestors
from dibs.machine import this_machine

WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env")
"""Options of git itself that take the next word as value."""


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
