"""Decides a command: facts in, which say who asks for what and when; events or a refusal out. Pure.

The registry (`domain/verbs.py`) names the guards of each verb, of which the first that fails gives the refusal, and
the function that runs when all of them pass. It is here for commands about one task; else in the module of its kind,
loaded on demand.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain import guards
from dibs.domain import guards as g
from dibs.domain.decision import Decision
from dibs.domain.events import tasks as e
from dibs.domain.events.base import Noted, ending_of, evolve, stint_until
from dibs.domain.facts import (
    ClaimFacts,
    DependFacts,
    DropFacts,
    Facts,
    NextFacts,
    RedactFacts,
    TaskFacts,
)
from dibs.domain.ledger import digest_of
from dibs.domain.model import COMPLETE, EXPIRED, IN_PROGRESS, OPEN, Lease, TaskKey, Terms
from dibs.domain.values import Duration, later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.domain.events.tasks import Event
    from dibs.domain.model import State, Token
    from dibs.domain.refusals import Refusal


def decide(facts: Facts) -> Decision:
    """The events that follow from the command, or its refusal."""
    if isinstance(facts, TaskFacts) and is_retry(facts):
        return retry_result(facts)
    refusal = guards.refusal_of(facts)
    if refusal is not None:
        return deny(facts, refusal)
    command = facts.command
    decision: Decision = decider(command.spec.act)(facts, command)
    claimed = decision.chosen or facts
    if not isinstance(claimed, ClaimFacts) or not claimed.working:
        return decision
    from dibs.domain.decide.stints import one_at_a_time

    return one_at_a_time(claimed, decision)


def decider(name: str) -> Any:
    """The function that the registry names: of this module, or `module.function`."""
    return guards.named(name) if "." in name else globals()[name]


def deny(facts: Facts, refusal: Refusal) -> Decision:
    """The refusal; a former holder's report is kept as a late note."""
    if refusal.code in ("lease_lost", "token_ahead") and isinstance(facts, TaskFacts):
        text = guards.late_text(facts) if guards.keeps_a_late_note(facts) else ""
        late = (Noted(text, late=facts.command.verb),) if text else ()
        return Decision(late, refusal=refusal)
    return Decision(refusal=refusal)


# A holder repeats its own verb after a lost response.


def is_retry(facts: TaskFacts) -> bool:
    """Whether the caller ended its last lease by this same verb, and the task has not moved since."""
    former, command = facts.former, facts.command
    if (
        former is None
        or not facts.since
        or former.lost
        or facts.caller.is_child
        or not command.spec.idempotent
    ):
        return False
    stated: Token | None = command.named()["token"]
    if former.cause != command.verb or stated not in (None, former.token):
        return False
    return not any(event.moves for event in facts.since[1:])


def retry_result(facts: TaskFacts) -> Decision:
    """The same success as before. A text that was not in the first command is kept as a note."""
    done, text = facts.since[0].named(), guards.late_text(facts)
    same = not text or digest_of(text) == done.get("note") or text == done.get("reason")
    return Decision(() if same else (Noted(text),), repeats=facts.since[0])


# Commands about one task.


# Becoming the holder.


def take(facts: ClaimFacts, ttl: Duration | None, reason: str, *, start: bool) -> Decision:
    """Claim, start, takeover: claims a free task, takes over an expired lease."""
    begun = e.Claimed if facts.lease is None else e.TakenOver
    return begin(facts, begun, ttl, reason, start=start)


def continue_lease(facts: TaskFacts, ttl: Duration | None, *, start: bool) -> Decision:
    """Renews the caller's lease under the same token; binds it if it was assigned; starts it on request."""
    lease = e.lease_of(facts.task)
    events = [*extend(facts, ttl)]
    if facts.may_bind:
        events.append(e.Bound(facts.caller.holding_session, facts.caller.place))
    else:
        events += placed(facts)
    if start and facts.task.state == OPEN:
        events.append(e.Started())
    elif start and lease.bound and lease.stint is None:
        events.append(e.Resumed())
    return Decision(tuple(events), renews=True)


def placed(facts: TaskFacts) -> tuple[Event, ...]:
    """The event for a new place of work, if the place is known and has changed."""
    place = facts.caller.place
    if place is None or not place.worktree or place == e.lease_of(facts.task).place:
        return ()
    return (e.Placed(place),)


def begin(
    facts: ClaimFacts, begun: type[e.LeaseBegun], ttl: Duration | None, reason: str, *, start: bool
) -> Decision:
    """Continues the caller's own lease, or begins a new one that replaces the old."""
    if facts.holds or facts.may_bind:
        return continue_lease(facts, ttl, start=start)
    ending, death, swept = end(facts), facts.death, facts.swept
    why = death.cause if death else EXPIRED if ending else facts.why_swept
    event = begun(
        token=facts.task.token.next_in(facts.epoch),
        actor=facts.caller.actor.id,
        session=facts.caller.holding_session,
        ttl=ttl or facts.rules.ttl_for(facts.caller.actor),
        reason=reason or why,
        ending=ending,
        former=None if ending else swept,
        place=facts.caller.place,
    )
    starts = (e.Started(),) if start and facts.task.state == OPEN else ()
    return Decision((event, *starts))


