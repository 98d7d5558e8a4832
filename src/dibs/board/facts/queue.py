"""Facts for commands about many tasks (next, reset, sweep), and for dependencies."""

from __future__ import annotations

from dibs.board.facts.task import facts_of_task, found, load_task, rivals_of, with_rivals
from dibs.domain import commands as c
from dibs.domain.decide.recovery import affected
from dibs.domain.facts import (
    NO_EVIDENCE,
    ClaimFacts,
    DependFacts,
    DropFacts,
    Evidence,
    Facts,
    NextFacts,
    RedactFacts,
    ResetFacts,
    RetryFacts,
    SweepFacts,
    TaskFacts,
)
from dibs.domain.guards import refusal_of
from dibs.domain.model import COMPLETE, FINAL, HUMAN, Actor, ActorId, Task, TaskId, TaskKey
from dibs.domain.scopes.policy import BLOCK
from dibs.storage import queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.domain.facts import Rules
    from dibs.domain.model import Caller, Linked, Session
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.readiness import Offer
    from dibs.storage.transaction import ReadTransaction

NAMED_AS_WAITING = 20
"""How many tasks that wait for a dropped one are named."""


def load_many(tx: ReadTransaction, basis: Facts, evidence: Evidence) -> Facts:
    command = basis.command
    if isinstance(command, c.TaskCommand):
        return load_related(tx, load_task(tx, basis, evidence))
    if isinstance(command, c.Next):
        return load_next(tx, basis, command, evidence)
    if isinstance(command, c.Reset):
        return load_reset(tx, basis, command, evidence)
    assert isinstance(command, c.Sweep), command.verb
    many = tuple(to_sweep(tx, evidence, command))
    return basis.but(actors=actors_of(tx, many)).widened(
        SweepFacts,
        many=many,
        sessions=sessions_of(tx, many),
        deaths=evidence.deaths,
        living=evidence.living,
    )


def actors_of(tx: ReadTransaction, tasks: Iterable[Task]) -> dict[ActorId, Actor]:
    """Who parked the tasks, is assigned to them, or holds them."""
    named = {
        who
        for task in tasks
        for who in (task.parked_by, task.assignee, task.lease.actor if task.lease else None)
    }
    return {who: tx.actor(who) for who in named if who is not None}


def sessions_of(tx: ReadTransaction, tasks: Iterable[Task]) -> dict[TaskId, Session]:
    """The sessions of the holders of tasks."""
    found: dict[TaskId, Session] = {}
    for task in tasks:
        if task.lease is not None and task.lease.bound:
            session = tx.session(task.lease.actor, task.lease.session or "")
            if session is not None:
                found[task.id] = session
    return found


# Next.


def load_next(tx: ReadTransaction, basis: Facts, command: c.Next, evidence: Evidence) -> NextFacts:
    held = 0 if command.most is None else tx.count_held_by(basis.caller.actor.id)
    return basis.widened(
        NextFacts,
        paused=who_paused(tx),
        held=held,
        offers=ReadOnDemand(offers(tx, basis, evidence)),
    )


class ReadOnDemand:
    """An iterable that can be iterated again; what was read stays."""

    def __init__(self, rest: Iterator[ClaimFacts]) -> None:
        self._read: list[ClaimFacts] = []
        self._rest = rest

    def __iter__(self) -> Iterator[ClaimFacts]:
        yield from self._read
        for one in self._rest:
            self._read.append(one)
            yield one


def who_paused(tx: ReadTransaction) -> str:
    """Who paused the offering of work, and why; "" if it is not paused."""
    board = tx.board
    if board.paused_by is None:
        return ""
    why = ""
    if board.paused_why:
        from dibs.domain.values import quoted

        why = f": {quoted(board.paused_why)}"
    return f"{tx.actor(board.paused_by).name}{why}"


def claimable(tx: ReadTransaction, caller: Caller, rules: Rules) -> Iterator[Task]:
    """Tasks that a claim by the caller would get: its own first, then those that are ready."""
    basis = Facts(caller, rules, tx.board.epoch, c.Next(), tx.now, {}, is_plan=False)
    for offer in offers(tx, basis, NO_EVIDENCE):
        if refusal_of(offer) is None:
            yield offer.task


def offers(tx: ReadTransaction, basis: Facts, evidence: Evidence) -> Iterator[ClaimFacts]:
    """The candidates in order, each with the facts for a claim of it."""
    for key in offered(tx, basis.caller, basis.rules.ground):
        task = found(tx, key)
        facts = facts_of_task(tx, basis.but(command=c.Claim(key)), task, evidence)
        assert isinstance(facts, ClaimFacts), "of a claim"
        yield facts.but(now=tx.now)


def offered(tx: ReadTransaction, caller: Caller, ground: ScopePolicy) -> Iterator[TaskKey]:
    """Candidates in order: assigned to the caller, returned to it as the author,
    then the rest by priority.
    """
    actor = caller.actor
    for task in tx.tasks_assigned_to(actor.id):
        if (task.lease is None or not task.lease.bound) and not task.waits_on:
            yield task.key
    for task in tx.tasks_preferred_by(actor.id):
        if tx.is_ready(task.id):
            yield task.key
    fits = OfferFilter(tx, caller, ground)
    for offer in tx.ready_for(actor.tier, "human" if actor.kind == HUMAN else "agent"):
        if fits(offer):
            yield offer.key


SHARE = 100_000
"""Limit of steps per offer: a scope that is slow to compare must not hide the others."""


