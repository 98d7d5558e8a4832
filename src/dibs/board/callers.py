"""Who calls: the actor and session behind an identity, and what is kept of them."""

from __future__ import annotations

from dibs.board.identity import Identity
from dibs.board.settings import Settings
from dibs.core import board_events, refusals
from dibs.core import commands as c
from dibs.core import events as e
from dibs.core.decide import Decision
from dibs.core.model import AGENT, HUMAN, Actor, ActorId, Caller, Place, Session, folded
from dibs.core.refusals import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.stores.transaction import ReadTransaction, WriteTransaction


def caller_of(tx: ReadTransaction, who: Identity, settings: Settings) -> tuple[Caller, bool]:
    """The caller, and whether it is new: it is registered only if its command is accepted."""
    known = tx.actor_named(who.name)
    actor = known or newcomer(tx, who.name, HUMAN if who.person else AGENT, settings)
    if actor.is_human != who.person:
        option = "--as" if actor.is_human else "--agent"
        raise refused(
            "wrong_kind_of_name",
            f"{actor.name} is registered as {'a person' if actor.is_human else refusals.a(actor.kind)}",
            actor=actor.name,
            kind=actor.kind,
            option=option,
        )
    session = who.session
    if who.person and known is not None and session.partition("/")[0]:
        session = own_session(tx, known, session)
    return Caller(actor, session, who.harness, who.behind, place_of(who)), known is None


def place_of(who: Identity) -> Place | None:
    place = who.place
    if place is None or "/" in who.session:
        return None
    return Place(place.host, place.worktree, place.branch)


def own_session(tx: ReadTransaction, person: Actor, session: str) -> str:
    """A person who names herself as her session, by any of her names, means herself."""
    root, slash, child = session.partition("/")
    names = {folded(name) for name in (person.name, *tx.aliases(person))}
    return slash + child if folded(root) in names else session


def newcomer(tx: ReadTransaction, name: str, kind: Any, settings: Settings) -> Actor:
    """Somebody at first use. What the settings say of an agent is a person's word."""
    actor = Actor(ActorId(tx.board.actors + 1), name, kind, settings.default_tier)
    for agent in settings.agents:
        if kind == AGENT and folded(agent.name) == folded(name):
            tier = actor.tier if agent.tier is None else agent.tier
            return actor.but(tier=tier, capabilities=agent.capabilities or ())
    return actor


def register(tx: WriteTransaction, caller: Caller, actor: Actor | None = None) -> None:
    """The caller itself, or another that it names."""
    actor = actor or caller.actor
    tx.register(actor)
    event = board_events.ActorRegistered(
        id=actor.id, name=actor.name, kind=actor.kind, tier=actor.tier
    )
    tx.append_to_board(event, caller)
    if actor.capabilities:
        more = board_events.ActorChanged(**actor.named(), aliases=())
        tx.append_to_board(more, caller)


def changed_actor(
    tx: ReadTransaction, actor: Actor, command: c.SetActor
) -> tuple[Actor, tuple[str, ...]]:
    """The actor with its new settings, and its aliases. A former name stays as an alias."""
    wanted = {f: v for f, v in command.named().items() if f in Actor.fields and v is not None}
    changed = actor.but(**wanted)
    aliases = dict.fromkeys((*tx.aliases(actor), *command.add_aliases))
    if changed.name != actor.name:
        aliases[actor.name] = None
    dropped = {folded(name) for name in (*command.remove_aliases, changed.name)}
    kept = tuple(sorted((name for name in aliases if folded(name) not in dropped), key=folded))
    for name in (changed.name, *kept):
        other = tx.actor_named(name)
        if other is not None and other.id != actor.id:
            raise refused("name_taken", f"{name} is a name of {other.name}", actor=other.name)
    return changed, kept


def session_at(
    who: Identity, caller: Caller, command: c.Command, decision: Decision
) -> Session | None:
    """Where the session works: worth knowing when it takes a task up, has a process, or is watched."""
    takes_up = isinstance(command, c.Claim) or any(
        isinstance(event, (e.LeaseBegun, e.Bound)) for event in decision.events
    )
    place = who.place
    if place is None or caller.is_child:
        return None
    if not (takes_up or place.process is not None or place.watched):
        return None
    return place.but(actor=caller.actor.id, name=caller.session)