def claim(facts: ClaimFacts, command: c.Claim) -> Decision:
    return take(facts, command.ttl, command.reason, start=not command.reserve)


def next_(facts: NextFacts, command: c.Next) -> Decision:
    """Claims the first offer that a claim would get."""
    chosen = g.first_claimable(facts)
    assert chosen is not None, "if nothing is ready it was refused before"
    taken = take(chosen, command.ttl, "", start=not command.reserve)
    return taken.but(chosen=chosen)


def start(facts: ClaimFacts, command: c.Start) -> Decision:
    return take(facts, command.ttl, "", start=True)


def takeover(facts: ClaimFacts, command: c.Takeover) -> Decision:
    return take(facts, command.ttl, command.reason, start=True)


def force(facts: ClaimFacts, command: c.Force) -> Decision:
    return begin(facts, e.Forced, command.ttl, command.reason, start=True)


def assign(facts: TaskFacts, command: c.Assign) -> Decision:
    return Decision((for_another(facts, e.Assigned, command.ttl, command.reason),))


def handoff(facts: TaskFacts, command: c.Handoff) -> Decision:
    handed = for_another(facts, e.HandedOff, command.ttl, command.reason)
    return Decision((handed.but(note=command.note.strip()),))


def for_another(
    facts: TaskFacts, begun: type[e.LeaseBegun], ttl: Duration | None, reason: str
) -> e.LeaseBegun:
    """A lease for the receiver, unbound until one of its sessions takes it up."""
    return begun(
        token=facts.task.token.next_in(facts.epoch),
        actor=facts.subject.id,
        session=None,
        ttl=ttl or facts.rules.ttl_for(facts.subject),
        reason=reason,
        ending=end(facts),
    )


# Holding.


def renew(facts: TaskFacts, command: c.Renew) -> Decision:
    here = placed(facts) if command.here else ()
    return Decision((*extend(facts, command.ttl), *here), renews=True)


def stop(facts: TaskFacts, _command: c.Stop) -> Decision:
    events = extend(facts)
    stint = stint_until(running(facts, events), facts.now)
    return Decision((*events, e.Stopped(stint=stint)) if stint else events, renews=True)


def release(facts: TaskFacts, command: c.Release) -> Decision:
    """Gives the task back. If the caller does not hold it: a success that keeps the note."""
    former, note = facts.former, command.note.strip()
    if facts.holds or facts.may_bind:
        return Decision((given_back(facts, command),))
    if facts.another_holds and former is None:
        return Decision(refusal=g.held(facts))
    events: list[Event] = []
    if former is not None and former.lost and not former.acknowledged:
        events.append(e.Acknowledged(lost=former.token))
    if facts.lease is None and facts.task.assignee == facts.caller.actor.id:
        events.append(e.Released(note=note))
    elif note:
        late = command.verb if former is not None and former.lost else ""
        events.append(e.Noted(note=note, late=late))
    return Decision(tuple(events))


def given_back(facts: TaskFacts, command: c.Release) -> e.Released:
    """The release. A failed attempt delays the next one, or fails the task if it was the last."""
    note, ending, task = command.note.strip(), end(facts), facts.task
    if command.rest is None:
        untried = task.state == IN_PROGRESS and not command.tried
        return e.Released(ending=ending, note=note, untried=untried)
    if task.state == IN_PROGRESS and task.attempts >= task.terms.max_attempts:
        return e.Released(ending=ending, note=note, gives_up=True)
    return e.Released(ending=ending, note=note, rests_until=later(facts.now, command.rest))


# Leaving.


def complete(facts: TaskFacts, command: c.Complete) -> Decision:
    done = e.Completed(ending=end(facts), note=command.note.strip())
    return Decision((*started_first(facts), done))


def submit(facts: TaskFacts, command: c.Submit) -> Decision:
    done = e.Submitted(ending=end(facts), author=facts.caller.actor.id, note=command.note.strip())
    return Decision((*started_first(facts), done))


def fail(facts: TaskFacts, command: c.Fail) -> Decision:
    return Decision((e.Failed(ending=end(facts), note=command.reason.strip()),))


def block(facts: TaskFacts, command: c.Block) -> Decision:
    note, on = command.reason.strip(), command.on
    if not command.keep or not facts.holds:
        return Decision((e.Blocked(ending=end(facts), note=note, on=on),))
    events = extend(facts)
    stint = stint_until(running(facts, events), facts.now)
    return Decision((*events, e.Blocked(note=note, on=on, stint=stint)), renews=True)


def drop(facts: DropFacts, command: c.Drop) -> Decision:
    overruled = facts.another_holds
    dropped = e.Dropped(
        ending=end(facts),
        reason=command.reason.strip(),
        overruled=overruled,
        waiting=facts.waiting,
    )
    return Decision((dropped,))


