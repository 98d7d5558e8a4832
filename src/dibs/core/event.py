"""What an entry of the ledger is, and what several kinds of them share."""

from __future__ import annotations

from dibs.core.instants import Duration, Instant
from dibs.core.model import IN_PROGRESS, NOWHERE, OPEN, ActorId, Lease, Place, Task, Token
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from dibs.core.model import State


class Stint(Value):
    """One unbroken period of work that is over."""

    started: Instant
    ended: Instant


class Ending(Value):
    """How a lease stood when it ended: its last renewal, and the stint that ended with it."""

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
    """Whether it may leave its task in another state, or with another holder."""

    @property
    def takes(self) -> bool:
        """Whether a lease that this event ends is taken from its holder, not given up by it."""
        return False


class TaskEvent(Event):
    """An event about one task."""

    def evolve(self, task: Task, at: Instant) -> Task:
        raise NotImplementedError


class TellsOnly(TaskEvent):
    """An event that leaves its task as it was."""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task


class Received(TellsOnly):
    """The same request was delivered once more. `differs`: with another payload than the first."""

    verb = "received"
    digest: str = ""
    delivery: str = ""
    differs: bool = False


class Noted(TellsOnly):
    """A note; `late` names the verb of a former holder whose text was kept."""

    verb = "noted"
    note: str
    late: str = ""


class Redacted(TellsOnly):
    """The text of the note of event `of` was removed. That event keeps its digest."""

    verb = "redacted"
    of: int
    reason: str = ""


class Acknowledged(TellsOnly):
    """A former holder said that it knows that it lost the lease `lost`."""

    verb = "acknowledged"
    lost: Token


class Allowed(TellsOnly):
    """A person let somebody touch paths that the task reserves, for a while."""

    verb = "allowed"
    paths: tuple[str, ...]
    to: ActorId
    until: Instant
    reason: str


class LeaseBegun(TaskEvent):
    """A new lease, fresh in every field; `ending` tells of the one that it replaced, if any.

    `former` tells of one that a sweep had ended before: who worked on it, and where that lies.
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
    """Whether the new holder of a task in progress tries anew, or goes on with the same attempt."""

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
            item=task.item and task.item.but(locked=""),  # the lease takes its place in the file
        )


class EndsLease(TaskEvent):
    """An event after which no lease runs."""

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


def begun_anew(task: Task) -> Task:
    """The one list of what a task's holders, authors and tries left on it."""
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
    """The state of a task whose lease ends without naming one: nobody is at work on it."""
    return OPEN if task.state == IN_PROGRESS else task.state
