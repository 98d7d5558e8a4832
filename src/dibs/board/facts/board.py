"""Facts for commands about the board itself, and about actors."""

from __future__ import annotations

from dibs.board.identity import newcomer
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.decide.board import RESTORE, changed_actor
from dibs.domain.facts import ActorFacts, BoardFacts, ClockFacts, EpochFacts, Evidence, Facts
from dibs.domain.model import ActorId, folded_name
from dibs.domain.values import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.storage.transaction import ReadTransaction

EVERY_LEASE = 1_000_000
"""The limit of leases that are read at once: all of them."""


def load_board(tx: ReadTransaction, basis: Facts, settings: Settings, evidence: Evidence) -> Facts:
    command = basis.command
    if isinstance(command, c.SetActor):
        return load_actor(tx, basis, command, settings)
    if isinstance(command, c.SetClock):
        assert evidence.wall is not None, "read before"
        return basis.widened(ClockFacts, by=between(tx.now, evidence.wall))
    if isinstance(command, c.MoveBoard):
        former = tx.now if evidence.former_clock is None else evidence.former_clock
        return basis.widened(ClockFacts, by=between(former, tx.now))
    if isinstance(command, c.RestoreBoard):
        return load_epochs(tx, basis, evidence, RESTORE)
    if isinstance(command, c.BeginEpoch):
        return load_epochs(tx, basis, evidence, command.why)
    return basis.widened(BoardFacts, is_paused=tx.board.paused_by is not None)


def load_epochs(tx: ReadTransaction, basis: Facts, evidence: Evidence, why: str) -> EpochFacts:
    held = tx.tasks_held(EVERY_LEASE) if why == RESTORE else ()
    highest = max(tx.board.epoch, tx.highest().epoch, evidence.known_epoch)
    return basis.widened(EpochFacts, highest=highest, held=tuple(held))


def load_actor(
    tx: ReadTransaction, basis: Facts, command: c.SetActor, settings: Settings
) -> ActorFacts:
    caller = basis.caller.actor
    own = folded_name(command.actor) == folded_name(caller.name)
    known, fresh = caller if own else tx.actor_named(command.actor), None
    if known is None and command.kind is not None:
        fresh = newcomer(tx, command.actor, command.kind, settings)
        if fresh.id == caller.id:  # the caller is new, too
            fresh = fresh.but(id=ActorId(fresh.id + 1))
    actor = known or fresh
    if actor is None:
        return basis.widened(ActorFacts)
    aliases = tx.aliases(actor)
    changed, kept = changed_actor(actor, aliases, command)
    owners = {name: tx.actor_named(name) for name in (changed.name, *kept)}
    taken = {name: one for name, one in owners.items() if one is not None and one.id != actor.id}
    actors = {changed.id: changed, caller.id: caller}
    facts = basis.widened(ActorFacts, known=known, fresh=fresh, aliases=aliases, taken=taken)
    return facts.but(actors=actors)
