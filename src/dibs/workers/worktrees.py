"""A work tree per task: created with the claim, removed after completion when it is clean.

A marker file in its git directory says for which task it was made; others are never removed.
"""

from __future__ import annotations

import os
from os.path import basename, dirname, exists, isdir, join

from dibs.board.execute import Board
from dibs.board.locate import Repository, find_repository, linked_trees
from dibs.domain.checks import short
from dibs.domain.model import FINAL, TaskKey
from dibs.domain.refusals import refused
from dibs.domain.values import Value
from dibs.git_runner import Tree, git
from dibs.safe_files import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "dibs-task"


class Worktree(Value):
    path: str
    branch: str
    made: bool = True
    """Whether it was newly created."""


def check_possible(repository: Repository) -> None:
    """Refuses, before anything is claimed, a repository that cannot have a work tree per task."""
    main = dirname(repository.common_dir)
    if basename(repository.common_dir) != ".git":
        what = "a bare repository has no work tree beside which to make one"
        raise refused("no_worktree", what, path=repository.common_dir)
    tree = Tree(repository.git_dir, repository.worktree)
    if git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", tree=tree)[0] != 0:
        what = f"{main} has no commit yet: a work tree needs one"
        raise refused("no_worktree", what, path=main)


def make(repository: Repository, key: TaskKey) -> Worktree:
    """Creates it beside the main work tree, on a branch of the task; returns an existing one."""
    main = dirname(repository.common_dir)
    path, branch = f"{main}-{key}", f"dibs/{key}"
    if exists(path):
        there = find_repository(path) if isdir(path) else None
        if there and there.worktree == path and there.common_dir == repository.common_dir:
            return Worktree(path, there.branch(), made=False)
        raise refused("no_worktree", f"{path} is in the way of a work tree for {key}", path=path)
    ours = Tree(repository.common_dir, main)
    known = git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", tree=ours)[0] == 0
    words = ("worktree", "add", path, branch) if known else ("worktree", "add", "-b", branch, path)
    status, out = git(*words, tree=ours, errors=True, checkout=True)
    if status != 0:
        why = short(" ".join(out.decode(errors="replace").split())) or f"it ended with {status}"
        raise refused("no_worktree", f"git made no work tree for {key}: {why}", path=path)
    made = find_repository(path)
    assert made is not None, "git has just made it"
    with open(join(made.git_dir, MARK), "w", encoding="utf-8") as file:
        file.write(key)
    return Worktree(path, branch)


def tidy(board: Board, repository: Repository | None) -> list[str]:
    """Removes clean work trees of final tasks, except the current one."""
    removed = []
    for tree, key in marked(repository) if repository else ():
        path = tree.work_tree
        with board.read() as tx:
            task = tx.task(TaskKey(key))
        inside = os.path.commonpath((os.path.realpath(path), os.path.realpath(os.getcwd()))) == path
        if task is None or task.state not in FINAL or inside:
            continue
        if git("worktree", "remove", path, tree=tree)[0] == 0:
            removed.append(path)
    return removed


def marked(repository: Repository) -> Iterator[tuple[Tree, str]]:
    """Work trees that were made for tasks, with the task keys."""
    for git_dir, folder in linked_trees(repository.common_dir):
        key = "".join(lines(join(git_dir, MARK))[:1]).strip()
        if key and isdir(folder):
            yield Tree(git_dir, os.path.realpath(folder)), key