def unassign(facts: TaskFacts, command: c.Unassign) -> Decision:
    return Decision((e.Unassigned(ending=end(facts), reason=command.reason.strip()),))


def unblock(facts: TaskFacts, command: c.Unblock) -> Decision:
    return with_renewal(facts, e.Unblocked(note=command.note.strip()))


def accept(_facts: TaskFacts, command: c.Accept) -> Decision:
    return Decision((e.Accepted(note=command.note.strip()),))


def reject(_facts: TaskFacts, command: c.Reject) -> Decision:
    return Decision((e.Rejected(note=command.reason.strip()),))


# Describing.


def edit(facts: TaskFacts, command: c.Edit) -> Decision:
    before = facts.task.terms
    wanted = {f: v for f, v in command.named().items() if f in Terms.fields and v is not None}
    if wanted.get("not_before") == 0:
        wanted["not_before"] = None
    after = before.but(**wanted)
    return with_renewal(facts, *((e.Edited(terms=after),) if after != before else ()))


def scope(facts: TaskFacts, command: c.Scope) -> Decision:
    before = facts.task.scope
    kept = tuple(path for path in before if path not in command.remove)
    after = kept + tuple(path for path in command.add if path not in kept)
    return with_renewal(facts, *((e.Scoped(scope=after),) if after != before else ()))


def allow(facts: TaskFacts, command: c.Allow) -> Decision:
    until, reason = later(facts.now, command.span), command.reason.strip()
    return Decision((e.Allowed(command.paths, facts.subject.id, until, reason),))


def depend(facts: DependFacts, _command: c.Depend) -> Decision:
    now = facts.after
    on = tuple(key for key in facts.on if key not in now)
    not_on = tuple(key for key in facts.not_on if key in now)
    if not on and not not_on:
        return with_renewal(facts)
    after = (now | set(on)) - set(not_on)
    waits = open_ones(facts.causes, tuple(after))
    return with_renewal(facts, e.Depended(on=on, not_on=not_on, waits_on=waits))


def note(facts: TaskFacts, command: c.Note) -> Decision:
    """Always accepted, from anybody."""
    return with_renewal(facts, e.Noted(note=command.note.strip()))


def redact(facts: RedactFacts, command: c.Redact) -> Decision:
    """Removes the note's text. Idempotent."""
    redacted = e.Redacted(of=command.seq, reason=command.reason.strip())
    return with_renewal(facts, *((redacted,) if facts.noted else ()))


def park(facts: TaskFacts, command: c.Park) -> Decision:
    if facts.task.parked_by is not None:
        return with_renewal(facts)
    return with_renewal(facts, e.Parked(by=facts.caller.actor.id, reason=command.reason.strip()))


def unpark(facts: TaskFacts, _command: c.Unpark) -> Decision:
    return with_renewal(facts, *((e.Unparked(),) if facts.task.parked_by is not None else ()))


# What several verbs share.


def with_renewal(facts: TaskFacts, *events: Event) -> Decision:
    """The events; if the caller is the holder, its lease is renewed, with an event if it had expired.

    An expired lease is renewed only if its scope is still free.
    """
    if not facts.holds or (facts.late and facts.rivals):
        return Decision(events)
    return Decision((*extend(facts), *events), renews=True)


def extend(facts: TaskFacts, ttl: Duration | None = None) -> tuple[Event, ...]:
    """The renewal event, needed only if the renewal is late, follows an idle period or changes the ttl.

    After expiry, or after a monitored holder was idle, the stint ended at the last renewal; a new one opens.
    """
    lease, silent = e.lease_of(facts.task), facts.late or facts.idle
    ttl = ttl or lease.ttl
    if not silent and ttl == lease.ttl:
        return ()
    stint = stint_until(lease, lease.renewed) if silent else None
    return (e.Renewed(ttl=ttl, lapsed=lease.expires if facts.late else None, stint=stint),)


def running(facts: TaskFacts, events: tuple[Event, ...]) -> Lease:
    """The caller's lease after `events`, before the verb itself."""
    task = facts.task
    for event in events:
        assert isinstance(event, e.TaskEvent)
        task = evolve(task, event, facts.now)
    return e.lease_of(task)


def open_ones(states: Mapping[TaskKey, State], keys: tuple[TaskKey, ...]) -> int:
    return sum(states[key] != COMPLETE for key in keys)


def end(facts: TaskFacts) -> e.Ending | None:
    """The final record of the lease, with the uncommitted work it leaves behind."""
    left, silent = facts.left, facts.death is not None or facts.idle
    ending = ending_of(facts.task, facts.now, silent=silent)
    if ending is None or left is None or left.token != ending.token:
        return ending
    return ending.but(uncommitted=left.uncommitted, not_looked_at=left.not_looked_at)


def started_first(facts: TaskFacts) -> tuple[Event, ...]:
    """The start event of an open task that is finished directly."""
    return (e.Started(),) if facts.task.state != IN_PROGRESS else ()
