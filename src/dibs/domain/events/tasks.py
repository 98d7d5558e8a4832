"""Events: one class per ledger entry, in the past tense, each with its effect on a task.

Only `evolve` changes a task. The ledger stores the digest of a `note`, not its text.
"""

from __future__ import annotations

from dibs.domain.events.base import (
    Acknowledged,
    Allowed,
    Ending,  # noqa: F401 - re-exported: this module offers all event classes
    EndsLease,
    Event,
    LeaseBegun,
    Noted,
    Received,
    Redacted,
    Stint,
    TaskEvent,
    lease_of,
    reset_task,
    without_a_lease,
)
from dibs.domain.model import (
    ATTEMPTS_MAX,
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    IN_PROGRESS,
    OPEN,
    REVIEW,
    ActorId,
    ItemSnapshot,
    Place,
    Task,
    TaskId,
    TaskKey,
    Terms,
)  # fmt: skip
from dibs.domain.values import Duration, Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import State


class Added(Event):
    """The first event of a task."""

    verb = "added"
    uid: str
    key: TaskKey
    terms: Terms
    scope: tuple[str, ...] = ()
    channel: str | None = None
    origin_ask_ref: str | None = None
    after: tuple[TaskKey, ...] = ()
    waits_on: int = 0
    item: ItemSnapshot | None = None
    url: str = ""
    digest: str = ""
    delivery: str = ""

    def task(self, task_id: TaskId, creator: ActorId, at: Instant) -> Task:
        return Task(
            id=task_id,
            uid=self.uid,
            key=self.key,
            terms=self.terms,
            created=at,
            updated=at,
            creator=creator,
            scope=self.scope,
            channel=self.channel,
            origin_ask_ref=self.origin_ask_ref,
            waits_on=self.waits_on,
            item=self.item,
        )


class Edited(TaskEvent):
    verb = "edited"
    terms: Terms

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(terms=self.terms)


class Scoped(TaskEvent):
    verb = "scoped"
    scope: tuple[str, ...]

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(scope=self.scope)


class Depended(TaskEvent):
    """The dependencies changed. `waits_on`: how many are not complete; replay does not preserve it."""

    verb = "depended"
    on: tuple[TaskKey, ...] = ()
    not_on: tuple[TaskKey, ...] = ()
    waits_on: int = 0

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(waits_on=self.waits_on)


class Synced(TaskEvent):
    """The item file changed. `state`: set if nobody held the task and the file changed its state."""

    verb = "synced"
    terms: Terms
    scope: tuple[str, ...]
    item: ItemSnapshot | None
    state: State | None = None
    note: str = ""

    @property
    def moves(self) -> bool:  # type: ignore[override]
        return self.state is not None

    def evolve(self, task: Task, at: Instant) -> Task:
        task = task.but(terms=self.terms, scope=self.scope, item=self.item)
        if self.state is None:
            return task
        return reset_task(task).but(state=self.state, attempts=task.attempts)


class Claimed(LeaseBegun):
    verb = "claimed"


class TakenOver(LeaseBegun):
    verb = "taken_over"
    cause = "takeover"


class Forced(LeaseBegun):
    """A person took the task against a live lease, an assignment or a gate; `reason` says why."""

    verb = "forced"
    cause = "force"


class Assigned(LeaseBegun):
    verb = "assigned"
    cause = "takeover"


class HandedOff(LeaseBegun):
    verb = "handed_off"
    cause = "handoff"
    is_attempt = False
    note: str = ""


class BroughtBack(LeaseBegun):
    """A live lease restored from the item file, after the board lost its own record of it."""

    verb = "brought_back"
    cause = "restore"


class Adopted(LeaseBegun):
    """Somebody was working on the task by its item file alone. The start is unknown: no stint opens."""

    verb = "adopted"

    def evolve(self, task: Task, at: Instant) -> Task:
        begun = super().evolve(task.but(state=IN_PROGRESS), at)
        return begun.but(lease=lease_of(begun).but(stint=None))


class Bound(TaskEvent):
    """A session of the assignee took up the lease that was made for it."""

    verb = "bound"
    session: str
    place: Place | None = None

    def evolve(self, task: Task, at: Instant) -> Task:
        stint = at if task.state == IN_PROGRESS else None
        place = self.place or lease_of(task).place
        lease = lease_of(task).but(session=self.session, stint=stint, place=place)
        return task.but(lease=lease, assignee=None, preferred=None)


class Placed(TaskEvent):
    """The holder continues in another worktree or on another branch."""

    verb = "placed"
    place: Place

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(lease=lease_of(task).but(place=self.place))


class Started(TaskEvent):
    verb = "started"

    def evolve(self, task: Task, at: Instant) -> Task:
        lease = lease_of(task).but(stint=at)
        return task.but(state=IN_PROGRESS, lease=lease, attempts=task.attempts + 1)


class Resumed(TaskEvent):
    """The next stint of a task in progress."""

    verb = "resumed"

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(lease=lease_of(task).but(stint=at))


class Stopped(TaskEvent):
    verb = "stopped"
    stint: Stint

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(lease=lease_of(task).but(stint=None))


