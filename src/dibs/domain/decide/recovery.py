"""Recovers abandoned work: sweep, retry, reset. Each decides about many tasks at once. Pure.

A sweep ends the leases of dead holders. A retry reopens one task and ends the leases of dead or late
holders on the tasks that depend on it. A reset starts tasks over, with everything that depends on them.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.events.base import ending_of
from dibs.domain.facts import (
    ResetFacts,
    RetryFacts,
    SweepFacts,
    death_evidence,
    held_by_another,
    is_idle,
)
from dibs.domain.model import COMPLETE, DROPPED, EXPIRED, IN_PROGRESS, OPEN, Lease, Task
from dibs.domain.values import Duration, Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# Sweep.


def sweep(facts: SweepFacts, command: c.Sweep) -> Decision:
    """Ends dead leases at once; marks expired ones as suspect, and ends them after the grace period."""
    changes = [change for task in facts.many if (change := swept(facts, command, task))]
    return Decision(others=tuple(changes))


def swept(facts: SweepFacts, command: c.Sweep, task: Task) -> Change | None:
    lease, death = task.lease, death_evidence(task, facts.deaths)
    if lease is None:
        return None
    if death is not None:
        return Change(task, (lease_ended(facts, task, death.cause),))
    if lease.live(facts.now):
        return None
    if lease.suspect is None:
        return Change(task, suspect=facts.now)
    if facts.now < lease_ends(lease, command.grace, alive=task.id in facts.living):
        return None
    return Change(task, (lease_ended(facts, task, EXPIRED),))


def lease_ends(lease: Lease, grace: Duration, *, alive: bool) -> Instant:
    """When a suspect lease ends: after the grace period, plus one ttl if its process is alive."""
    assert lease.suspect is not None, "only a suspect lease ends after a grace period"
    return Instant(lease.suspect + grace + (lease.ttl if alive else 0))


def lease_ended(
    facts: SweepFacts | RetryFacts, task: Task, why: str, *, may_give_up: bool = True
) -> e.LeaseEnded:
    lease = e.lease_of(task)
    used_up = task.state == IN_PROGRESS and task.attempts >= task.terms.max_attempts
    return e.LeaseEnded(
        ending=ended(facts, task),
        why=why,
        gives_up=may_give_up and used_up,
        unassigns=not lease.bound and not facts.actor(lease.actor).is_human,
    )


def ended(facts: SweepFacts | RetryFacts, task: Task) -> e.Ending | None:
    session = facts.sessions.get(task.id)
    idle = session is not None and session.watched and is_idle(task.lease, facts.now, facts.rules)
    silent = idle or death_evidence(task, facts.deaths) is not None
    return ending_of(task, facts.now, silent=silent)


# Retry.


def retry(facts: RetryFacts, command: c.Retry) -> Decision:
    """Reopens the task. Live holders and final tasks downstream are left alone."""
    task, reason = facts.task, command.reason.strip()
    used_up = task.attempts >= task.terms.max_attempts
    events: tuple[e.TaskEvent, ...] = ()
    if task.state != OPEN or task.lease is not None:
        raised = command.force and used_up
        again = e.Retried(ended(facts, task), reason, raised, forced=command.force)
        events = (again,)
    left = [other for other in facts.many if is_left(facts, other)]
    ends = (
        Change(other, (lease_ended(facts, other, "retry", may_give_up=False),)) for other in left
    )
    return Decision(events, others=tuple(ends))


def is_left(facts: RetryFacts, task: Task) -> bool:
    """Whether the task has a lease whose holder is dead or late."""
    lease = task.lease
    return lease is not None and (
        not lease.live(facts.now) or death_evidence(task, facts.deaths) is not None
    )


# Reset.


def affected(named: Iterable[Task], downstream: Iterable[Task], command: c.Reset) -> list[Task]:
    """The named tasks, and those downstream that have something to undo."""
    found = {task.id: task for task in named}
    for task in downstream:
        kept = task.state == DROPPED or (task.state == COMPLETE and not command.redo)
        if not kept and e.reset_task(task) != task:
            found.setdefault(task.id, task)
    return list(found.values())


def reset(facts: ResetFacts, command: c.Reset) -> Decision:
    """Resets the tasks; on request claims, assigns or parks the named ones in the same step."""
    keys = {key.casefold() for key in command.tasks}
    interrupted = facts.interrupted
    changes = []
    for task in facts.many:
        is_named = task.key.casefold() in keys
        anew = e.Reset(
            ending=ended(facts, task),
            reason=command.reason.strip(),
            of="" if is_named else command.tasks[0],
            overruled=held_by_another(task, facts.caller),
            forced=task in interrupted,
        )
        changes.append(
            Change(task, (anew, *(kept_from_others(facts, command, task) if is_named else ())))
        )
    return Decision(others=tuple(changes))


def kept_from_others(facts: ResetFacts, command: c.Reset, task: Task) -> tuple[e.TaskEvent, ...]:
    caller, rules = facts.caller, facts.rules
    token, reason = task.token.next_in(facts.epoch), command.reason.strip()
    if command.mine:
        ttl = rules.ttl_for(caller.actor)
        mine = e.Claimed(token, caller.actor.id, caller.holding_session, ttl, reason)
        return (mine.but(place=caller.place),)
    if command.to:
        receiver = facts.receiver
        assert receiver is not None, "an unknown actor was refused before"
        return (e.Assigned(token, receiver.id, None, rules.ttl_for(receiver), reason),)
    if command.park and task.parked_by is None:
        return (e.Parked(by=caller.actor.id, reason=reason),)
    return ()
