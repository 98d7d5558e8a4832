"""Decides commands about the board itself: actors, clock, pause, settings, moves, restores, epochs. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events.base import ending_of
from dibs.domain.events.board import (
    ActorChanged,
    ClockSet,
    EpochRaised,
    Paused,
    Unpaused,
    registration,
)
from dibs.domain.events.tasks import LeaseEnded
from dibs.domain.facts import ActorFacts, BoardFacts, ClockFacts, EpochFacts
from dibs.domain.model import Actor, folded_name
from dibs.domain.refusals import Refusal
from dibs.domain.values import SECOND

RESTORE = "restore"


def pause(facts: BoardFacts, command: c.Pause) -> Decision:
    """Stops the offering of tasks. A second pause changes nothing."""
    return Decision(() if facts.is_paused else (Paused(reason=command.reason.strip()),))


def resume(facts: BoardFacts, _command: c.Resume) -> Decision:
    return Decision((Unpaused(),) if facts.is_paused else ())


def set_clock(facts: ClockFacts, command: c.SetClock) -> Decision:
    return Decision((ClockSet(by=facts.by, reason=command.reason.strip()),))


def move_board(facts: ClockFacts, command: c.MoveBoard) -> Decision:
    return Decision((ClockSet(by=facts.by, reason=command.reason),))


def set_settings(_facts: BoardFacts, command: c.SetSettings) -> Decision:
    """Settings are no part of the ledger."""
    return Decision(settings=command.settings)


# Epochs: after a failover or a restore, new tokens exceed any that may have been lost.


def restore_board(facts: EpochFacts, command: c.RestoreBoard) -> Decision:
    return next_epoch(facts, RESTORE, command.reason)


def begin_epoch(facts: EpochFacts, command: c.BeginEpoch) -> Decision:
    return next_epoch(facts, command.why)


def next_epoch(facts: EpochFacts, why: str, reason: str = "") -> Decision:
    """The epoch above the highest known, and not below the clock. A restore ends every lease.

    Nobody is known to have worked since the copy: stints end at the last sign of life.
    """
    epoch = max(facts.highest + 1, facts.now // SECOND)
    raised = EpochRaised(epoch=epoch, why=why, reason=reason)
    ended = (
        Change(task, (LeaseEnded(ending=ending_of(task, facts.now, silent=True), why="restored"),))
        for task in facts.held
    )
    return Decision((raised,), others=tuple(ended))


# Actors.


def set_actor(facts: ActorFacts, command: c.SetActor) -> Decision:
    """Changes an actor; an unknown one of a given kind is registered first."""
    actor = facts.known or facts.fresh
    assert actor is not None, "an unknown actor without a kind was refused before"
    events = () if facts.known is not None else registration(actor)
    changed, aliases = changed_actor(actor, facts.aliases, command)
    if changed != actor or aliases != facts.aliases:
        events += (ActorChanged(**changed.named(), aliases=aliases),)
    return Decision(events, actor=changed)


def changed_actor(
    actor: Actor, aliases: tuple[str, ...], command: c.SetActor
) -> tuple[Actor, tuple[str, ...]]:
    """The actor with its new settings, and its aliases. A former name remains an alias."""
    wanted = {f: v for f, v in command.named().items() if f in Actor.fields and v is not None}
    changed = actor.but(**wanted)
    names = dict.fromkeys((*aliases, *command.add_aliases))
    if changed.name != actor.name:
        names[actor.name] = None
    dropped = {folded_name(name) for name in (*command.remove_aliases, changed.name)}
    kept = (name for name in names if folded_name(name) not in dropped)
    return changed, tuple(sorted(kept, key=folded_name))


def names_are_free(facts: ActorFacts) -> Refusal | None:
    """No new name or alias of the actor is a name of another actor."""
    for name, other in facts.taken.items():
        return Refusal("name_taken", f"{name} is a name of {other.name}", {"actor": other.name})
    return None