class OfferFilter:
    """Whether an offer fits the caller. Caches the verdict per scope and list of capabilities."""

    def __init__(self, tx: ReadTransaction, caller: Caller, ground: ScopePolicy) -> None:
        self._tx = tx
        self._caller = caller
        self._ground = ground
        from dibs.domain.scopes.overlap import STEPS

        self._held = tx.held_scopes()
        self._left = STEPS
        self._verdicts: dict[tuple[str, str], bool] = {("[]", "[]"): True}

    def __call__(self, offer: Offer) -> bool:
        what = (offer.capabilities, offer.scope)
        if what not in self._verdicts:
            self._verdicts[what] = self._judge(offer)
        return self._verdicts[what]

    def _judge(self, offer: Offer) -> bool:
        caller, scope = self._caller, queries.texts(offer.scope)
        if not set(queries.texts(offer.capabilities)) <= set(caller.actor.capabilities):
            return False
        session = caller.holding_session
        if self._ground.conflict != BLOCK or not scope:
            return True
        from dibs.domain.scopes.overlap import StepBudget

        given = min(self._left, SHARE)
        work = StepBudget(given)
        actor = caller.actor.id
        rivals = rivals_of(
            self._tx, self._ground, self._held, offer.id, scope, actor, session, work
        )
        self._left -= given - max(work.left, 0)
        return not rivals


# Dependencies.


def load_related(tx: ReadTransaction, facts: TaskFacts) -> TaskFacts:
    """Adds the facts about related tasks that some commands need."""
    command, task = facts.command, facts.task
    if isinstance(command, c.Retry):
        many = tuple(other for other in tx.downstream(task.id) if other.lease is not None)
        actors = {**facts.actors, **actors_of(tx, (*many, task))}
        sessions = sessions_of(tx, (*many, task))
        return facts.but(actors=actors).widened(RetryFacts, many=many, sessions=sessions)
    if isinstance(command, c.Drop):
        waiting = tx.dependants(task.id, NAMED_AS_WAITING)
        return facts.widened(
            DropFacts, waiting=tuple(one.key for one in waiting if one.state not in FINAL)
        )
    if isinstance(command, c.Redact):
        return facts.widened(RedactFacts, noted=tx.text_of(task.id, command.seq))
    assert isinstance(command, c.Depend), command.verb
    now = {one.key: one.state for one in tx.dependencies(task.id)}
    on, not_on = causes_of(tx, command.on), causes_of(tx, command.not_on)
    causes = now | {key: one.state for key, one in on.items()}
    return facts.but(causes=causes).widened(
        DependFacts,
        on=tuple(on),
        not_on=tuple(not_on),
        after=frozenset(now),
        cycle=next((way for one in on.values() if (way := cycle(tx, task, one))), ()),
    )


def causes_of(tx: ReadTransaction, keys: tuple[TaskKey, ...]) -> dict[TaskKey, Task]:
    """The named tasks, by their canonical keys."""
    return {task.key: task for task in (found(tx, key) for key in keys)}


def cycle(tx: ReadTransaction, task: Task, on: Task) -> tuple[TaskKey, ...]:
    """The path from the task over a new dependency back to itself; empty if there is no cycle."""
    if on.id == task.id:
        return (task.key, task.key)
    if not tx.is_upstream(task.id, on.id):
        return ()
    ways: dict[TaskId, tuple[TaskKey, ...]] = {on.id: (task.key, on.key)}
    queue = [on.id]
    for at in queue:
        for one in tx.dependencies(at):
            if one.id == task.id:
                return (*ways[at], task.key)
            if one.id not in ways:
                ways[one.id] = (*ways[at], one.key)
                queue.append(one.id)
    return (task.key, on.key, task.key)


def unmet(tx: ReadTransaction, task: Task) -> list[Linked]:
    return [one for one in tx.dependencies(task.id) if one.state != COMPLETE]


# Reset and sweep.


def load_reset(
    tx: ReadTransaction, basis: Facts, command: c.Reset, evidence: Evidence
) -> ResetFacts:
    named = {task.id: task for task in (found(tx, key) for key in command.tasks)}
    below: dict[TaskId, Task] = {}
    if not command.only:
        for task_id in named:
            below |= {other.id: other for other in tx.downstream(task_id)}
    receiver = tx.actor_named(command.to) if command.to else None
    many = tuple(affected(named.values(), below.values(), command))
    subject = receiver or basis.caller.actor
    facts = basis.but(actors={**actors_of(tx, many), subject.id: subject}).widened(
        ResetFacts,
        many=many,
        sessions=sessions_of(tx, many),
        deaths=evidence.deaths,
        living=evidence.living,
        targets=tuple(named.values()),
        receiver=receiver,
    )
    return contested(tx, facts, subject.id) if receiver or command.mine else facts


def contested(tx: ReadTransaction, facts: ResetFacts, holder: ActorId) -> ResetFacts:
    """Adds scope conflicts of the new holder of the tasks; leases that this reset ends do not count."""
    ends = {task.id for task in facts.many}
    held = [rival for rival in tx.held_scopes() if rival.task not in ends]
    session = None if facts.receiver else facts.caller.holding_session
    from dibs.domain.scopes.overlap import StepBudget

    ground, work = facts.rules.ground, StepBudget()
    for task in facts.targets:
        if task.scope:
            rivals = rivals_of(tx, ground, held, task.id, task.scope, holder, session, work)
            if rivals:
                return with_rivals(tx, facts.but(contested=task), rivals)
    return facts


def to_sweep(tx: ReadTransaction, evidence: Evidence, command: c.Sweep) -> list[Task]:
    """Tasks to sweep: those of dead holders first, then the longest expired."""
    dead = sorted(tx.keys_of(set(evidence.deaths)).values())[: command.limit]
    many = {task.id: task for task in (found(tx, key) for key in dead)}
    for task in tx.tasks_expired(command.limit):
        many.setdefault(task.id, task)
    return list(many.values())[: command.limit]
