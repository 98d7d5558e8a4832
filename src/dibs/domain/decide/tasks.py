"""Decides commands about one task: one function per verb, which runs when all guards have passed. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain import guards as g
from dibs.domain.decision import Decision
from dibs.domain.events import tasks as e
from dibs.domain.evolve import ending_of, evolve, stint_until
from dibs.domain.facts import Case
from dibs.domain.instants import Duration, later
from dibs.domain.model import COMPLETE, EXPIRED, IN_PROGRESS, OPEN, Lease, TaskKey, Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.events.tasks import Event


# Becoming the holder.


def take(case: Case, ttl: Duration | None, reason: str, *, start: bool) -> Decision:
    """Claim, start, takeover: claims a free task, takes over an expired lease."""
    begun = e.Claimed if case.lease is None else e.TakenOver
    return begin(case, begun, ttl, reason, start=start)


def continue_lease(case: Case, ttl: Duration | None, *, start: bool) -> Decision:
    """Renews the caller's lease under the same token; binds it if it was assigned; starts it on request."""
    lease = e.lease_of(case.task)
    events = [*extend(case, ttl)]
    if case.may_bind:
        events.append(e.Bound(case.caller.holding_session, case.caller.place))
    else:
        events += placed(case)
    if start and case.task.state == OPEN:
        events.append(e.Started())
    elif start and lease.bound and lease.stint is None:
        events.append(e.Resumed())
    return Decision(tuple(events), renews=True)


def placed(case: Case) -> tuple[Event, ...]:
    """The event for a new place of work, if the place is known and has changed."""
    place = case.caller.place
    if place is None or not place.worktree or place == e.lease_of(case.task).place:
        return ()
    return (e.Placed(place),)


def begin(
    case: Case, begun: type[e.LeaseBegun], ttl: Duration | None, reason: str, *, start: bool
) -> Decision:
    """Continues the caller's own lease, or begins a new one that replaces the old."""
    if case.holds or case.may_bind:
        return continue_lease(case, ttl, start=start)
    ending, death, swept = end(case), case.death, case.facts.swept
    why = death.cause if death else EXPIRED if ending else case.facts.why_swept
    event = begun(
        token=case.task.token.next_in(case.facts.epoch),
        actor=case.caller.actor.id,
        session=case.caller.holding_session,
        ttl=ttl or case.facts.rules.ttl_for(case.caller.actor),
        reason=reason or why,
        ending=ending,
        former=None if ending else swept,
        place=case.caller.place,
    )
    starts = (e.Started(),) if start and case.task.state == OPEN else ()
    return Decision((event, *starts))


def claim(case: Case, command: c.Claim) -> Decision:
    return take(case, command.ttl, command.reason, start=not command.reserve)


def next_(case: Case, command: c.Next) -> Decision:
    return take(case, command.ttl, "", start=not command.reserve)


def start(case: Case, command: c.Start) -> Decision:
    return take(case, command.ttl, "", start=True)


def takeover(case: Case, command: c.Takeover) -> Decision:
    return take(case, command.ttl, command.reason, start=True)


def force(case: Case, command: c.Force) -> Decision:
    return begin(case, e.Forced, command.ttl, command.reason, start=True)


def assign(case: Case, command: c.Assign) -> Decision:
    return Decision((for_another(case, e.Assigned, command.ttl, command.reason),))


def handoff(case: Case, command: c.Handoff) -> Decision:
    handed = for_another(case, e.HandedOff, command.ttl, command.reason)
    return Decision((handed.but(note=command.note.strip()),))


def for_another(
    case: Case, begun: type[e.LeaseBegun], ttl: Duration | None, reason: str
) -> e.LeaseBegun:
    """A lease for the receiver, unbound until one of its sessions takes it up."""
    return begun(
        token=case.task.token.next_in(case.facts.epoch),
        actor=case.subject.id,
        session=None,
        ttl=ttl or case.facts.rules.ttl_for(case.subject),
        reason=reason,
        ending=end(case),
    )


# Holding.


def renew(case: Case, command: c.Renew) -> Decision:
    here = placed(case) if command.here else ()
    return Decision((*extend(case, command.ttl), *here), renews=True)


def stop(case: Case, _command: c.Stop) -> Decision:
    events = extend(case)
    stint = stint_until(running(case, events), case.now)
    return Decision((*events, e.Stopped(stint=stint)) if stint else events, renews=True)


def release(case: Case, command: c.Release) -> Decision:
    """Gives the task back. If the caller does not hold it: a success that keeps the note."""
    former, note = case.facts.former, command.note.strip()
    if case.holds or case.may_bind:
        return Decision((given_back(case, command),))
    if case.another_holds and former is None:
        return Decision(refusal=g.held(case))
    events: list[Event] = []
    if former is not None and former.lost and not former.acknowledged:
        events.append(e.Acknowledged(lost=former.token))
    if case.lease is None and case.task.assignee == case.caller.actor.id:
        events.append(e.Released(note=note))
    elif note:
        late = command.verb if former is not None and former.lost else ""
        events.append(e.Noted(note=note, late=late))
    return Decision(tuple(events))


def given_back(case: Case, command: c.Release) -> e.Released:
    """The release. A failed attempt delays the next one, or fails the task if it was the last."""
    note, ending, task = command.note.strip(), end(case), case.task
    if command.rest is None:
        untried = task.state == IN_PROGRESS and not command.tried
        return e.Released(ending=ending, note=note, untried=untried)
    if task.state == IN_PROGRESS and task.attempts >= task.terms.max_attempts:
        return e.Released(ending=ending, note=note, gives_up=True)
    return e.Released(ending=ending, note=note, rests_until=later(case.now, command.rest))


# Leaving.


