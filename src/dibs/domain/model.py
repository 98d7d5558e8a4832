"""The entities of a board: task, lease, token, actor, session. Immutable values; `guards` has the rules."""

from __future__ import annotations

from dibs.domain.values import DAY, HOUR, MINUTE, SECOND, Duration, Instant, Value, later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NewType

    TaskId = NewType("TaskId", int)
    TaskKey = NewType("TaskKey", str)
    ActorId = NewType("ActorId", int)
    State = Literal["open", "in_progress", "blocked", "review", "failed", "complete", "dropped"]
    Kind = Literal["human", "agent", "service"]
    Audience = Literal["any", "human", "agent"]
else:
    TaskId = ActorId = int
    TaskKey = str


def folded_key(key: TaskKey) -> str:
    """The form in which keys are compared, the same for every database: ASCII, case-insensitive."""
    return key.lower() if key.isascii() else key


OPEN: State = "open"
IN_PROGRESS: State = "in_progress"
BLOCKED: State = "blocked"
REVIEW: State = "review"
FAILED: State = "failed"
COMPLETE: State = "complete"
DROPPED: State = "dropped"
STATES = (OPEN, IN_PROGRESS, BLOCKED, REVIEW, FAILED, COMPLETE, DROPPED)
FINAL = (COMPLETE, DROPPED)
NOT_FINAL = (OPEN, IN_PROGRESS, BLOCKED, REVIEW, FAILED)
HOLDABLE = (OPEN, IN_PROGRESS, BLOCKED)
"""The states in which a task may have a lease that has not ended."""

HUMAN: Kind = "human"
AGENT: Kind = "agent"
SERVICE: Kind = "service"
KINDS = (HUMAN, AGENT, SERVICE)
AUDIENCES = ("any", "human", "agent")

AREA = "@"
"""The prefix of an area's name in a scope."""

ACTIONS = ("edit", "commit", "push", "complete", "drop")
"""The actions that a task's constraints may list. Without constraints everything is allowed."""

TTL_MIN = SECOND
TTL_MAX = Duration(30 * DAY)
TTL_AGENT = Duration(2 * HOUR)
TTL_HUMAN = Duration(7 * DAY)
TTL_KEEPER = Duration(5 * MINUTE)
IDLE_AFTER = Duration(15 * MINUTE)
"""A monitored session with no activity for this long counts as idle."""
PRIORITY_MAX = 4
PRIORITY_DEFAULT = 2
TIER_MAX = 9
ATTEMPTS_MAX = 1_000
REQUEST_KEPT = Duration(30 * DAY)
REFUSALS_KEPT = 10_000
GRACE = Duration(30 * SECOND)
"""A sweep ends an expired lease only this long after a sweep first saw it expired."""
SWEPT_AT_ONCE = 100
EXPIRED = "expired"
SWEPT = (EXPIRED, "process gone", "host rebooted", "session ended")
"""The causes for which a sweep ends a lease."""
DEPENDENCIES_MAX = 1_000


def folded_name(name: str) -> str:
    """The form in which actor names are compared: NFKC, case-folded (full-width letters are equal too)."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name).casefold())


class Token(Value):
    """The fencing token of a lease, written `EPOCH.N` and ordered as two integers."""

    epoch: int
    number: int

    def next_in(self, epoch: int) -> Token:
        return Token(max(epoch, self.epoch), self.number + 1)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"


class Actor(Value):
    """Who acts. Referenced by id, so that its name can change."""

    id: ActorId
    name: str
    kind: Kind
    tier: int = 1
    capabilities: tuple[str, ...] = ()
    zone: str = "UTC"

    @property
    def is_human(self) -> bool:
        return self.kind == HUMAN


class Process(Value):
    """A process that lives as long as its session. The start time tells a reused pid apart."""

    boot: str
    namespace: str
    pid: int
    started: int


class Place(Value):
    """Where work is done: host, worktree and branch."""

    host: str = ""
    worktree: str = ""
    branch: str = ""


NOWHERE = Place()


class Session(Value):
    """One run of an actor: its place and its process, if one is known.

    A person's session is the person. Its name is "", so that it survives a change of the person's name.
    """

    actor: ActorId
    name: str
    host: str = ""
    worktree: str = ""
    branch: str = ""
    process: Process | None = None
    watched: bool = False
    """The hooks of a harness report each of its calls, so a gap between calls is idle time."""
    background: bool = False
    """Its harness reported running background work when the agent last stopped."""


class LeaseProcess(Value):
    """The process behind one lease: a `dibs run`, a `hold`, or the process given with a claim.

    A session may hold several leases, each with its own process.
    """

    process: Process
    host: str = ""
    runs: bool = False
    """Whether it is a `dibs run`. A task has at most one at a time."""
    command: int = 0
    """The pid of the command's session leader; 0 before the command starts."""
    command_started: int = 0
    forks: int = 0
    """The kernel's fork counter when the command started: detects a reused pid."""


