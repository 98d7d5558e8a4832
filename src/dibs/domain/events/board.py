"""Ledger events about the board itself."""

from __future__ import annotations

from dibs.domain.events.base import Event
from dibs.domain.model import Actor, ActorId, Task
from dibs.domain.values import Duration, Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Kind


class ActorRegistered(Event):
    verb = "actor_registered"
    id: ActorId
    name: str
    kind: Kind
    tier: int


class ActorChanged(Event):
    """The actor's new values."""

    verb = "actor_changed"
    id: ActorId
    name: str
    kind: Kind
    tier: int
    capabilities: tuple[str, ...]
    zone: str
    aliases: tuple[str, ...]


class ClockSet(Event):
    """The board's clock was re-anchored. Running leases shift with it, so none gets shorter."""

    verb = "clock_set"
    by: Duration
    reason: str

    def evolve(self, task: Task, at: Instant) -> Task:
        return task if task.lease is None else task.but(lease=task.lease.shifted(self.by))


class Paused(Event):
    """No task is offered until somebody resumes."""

    verb = "paused"
    reason: str


class Unpaused(Event):
    verb = "unpaused"


class Approved(Event):
    """A person confirmed the hours of an actor in a period, as the stints were then."""

    verb = "approved"
    actor: ActorId
    since: Instant
    until: Instant
    zone: str
    label: str
    stints: int
    effort: Duration
    working: Duration
    digest: str


class Reopened(Event):
    """An approved period may be corrected again."""

    verb = "reopened"
    approval: int
    actor: ActorId
    label: str
    reason: str


class EpochRaised(Event):
    """New tokens of the board have a higher epoch, so that lost tokens are never issued again."""

    verb = "epoch_raised"
    epoch: int
    why: str
    reason: str = ""


BOARD_EVENTS: tuple[type[Event], ...] = (
    ActorRegistered, ActorChanged, ClockSet, Paused, Unpaused, Approved, Reopened,
    EpochRaised,
)  # fmt: skip


def registration(actor: Actor) -> tuple[Event, ...]:
    """The events of a new actor."""
    registered = ActorRegistered(id=actor.id, name=actor.name, kind=actor.kind, tier=actor.tier)
    more = (ActorChanged(**actor.named(), aliases=()),) if actor.capabilities else ()
    return (registered, *more)