def complete(case: Case, command: c.Complete) -> Decision:
    done = e.Completed(ending=end(case), note=command.note.strip())
    return Decision((*started_first(case), done))


def submit(case: Case, command: c.Submit) -> Decision:
    done = e.Submitted(ending=end(case), author=case.caller.actor.id, note=command.note.strip())
    return Decision((*started_first(case), done))


def fail(case: Case, command: c.Fail) -> Decision:
    return Decision((e.Failed(ending=end(case), note=command.reason.strip()),))


def block(case: Case, command: c.Block) -> Decision:
    note, on = command.reason.strip(), command.on
    if not command.keep or not case.holds:
        return Decision((e.Blocked(ending=end(case), note=note, on=on),))
    events = extend(case)
    stint = stint_until(running(case, events), case.now)
    return Decision((*events, e.Blocked(note=note, on=on, stint=stint)), renews=True)


def drop(case: Case, command: c.Drop) -> Decision:
    overruled = case.another_holds
    dropped = e.Dropped(
        ending=end(case),
        reason=command.reason.strip(),
        overruled=overruled,
        waiting=case.facts.waiting,
    )
    return Decision((dropped,))


def unassign(case: Case, command: c.Unassign) -> Decision:
    return Decision((e.Unassigned(ending=end(case), reason=command.reason.strip()),))


def unblock(case: Case, command: c.Unblock) -> Decision:
    return with_renewal(case, e.Unblocked(note=command.note.strip()))


def accept(_case: Case, command: c.Accept) -> Decision:
    return Decision((e.Accepted(note=command.note.strip()),))


def reject(_case: Case, command: c.Reject) -> Decision:
    return Decision((e.Rejected(note=command.reason.strip()),))


# Describing.


def edit(case: Case, command: c.Edit) -> Decision:
    before = case.task.terms
    wanted = {f: v for f, v in command.named().items() if f in Terms.fields and v is not None}
    if wanted.get("not_before") == 0:
        wanted["not_before"] = None
    after = before.but(**wanted)
    return with_renewal(case, *((e.Edited(terms=after),) if after != before else ()))


def scope(case: Case, command: c.Scope) -> Decision:
    before = case.task.scope
    kept = tuple(path for path in before if path not in command.remove)
    after = kept + tuple(path for path in command.add if path not in kept)
    return with_renewal(case, *((e.Scoped(scope=after),) if after != before else ()))


def allow(case: Case, command: c.Allow) -> Decision:
    until, reason = later(case.now, command.span), command.reason.strip()
    return Decision((e.Allowed(command.paths, case.subject.id, until, reason),))


def depend(case: Case, _command: c.Depend) -> Decision:
    now = case.facts.after
    on = tuple(key for key in case.facts.on if key not in now)
    not_on = tuple(key for key in case.facts.not_on if key in now)
    if not on and not not_on:
        return with_renewal(case)
    after = (now | set(on)) - set(not_on)
    waits = open_ones(case, tuple(after))
    return with_renewal(case, e.Depended(on=on, not_on=not_on, waits_on=waits))


def note(case: Case, command: c.Note) -> Decision:
    """Always accepted, from anybody."""
    return with_renewal(case, e.Noted(note=command.note.strip()))


def redact(case: Case, command: c.Redact) -> Decision:
    """Removes the note's text. Idempotent."""
    redacted = e.Redacted(of=command.seq, reason=command.reason.strip())
    return with_renewal(case, *((redacted,) if case.facts.noted else ()))


def park(case: Case, command: c.Park) -> Decision:
    if case.task.parked_by is not None:
        return with_renewal(case)
    return with_renewal(case, e.Parked(by=case.caller.actor.id, reason=command.reason.strip()))


def unpark(case: Case, _command: c.Unpark) -> Decision:
    return with_renewal(case, *((e.Unparked(),) if case.task.parked_by is not None else ()))


# What several verbs share.


def with_renewal(case: Case, *events: Event) -> Decision:
    """The events; if the caller is the holder, its lease is renewed, with an event if it had expired.

    An expired lease is renewed only if its scope is still free.
    """
    if not case.holds or (case.late and case.facts.rivals):
        return Decision(events)
    return Decision((*extend(case), *events), renews=True)


def extend(case: Case, ttl: Duration | None = None) -> tuple[Event, ...]:
    """The renewal event, needed only if the renewal is late, follows an idle period or changes the ttl.

    After expiry, or after a monitored holder was idle, the stint ended at the last renewal; a new one opens.
    """
    lease, silent = e.lease_of(case.task), case.late or case.facts.idle
    ttl = ttl or lease.ttl
    if not silent and ttl == lease.ttl:
        return ()
    stint = stint_until(lease, lease.renewed) if silent else None
    return (e.Renewed(ttl=ttl, lapsed=lease.expires if case.late else None, stint=stint),)


def running(case: Case, events: tuple[Event, ...]) -> Lease:
    """The caller's lease after `events`, before the verb itself."""
    task = case.task
    for event in events:
        assert isinstance(event, e.TaskEvent)
        task = evolve(task, event, case.now)
    return e.lease_of(task)


def open_ones(case: Case, keys: tuple[TaskKey, ...]) -> int:
    return sum(case.facts.causes[key] != COMPLETE for key in keys)


def end(case: Case) -> e.Ending | None:
    """The final record of the lease, with the uncommitted work it leaves behind."""
    left, silent = case.facts.left, case.death is not None or case.facts.idle
    ending = ending_of(case.task, case.now, silent=silent)
    if ending is None or left is None or left.token != ending.token:
        return ending
    return ending.but(uncommitted=left.uncommitted, not_looked_at=left.not_looked_at)


def started_first(case: Case) -> tuple[Event, ...]:
    """The start event of an open task that is finished directly."""
    return (e.Started(),) if case.task.state != IN_PROGRESS else ()