class KeptProcess(Value):
    """The stored record of the process behind a lease."""

    token: Token
    behind: LeaseProcess
    actor: ActorId
    session: str


class Caller(Value):
    """The actor and session that issue a command."""

    actor: Actor
    session: str
    in_harness: str = ""
    behind: LeaseProcess | None = None
    """The process to record behind the caller's lease, if it gives one."""
    place: Place | None = None
    """Where it works. `None` for a subagent: the parent session reports the place."""

    @property
    def holding_session(self) -> str:
        """The session that owns the leases: a subagent (`s1/a2`) acts under its parent (`s1`)."""
        return self.session.partition("/")[0]

    @property
    def is_child(self) -> bool:
        return "/" in self.session

    @property
    def is_person(self) -> bool:
        return self.actor.is_human and not self.in_harness


class Lease(Value):
    """All fields of a claim. A task has one `Lease` or `None`; a lease ends when the field becomes `None`."""

    actor: ActorId
    session: str | None
    acquired: Instant
    renewed: Instant
    ttl: Duration
    renewals: int = 0
    reason: str = ""
    stint: Instant | None = None
    suspect: Instant | None = None
    """When a sweep first saw it expired."""
    place: Place = NOWHERE
    """Where its work is: reported at claim, start and commit."""

    @property
    def expires(self) -> Instant:
        return later(self.renewed, self.ttl)

    @property
    def bound(self) -> bool:
        return self.session is not None

    def live(self, now: Instant) -> bool:
        return now <= self.expires

    def held_by(self, caller: Caller) -> bool:
        return self.actor == caller.actor.id and self.session == caller.holding_session

    def shifted(self, by: Duration) -> Lease:
        """The same lease after the board's clock was set: its remaining time does not change."""
        return self.but(
            acquired=later(self.acquired, by),
            renewed=later(self.renewed, by),
            stint=None if self.stint is None else later(self.stint, by),
            suspect=None if self.suspect is None else later(self.suspect, by),
        )


class Terms(Value):
    """What a task asks for: the fields that `edit` changes."""

    title: str
    priority: int = PRIORITY_DEFAULT
    audience: Audience = "any"
    tier: int = 1
    capabilities: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    max_attempts: int = 3
    not_before: Instant | None = None
    """`next` does not offer the task before this instant."""
    billable: bool = False
    charge_code: str = ""
    """The code that its time is booked on: one of the board's codes, or empty."""


class ItemSnapshot(Value):
    """The fields of a task's item file, as last read. The text stays in the file."""

    said: str
    """The state, in the file's own word."""
    gate: str = ""
    """Why work cannot start yet, as text; empty if it can."""
    locked: str = ""
    """Who locked it in the file, and since when. Another tool wrote that; no lease of dibs backs it."""

    @property
    def locker(self) -> str:
        return self.locked.partition(" ")[0]


class ItemFile(Value):
    """Where an item is: its file below the root and, in a file of many items, its line."""

    root: str
    path: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def full(self) -> str:
        return f"{self.root}/{self}"


