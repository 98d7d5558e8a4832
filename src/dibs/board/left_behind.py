"""What a former holder left in its work tree: looked up before a takeover, outside the transaction.

The holder itself stated the folder. git runs only in a work tree of the caller's own repository, and the
repository's own list of work trees decides which these are: the folder has no say.
"""

from __future__ import annotations

import os
from os.path import isabs, isdir, realpath

from dibs.board.locate import linked_trees, opens_into
from dibs.core.checks import quoted
from dibs.core.facts import Left
from dibs.git_runner import TIMED_OUT, Tree, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.locate import Repository
    from dibs.core.event import Ending
    from dibs.core.model import Token
    from dibs.machine import Machine

FILES = 20
"""How many uncommitted files an event names."""

SECONDS = 5
"""How long git may take."""

STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all")
"""A submodule has a configuration of its own, which is not ours."""


def left_by(ending: Ending, machine: Machine, repository: Repository | None) -> Left:
    """Which files a holder did not commit where its lease says that it worked; or why nobody looked."""
    token = ending.token
    if ending.host != machine.host():
        return Left(token, not_looked_at=f"it is on the host {quoted(ending.host)}")
    if repository is None:
        return Left(token, not_looked_at="the caller is in no repository")
    if not isabs(ending.worktree) or not isdir(ending.worktree):
        return Left(token, not_looked_at="the folder is not there")
    tree = own_tree(ending.worktree, repository)
    if tree is None:
        return Left(token, not_looked_at="it is not a work tree of this repository")
    return uncommitted(token, tree)


def own_tree(folder: str, repository: Repository) -> Tree | None:
    """The work tree of the repository that is there, by the repository's own list."""
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


def uncommitted(token: Token, tree: Tree) -> Left:
    """Files that are changed or new there."""
    status, out = git(*STATUS, tree=tree, seconds=SECONDS)
    if status != 0:
        why = f"git took more than {SECONDS} s" if status == TIMED_OUT else "git could not read it"
        return Left(token, not_looked_at=why)
    names = [line[3:] for line in out.decode(errors="replace").split("\0") if line]
    shown = tuple(names[:FILES])
    return Left(token, shown if len(names) <= FILES else (*shown, f"and {len(names) - FILES} more"))
