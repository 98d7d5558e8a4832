"""The sweep: ends the leases of the dead, kills their orphan processes, and offers their tasks again.

It reads first, without the write lock: where everybody is alive, nothing is written.
"""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.liveness import end_survivors, evidence_for, leases_of
from dibs.domain import commands as c
from dibs.domain.decide.recovery import lease_ends
from dibs.domain.facts import Evidence
from dibs.domain.model import GRACE, SWEPT_AT_ONCE, Task
from dibs.domain.values import Duration, Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome


def sweep(
    board: Board, who: Identity, grace: Duration = GRACE, limit: int = SWEPT_AT_ONCE
) -> Outcome | None:
    """One bounded pass; None if there was nothing to do."""
    leases = leases_of(board)
    seen = evidence_for(board, leases)
    with board.read() as tx:
        expired, now = tx.tasks_expired(limit), tx.now
    over = {task.id for task in expired if is_past_grace(task, now, grace, seen)}
    if not seen.deaths and not over and all(suspected(task) for task in expired):
        return None
    for lease in leases:
        if lease.task in over:  # a run that lives but does not renew: kill its command
            end_survivors(board.store.machine, lease.behind)
    return board.execute(who, c.Sweep(grace, limit))


def suspected(task: Task) -> bool:
    return task.lease is None or task.lease.suspect is not None


def is_past_grace(task: Task, now: Instant, grace: Duration, seen: Evidence) -> bool:
    """Whether the grace period in which an expired lease can be renewed is over."""
    lease = task.lease
    if lease is None or lease.suspect is None:
        return False
    return now >= lease_ends(lease, grace, alive=task.id in seen.living)
