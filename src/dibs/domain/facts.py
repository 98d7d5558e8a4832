"""The facts that a decision is based on: one class for each kind of command, and queries over them."""

from __future__ import annotations

from dibs.domain.model import (
    BLOCKED,
    IDLE_AFTER,
    IN_PROGRESS,
    OPEN,
    TTL_AGENT,
    TTL_HUMAN,
    Actor,
    ActorId,
    BacklogItem,
    Caller,
    EndedLease,
    EndedStint,
    Lease,
    Session,
    Task,
    TaskId,
    TaskKey,
    Token,
)
from dibs.domain.scopes.policy import ScopePolicy
from dibs.domain.values import Duration, Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from dibs.domain.commands import Add, Command
    from dibs.domain.events.base import Ending, Event
    from dibs.domain.model import Approval, KeptProcess, Process, State
    from dibs.domain.stints import WorkedStint

    AnyFacts = TypeVar("AnyFacts", bound="Facts")


class Rules(Value):
    """The board settings that decisions depend on."""

    ttl_agent: Duration = TTL_AGENT
    ttl_human: Duration = TTL_HUMAN
    self_review: bool = False
    max_attempts: int = 3
    ground: ScopePolicy = ScopePolicy()
    charge_codes: tuple[str, ...] = ()
    idle_after: Duration = IDLE_AFTER

    def ttl_for(self, actor: Actor) -> Duration:
        return self.ttl_human if actor.is_human else self.ttl_agent


class LeftoverWork(Value):
    """Uncommitted work of a former holder, looked up before the transaction for the lease `token`."""

    token: Token
    uncommitted: tuple[str, ...] | None = None
    not_looked_at: str = ""
    """Why the worktree was not inspected; empty if it was."""


class ScopeReservation(Value):
    """A lease that reserves paths, and may conflict with another scope."""

    task: TaskId
    key: TaskKey
    actor: ActorId
    session: str | None
    expires: Instant
    scope: tuple[str, ...]
    doubt: str = ""
    """Why the overlap could not be decided; empty if it was decided."""

    def bars(self, actor: ActorId, session: str | None, now: Instant) -> bool:
        """Whether it is live and belongs to another session. An assignment to the actor counts as its own."""
        own = self.actor == actor and (session is None or self.session in (None, session))
        return not own and now <= self.expires


class DeathEvidence(Value):
    """Evidence that the process behind a lease is dead. Valid only for this lease and this renewal."""

    token: Token
    renewed: Instant
    cause: str


class ItemMatch(Value):
    """A backlog item, with its task if that exists."""

    listed: BacklogItem
    task: Task | None
    id: TaskId
    """The id of the task, also if it is still to be created."""
    key: TaskKey
    uid: str
    after: frozenset[TaskKey] = frozenset()
    """The current dependencies of the task."""
    causes: Mapping[TaskKey, State] = {}
    """Those of its new dependencies that exist, with their states."""
    holder: ActorId | None = None
    """The holder of the lease that only the file records."""

    @property
    def outdated(self) -> bool:
        return self.listed.is_outdated(self.task)


class BatchedRequest(Value):
    """A request in a batch, with the task of its origin if that exists."""

    ask: Add
    task: Task | None
    key: TaskKey
    uid: str
    first: str = ""
    """The digest of its first delivery."""
    before: int | None = None
    """The index in the batch at which the same origin first appears, if it does."""


class Stints(Value):
    """The ended stints of a task."""

    current: tuple[EndedStint, ...] = ()
    """The stints that count: not replaced by an amendment."""
    numbered: EndedStint | None = None
    """The stint that the command names."""
    replaced_by: int | None = None


class Evidence(Value):
    """What was inspected outside the transaction (processes, worktrees): it may be stale, but not undone."""

    left: LeftoverWork | None = None
    deaths: Mapping[TaskId, DeathEvidence] = {}
    """Leases with a dead process."""
    living: frozenset[TaskId] = frozenset()
    """Tasks whose holder's process is known to be alive."""
    lives: Mapping[Process, bool | None] = {}
    """Whether the processes that the caller's own session stated for the task are alive."""
    wall: Instant | None = None
    """The machine's clock, if the board's is to be set to it."""
    former_clock: Instant | None = None
    """The clock of the place that the board comes from, now."""
    known_epoch: int = 0
    """The highest epoch that is known elsewhere: in the board that is replaced, in item files."""


NO_EVIDENCE = Evidence()


class Facts(Value):
    """What every decision may look at: who asks for what, and when.

    Each kind of command has a class of its own, with what is read for it in its transaction, after the lock.
    """

    caller: Caller
    rules: Rules
    epoch: int
    command: Command
    now: Instant
    actors: Mapping[ActorId, Actor]
    """Every actor that the facts name."""
    is_plan: bool
    """A dry run: confirmation and reason are not required yet."""

    def widened(self, kind: type[AnyFacts], **more: Any) -> AnyFacts:
        """These facts, and more of them: those of another kind."""
        return kind(*self, **more)

    def actor(self, actor_id: ActorId) -> Actor:
        return self.actors[actor_id]

    @property
    def interrupted(self) -> list[Task]:
        """The tasks of others whose live lease the command would end, beside its own task."""
        return []