class Task(Value):
    """One unit of work. Its row is the only authority on it."""

    id: TaskId
    uid: str
    key: TaskKey
    terms: Terms
    created: Instant
    updated: Instant
    creator: ActorId
    scope: tuple[str, ...] = ()
    channel: str | None = None
    origin_ask_ref: str | None = None
    state: State = OPEN
    token: Token = Token(0, 0)
    lease: Lease | None = None
    assignee: ActorId | None = None
    author: ActorId | None = None
    preferred: ActorId | None = None
    parked_by: ActorId | None = None
    blocked_on: str = ""
    attempts: int = 0
    rests_until: Instant | None = None
    """After a failed attempt: the next attempt is not offered before this instant."""
    waits_on: int = 0
    """The number of its dependencies that are not complete."""
    item: ItemSnapshot | None = None
    """Set if the task is an item of a file-based backlog."""
    head: str = ""
    events: int = 0
    version: int = 0


class BacklogItem(Value):
    """A task as read from its item file or from another tool's export. `None` leaves a field unchanged.

    Without an `item` the task has no item file.
    """

    channel: str
    ref: str
    key: TaskKey
    title: str
    priority: int
    item: ItemSnapshot | None
    also: tuple[str, ...] = ()
    """Other refs under which the task may have been listed before."""
    uid: str = ""
    scope: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    state: State | None = None
    after: tuple[TaskKey, ...] | None = None
    note: str = ""
    """Who was working on it, if the file names somebody."""
    lease: StatedLease | None = None
    token: Token | None = None
    """The token in the file, if it is above the task's own: the board has lost its record of that lease."""
    compared_with: int | None = None
    """The task's event count when its file was compared with it; 0 if there was no task."""

    def is_outdated(self, task: Task | None) -> bool:
        """Whether the task has changed since the comparison, which is then void."""
        now = 0 if task is None else task.events
        return self.compared_with not in (None, now)


class StatedLease(Value):
    """A lease of this board that only the task's item file still records.

    Without a token: the file alone names somebody at work; the lease gets the default ttl.
    """

    actor: str
    kind: Kind
    session: str | None
    ttl: Duration | None = None
    token: Token | None = None
    started: bool = False
    """Whether the file marks it as in progress, not only as held."""


class EndedLease(Value):
    """A lease that has ended: its holder, its period and the cause of its end."""

    token: Token
    actor: ActorId
    session: str | None
    acquired: Instant
    renewed: Instant
    expires: Instant
    renewals: int
    ended: Instant
    cause: str
    lost: bool
    acknowledged: bool = False
    seq: int = 0
    """The sequence number of the event that ended it."""
    stint_started: Instant | None = None
    stint_ended: Instant | None = None
    tokens: int | None = None
    cost: int | None = None
    spending: str = ""
    host: str = ""
    worktree: str = ""
    branch: str = ""


class EndedStint(Value):
    """A stint that ended without its lease, identified by the event that ended it."""

    seq: int
    actor: ActorId
    started: Instant
    ended: Instant
    source: str
    amends: int | None = None
    """The sequence number of the stint that it replaces."""
    tokens: int | None = None
    cost: int | None = None
    spending: str = ""


class Allowance(Value):
    """A person's temporary permission for an actor to touch paths that a task reserves."""

    seq: int
    task: TaskKey
    paths: tuple[str, ...]
    actor: ActorId
    until: Instant


class Approval(Value):
    """An approved period of one actor, with its totals at the time of approval."""

    seq: int
    actor: ActorId
    since: Instant
    until: Instant
    zone: str
    label: str
    stints: int
    effort: int
    working: int
    digest: str
    reopened: int | None = None
    """The sequence number of the event that reopened it; `None` while it is in force."""


class Linked(Value):
    """A task at the other end of a dependency."""

    id: TaskId
    key: TaskKey
    state: State


class KeptNote(Value):
    """A note, with the event that recorded it."""

    seq: int
    kind: str
    text: str
    at: Instant
    actor: ActorId
    session: str


class LoggedRefusal(Value):
    """An entry in the log of refusals."""

    id: int
    at: Instant
    verb: str
    task: str
    actor: str
    session: str
    code: str
    message: str
