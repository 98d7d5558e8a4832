"""What a decision is made from: the rows that were read, and the questions that are asked of them."""

from __future__ import annotations

from dibs.core.ground import Ground
from dibs.core.instants import Duration, Instant
from dibs.core.model import (
    BLOCKED,
    IDLE_AFTER,
    IN_PROGRESS,
    OPEN,
    TTL_AGENT,
    TTL_HUMAN,
    Actor,
    ActorId,
    Caller,
    EndedLease,
    EndedStint,
    Lease,
    Listed,
    Session,
    Task,
    TaskId,
    TaskKey,
    Token,
)
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.core.commands import Add, Command
    from dibs.core.event import Ending, Event
    from dibs.core.model import Approval, KeptProcess, Process, State
    from dibs.core.worked import Worked


class Rules(Value):
    """The settings of a board that decisions depend on."""

    ttl_agent: Duration = TTL_AGENT
    ttl_human: Duration = TTL_HUMAN
    self_review: bool = False
    max_attempts: int = 3
    ground: Ground = Ground()
    charge_codes: tuple[str, ...] = ()
    idle_after: Duration = IDLE_AFTER

    def ttl_for(self, actor: Actor) -> Duration:
        return self.ttl_human if actor.is_human else self.ttl_agent


class Left(Value):
    """What a former holder left behind, looked up before the transaction for the lease `token`."""

    token: Token
    uncommitted: tuple[str, ...] | None = None
    not_looked_at: str = ""
    """Why nobody looked, if so."""


class Rival(Value):
    """A lease that reserves paths."""

    task: TaskId
    key: TaskKey
    actor: ActorId
    session: str | None
    expires: Instant
    scope: tuple[str, ...]
    doubt: str = ""
    """Why it is not known whether it reserves them, if so."""

    def bars(self, actor: ActorId, session: str | None, now: Instant) -> bool:
        """Whether it is live, and of another session. What is assigned to the actor is its own."""
        own = self.actor == actor and (session is None or self.session in (None, session))
        return not own and now <= self.expires


class Death(Value):
    """The process behind a lease was found dead; that holds for this lease, as it was then."""

    token: Token
    renewed: Instant
    cause: str


class Match(Value):
    """An item of a backlog, and the task that it is, if there is one already."""

    listed: Listed
    task: Task | None
    id: TaskId
    """Of the task, also if it is still to come."""
    key: TaskKey
    uid: str
    after: frozenset[TaskKey] = frozenset()
    """What the task depends on now."""
    causes: Mapping[TaskKey, State] = {}
    """What it is to depend on, as far as that is there."""
    holder: ActorId | None = None
    """Who had the lease that only the file knows."""

    @property
    def outdated(self) -> bool:
        return self.listed.is_outdated(self.task)


class Asked(Value):
    """A request that is taken in, and the task of its origin, if there is one already."""

    ask: Add
    task: Task | None
    key: TaskKey
    uid: str
    first: str = ""
    """The digest of its first delivery."""
    before: int | None = None
    """The place in the same batch where its origin was first named, if it was."""


class Stints(Value):
    """The stints of a task that are over."""

    current: tuple[EndedStint, ...] = ()
    """Those that count: no other was put in their place."""
    numbered: EndedStint | None = None
    """The one that the command names."""
    replaced_by: int | None = None


class Period(Value):
    """One actor's stints in a period, and the periods of it that are approved."""

    stints: tuple[Worked, ...] = ()
    approved: tuple[Approval, ...] = ()


class Facts(Value):
    """Everything that a decision may look at, read in its own transaction after the lock."""

    caller: Caller
    rules: Rules
    epoch: int
    task: Task | None = None
    actors: Mapping[ActorId, Actor] = {}
    """Everybody whom the task names: holder, assignee, author, parker."""
    receiver: Actor | None = None
    """Whom `assign` and `handoff` name."""
    processes: tuple[KeptProcess, ...] = ()
    """What the caller's session has stated as the processes behind its leases of this task."""
    lives: Mapping[Process, bool | None] = {}
    """Which of them live, looked up before the transaction; nothing of those that cannot be seen."""
    former: EndedLease | None = None
    """The last lease of this task that the caller's session held, if it holds none now."""
    since: tuple[Event, ...] = ()
    """The event that ended it, and what came after; only if the same verb is given again."""
    left: Left | None = None
    fresh_uid: str = ""
    fresh_key: TaskKey = TaskKey("")
    key_is_taken: bool = False
    deaths: Mapping[TaskId, Death] = {}
    """Leases whose process is dead, looked up before the transaction."""
    living: frozenset[TaskId] = frozenset()
    """Tasks whose holder's process is known to live."""
    rivals: tuple[Rival, ...] = ()
    """Live leases of other sessions whose scope overlaps the task's, and which therefore bar it."""
    beside: tuple[Rival, ...] = ()
    """The same on a board that only warns of them."""
    swept: Ending | None = None
    """The last lease of a free task, if a sweep ended it; and why."""
    why_swept: str = ""
    causes: Mapping[TaskKey, State] = {}
    """The states of the tasks that it depends on, or is to depend on."""
    on: tuple[TaskKey, ...] = ()
    """The tasks that the command names as dependencies, by their own keys."""
    not_on: tuple[TaskKey, ...] = ()
    """Those that it names as no dependencies any more."""
    after: frozenset[TaskKey] = frozenset()
    """What it depends on now."""
    cycle: tuple[TaskKey, ...] = ()
    """The way on which a new dependency would lead back to the task."""
    waiting: tuple[TaskKey, ...] = ()
    """What depends on it."""
    many: tuple[Task, ...] = ()
    """The tasks that a command about many changes."""
    sessions: Mapping[TaskId, Session] = {}
    """Of their holders."""
    paused: str = ""
    """Who paused the board, and why."""
    held: int = 0
    """How many tasks the caller's actor holds."""
    matches: tuple[Match, ...] = ()
    """Items of a backlog with their tasks."""
    asked: tuple[Asked, ...] = ()
    """Many requests, with their tasks."""
    last_number: int = 0
    """The last number of a key that is given out to them."""
    first: str = ""
    """The digest of the first delivery of a request that is known already."""
    idle: bool = False
    """The task's holder is watched, and has been silent for too long to be at work."""
    working: tuple[Task, ...] = ()
    """Where a person has an open stint."""
    stints: Stints | None = None
    """Of the task, if the command is about them."""
    noted: str | None = None
    """The text of the note that is named; empty, if it was redacted."""
    period: Period | None = None
    """If hours are to be approved."""
    newcomers: tuple[Actor, ...] = ()
    """Who is to be registered beside the caller."""
    is_plan: bool = False
    """Nothing will be done: what a person confirms or explains then need not be given yet."""


