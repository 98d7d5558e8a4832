"""The sweep: ends the leases of the dead, and whatever still runs of them, and offers their tasks again.

A look comes first, and costs no turn to write: where everybody lives, nothing is written.
"""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.known import Evidence
from dibs.board.liveness import judged, leases_of
from dibs.board.survivors import end_survivors
from dibs.core import commands as c
from dibs.core.instants import Duration, Instant
from dibs.core.model import GRACE, SWEPT_AT_ONCE, Task
from dibs.core.recovery import lease_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome


def sweep(
    board: Board, who: Identity, grace: Duration = GRACE, limit: int = SWEPT_AT_ONCE
) -> Outcome | None:
    """One bounded pass; nothing if there was nothing to do."""
    leases = leases_of(board)
    seen = judged(board, leases)
    with board.read() as tx:
        expired, now = tx.tasks_expired(limit), tx.now
    over = {task.id for task in expired if is_over(task, now, grace, seen)}
    if not seen.deaths and not over and all(suspected(task) for task in expired):
        return None
    for lease in leases:
        if lease.task in over:  # the command of a run that lives, and renews nothing
            end_survivors(board.store.machine, lease.behind)
    return board.execute(who, c.Sweep(grace, limit))


def suspected(task: Task) -> bool:
    return task.lease is None or task.lease.suspect is not None


def is_over(task: Task, now: Instant, grace: Duration, seen: Evidence) -> bool:
    """The time in which an expired lease can still be renewed is over."""
    lease = task.lease
    if lease is None or lease.suspect is None:
        return False
    return now >= lease_ends(lease, grace, alive=task.id in seen.living)
