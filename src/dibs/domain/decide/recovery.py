"""Recovers abandoned work: sweep, retry, reset. Each decides about many tasks at once. Pure.

A sweep ends the leases of dead holders. A retry reopens one task and ends the leases of dead or late
holders on the tasks that depend on it. A reset starts tasks over, with everything that depends on them.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.evolve import ending_of
from dibs.domain.facts import Case, death_evidence, held_by_another, is_idle
from dibs.domain.instants import Duration, Instant
from dibs.domain.model import COMPLETE, DROPPED, EXPIRED, IN_PROGRESS, OPEN, Lease, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# Sweep.


def sweep(case: Case, command: c.Sweep) -> Decision:
    """Ends dead leases at once; marks expired ones as suspect, and ends them after the grace period."""
    changes = [change for task in case.facts.many if (change := swept(case, command, task))]
    return Decision(others=tuple(changes))


def swept(case: Case, command: c.Sweep, task: Task) -> Change | None:
    lease, death = task.lease, death_evidence(task, case.facts)
    if lease is None:
        return None
    if death is not None:
        return Change(task, (lease_ended(case, task, death.cause),))
    if lease.live(case.now):
        return None
    if lease.suspect is None:
        return Change(task, suspect=case.now)
    if case.now < lease_ends(lease, command.grace, alive=task.id in case.facts.living):
        return None
    return Change(task, (lease_ended(case, task, EXPIRED),))


def lease_ends(lease: Lease, grace: Duration, *, alive: bool) -> Instant:
    """When a suspect lease ends: after the grace period, plus one ttl if its process is alive."""
    assert lease.suspect is not None, "asked only of suspects"
    return Instant(lease.suspect + grace + (lease.ttl if alive else 0))


def lease_ended(case: Case, task: Task, why: str, *, may_give_up: bool = True) -> e.LeaseEnded:
    lease = e.lease_of(task)
    used_up = task.state == IN_PROGRESS and task.attempts >= task.terms.max_attempts
    return e.LeaseEnded(
        ending=ended(case, task),
        why=why,
        gives_up=may_give_up and used_up,
        unassigns=not lease.bound and not case.actor(lease.actor).is_human,
    )


def ended(case: Case, task: Task) -> e.Ending | None:
    session = case.facts.sessions.get(task.id)
    idle = (
        session is not None and session.watched and is_idle(task.lease, case.now, case.facts.rules)
    )
    silent = idle or death_evidence(task, case.facts) is not None
    return ending_of(task, case.now, silent=silent)


# Retry.


def retry(case: Case, command: c.Retry) -> Decision:
    """Reopens the task. Live holders and final tasks downstream are left alone."""
    task, reason = case.task, command.reason.strip()
    used_up = task.attempts >= task.terms.max_attempts
    events: tuple[e.TaskEvent, ...] = ()
    if task.state != OPEN or task.lease is not None:
        raised = command.force and used_up
        again = e.Retried(ended(case, task), reason, raised, forced=command.force)
        events = (again,)
    left = [other for other in case.facts.many if is_left(case, other)]
    ends = (
        Change(other, (lease_ended(case, other, "retry", may_give_up=False),)) for other in left
    )
    return Decision(events, others=tuple(ends))


def is_left(case: Case, task: Task) -> bool:
    """Whether the task has a lease whose holder is dead or late."""
    lease = task.lease
    return lease is not None and (
        not lease.live(case.now) or death_evidence(task, case.facts) is not None
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


def reset(case: Case, command: c.Reset) -> Decision:
    """Resets the tasks; on request claims, assigns or parks the named ones in the same step."""
    keys = {key.casefold() for key in command.tasks}
    interrupted = case.interrupted
    changes = []
    for task in case.facts.many:
        is_named = task.key.casefold() in keys
        anew = e.Reset(
            ending=ended(case, task),
            reason=command.reason.strip(),
            of="" if is_named else command.tasks[0],
            overruled=held_by_another(task, case.caller),
            forced=task in interrupted,
        )
        changes.append(
            Change(task, (anew, *(kept_from_others(case, command, task) if is_named else ())))
        )
    return Decision(others=tuple(changes))


def kept_from_others(case: Case, command: c.Reset, task: Task) -> tuple[e.TaskEvent, ...]:
    caller, rules = case.caller, case.facts.rules
    token, reason = task.token.next_in(case.facts.epoch), command.reason.strip()
    if command.mine:
        ttl = rules.ttl_for(caller.actor)
        mine = e.Claimed(token, caller.actor.id, caller.holding_session, ttl, reason)
        return (mine.but(place=caller.place),)
    if command.to:
        receiver = case.subject
        return (e.Assigned(token, receiver.id, None, rules.ttl_for(receiver), reason),)
    if command.park and task.parked_by is None:
        return (e.Parked(by=caller.actor.id, reason=reason),)
    return ()
