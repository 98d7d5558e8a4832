"""What a ledger event is, and what it does to a task; the events that leave a task unchanged."""

from __future__ import annotations

from dibs.domain.model import (
    IN_PROGRESS,
    NOWHERE,
    OPEN,
    ActorId,
    EndedLease,
    EndedStint,
    Lease,
    Place,
    Task,
    Token,
)
from dibs.domain.values import Duration, Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Protocol

    from dibs.domain.model import State

    class Evolving(Protocol):
        """An event that changes a task: one of its own, or one of the board that moves its clock."""

        def evolve(self, task: Task, at: Instant) -> Task: ...


USAGE = "usage_reported"
"""The verb of a report of usage: stores and folds know it without loading the events of stints."""


class Stint(Value):
    """One unbroken period of work that has ended."""

    started: Instant
    ended: Instant


class Ending(Value):
    """The final record of a lease: its last renewal, and the stint that ended with it."""

    token: Token
    actor: ActorId
    session: str | None
    acquired: Instant
    renewed: Instant
    expires: Instant
    renewals: int
    late: bool
    stint: Stint | None = None
    host: str = ""
    worktree: str = ""
    branch: str = ""
    uncommitted: tuple[str, ...] | None = None
    """Files that were not committed there; `None`: nobody looked."""
    not_looked_at: str = ""


class Event(Value):
    """One entry of the ledger."""

    verb: ClassVar[str]
    cause: ClassVar[str] = ""
    """Why a lease ended, if the event ends one."""

    moves: ClassVar[bool] = False
    """Whether it may change the task's state or holder."""

    @property
    def takes(self) -> bool:
        """Whether the lease that this event ends is taken from its holder, not given up."""
        return False


class TaskEvent(Event):
    """An event about one task."""

    def evolve(self, task: Task, at: Instant) -> Task:
        raise NotImplementedError


class RecordOnlyEvent(TaskEvent):
    """An event that does not change its task."""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task


class Received(RecordOnlyEvent):
    """A repeated delivery of the same request. `differs`: its payload is not the first one's."""

    verb = "received"
    digest: str = ""
    delivery: str = ""
    differs: bool = False


class Noted(RecordOnlyEvent):
    """A note. `late`: the verb of a former holder whose text was kept."""

    verb = "noted"
    note: str
    late: str = ""


class Redacted(RecordOnlyEvent):
    """The text of the note of event `of` was removed. That event keeps its digest."""

    verb = "redacted"
    of: int
    reason: str = ""


class Acknowledged(RecordOnlyEvent):
    """A former holder acknowledged the loss of the lease `lost`."""

    verb = "acknowledged"
    lost: Token


class Allowed(RecordOnlyEvent):
    """A person let an actor touch paths that the task reserves, for a limited time."""

    verb = "allowed"
    paths: tuple[str, ...]
    to: ActorId
    until: Instant
    reason: str


class LeaseBegun(TaskEvent):
    """A new lease, with all fields fresh. `ending` is the record of the lease that it replaced, if any.

    `former` is the record of a lease that a sweep ended before: who worked on the task, and where.
    """

    token: Token
    actor: ActorId
    session: str | None
    ttl: Duration
    reason: str = ""
    ending: Ending | None = None
    former: Ending | None = None
    place: Place | None = None
    moves = True
    is_attempt: ClassVar[bool] = True
    """Whether the new holder of a task in progress starts a new attempt or continues the current one."""

    @property
    def takes(self) -> bool:
        return self.is_attempt

    def evolve(self, task: Task, at: Instant) -> Task:
        in_progress = task.state == IN_PROGRESS
        lease = Lease(
            actor=self.actor,
            session=self.session,
            acquired=at,
            renewed=at,
            ttl=self.ttl,
            reason=self.reason,
            stint=at if in_progress and self.session is not None else None,
            place=self.place or NOWHERE,
        )
        return task.but(
            token=self.token,
            lease=lease,
            assignee=None if lease.bound else self.actor,
            preferred=None,
            rests_until=None,
            attempts=task.attempts + (in_progress and self.is_attempt),
            item=task.item and task.item.but(locked=""),  # the lease replaces the lock in the file
        )


class EndsLease(TaskEvent):
    """An event that leaves its task without a lease."""

    moves = True
    state: ClassVar[State]
    ending: Ending | None = None

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(state=self.state, lease=None)


