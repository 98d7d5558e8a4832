"""Which of the hooks of one commit says that the board cannot be asked: the first that guards it.

Nothing is kept between two hooks. What git was told to do, and so what it has run before, stands in its
command line.
"""

from __future__ import annotations

from os.path import basename

from dibs.board.identity import ancestors
from dibs.machine import this_machine

WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env")
"""Options of git itself whose value is the next word."""


def was_said() -> bool:
    """Whether `pre-commit` has run before this hook, for sure: then it has said the same."""
    machine = this_machine()
    for process in ancestors(machine):
        words = machine.words(process.pid)
        if words and basename(words[0]) == "git":
            return is_verified_commit(words[1:])
    return False


def is_verified_commit(words: list[str]) -> bool:
    """Whether git makes a commit with all its hooks. When in doubt it does not."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in WITH_VALUE else 1
    return words[at : at + 1] == ["commit"] and not any(map(may_skip, words[at + 1 :]))


def may_skip(word: str) -> bool:
    """`--no-verify` in any of its shapes; a message that looks like one, too."""
    if word.startswith("--"):
        return word.startswith("--no-v")
    return word.startswith("-") and "n" in word
