"""What a command led to."""

from __future__ import annotations

from dibs.core import events as e
from dibs.core.evolve import is_late, taken_by
from dibs.core.instants import Instant
from dibs.core.ledger import Entry
from dibs.core.model import Actor, ActorId, Caller, Task, TaskId, TaskKey
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.stores.transaction import ReadTransaction


class Outcome(Value):
    """What a command led to: the task after it, its events, and who is named in them."""

    caller: Caller
    now: Instant
    task: Task | None = None
    entries: tuple[Entry, ...] = ()
    events: tuple[e.Event, ...] = ()
    """What the entries tell, one for each."""
    actors: Mapping[ActorId, Actor] = {}
    skewed: bool = False
    current: Task | None = None
    """The task as it is now, if the answer is an old one, given again for its request id."""
    seen: Instant | None = None
    """When that was."""
    actor: Actor | None = None
    """The actor that was set."""
    replayed: bool = False
    repeats: e.Event | None = None
    """What the caller had done before: this is the same success again."""
    keys: Mapping[TaskId, TaskKey] = {}
    """Of the tasks that were changed beside the one that the command is about."""
    said: tuple[str, ...] = ()
    """What a person should know about the item files that belong to it."""
    outdated: tuple[str, ...] = ()
    """Refs of items whose tasks changed after their files were compared: nothing was taken in of them."""

    @property
    def late(self) -> bool:
        """The caller's own lease had expired."""
        return any(is_late(event) for event in self.events)

    @property
    def taken(self) -> e.Ending | None:
        """The lease that the command took from somebody."""
        return next((lost for event in self.events if (lost := taken_by(event))), None)

    @property
    def stopped(self) -> tuple[TaskKey, ...]:
        """The tasks on which the caller stopped working, because she began with another one."""
        own = self.task and self.task.id
        return tuple(
            self.keys[entry.task]
            for entry, event in zip(self.entries, self.events)
            if isinstance(event, e.Stopped) and entry.task is not None and entry.task != own
        )


def task_events(outcome: Outcome) -> list[tuple[TaskKey, Entry, e.Event]]:
    """What happened to tasks, in its order, each with the key of its task."""
    keys = dict(outcome.keys)
    if outcome.task is not None:
        keys[outcome.task.id] = outcome.task.key
    return [
        (keys[entry.task], entry, event)
        for entry, event in zip(outcome.entries, outcome.events, strict=True)
        if entry.task is not None
    ]


def actors_named(
    tx: ReadTransaction, task: Task | None, events: tuple[e.Event, ...] = ()
) -> dict[ActorId, Actor]:
    """Everybody whom a task and its events name."""
    ids: list[ActorId | None] = []
    for event in events:
        endings = getattr(event, "ending", None), getattr(event, "former", None)
        ids += [ending.actor for ending in endings if ending is not None]
        if isinstance(event, e.LeaseBegun):
            ids.append(event.actor)
    if task is not None:
        ids += (task.assignee, task.author, task.preferred, task.parked_by, task.creator)
        if task.lease is not None:
            ids.append(task.lease.actor)
    return {actor_id: tx.actor(actor_id) for actor_id in ids if actor_id is not None}
