"""Uncommitted work of a former holder: inspected before a takeover, outside the transaction.

The holder itself stated the folder. git runs only in a work tree of the caller's own
repository, and the repository's own list of work trees decides which these are, not the folder.
"""

from __future__ import annotations

import os
from os.path import isabs, isdir, realpath

from dibs.board.locate import linked_trees, opens_into
from dibs.domain.checks import quoted
from dibs.domain.facts import LeftoverWork
from dibs.git_runner import TIMED_OUT, Tree, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.locate import Repository
    from dibs.domain.events.base import Ending
    from dibs.domain.model import Token
    from dibs.machine import Machine

FILES = 20
"""How many uncommitted files an event names."""

SECONDS = 5
"""The timeout of git."""

STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all")
"""Submodules are ignored: each has its own configuration, which we do not trust."""


def left_by(ending: Ending, machine: Machine, repository: Repository | None) -> LeftoverWork:
    """The uncommitted files in the work tree that the lease names; or why they were not inspected."""
    token = ending.token
    if ending.host != machine.host():
        return LeftoverWork(token, not_looked_at=f"it is on the host {quoted(ending.host)}")
    if repository is None:
        return LeftoverWork(token, not_looked_at="the caller is in no repository")
    if not isabs(ending.worktree) or not isdir(ending.worktree):
        return LeftoverWork(token, not_looked_at="the folder is not there")
    tree = own_tree(ending.worktree, repository)
    if tree is None:
        return LeftoverWork(token, not_looked_at="it is not a work tree of this repository")
    return uncommitted(token, tree)


def own_tree(folder: str, repository: Repository) -> Tree | None:
    """The work tree of the repository at this folder, by the repository's own list."""
    here = realpath(folder)
    trees = [
        (repository.git_dir, repository.worktree),
        (repository.common_dir, os.path.dirname(repository.common_dir)),
        *linked_trees(repository.common_dir),
    ]
    for git_dir, root in trees:
        if root and realpath(root) == here and opens_into(root, git_dir):
            return Tree(realpath(git_dir), here)
    return None


def uncommitted(token: Token, tree: Tree) -> LeftoverWork:
    """Files that are changed or new there."""
    status, out = git(*STATUS, tree=tree, seconds=SECONDS)
    if status != 0:
        why = f"git took more than {SECONDS} s" if status == TIMED_OUT else "git could not read it"
        return LeftoverWork(token, not_looked_at=why)
    names = [line[3:] for line in out.decode(errors="replace").split("\0") if line]
    shown = tuple(names[:FILES])
    return LeftoverWork(
        token, shown if len(names) <= FILES else (*shown, f"and {len(names) - FILES} more")
    )
