"""Facts for commands about many tasks (next, reset, sweep), and for dependencies."""

from __future__ import annotations

from dibs.board.facts.task import facts_of_task, found, rivals_of, with_rivals
from dibs.domain import commands as c
from dibs.domain.decide import decide
from dibs.domain.decide.recovery import affected
from dibs.domain.facts import Facts
from dibs.domain.model import COMPLETE, FINAL, HUMAN, OPEN, Task, TaskId, TaskKey
from dibs.domain.scopes.policy import BLOCK
from dibs.storage import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.domain.model import Caller, Linked, Session
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.readiness import Offer
    from dibs.storage.transaction import ReadTransaction

NAMED_AS_WAITING = 20
"""How many tasks that wait for a dropped one are named."""


def facts_for_many(tx: ReadTransaction, facts: Facts, command: c.Command) -> Facts:
    if isinstance(command, c.Next):
        return facts_for_next(tx, facts, command)
    if isinstance(command, c.Reset):
        return facts_for_reset(tx, facts, command)
    assert isinstance(command, c.Sweep), command.verb
    return about(tx, facts, to_sweep(tx, facts, command))


def about(tx: ReadTransaction, facts: Facts, tasks: Iterable[Task]) -> Facts:
    """Loads the tasks that a command changes, with their holders and sessions."""
    many = tuple(tasks)
    sessions: dict[TaskId, Session] = {}
    actors = dict(facts.actors)
    for task in many:
        named = {task.parked_by, task.assignee} - {None, *actors}
        actors |= {who: tx.actor(who) for who in named if who is not None}
        if task.lease is not None:
            actors[task.lease.actor] = tx.actor(task.lease.actor)
            session = tx.session(task.lease.actor, task.lease.session or "")
            if session is not None and task.lease.bound:
                sessions[task.id] = session
    return facts.but(many=many, sessions=sessions, actors=actors)


# Next.


def facts_for_next(tx: ReadTransaction, facts: Facts, command: c.Next) -> Facts:
    if command.most is not None:
        facts = facts.but(held=tx.count_held_by(facts.caller.actor.id))
    paused = who_paused(tx)
    if paused or (command.most is not None and facts.held >= command.most):
        return facts.but(paused=paused)
    task = chosen(tx, facts)
    return facts if task is None else facts_of_task(tx, facts, task, command)


def who_paused(tx: ReadTransaction) -> str:
    """Who paused the offering of work, and why; "" if it is not paused."""
    board = tx.board
    if board.paused_by is None:
        return ""
    why = f": {board.paused_why}" if board.paused_why else ""
    return f"{tx.actor(board.paused_by).name}{why}"


def chosen(tx: ReadTransaction, facts: Facts) -> Task | None:
    """The first task that a claim by the caller would get."""
    return next(claimable(tx, facts), None)


def claimable(tx: ReadTransaction, facts: Facts) -> Iterator[Task]:
    """Tasks that a claim by the caller would get: its own first, then those that are ready."""
    for key in offered(tx, facts.caller, facts.rules.ground):
        task = found(tx, key)
        claim = c.Claim(key)
        if decide(facts_of_task(tx, facts, task, claim), claim, tx.now).refusal is None:
            yield task


def offered(tx: ReadTransaction, caller: Caller, ground: ScopePolicy) -> Iterator[TaskKey]:
    """Candidates in order: assigned to the caller, returned to it as the author,
    then the rest by priority.
    """
    actor = caller.actor
    for task in tx.tasks_assigned_to(actor.id):
        if (task.lease is None or not task.lease.bound) and not task.waits_on:
            yield task.key
    for task in tx.tasks_preferred_by(actor.id):
        if is_ready(tx, task):
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
        caller, scope = self._caller, rows.texts(offer.scope)
        if not set(rows.texts(offer.capabilities)) <= set(caller.actor.capabilities):
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


def is_ready(tx: ReadTransaction, task: Task) -> bool:
    """Whether it is open, not held, and nothing prevents it from being offered now."""
    return (
        task.state == OPEN
        and task.lease is None
        and not task.waits_on
        and task.parked_by is None
        and task.assignee is None
        and not (task.item and (task.item.gate or task.item.locked))
        and (task.terms.not_before or 0) <= tx.now
        and (task.rests_until or 0) <= tx.now
    )


# Dependencies.


def widened(tx: ReadTransaction, facts: Facts, task: Task, command: c.TaskCommand) -> Facts:
    """Adds the facts about related tasks that some commands need."""
    if isinstance(command, c.Retry):
        held = (other for other in tx.downstream(task.id) if other.lease is not None)
        wider = about(tx, facts, held)
        own = about(tx, wider, (task,))
        return wider.but(sessions={**wider.sessions, **own.sessions})
    if isinstance(command, c.Drop):
        waiting = tx.dependants(task.id, NAMED_AS_WAITING)
        return facts.but(waiting=tuple(one.key for one in waiting if one.state not in FINAL))
    if isinstance(command, c.Redact):
        return facts.but(noted=tx.text_of(task.id, command.seq))
    assert isinstance(command, c.Depend), command.verb
    now = {one.key: one for one in tx.dependencies(task.id)}
    on, not_on = causes_of(tx, command.on), causes_of(tx, command.not_on)
    return facts.but(
        on=tuple(on),
        not_on=tuple(not_on),
        after=frozenset(now),
        causes={key: one.state for key, one in now.items()}
        | {key: one.state for key, one in on.items()},
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


def facts_for_reset(tx: ReadTransaction, facts: Facts, command: c.Reset) -> Facts:
    named = list({task.id: task for task in (found(tx, key) for key in command.tasks)}.values())
    below: dict[TaskId, Task] = {}
    if not command.only:
        for task in named:
            below |= {other.id: other for other in tx.downstream(task.id)}
    receiver = tx.actor_named(command.to) if command.to else None
    facts = about(tx, facts, affected(named, below.values(), command))
    subject = receiver or facts.caller.actor
    actors = {**facts.actors, subject.id: subject}
    facts = facts.but(task=named[0], receiver=receiver, actors=actors)
    return reserved(tx, facts, named) if receiver or command.mine else facts


def reserved(tx: ReadTransaction, facts: Facts, named: list[Task]) -> Facts:
    """Adds scope conflicts of the new holder of the tasks; leases that this reset ends do not count."""
    ends = {task.id for task in facts.many}
    held = [rival for rival in tx.held_scopes() if rival.task not in ends]
    subject = facts.receiver or facts.caller.actor
    session = None if facts.receiver else facts.caller.holding_session
    from dibs.domain.scopes.overlap import StepBudget

    ground, work = facts.rules.ground, StepBudget()
    for task in named:
        if task.scope:
            rivals = rivals_of(tx, ground, held, task.id, task.scope, subject.id, session, work)
            if rivals:
                return with_rivals(tx, facts.but(task=task), rivals)
    return facts


def to_sweep(tx: ReadTransaction, facts: Facts, command: c.Sweep) -> list[Task]:
    """Tasks to sweep: those of dead holders first, then the longest expired."""
    dead = sorted(tx.keys_of(set(facts.deaths)).values())[: command.limit]
    many = {task.id: task for task in (found(tx, key) for key in dead)}
    for task in tx.tasks_expired(command.limit):
        many.setdefault(task.id, task)
    return list(many.values())[: command.limit]
