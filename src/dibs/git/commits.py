"""The guard in front of a commit: what is staged, judged; and the lease that it is for, renewed."""

from __future__ import annotations

from dibs.board.guarding import look
from dibs.core.commands import Renew
from dibs.core.guarding import COMMIT
from dibs.core.refusals import Refused
from dibs.core.values import Value
from dibs.git.acting import acting
from dibs.git.changes import is_merge, paths_of, staged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board.execute import Board
    from dibs.board.guarding import Look
    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.core.refusals import Refusal


class Guarded(Value):
    """What stands against a commit, if anything, and whether that stops it."""

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
) -> Guarded:
    """A merge brings the work of others: of it only that is asked whether the session lost its own.

    Refused, if it is not known what others hold.
    """
    merges = is_merge(repository)
    links = {} if merges else paths_of(staged(), repository)
    paths = list(links)
    seen = look(board, who, paths, COMMIT)
    seen = seen.but(links={path: link for path, link in links.items() if link})
    if merges and not seen.verdict.lost:
        return Guarded()
    if seen.verdict.stops:
        return Guarded(seen.refusal, stops=True, paths=len(paths))
    task = acting(seen.known.mine, paths, seen.known.ground, environment)
    found = Guarded(seen.refusal, paths=len(paths), task=task.key if task else "")
    if who is not None and task is not None:
        found = found.but(warning=renewed(board, who, seen, task.key))
    if seen.doubt is not None:
        raise Refused(seen.doubt)
    return found


def renewed(board: Board, who: Identity, seen: Look, key: str) -> str:
    """A commit is a sign of life. That it could not be written down is no reason against it."""
    task = next(task for task in seen.known.mine if task.key == key)
    try:
        board.execute(who, Renew(task.key, here=True))
    except Refused as problem:
        return f"the lease of {task.key} was not renewed: {problem}"
    return ""