class Renewed(TaskEvent):
    """A renewal that needs an entry: after expiry (`lapsed` since), after idleness, or with a new ttl."""

    verb = "renewed"
    ttl: Duration
    lapsed: Instant | None = None
    stint: Stint | None = None

    def evolve(self, task: Task, at: Instant) -> Task:
        lease = lease_of(task).but(ttl=self.ttl)
        if self.stint is not None:
            lease = lease.but(stint=at)
        return task.but(lease=lease)


class Released(EndsLease):
    """Given back. After a failed attempt: with a delay, or failed if it was the last attempt.

    `untried`: the holder gave it back on its own, which does not count as an attempt.
    """

    verb = "released"
    cause = "release"
    note: str = ""
    rests_until: Instant | None = None
    gives_up: bool = False
    untried: bool = False

    def evolve(self, task: Task, at: Instant) -> Task:
        state = FAILED if self.gives_up else without_a_lease(task)
        attempts = max(0, task.attempts - self.untried)
        freed = task.but(state=state, lease=None, assignee=None, attempts=attempts)
        return freed.but(rests_until=self.rests_until)


class LeaseEnded(EndsLease):
    """The board itself ended a lease; `why` is the cause.

    `gives_up`: the attempts are used up. `unassigns`: an agent's assignment ends with its lease.
    """

    verb = "lease_ended"
    why: str = ""
    gives_up: bool = False
    unassigns: bool = False

    @property
    def cause(self) -> str:  # type: ignore[override]
        return self.why

    @property
    def takes(self) -> bool:
        return True

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(
            state=FAILED if self.gives_up else without_a_lease(task),
            lease=None,
            assignee=None if self.unassigns else task.assignee,
        )


class Unassigned(EndsLease):
    verb = "unassigned"
    cause = "unassign"
    reason: str = ""

    @property
    def takes(self) -> bool:
        return True

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(state=without_a_lease(task), lease=None, assignee=None)


class Blocked(EndsLease):
    verb = "blocked"
    cause = "block"
    state = BLOCKED
    note: str = ""
    on: str = ""
    stint: Stint | None = None

    def evolve(self, task: Task, at: Instant) -> Task:
        kept = task.lease if self.ending is None else None
        return task.but(
            state=BLOCKED, blocked_on=self.on, lease=None if kept is None else kept.but(stint=None)
        )


class Unblocked(TaskEvent):
    verb = "unblocked"
    moves = True
    note: str = ""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(state=OPEN, blocked_on="")


class Submitted(EndsLease):
    verb = "submitted"
    cause = "submit"
    state = REVIEW
    note: str = ""
    author: ActorId | None = None

    def evolve(self, task: Task, at: Instant) -> Task:
        return super().evolve(task, at).but(author=self.author)


class Accepted(TaskEvent):
    verb = "accepted"
    moves = True
    note: str = ""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(state=COMPLETE)


class Rejected(TaskEvent):
    verb = "rejected"
    moves = True
    note: str = ""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(state=OPEN, preferred=task.author, author=None)


class Completed(EndsLease):
    verb = "completed"
    cause = "complete"
    state = COMPLETE
    note: str = ""


class Failed(EndsLease):
    verb = "failed"
    cause = "fail"
    state = FAILED
    note: str = ""


class Retried(EndsLease):
    """Reopened for another attempt. `raised`: a person raised the limit by one."""

    verb = "retried"
    cause = "retry"
    reason: str = ""
    raised: bool = False
    forced: bool = False

    @property
    def takes(self) -> bool:
        return True

    def evolve(self, task: Task, at: Instant) -> Task:
        terms = task.terms
        if self.raised:
            terms = terms.but(max_attempts=min(ATTEMPTS_MAX, terms.max_attempts + 1))
        return reset_task(task).but(attempts=task.attempts, terms=terms)


class Reset(EndsLease):
    """As if nobody had ever worked on it. `of`: the task whose reset caused this one, if another's.

    `forced`: a person ended a live lease of another.
    """

    verb = "reset"
    cause = "reset"
    reason: str = ""
    of: str = ""
    overruled: bool = False
    forced: bool = False

    @property
    def takes(self) -> bool:
        return self.overruled

    def evolve(self, task: Task, at: Instant) -> Task:
        return reset_task(task)


class Dropped(EndsLease):
    """`overruled`: a person ended another's lease. `waiting`: the tasks that depend on it."""

    verb = "dropped"
    cause = "drop"
    state = DROPPED
    reason: str = ""
    overruled: bool = False
    waiting: tuple[TaskKey, ...] = ()

    @property
    def takes(self) -> bool:
        return self.overruled

    def evolve(self, task: Task, at: Instant) -> Task:
        return super().evolve(task, at).but(assignee=None, blocked_on="")


class Parked(TaskEvent):
    verb = "parked"
    by: ActorId
    reason: str = ""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(parked_by=self.by)


class Unparked(TaskEvent):
    verb = "unparked"

    def evolve(self, task: Task, at: Instant) -> Task:
        return task.but(parked_by=None)


TASK_EVENTS: tuple[type[TaskEvent], ...] = (
    Received, Edited, Scoped, Depended, Synced, Noted, Redacted, Claimed, TakenOver, Forced, Assigned, HandedOff, BroughtBack, Adopted,
    Bound, Placed, Started, Resumed, Stopped, Renewed, Released, LeaseEnded, Unassigned, Acknowledged, Allowed, Blocked, Unblocked, Submitted, Accepted,
    Rejected, Completed, Failed, Retried, Reset, Dropped, Parked, Unparked,
)  # fmt: skip
