"""Decides commands about the board itself: actors, clock, pause, settings, moves and restores. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Decision
from dibs.domain.events.board import ActorChanged, ClockSet, Paused, Unpaused, registration
from dibs.domain.facts import ActorFacts, BoardFacts, ClockFacts
from dibs.domain.model import Actor, folded_name
from dibs.domain.refusals import Refusal


def pause(facts: BoardFacts, command: c.Pause) -> Decision:
    """Stops the offering of tasks. A second pause changes nothing."""
    return Decision(() if facts.is_paused else (Paused(reason=command.reason.strip()),))


def resume(facts: BoardFacts, _command: c.Resume) -> Decision:
    return Decision((Unpaused(),) if facts.is_paused else ())


def set_clock(facts: ClockFacts, command: c.SetClock) -> Decision:
    return Decision((ClockSet(by=facts.by, reason=command.reason.strip()),))


def permitted(_facts: BoardFacts, _command: c.Command) -> Decision:
    """The board is copied, replaced or configured as a whole: the guards decide whether, `board/transfer` how."""
    return Decision()


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
