"""Applies events: the task after an event, and the lease or stint that the event ended.

The same function updates the row and, folded over the ledger from the first event on, verifies it.
"""

from __future__ import annotations

from dibs.domain.events.base import Ending, Event, Stint, TaskEvent, lease_of
from dibs.domain.model import EndedLease, EndedStint, Lease, Task
from dibs.domain.values import Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.events.board import ClockSet


def evolve(task: Task, event: TaskEvent | ClockSet, at: Instant) -> Task:
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
    from dibs.domain.events.tasks import (
        Renewed,
    )  # on demand: a hook that only renews needs no events

    if isinstance(event, Renewed):
        return event.lapsed is not None
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
