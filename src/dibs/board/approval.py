"""Approved timesheets: load the facts, store approvals, and verify them."""

from __future__ import annotations

from dibs.domain.decide.approval import PeriodTotals, period_totals
from dibs.domain.events.board import Approved, Reopened
from dibs.domain.model import Approval
from dibs.domain.stints import WorkedStint
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.retry import ReadableBoard
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Actor, ActorId
    from dibs.domain.values import Duration, Instant
    from dibs.storage.transaction import ReadTransaction


class Checked(Value):
    """An approval, and the totals of its period as they are now."""

    approval: Approval
    actor: Actor
    by: Actor
    now: PeriodTotals

    @property
    def holds(self) -> bool:
        one = self.approval
        return self.now == PeriodTotals(one.stints, one.effort, one.working, one.digest)


def stints_of(
    tx: ReadTransaction, actor: ActorId, since: Instant, until: Instant, idle: Duration
) -> Iterable[WorkedStint]:
    return (WorkedStint(*row[:-1]) for row in tx.stints_and_tasks(since, until, actor, idle))


def check(board: ReadableBoard, actor: str | None = None) -> list[Checked]:
    """Every approval in force, recomputed from the current stints."""
    from dibs.board.stints import actor_of

    with board.read() as tx:
        whose = actor_of(tx, actor)
        found = []
        for one in tx.approvals(None if whose is None else whose.id):
            stints = stints_of(tx, one.actor, one.since, one.until, board.settings.idle_after)
            now = period_totals(stints, one.since, one.until)
            found.append(Checked(one, tx.actor(one.actor), tx.actor(tx.author_of(one.seq)), now))
        return found


def faults(own: list[Entry], tx: ReadTransaction) -> list[str]:
    """Checks the approvals against the ledger."""
    recorded: dict[int, Approval] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, Approved):
            recorded[entry.seq] = Approval(entry.seq, **event.named())
        elif isinstance(event, Reopened) and event.approval in recorded:
            recorded[event.approval] = recorded[event.approval].but(reopened=entry.seq)
    kept = {one.seq: one for one in tx.all_approvals()}
    return (
        [] if kept == recorded else ["the board: its approved periods are not those of the ledger"]
    )
