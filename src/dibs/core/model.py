"""The nouns: task, lease, token, actor, session. Plain values; the rules about them are in `guards`."""

from __future__ import annotations

from dibs.core.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant, later
from dibs.core.values import Value

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
    """As keys are compared, the same for every database: a key is ASCII, and case does not count."""
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
"""The states in which a task can have a lease that has not ended."""

HUMAN: Kind = "human"
AGENT: Kind = "agent"
SERVICE: Kind = "service"
KINDS = (HUMAN, AGENT, SERVICE)
AUDIENCES = ("any", "human", "agent")

ACTIONS = ("edit", "commit", "push", "complete", "drop")
"""What a task's constraints may name. No constraints: everything is allowed."""

TTL_MIN = SECOND
TTL_MAX = Duration(30 * DAY)
TTL_AGENT = Duration(2 * HOUR)
TTL_HUMAN = Duration(7 * DAY)
TTL_KEEPER = Duration(5 * MINUTE)
IDLE_AFTER = Duration(15 * MINUTE)
"""After how long a silence a session that is watched does not work."""
PRIORITY_MAX = 4
PRIORITY_DEFAULT = 2
TIER_MAX = 9
ATTEMPTS_MAX = 1_000
REQUEST_KEPT = Duration(30 * DAY)
REFUSALS_KEPT = 10_000
GRACE = Duration(30 * SECOND)
"""How long after it was first seen expired a lease is ended by a sweep."""
SWEPT_AT_ONCE = 100
EXPIRED = "expired"
SWEPT = (EXPIRED, "process gone", "host rebooted", "session ended")
"""Why a sweep ends a lease."""
DEPENDENCIES_MAX = 1_000


def folded(name: str) -> str:
    """An actor's name as it is compared with others: also full-width letters are the same."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name).casefold())


class Token(Value):
    """The fencing token of a lease: ordered as two integers, written `EPOCH.N`."""

    epoch: int
    number: int

    def next_in(self, epoch: int) -> Token:
        return Token(max(epoch, self.epoch), self.number + 1)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"


class Actor(Value):
    """Who acts. Kept by id, so that a name can change."""

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
    """A process that lives as long as its session does. A reused pid has another start."""

    boot: str
    namespace: str
    pid: int
    started: int


class Place(Value):
    """Where work lies."""

    host: str = ""
    worktree: str = ""
    branch: str = ""


NOWHERE = Place()


class Session(Value):
    """One run of an actor: where it works, and the process behind it, if one is known.

    The session of a person is the person: its name is "", so that it outlives a change of name.
    """

    actor: ActorId
    name: str
    host: str = ""
    worktree: str = ""
    branch: str = ""
    process: Process | None = None
    watched: bool = False
    """The hooks of a harness report each of its calls: a silence is none of work."""


class LeaseProcess(Value):
    """The process behind one lease: a `dibs run`, a `hold`, or one that a claim states.

    A session may hold several leases, each with a process of its own.
    """

    process: Process
    host: str = ""
    runs: bool = False
    """A `dibs run`: a task has one at a time."""
    command: int = 0
    """The process that leads the session of its command; 0 before it is started."""
    command_started: int = 0
    forks: int = 0
    """What the kernel had started when the command began: tells whether a number was given again."""


class KeptProcess(Value):
    """What a board keeps of the process behind a lease."""

    token: Token
    behind: LeaseProcess
    actor: ActorId
    session: str


class Caller(Value):
    """The actor and session that give a command."""

    actor: Actor
    session: str
    in_harness: str = ""
    behind: LeaseProcess | None = None
    """The process that is to stand behind its lease, if it states one."""
    place: Place | None = None
    """Where it works; nothing for a subagent: its parent knows where that lies."""

    @property
    def holding_session(self) -> str:
        """The session that leases belong to: a subagent (`s1/a2`) acts under its parent's (`s1`)."""
        return self.session.partition("/")[0]

    @property
    def is_child(self) -> bool:
        return "/" in self.session

    @property
    def is_person(self) -> bool:
        return self.actor.is_human and not self.in_harness


