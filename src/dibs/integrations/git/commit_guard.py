"""The pre-commit guard: checks the staged paths, and renews the lease that the commit is made under."""

from __future__ import annotations

from dibs.board.path_access import check_paths
from dibs.domain.commands import Renew
from dibs.domain.refusals import Refused
from dibs.domain.scopes.access import COMMIT
from dibs.domain.values import Value
from dibs.integrations.git.acting_lease import acting
from dibs.integrations.git.changes import is_merge, paths_of, staged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.board.path_access import PathVerdict
    from dibs.domain.refusals import Refusal


class CommitCheck(Value):
    """The result of the check: the refusal, if any, and whether it stops the commit."""

    refusal: Refusal | None = None
    stops: bool = False
    paths: int = 0
    task: str = ""
    """The task that the commit is for."""
    warning: str = ""


def commit(
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
