"""What a decision is made from: the rows that were read, and the questions that are asked of them."""

from __future__ import annotations

from dibs.core.commands import Command
from dibs.core.instants import Duration, Instant
from dibs.core.model import (
    TTL_AGENT,
    TTL_HUMAN,
    Actor,
    ActorId,
    Caller,
    EndedLease,
    Lease,
    Session,
    Task,
    TaskKey,
    Token,
)
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Rules(Value):
    """The settings of a board that decisions depend on."""

    ttl_agent: Duration = TTL_AGENT
    ttl_human: Duration = TTL_HUMAN
    self_review: bool = False

    def ttl_for(self, actor: Actor) -> Duration:
        return self.ttl_human if actor.is_human else self.ttl_agent


class Left(Value):
    """What a former holder left behind, looked up before the transaction for the lease `token`."""

    token: Token
    uncommitted: tuple[str, ...] = ()


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
    former: EndedLease | None = None
    """The last lease of this task that the caller's session held, if it holds none now."""
    holder_session: Session | None = None
    left: Left | None = None
    fresh_uid: str = ""
    fresh_key: TaskKey = TaskKey("")
    key_is_taken: bool = False


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
        return self.lease is not None and not self.holds and not self.may_bind

    @property
    def another_is_live(self) -> bool:
        return self.another_holds and self.live

    @property
    def live(self) -> bool:
        return self.lease is not None and self.lease.live(self.now)

    @property
    def late(self) -> bool:
        """The caller's own lease has expired and has not ended."""
        return (self.holds or self.may_bind) and not self.live

    @property
    def lost(self) -> bool:
        """The caller's session held this task before and no longer does."""
        return self.facts.former is not None and not self.holds

    def actor(self, actor_id: ActorId) -> Actor:
        return self.facts.actors[actor_id]

    def holder(self) -> Actor:
        assert self.lease is not None, "asked only while there is a lease"
        return self.actor(self.lease.actor)