class Lease(Value):
    """The claim fields, all of them: a task has one `Lease` or none, and ends it by having none."""

    actor: ActorId
    session: str | None
    acquired: Instant
    renewed: Instant
    ttl: Duration
    renewals: int = 0
    reason: str = ""
    stint: Instant | None = None
    suspect: Instant | None = None
    """When a sweep first saw that it had expired."""
    place: Place = NOWHERE
    """Where its work lies: said at claim, start and commit."""

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
        """The same lease after the board's clock was set: what is left of it stays the same."""
        return self.but(
            acquired=later(self.acquired, by),
            renewed=later(self.renewed, by),
            stint=None if self.stint is None else later(self.stint, by),
            suspect=None if self.suspect is None else later(self.suspect, by),
        )


class Terms(Value):
    """What a task asks for: the part of it that `edit` changes."""

    title: str
    priority: int = PRIORITY_DEFAULT
    audience: Audience = "any"
    tier: int = 1
    capabilities: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    max_attempts: int = 3
    not_before: Instant | None = None
    """It is not offered earlier."""
    billable: bool = False
    charge_code: str = ""
    """What its time is booked on: one of the board's codes, or nothing."""


class Mirrored(Value):
    """What the item file of a task says of it, as it was last read. Its text stays in the file."""

    said: str
    """The file's own word for its state."""
    gate: str = ""
    """Why it cannot be begun, in words."""
    locked: str = ""
    """Who has it by the file alone, and since when: another tool wrote that."""

    @property
    def locker(self) -> str:
        return self.locked.partition(" ")[0]


class Task(Value):
    """One unit of work. This row is its only authority."""

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
    """After a try that did not succeed it is not offered earlier."""
    waits_on: int = 0
    """How many of its dependencies are not complete."""
    item: Mirrored | None = None
    """If it is an item of a backlog that is kept in files."""
    head: str = ""
    events: int = 0
    version: int = 0


class Listed(Value):
    """A task as its item file has it now, or as another tool exported it. `None`: not changed by that.

    Without an `item` no file stands for it.
    """

    channel: str
    ref: str
    key: TaskKey
    title: str
    priority: int
    item: Mirrored | None
    also: tuple[str, ...] = ()
    """Refs under which it may have been listed before."""
    uid: str = ""
    scope: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    state: State | None = None
    after: tuple[TaskKey, ...] | None = None
    note: str = ""
    """Who had it, if the file says that somebody has."""
    lease: StatedLease | None = None
    token: Token | None = None
    """What the file states, if it was above the task's own: the board's record of it was lost."""
    compared_with: int | None = None
    """How many events the task had when its file was compared with it; 0: there was no task."""

    def is_outdated(self, task: Task | None) -> bool:
        """Whether the task has changed since: then nothing follows from the comparison."""
        now = 0 if task is None else task.events
        return self.compared_with not in (None, now)


class StatedLease(Value):
    """A lease of this board that only the file of a task knows any more.

    Without a token: somebody works on it by the file alone, for as long as an ordinary lease.
    """

    actor: str
    kind: Kind
    session: str | None
    ttl: Duration | None = None
    token: Token | None = None
    started: bool = False
    """Whether the file says that it is worked on, not only held."""


class EndedLease(Value):
    """A lease that is over: who held the task, from when until when, and why it ended."""

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
    """Of the event that ended it."""
    stint_started: Instant | None = None
    stint_ended: Instant | None = None
    tokens: int | None = None
    cost: int | None = None
    spending: str = ""
    host: str = ""
    worktree: str = ""
    branch: str = ""


class EndedStint(Value):
    """A stint that is over and did not end with its lease, by the event that ended it."""

    seq: int
    actor: ActorId
    started: Instant
    ended: Instant
    source: str
    amends: int | None = None
    """The stint that it replaces."""
    tokens: int | None = None
    cost: int | None = None
    spending: str = ""


class Allowance(Value):
    """A person has let somebody touch paths that a task reserves, for a while."""

    seq: int
    task: TaskKey
    paths: tuple[str, ...]
    actor: ActorId
    until: Instant


class Approval(Value):
    """A period of an actor that a person has approved, and what it came to."""

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
    """The event after which it is in force no more."""


class Linked(Value):
    """A task at the other end of a dependency."""

    id: TaskId
    key: TaskKey
    state: State


class KeptNote(Value):
    """A note with its event."""

    seq: int
    kind: str
    text: str
    at: Instant
    actor: ActorId
    session: str


class LoggedRefusal(Value):
    """A line in the log of refusals."""

    id: int
    at: Instant
    verb: str
    task: str
    actor: str
    session: str
    code: str
    message: str
