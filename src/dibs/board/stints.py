"""Periods of work as the ledger tells them: each is recorded by the event that ended it."""

from __future__ import annotations

from dibs.core import events as e
from dibs.core.evolve import sign_of_life
from dibs.core.values import Value
from dibs.core.worked import CLAIM, OPEN, Worked, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.board.execute import Board
    from dibs.core.instants import Instant
    from dibs.core.ledger import Entry
    from dibs.core.model import Actor, ActorId, TaskId, TaskKey
    from dibs.stores.transaction import ReadTransaction

HELD_AT_MOST = 1_000_000


class Record(Value):
    """Who worked on what, in a period; and what the names and titles are."""

    board: str
    now: Instant
    stints: tuple[Worked, ...]
    actors: Mapping[ActorId, Actor]
    titles: Mapping[TaskKey, str]
    actor: Actor | None = None
    """Whose stints they are, if only one actor's were asked for, by any of its names."""


def worked(board: Board, since: Instant, until: Instant, actor: str | None = None) -> Record:
    """All stints that touch the period, by actor, then by start; those that are open until now."""
    from dibs.core.refusals import Refused, unknown_actor

    with board.read() as tx:
        actors = tx.actors()
        wanted = None if actor is None else tx.actor_named(actor)
        if actor is not None and wanted is None:
            raise Refused(unknown_actor(actor))
        found = [
            stint
            for stint in (*over(tx), *running(tx))
            if stint.end >= since and stint.start < until
            if wanted is None or stint.actor == wanted.id
        ]
        tasks = (tx.task(key) for key in {stint.key for stint in found})
        titles = {task.key: task.terms.title for task in tasks if task is not None}
        return Record(tx.board.uid, tx.now, tuple(in_order(found)), actors, titles, wanted)


def over(tx: ReadTransaction) -> Iterator[Worked]:
    keys: dict[TaskId, TaskKey] = {}
    for entry in tx.events_with_stint():
        stint, who = recorded(entry)
        if stint is None or entry.task is None:
            continue
        if entry.task not in keys:
            keys |= tx.keys_of({entry.task})
        yield Worked(
            who, stint.started, stint.ended, keys[entry.task], source=CLAIM, number=entry.seq
        )


def recorded(entry: Entry) -> tuple[e.Stint | None, ActorId]:
    """The stint that an event ended, and whose it was."""
    event = entry.event
    ending: e.Ending | None = getattr(event, "ending", None)
    if ending is not None:
        return ending.stint, ending.actor
    stint: e.Stint | None = getattr(event, "stint", None)
    return stint, entry.actor


def running(tx: ReadTransaction) -> Iterator[Worked]:
    """Open ones: until now, or until the last sign of life of a lease that has expired."""
    for task in tx.tasks_held(HELD_AT_MOST):
        lease = task.lease
        if lease is not None and lease.stint is not None:
            end = max(lease.stint, sign_of_life(lease, tx.now))
            yield Worked(lease.actor, lease.stint, end, task.key, source=OPEN)


class Happened(Value):
    """What an actor did, or what was done to its lease."""

    at: Instant
    what: str
    key: TaskKey
    text: str = ""


def moments(board: Board, actor: ActorId, since: Instant, until: Instant) -> list[Happened]:
    """Claims, notes, ends and takeovers of one actor in a period, in their order."""
    found: list[Happened] = []
    with board.read() as tx:
        for entry in tx.events():
            if entry.task is None or not since <= entry.at < until:
                continue
            event = entry.event
            lost = getattr(event, "ending", None)
            if entry.actor == actor:
                what = event.verb.replace("_", " ")
            elif lost is not None and lost.actor == actor:
                what = f"lost it: {event.verb.replace('_', ' ')} by {tx.actor(entry.actor).name}"
            else:
                continue
            key = tx.keys_of({entry.task})[entry.task]
            found.append(Happened(entry.at, what, key))
    return found
