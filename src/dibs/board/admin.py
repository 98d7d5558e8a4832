"""Board administration: actors, clock, pause, approvals. Each change is one event of the board."""

from __future__ import annotations

from dibs.board.callers import changed_actor, newcomer, register
from dibs.board.outcome import Outcome
from dibs.domain import commands as c
from dibs.domain.events import board as board_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Board
    from dibs.board.settings import Settings
    from dibs.domain.decision import Decision
    from dibs.domain.events.base import Event
    from dibs.domain.facts import Facts
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Caller
    from dibs.storage.transaction import WriteTransaction


def administer(
    board: Board, tx: WriteTransaction, facts: Facts, command: c.Command, decision: Decision
) -> Outcome:
    caller = facts.caller
    if isinstance(command, c.SetActor):
        return set_actor(tx, caller, command, board.settings)
    if isinstance(command, c.Approve | c.Reopen):
        from dibs.board.approval import write_approval

        return write_approval(tx, caller, facts, decision)
    if isinstance(command, c.Pause | c.Resume):
        return set_pause(tx, caller, command)
    assert isinstance(command, c.SetClock), command.verb
    by = board.store.set_clock(tx)
    return append_board_events(
        tx, caller, board_events.ClockSet(by=by, reason=command.reason.strip())
    )


def set_actor(
    tx: WriteTransaction, caller: Caller, command: c.SetActor, settings: Settings
) -> Outcome:
    """Changes an actor; an unknown one of a given kind is registered with these settings."""
    actor = tx.actor_named(command.actor)
    if actor is None:
        assert command.kind is not None, "an unknown actor without a kind was refused before"
        actor = newcomer(tx, command.actor, command.kind, settings)
        register(tx, caller, actor)
    changed, aliases = changed_actor(tx, actor, command)
    entries: tuple[Entry, ...] = ()
    events: tuple[Event, ...] = ()
    if changed != actor or aliases != tx.aliases(actor):
        tx.change_actor(changed, aliases)
        events = (board_events.ActorChanged(**changed.named(), aliases=aliases),)
        entries = (tx.append_to_board(events[0], caller),)
    named = {changed.id: changed, caller.actor.id: caller.actor}
    return Outcome(caller, tx.now, None, entries, events, named, tx.skewed, actor=changed)


def set_pause(tx: WriteTransaction, caller: Caller, command: c.Pause | c.Resume) -> Outcome:
    """Pauses or resumes the offering of work, recorded in the board's row; a second pause changes nothing."""
    pauses, is_paused = isinstance(command, c.Pause), tx.board.paused_by is not None
    if pauses == is_paused:
        return append_board_events(tx, caller)
    reason = command.reason.strip() if isinstance(command, c.Pause) else ""
    tx.pause(caller.actor.id if pauses else None, reason)
    return append_board_events(
        tx, caller, board_events.Paused(reason=reason) if pauses else board_events.Unpaused()
    )


def append_board_events(tx: WriteTransaction, caller: Caller, *events: Event) -> Outcome:
    entries = tuple(tx.append_to_board(event, caller) for event in events)
    named = {caller.actor.id: caller.actor}
    return Outcome(caller, tx.now, entries=entries, events=events, actors=named)
