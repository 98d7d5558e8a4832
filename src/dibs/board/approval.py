"""Approved timesheets: load the facts, store approvals, and verify them."""

from __future__ import annotations

from dibs.board.outcome import Outcome
from dibs.domain import commands as c
from dibs.domain.decide.approval import PeriodTotals, period_totals
from dibs.domain.events.board import Approved, Reopened
from dibs.domain.facts import Facts, Period
from dibs.domain.model import Approval
from dibs.domain.stints import WorkedStint
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Board
    from dibs.domain.decision import Decision
    from dibs.domain.instants import Duration, Instant
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Actor, ActorId, Caller
    from dibs.storage.transaction import ReadTransaction, WriteTransaction


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


def facts_for_approval(tx: ReadTransaction, facts: Facts, command: c.Approve | c.Reopen) -> Facts:
    actor = tx.actor_named(command.actor)
    if actor is None:
        return facts.but(period=Period())
    stints = stints_of(tx, actor.id, command.since, command.until, facts.rules.idle_after)
    approved = tuple(tx.approvals(actor.id))
    actors = {**facts.actors, actor.id: actor}
    return facts.but(receiver=actor, actors=actors, period=Period(tuple(stints), approved))


def stints_of(
    tx: ReadTransaction, actor: ActorId, since: Instant, until: Instant, idle: Duration
) -> Iterable[WorkedStint]:
    return (WorkedStint(*row[:-1]) for row in tx.stints_and_tasks(since, until, actor, idle))


def write_approval(
    tx: WriteTransaction, caller: Caller, facts: Facts, decision: Decision
) -> Outcome:
    """Writes the event to the board's own chain, and the approval in force to its row."""
    [event] = decision.events
    entry = tx.append_to_board(event, caller)
    if isinstance(event, Approved):
        tx.add_approval(entry.seq, event)
    elif isinstance(event, Reopened):
        tx.reopen(event.approval, entry.seq)
    named = {caller.actor.id: caller.actor, **facts.actors}
    return Outcome(caller, tx.now, None, (entry,), (event,), named, tx.skewed, actor=facts.receiver)


def check(board: Board, actor: str | None = None) -> list[Checked]:
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
    said: dict[int, Approval] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, Approved):
            said[entry.seq] = Approval(entry.seq, **event.named())
        elif isinstance(event, Reopened) and event.approval in said:
            said[event.approval] = said[event.approval].but(reopened=entry.seq)
    kept = {one.seq: one for one in tx.all_approvals()}
    return [] if kept == said else ["the board: its approved periods are not those of the ledger"]