# One task.


class TaskFacts(Facts):
    """A command about one task."""

    task: Task
    receiver: Actor | None = None
    """The actor that `assign`, `handoff` or `allow` names."""
    former: EndedLease | None = None
    """The last lease that the caller's session held on this task, if it holds none now."""
    since: tuple[Event, ...] = ()
    """The event that ended it and all later ones; loaded only if the same verb is repeated."""
    idle: bool = False
    """The holder is monitored, and has shown no activity for longer than `idle_after`."""
    causes: Mapping[TaskKey, State] = {}
    """The states of its current or new dependencies."""
    rivals: tuple[ScopeReservation, ...] = ()
    """Live leases of other sessions whose scope overlaps the task's, and which therefore block it."""
    beside: tuple[ScopeReservation, ...] = ()
    """The same on a board that only warns about overlaps."""
    left: LeftoverWork | None = None
    deaths: Mapping[TaskId, DeathEvidence] = {}

    @property
    def lease(self) -> Lease | None:
        return self.task.lease

    @property
    def subject(self) -> Actor:
        """Who would hold the task: the receiver if there is one, else the caller."""
        return self.receiver or self.caller.actor

    @property
    def holds(self) -> bool:
        """Whether the caller's session (or its parent) holds the task, with a lease that has not ended."""
        return self.lease is not None and self.lease.held_by(self.caller)

    @property
    def may_bind(self) -> bool:
        """Whether the task is assigned to the caller, and no session has taken it up yet."""
        lease = self.lease
        return lease is not None and not lease.bound and lease.actor == self.caller.actor.id

    @property
    def another_holds(self) -> bool:
        """Whether another session has a lease that has not ended (it may be expired)."""
        return held_by_another(self.task, self.caller)

    @property
    def another_is_live(self) -> bool:
        return self.another_holds and self.live

    @property
    def live(self) -> bool:
        return self.lease is not None and self.lease.live(self.now) and not self.death

    @property
    def death(self) -> DeathEvidence | None:
        return death_evidence(self.task, self.deaths)

    @property
    def late(self) -> bool:
        """Whether the caller's own lease has expired but not ended."""
        return (self.holds or self.may_bind) and not self.live

    @property
    def lost(self) -> bool:
        """Whether the caller's session held this task before and no longer does."""
        return self.former is not None and not self.holds

    def holder(self) -> Actor:
        assert self.lease is not None, "only a held task has a holder"
        return self.actor(self.lease.actor)


class ClaimFacts(TaskFacts):
    """A command that may begin a stint: claim, start, takeover; and each offer of `next`."""

    working: tuple[Task, ...] = ()
    """Tasks on which the person has an open stint."""
    processes: tuple[KeptProcess, ...] = ()
    """The processes that the caller's session has recorded behind its leases of this task."""
    lives: Mapping[Process, bool | None] = {}
    """Which of them are alive; without those that cannot be checked."""
    swept: Ending | None = None
    """The last lease of a free task, if a sweep ended it; `why_swept` is the cause."""
    why_swept: str = ""

    @property
    def running(self) -> KeptProcess | None:
        """Another `dibs run` of the caller's session on this task, if there is one."""
        own = self.caller.behind
        return next(
            (
                kept
                for kept in self.processes
                if kept.behind.runs
                and (own is None or kept.behind.process != own.process)
                and self._may_live(kept)
            ),
            None,
        )

    def _may_live(self, kept: KeptProcess) -> bool:
        """Whether the process is alive; if that cannot be checked, whether its lease is live."""
        lives = self.lives.get(kept.behind.process)
        return lives if lives is not None else kept.token == self.task.token and self.live


class DependFacts(TaskFacts):
    on: tuple[TaskKey, ...] = ()
    """The dependencies to add, by the tasks' own keys."""
    not_on: tuple[TaskKey, ...] = ()
    """The dependencies to remove."""
    after: frozenset[TaskKey] = frozenset()
    """The current dependencies of the task."""
    cycle: tuple[TaskKey, ...] = ()
    """The path by which a new dependency would lead back to the task."""


class DropFacts(TaskFacts):
    waiting: tuple[TaskKey, ...] = ()
    """The tasks that depend on it."""


class RedactFacts(TaskFacts):
    noted: str | None = None
    """The text of the named note; empty if it was redacted, `None` if there is no such note."""


class RetryFacts(TaskFacts):
    many: tuple[Task, ...] = ()
    """The tasks that depend on it and are held."""
    sessions: Mapping[TaskId, Session] = {}
    """The sessions of their holders, and of its own."""

    @property
    def interrupted(self) -> list[Task]:
        return interrupted_ones(self)


# Many tasks.


class SweepFacts(Facts):
    """A command about many tasks."""

    many: tuple[Task, ...] = ()
    """The tasks that the command changes."""
    sessions: Mapping[TaskId, Session] = {}
    """The sessions of their holders."""
    deaths: Mapping[TaskId, DeathEvidence] = {}
    living: frozenset[TaskId] = frozenset()

    @property
    def interrupted(self) -> list[Task]:
        return interrupted_ones(self)


