"""Finds what a merge commit changes beyond joining its parents."""

from __future__ import annotations

import os

from dibs.git_runner import git, line
from dibs.integrations.git.changes import GitQueryFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")


def undone_paths(commit: str, parents: Sequence[str]) -> frozenset[str]:
    """Paths that only one parent changed, and where the merge differs from that parent.

    Such a merge undoes work, though each file equals that of some parent. Where several parents changed a
    path, a merge may take any version.
    """
    base = line("merge-base", "--octopus", *parents)
    changed = [changes_between(base, parent) if base else files_of(parent) for parent in parents]
    found: set[str] = set()
    for place, parent in enumerate(parents):
        others = changed[:place] + changed[place + 1 :]
        found |= changed[place].difference(*others) & changes_between(parent, commit)
    return frozenset(found)


def changes_between(one: str, other: str) -> frozenset[str]:
    return names("diff-tree", *NAMES, one, other)


def files_of(commit: str) -> frozenset[str]:
    return names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)


def names(*words: str) -> frozenset[str]:
    status, out = git(*words)
    if status != 0:
        raise GitQueryFailed("git does not say what a merge changes")
    return frozenset(os.fsdecode(out).split("\0")) - {""}
