"""Approved timesheets: what is read before one is decided on, how it is kept, and proved afterwards."""

from __future__ import annotations

from dibs.board.outcome import Outcome
from dibs.core import commands as c
from dibs.core.approving import Reckoned, reckoned
from dibs.core.board_events import Approved, Reopened
from dibs.core.facts import Facts, Period
from dibs.core.model import Approval
from dibs.core.values import Value
from dibs.core.worked import Worked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Board
    from dibs.core.decide import Decision
    from dibs.core.instants import Duration, Instant
    from dibs.core.ledger import Entry
    from dibs.core.model import Actor, ActorId, Caller
    from dibs.stores.transaction import ReadTransaction, WriteTransaction


class Checked(Value):
    """An approval, and what its period comes to now."""

    approval: Approval
    actor: Actor
    by: Actor
    now: Reckoned

    @property
    def holds(self) -> bool:
        one = self.approval
        return self.now == Reckoned(one.stints, one.effort, one.working, one.digest)


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
) -> Iterable[Worked]:
    return (Worked(*row[:-1]) for row in tx.stints_and_tasks(since, until, actor, idle))


def carried_out(tx: WriteTransaction, caller: Caller, facts: Facts, decision: Decision) -> Outcome:
    """The event stands in the board's own chain; the row says what is in force."""
    [event] = decision.events
    entry = tx.append_to_board(event, caller)
    if isinstance(event, Approved):
        tx.add_approval(entry.seq, event)
    elif isinstance(event, Reopened):
        tx.reopen(event.approval, entry.seq)
    named = {caller.actor.id: caller.actor, **facts.actors}
    return Outcome(caller, tx.now, None, (entry,), (event,), named, tx.skewed, actor=facts.receiver)


def check(board: Board, actor: str | None = None) -> list[Checked]:
    """Every approval in force, recomputed from the stints as they are now."""
    from dibs.board.stints import actor_of

    with board.read() as tx:
        whose = actor_of(tx, actor)
        found = []
        for one in tx.approvals(None if whose is None else whose.id):
            stints = stints_of(tx, one.actor, one.since, one.until, board.settings.idle_after)
            now = reckoned(stints, one.since, one.until)
            found.append(Checked(one, tx.actor(one.actor), tx.actor(tx.author_of(one.seq)), now))
        return found


def faults(own: list[Entry], tx: ReadTransaction) -> list[str]:
    """Approvals are those of the ledger."""
    said: dict[int, Approval] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, Approved):
            said[entry.seq] = Approval(entry.seq, **event.named())
        elif isinstance(event, Reopened) and event.approval in said:
            said[event.approval] = said[event.approval].but(reopened=entry.seq)
    kept = {one.seq: one for one in tx.all_approvals()}
    return [] if kept == said else ["the board: its approved periods are not those of the ledger"]