class ResetFacts(SweepFacts):
    targets: tuple[Task, ...] = ()
    """The tasks that the command names; the others depend on them."""
    receiver: Actor | None = None
    contested: Task | None = None
    """The named task whose scope is not free for its new holder, because of `rivals`."""
    rivals: tuple[ScopeReservation, ...] = ()
    beside: tuple[ScopeReservation, ...] = ()

    @property
    def task(self) -> Task:
        return self.contested or self.targets[0]

    def each(self) -> Iterator[TaskFacts]:
        """The facts about each named task, as for a command about it alone."""
        shared = Facts(*self[: len(Facts.fields)])
        for task in self.targets:
            yield shared.widened(TaskFacts, task=task, receiver=self.receiver)


class NextFacts(Facts):
    paused: str = ""
    """Who paused the board, and why; empty if nobody did."""
    held: int = 0
    """The number of tasks that the caller's actor holds."""
    offers: Iterable[ClaimFacts] = ()
    """Candidates in order, each with the facts for a claim of it; read one by one, as they are needed."""


# Requests and item files.


class AddFacts(Facts):
    task: Task | None = None
    """The task that the same request already has."""
    first: str = ""
    """The digest of its first delivery."""
    fresh_uid: str = ""
    fresh_key: TaskKey | None = None
    key_is_taken: bool = False
    on: tuple[TaskKey, ...] = ()
    causes: Mapping[TaskKey, State] = {}


class IntakeFacts(Facts):
    requests: tuple[BatchedRequest, ...] = ()
    last_number: int = 0
    """The highest key number given out so far."""


class SyncFacts(Facts):
    matches: tuple[ItemMatch, ...] = ()
    newcomers: tuple[Actor, ...] = ()
    """Actors to register in addition to the caller."""


# Hours.


class StintFacts(Facts):
    task: Task
    stints: Stints
    receiver: Actor | None = None
    """Whose stint is added."""
    approved: tuple[Approval, ...] = ()
    """The approved periods of the actor whose stint it is."""


class ApprovalFacts(Facts):
    receiver: Actor | None = None
    """Whose hours are approved."""
    stints: tuple[WorkedStint, ...] = ()
    """The stints in the period."""
    approved: tuple[Approval, ...] = ()


# The board itself.


class BoardFacts(Facts):
    is_paused: bool = False


class ClockFacts(Facts):
    by: Duration = Duration(0)
    """By how much the board's clock changes."""


class EpochFacts(Facts):
    highest: int = 0
    """The highest epoch known, here or elsewhere."""
    held: tuple[Task, ...] = ()
    """The tasks with a lease, if the board was restored."""


class ActorFacts(Facts):
    known: Actor | None = None
    """The actor to change, if it is registered."""
    fresh: Actor | None = None
    """The actor to register, if it is not."""
    aliases: tuple[str, ...] = ()
    taken: Mapping[str, Actor] = {}
    """Its new names that are names of other actors."""


class SessionFacts(Facts):
    """A command about the caller's session, which is not in the ledger."""

    is_registered: bool = False
    """Whether the board knows the actor."""
    known: Session | None = None
    siblings: tuple[Session, ...] = ()
    """The other sessions of the same actor and process."""
    holding: frozenset[str] = frozenset()
    """Those of them that hold something."""


def interrupted_ones(facts: RetryFacts | SweepFacts) -> list[Task]:
    """Of many tasks, those whose live lease belongs to another and would end."""
    return [
        task
        for task in facts.many
        if held_by_another(task, facts.caller)
        and task.lease is not None
        and task.lease.live(facts.now)
        and death_evidence(task, facts.deaths) is None
    ]


def death_evidence(task: Task, deaths: Mapping[TaskId, DeathEvidence]) -> DeathEvidence | None:
    """The evidence of death, if it is about the current lease: a later renewal disproves it."""
    death, lease = deaths.get(task.id), task.lease
    if death is None or lease is None:
        return None
    return death if (death.token, death.renewed) == (task.token, lease.renewed) else None


def is_idle(lease: Lease | None, now: Instant, rules: Rules) -> bool:
    """Whether a live lease with an open stint went unrenewed for so long that a monitored holder is idle."""
    return (
        lease is not None
        and lease.stint is not None
        and lease.live(now)
        and now - lease.renewed > rules.idle_after
    )


def is_plain_renewal(task: Task, caller: Caller, now: Instant, rules: Rules) -> bool:
    """Whether a renewal by the caller is a plain update: no guard refuses it, and it causes no event.

    A fast path with the same result as `decide`. Late renewals and those after an idle period go to `decide`.
    """
    lease = task.lease
    return (
        lease is not None
        and lease.held_by(caller)
        and lease.live(now)
        and task.state in (OPEN, IN_PROGRESS, BLOCKED)
        and not is_idle(lease, now, rules)
    )


def held_by_another(task: Task, caller: Caller) -> bool:
    """Whether the task has a lease that has not ended and belongs to somebody else."""
    lease = task.lease
    if lease is None or lease.held_by(caller):
        return False
    return lease.bound or lease.actor != caller.actor.id