class Case(Value):
    """One command against the facts at one instant."""

    facts: Facts
    command: Command
    now: Instant

    @property
    def task(self) -> Task:
        task = self.facts.task
        assert task is not None, "a task command is decided only about a task"
        return task

    @property
    def caller(self) -> Caller:
        return self.facts.caller

    @property
    def lease(self) -> Lease | None:
        return self.task.lease

    @property
    def subject(self) -> Actor:
        """Who would hold the task: the receiver where there is one, else the caller."""
        return self.facts.receiver or self.caller.actor

    @property
    def holds(self) -> bool:
        """The caller's session (or its parent) holds the task; the lease has not ended."""
        return self.lease is not None and self.lease.held_by(self.caller)

    @property
    def may_bind(self) -> bool:
        """The task was assigned to the caller, and no session of it has taken it up yet."""
        lease = self.lease
        return lease is not None and not lease.bound and lease.actor == self.caller.actor.id

    @property
    def another_holds(self) -> bool:
        """A lease that has not ended (it may be expired) belongs to somebody else's session."""
        return is_anothers(self.task, self.caller)

    @property
    def another_is_live(self) -> bool:
        return self.another_holds and self.live

    @property
    def live(self) -> bool:
        return self.lease is not None and self.lease.live(self.now) and not self.death

    @property
    def death(self) -> Death | None:
        return death_of(self.task, self.facts)

    @property
    def late(self) -> bool:
        """The caller's own lease has expired and has not ended."""
        return (self.holds or self.may_bind) and not self.live

    @property
    def lost(self) -> bool:
        """The caller's session held this task before and no longer does."""
        return self.facts.former is not None and not self.holds

    @property
    def interrupted(self) -> list[Task]:
        """Those of many tasks whose live lease, which belongs to another, would end."""
        return [
            task
            for task in self.facts.many
            if is_anothers(task, self.caller)
            and task.lease is not None
            and task.lease.live(self.now)
            and death_of(task, self.facts) is None
        ]

    @property
    def running(self) -> KeptProcess | None:
        """Another `dibs run` of the caller's session that works on the task."""
        own = self.caller.behind
        return next(
            (
                kept
                for kept in self.facts.processes
                if kept.behind.runs
                and (own is None or kept.behind.process != own.process)
                and self._may_live(kept)
            ),
            None,
        )

    def _may_live(self, kept: KeptProcess) -> bool:
        """It lives; or, where that cannot be seen, its lease does."""
        lives = self.facts.lives.get(kept.behind.process)
        return lives if lives is not None else kept.token == self.task.token and self.live

    def actor(self, actor_id: ActorId) -> Actor:
        return self.facts.actors[actor_id]

    def holder(self) -> Actor:
        assert self.lease is not None, "asked only while there is a lease"
        return self.actor(self.lease.actor)


def death_of(task: Task, facts: Facts) -> Death | None:
    """The evidence, if it is about the lease as it stands: a renewal since then disproves it."""
    death, lease = facts.deaths.get(task.id), task.lease
    if death is None or lease is None:
        return None
    return death if (death.token, death.renewed) == (task.token, lease.renewed) else None


def is_silent(lease: Lease | None, now: Instant, rules: Rules) -> bool:
    """A live lease with an open stint had no sign of life for so long that a watched holder idles."""
    return (
        lease is not None
        and lease.stint is not None
        and lease.live(now)
        and now - lease.renewed > rules.idle_after
    )


def renews_plainly(task: Task, caller: Caller, now: Instant, rules: Rules) -> bool:
    """A renewal by the caller would be nothing else: no guard refuses it, and no event comes of it.

    `decide` says the same of it, at more cost; whatever is late or comes after a silence is left to that.
    """
    lease = task.lease
    return (
        lease is not None
        and lease.held_by(caller)
        and lease.live(now)
        and task.state in (OPEN, IN_PROGRESS, BLOCKED)
        and not is_silent(lease, now, rules)
    )


def is_anothers(task: Task, caller: Caller) -> bool:
    """A lease of the task that has not ended belongs to somebody else."""
    lease = task.lease
    if lease is None or lease.held_by(caller):
        return False
    return lease.bound or lease.actor != caller.actor.id
