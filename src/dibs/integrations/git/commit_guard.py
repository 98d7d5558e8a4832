"""The guards of commits and branches.

Before a commit: checks the staged paths, and renews the lease that the commit is made under. Before a branch moves:
a session that lost its lease cannot move it to new commits of its own.
"""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board.path_access import check_paths, forms
from dibs.domain.commands import Renew
from dibs.domain.refusals import Refused
from dibs.domain.scopes.access import COMMIT, ScopeIndex, work_for
from dibs.domain.scopes.overlap import TooManySteps
from dibs.domain.values import Value
from dibs.git_runner import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.board.path_access import PathVerdict
    from dibs.domain.model import Task
    from dibs.domain.refusals import Refusal
    from dibs.domain.scopes.policy import ScopePolicy

# The paths that a commit changes: staged ones, or those of existing commits.


RAW = (
    "--raw", "-z", "--no-renames", "--ignore-submodules=none", "--no-relative", "--no-color",
    "--no-ext-diff", "--no-textconv",
)  # fmt: skip
"""Output with paths as bytes and both sides of renames, whatever the caller's configuration."""

LINK = b"120000"
HEX = frozenset("0123456789abcdef")


class GitQueryFailed(Exception):  # noqa: N818 - unknown, so not an error
    """Raised when git fails to answer a query."""


class PathChange(Value):
    """A changed path, and whether it is, or was, a symbolic link."""

    path: str
    link: bool = False


def staged() -> list[PathChange]:
    """What the next commit changes, from the index that git commits."""
    status, out = git("diff", "--cached", *RAW)
    if status != 0:
        raise GitQueryFailed("git cannot list the staged paths")
    fields = iter(out.split(b"\0"))
    return list(changes(fields))


def changes(fields: Iterator[bytes]) -> Iterator[PathChange]:
    """Parses pairs of `:MODE MODE ID ID STATUS` and path; stops at anything else."""
    for field in fields:
        if not field.startswith(b":"):
            return
        yield PathChange(os.fsdecode(next(fields)), LINK in field[:15])


def paths_of(changed: Iterable[PathChange], repository: Repository | None) -> dict[str, str]:
    """Maps each path to "", and the target of a link inside the repository to the link's path."""
    found: dict[str, str] = {}
    for change in changed:
        found[change.path] = ""
        if change.link and repository is not None and repository.worktree:
            path = join(repository.worktree, change.path)
            for form in forms(path, repository.worktree, repository):
                found.setdefault(form, change.path)
    return found


def is_merge(repository: Repository | None) -> bool:
    """Whether the next commit concludes a merge: its paths are the work of others."""
    return repository is not None and exists(join(repository.git_dir, "MERGE_HEAD"))


def moved_to(updates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields commit and name of each created or moved ref, from lines of `OLD NEW REF`."""
    for update in updates:
        _, _, rest = update.rstrip("\n").partition(" ")
        new, _, ref = rest.partition(" ")
        if ref and set(new) <= HEX and new.strip("0"):
            yield new, ref


TASK = "DIBS_TASK"
"""The variable that names the current task; `dibs run` sets it."""

BRANCHES = "refs/heads/"


class CommitCheck(Value):
    """The result of the check: the refusal, if any, and whether it stops the commit."""

    refusal: Refusal | None = None
    stops: bool = False
    paths: int = 0
    task: str = ""
    """The task that the commit is for."""
    warning: str = ""


def check_commit(
    board: Board,
    who: Identity | None,
    repository: Repository | None,
    environment: Mapping[str, str],
) -> CommitCheck:
    """Checks a commit. A merge brings the work of others: it is refused only after a lost lease.

    Refuses if it cannot be decided what others hold.
    """
    merges = is_merge(repository)
    links = {} if merges else paths_of(staged(), repository)
    paths = list(links)
    seen = check_paths(board, who, paths, COMMIT)
    seen = seen.but(links={path: link for path, link in links.items() if link})
    if merges and not seen.verdict.lost:
        return CommitCheck()
    if seen.verdict.stops:
        return CommitCheck(seen.refusal, stops=True, paths=len(paths))
    task = acting(seen.known.mine, paths, seen.known.ground, environment)
    found = CommitCheck(seen.refusal, paths=len(paths), task=task.key if task else "")
    if who is not None and task is not None:
        found = found.but(warning=renewed(board, who, seen, task.key))
    if seen.doubt is not None:
        raise Refused(seen.doubt)
    return found


def renewed(board: Board, who: Identity, seen: PathVerdict, key: str) -> str:
    """Renews the lease, as a commit is a sign of life; returns a warning if that failed."""
    task = next(task for task in seen.known.mine if task.key == key)
    try:
        board.execute(who, Renew(task.key, here=True))
    except Refused as problem:
        return f"the lease of {task.key} was not renewed: {problem}"
    return ""


# The acting lease: which of the session's tasks a commit is for.


def acting(
    mine: Sequence[Task], paths: Sequence[str], ground: ScopePolicy, environment: Mapping[str, str]
) -> Task | None:
    """The only task held; else the one whose scope covers all paths; else the one that DIBS_TASK names.

    Else the only one without a scope, if no scope covers the paths.
    """
    if len(mine) == 1:
        return mine[0]
    fitting = covering(mine, paths, ground)
    if len(fitting) == 1:
        return fitting[0]
    named = [task for task in mine if task.key == environment.get(TASK)]
    if named:
        return named[0]
    free = [task for task in mine if not task.scope]
    return free[0] if len(free) == 1 and not fitting else None


def covering(mine: Sequence[Task], paths: Sequence[str], ground: ScopePolicy) -> list[Task]:
    """Tasks whose scope covers every path."""
    if not paths:
        return []
    scopes = (ground.patterns(task.scope) for task in mine)
    reserved = ScopeIndex(scopes, fold=ground.fold, work=work_for(COMMIT))
    left = set(range(len(mine)))
    try:
        for path in paths:
            left &= set(reserved.of(path))
    except TooManySteps:
        return []  # fall back to DIBS_TASK, or none
    return [mine[place] for place in sorted(left)]


# Branches.


def check_refs(board: Board, who: Identity | None, updates: Iterable[str]) -> Refusal | None:
    """Refuses only a session that lost a lease and holds none, and only commits that are new here.

    So fetch, fast-forward, reset, deletion, and everybody else's branches pass.
    """
    if who is None or not board.settings.fence_refs:
        return None
    moved = dict.fromkeys(new for new, ref in moved_to(updates) if ref.startswith(BRANCHES))
    if not moved:
        return None
    seen = check_paths(board, who, (), COMMIT)
    if not seen.verdict.lost or not any(brings_work(commit) for commit in moved):
        return None
    return seen.refusal


def brings_work(commit: str) -> bool:
    """Whether the commit is on no branch yet, local or remote.

    If git cannot tell, it does not count as new.
    """
    status, out = git("rev-list", "-n", "1", commit, "--not", "--branches", "--remotes")
    return status == 0 and bool(out.strip())
