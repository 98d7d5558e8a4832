"""The result of a command."""

from __future__ import annotations

from dibs.domain.events import tasks as e
from dibs.domain.events.base import is_late, taken_by
from dibs.domain.ledger import Entry
from dibs.domain.model import Actor, ActorId, Caller, Task, TaskId, TaskKey
from dibs.domain.values import Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.storage.transaction import ReadTransaction


class Outcome(Value):
    """The result of a command: the task after it, its events, and the actors that they name."""

    caller: Caller
    now: Instant
    task: Task | None = None
    entries: tuple[Entry, ...] = ()
    events: tuple[e.Event, ...] = ()
    """The events of `entries`, one for each."""
    actors: Mapping[ActorId, Actor] = {}
    skewed: bool = False
    current: Task | None = None
    """The task as it is now, if this is a replayed answer to an earlier request."""
    read_at: Instant | None = None
    """When `current` was read."""
    actor: Actor | None = None
    """The actor that was set."""
    replayed: bool = False
    repeats: e.Event | None = None
    """The caller's earlier event that this command repeats: the same success again."""
    keys: Mapping[TaskId, TaskKey] = {}
    """Keys of the tasks that were changed beside the command's own task."""
    warnings: tuple[str, ...] = ()
    """For the user, such as about item files."""
    outdated: tuple[str, ...] = ()
    """Refs of items whose tasks changed after their files were compared: nothing was imported from them."""

    @property
    def late(self) -> bool:
        """Whether the caller's own lease had expired."""
        return any(is_late(event) for event in self.events)

    @property
    def taken(self) -> e.Ending | None:
        """The lease that the command took from its holder."""
        return next((lost for event in self.events if (lost := taken_by(event))), None)

    @property
    def stopped(self) -> tuple[TaskKey, ...]:
        """The tasks on which the caller stopped working because she started this one."""
        own = self.task and self.task.id
        return tuple(
            self.keys[entry.task]
            for entry, event in zip(self.entries, self.events)
            if isinstance(event, e.Stopped) and entry.task is not None and entry.task != own
        )


def task_events(outcome: Outcome) -> list[tuple[TaskKey, Entry, e.Event]]:
    """The task events in order, each with the key of its task."""
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
    """All actors that a task and its events name."""
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