def lease_of(task: Task) -> Lease:
    if task.lease is None:
        message = f"{task.key} has no lease"
        raise ValueError(message)
    return task.lease


def reset_task(task: Task) -> Task:
    """The task without any trace of holders, authors and attempts. The only list of these fields."""
    return task.but(
        state=OPEN,
        lease=None,
        assignee=None,
        author=None,
        preferred=None,
        blocked_on="",
        attempts=0,
        rests_until=None,
    )


def without_a_lease(task: Task) -> State:
    """The state of a task whose lease ended without setting one: no longer in progress."""
    return OPEN if task.state == IN_PROGRESS else task.state


# Applying events: the task after one, and the lease or stint that it ended. The same function updates the row and,
# folded over the ledger from the first event on, verifies it.


def evolve(task: Task, event: Evolving, at: Instant) -> Task:
    """The task after the event."""
    return event.evolve(task, at).but(updated=at)


def ended_lease(event: Event, at: Instant, seq: int) -> EndedLease | None:
    """The lease that the event ended, with the stint that ended with it; `None` if it ended none."""
    ending: Ending | None = getattr(event, "ending", None)
    if ending is None:
        return None
    started, ended = ending.stint or (None, None)
    return EndedLease(
        token=ending.token,
        actor=ending.actor,
        session=ending.session,
        acquired=ending.acquired,
        renewed=ending.renewed,
        expires=ending.expires,
        renewals=ending.renewals,
        ended=at,
        cause=event.cause,
        lost=event.takes and ending.session is not None,
        seq=seq,
        stint_started=started,
        stint_ended=ended,
        host=ending.host,
        worktree=ending.worktree,
        branch=ending.branch,
    )


def ended_stint(event: Event, before: Task, seq: int) -> EndedStint | None:
    """The stint that the event ended or corrected, if its lease did not end with it."""
    stint: Stint | None = getattr(event, "stint", None)
    if stint is None:
        return None
    source: str | None = getattr(event, "source", None)
    if source is None:
        return EndedStint(seq, lease_of(before).actor, stint.started, stint.ended, "claim")
    fields = event.named()
    kept = {name: fields[name] for name in EndedStint.fields if name in fields}
    return EndedStint(seq=seq, started=stint.started, ended=stint.ended, source=source, **kept)


def is_late(event: Event) -> bool:
    """Whether a holder did this after its lease had expired; it was accepted anyway."""
    if getattr(event, "lapsed", None) is not None:  # a renewal after expiry
        return True
    ending: Ending | None = getattr(event, "ending", None)
    return ending is not None and ending.late and not event.takes


def taken_by(event: Event) -> Ending | None:
    """The lease that the event took from its holder, or that a sweep had taken before."""
    ending: Ending | None = getattr(event, "ending", None)
    if ending is not None and event.takes:
        return ending
    former: Ending | None = getattr(event, "former", None)
    return former


def renew(task: Task, at: Instant) -> Task:
    """The task with its lease renewed at `at`. A renewal alone is not an event."""
    lease = lease_of(task)
    return task.but(lease=lease.but(renewed=at, renewals=lease.renewals + 1, suspect=None))


def sign_of_life(lease: Lease, now: Instant) -> Instant:
    """The last instant at which the holder is known to have worked: now, or the last renewal if expired."""
    return now if lease.live(now) else lease.renewed


def stint_until(lease: Lease, end: Instant) -> Stint | None:
    return None if lease.stint is None else Stint(lease.stint, max(lease.stint, end))


def ending_of(task: Task, now: Instant, *, silent: bool = False) -> Ending | None:
    """The final record of the task's lease, with the stint that ends with it.

    `silent`: the holder is dead, or is monitored and was idle. It then worked only until its last renewal,
    although the lease may still be live.
    """
    lease = task.lease
    if lease is None:
        return None
    return Ending(
        token=task.token,
        actor=lease.actor,
        session=lease.session,
        acquired=lease.acquired,
        renewed=lease.renewed,
        expires=lease.expires,
        renewals=lease.renewals,
        late=not lease.live(now),
        stint=stint_until(lease, lease.renewed if silent else sign_of_life(lease, now)),
        host=lease.place.host,
        worktree=lease.place.worktree,
        branch=lease.place.branch,
    )
