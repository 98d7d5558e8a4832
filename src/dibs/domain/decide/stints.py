"""Stints: a person works on one task at a time, people correct stints, agents report usage. Pure.

A correction changes an ended stint, never a total. The stint that it replaces stays in the ledger.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.events.stints import StintAdded, StintAmended, UsageReported
from dibs.domain.evolve import evolve, sign_of_life, stint_until
from dibs.domain.facts import Case, Stints
from dibs.domain.instants import MINUTE, SECOND, Instant, brief, iso
from dibs.domain.model import ActorId, EndedStint
from dibs.domain.refusals import Refusal, bad_argument, unknown_actor

# One stint at a time.


def one_at_a_time(case: Case, decision: Decision) -> Decision:
    """Stops a person's other open stints when a new one begins; their leases stay."""
    if decision.refusal is not None or not opens(case, decision):
        return decision
    stops = []
    for task in case.facts.working:
        lease = e.lease_of(task)
        stint = stint_until(lease, sign_of_life(lease, case.now))
        if task.id != case.task.id and stint is not None:
            stops.append(Change(task, (e.Stopped(stint=stint),)))
    return decision.but(others=(*decision.others, *stops))


def opens(case: Case, decision: Decision) -> bool:
    """Whether the decision opens a stint."""
    before = after = case.task
    for event in decision.events:
        assert isinstance(event, e.TaskEvent), event.verb
        after = evolve(after, event, case.now)
    if after.lease is None or after.lease.stint is None:
        return False
    was = before.lease and before.lease.stint
    return (before.token, was) != (after.token, after.lease.stint)


# Corrections.


def add_stint(case: Case, command: c.AddStint) -> Decision:
    """Adds an untracked period of the caller or of the named actor."""
    new = corrected(case)
    stint = e.Stint(new.started, new.ended)
    return Decision((StintAdded(new.actor, stint, command.reason.strip()),))


def amend_stint(case: Case, command: c.AmendStint) -> Decision:
    """Replaces start or end. If both are the same, the stint no longer counts."""
    old, new = numbered(case), corrected(case)
    amended = StintAmended(
        actor=old.actor,
        stint=e.Stint(new.started, new.ended),
        amends=old.seq,
        reason=command.reason.strip(),
        tokens=old.tokens,
        cost=old.cost,
        spending=old.spending,
    )
    return Decision((amended,))


def report_usage(case: Case, command: c.ReportUsage) -> Decision:
    """Records usage. A second report replaces the first."""
    old = numbered(case)
    used = UsageReported(old.seq, command.tokens, command.cost, command.spending)
    return Decision((used,))


def corrected(case: Case) -> EndedStint:
    """The stint as it would be after the command."""
    command = case.command
    if isinstance(command, c.AddStint):
        actor = case.facts.receiver
        assert actor is not None, "an unknown actor was refused before"
        return EndedStint(0, actor.id, command.started, command.ended, StintAdded.source)
    old = numbered(case)
    if not isinstance(command, c.AmendStint):
        return old
    started = old.started if command.started is None else command.started
    ended = old.ended if command.ended is None else command.ended
    return old.but(started=started, ended=ended, source=StintAmended.source, amends=old.seq)


# Guards.


def actor_is_known(case: Case) -> Refusal | None:
    """The actor whose work it was is registered."""
    known = case.facts.receiver is not None
    return None if known else unknown_actor(case.command.named()["actor"])


def is_the_callers(case: Case) -> Refusal | None:
    """The stint belongs to the caller, or the caller is a person."""
    stint = corrected(case)
    if case.caller.is_person or stint.actor == case.caller.actor.id:
        return None
    whose = case.actor(stint.actor).name
    return Refusal(
        "not_your_stint",
        f"the stint {stint.seq} on {case.task.key} is {whose}'s",
        {"stint": stint.seq, "actor": whose, "task": case.task.key},
    )


def counts_still(case: Case) -> Refusal | None:
    """No amendment has replaced the stint."""
    stint = corrected(case)
    by = around(case).replaced_by
    number = stint.amends or stint.seq
    if by is None:
        return None
    return Refusal(
        "already_amended",
        f"the stint {number} on {case.task.key} was amended before: {by} counts in its place",
        {"stint": number, "replaced_by": by, "task": case.task.key},
    )


def is_another(case: Case) -> Refusal | None:
    """The start or the end changes."""
    new = corrected(case)
    old = numbered(case)
    if (old.started, old.ended) != (new.started, new.ended):
        return None
    return bad_argument("the stint stays as it is: say --from or --to with another time").refusal


def ends_after_it_starts(case: Case) -> Refusal | None:
    """The stint does not end before it starts."""
    new = corrected(case)
    if new.ended >= new.started:
        return None
    message = f"it would end at {iso(new.ended)}, before it starts ({iso(new.started)})"
    return Refusal("bad_period", message, period_fields(new))


def is_not_empty(case: Case) -> Refusal | None:
    """The stint has a length."""
    new = corrected(case)
    if new.ended > new.started:
        return None
    return Refusal(
        "bad_period", f"it would have no length ({iso(new.started)})", period_fields(new)
    )


def is_over(case: Case) -> Refusal | None:
    """The stint does not end in the future."""
    new = corrected(case)
    if new.ended <= case.now:
        return None
    message = f"it would end at {iso(new.ended)}, and it is {iso(case.now)} now"
    return Refusal("bad_period", message, period_fields(new) | {"now": iso(case.now)})


def is_of_the_tasks_time(case: Case) -> Refusal | None:
    """The stint does not start before its task existed, to the minute, unless the caller backdates it."""
    new = corrected(case)
    old, created = around(case).numbered, case.task.created
    first = created - created % MINUTE
    earliest = first if old is None else min(first, old.started)
    if new.started >= earliest or case.command.named()["backdated"]:
        return None
    key = case.task.key
    message = (
        f"it would start at {iso(new.started)}, before {key} existed ({iso(created)}); if the work is "
        "older than its task, say --backdated"
    )
    return Refusal(
        "bad_period", message, period_fields(new) | {"task": key, "created_at": iso(created)}
    )


def is_alone(case: Case) -> Refusal | None:
    """No other stint of this actor on this task, ended or open, overlaps it."""
    new = corrected(case)
    if new.started == new.ended:
        return None
    for other in (*others(case, new), *running(case, new.actor)):
        if not length(other):
            continue  # amended to zero length: it no longer counts
        if other.started < new.ended and new.started < other.ended:
            which = f"the stint {other.seq}" if other.seq else "the one that is open"
            until = f" until {iso(other.ended)}" if other.seq else ""
            return Refusal(
                "stint_overlaps",
                f"{which} of {case.actor(new.actor).name} on {case.task.key} has a part of this time: "
                f"from {iso(other.started)}{until}",
                period_fields(new) | {"other": other.seq or None, "task": case.task.key},
            )
    return None


def is_not_approved(case: Case) -> Refusal | None:
    """The change does not touch an approved period."""
    new = corrected(case)
    from dibs.domain.decide.approval import approved_already, closed
    from dibs.domain.stints import WorkedStint

    period, old = case.facts.period, around(case).numbered
    before, after = (
        [WorkedStint(one.actor, one.started, one.ended, case.task.key) for one in (some,) if one]
        for some in (old, new)
    )
    touched = closed(period.approved, before, after) if period else None
    return approved_already(touched, case.actor(new.actor).name) if touched else None


def is_confirmed(case: Case) -> Refusal | None:
    """The caller has confirmed the change after seeing it."""
    new = corrected(case)
    if case.command.named()["yes"]:
        return None
    old = around(case).numbered
    kept = sum(length(one) for one in (*others(case, new), *running(case, new.actor)))
    kept += sum(length(one) for one in around(case).current if one.actor != new.actor)
    now, was = kept + length(new), kept + (length(old) if old else 0)
    changed = f"{written(old, case.now)} becomes {written(new, case.now)}" if old else ""
    name, key = case.actor(new.actor).name, case.task.key
    return Refusal(
        "unconfirmed",
        f"{name} on {key}: {changed or written(new, case.now)}; {key} then adds up to {hours(now)}, "
        f"now {hours(was)}",
        {
            "command": case.command.spec.typed,
            "task": key,
            "actor": name,
            "before": period_fields(old) if old else None,
            "after": period_fields(new),
            "total_before_seconds": was / SECOND,
            "total_after_seconds": now / SECOND,
        },
    )


# Accessors.


def around(case: Case) -> Stints:
    stints = case.facts.stints
    assert stints is not None, "read for every command about a stint"
    return stints


def numbered(case: Case) -> EndedStint:
    """The stint that the command names."""
    stint = around(case).numbered
    assert stint is not None, "an unknown number was refused before"
    return stint


def others(case: Case, new: EndedStint) -> list[EndedStint]:
    """The actor's other stints on the task that count."""
    return [
        one
        for one in around(case).current
        if one.actor == new.actor and (new.amends is None or one.seq != new.amends)
    ]


def running(case: Case, actor: ActorId) -> list[EndedStint]:
    """The actor's open stint, counted until now, if there is one."""
    lease = case.lease
    if lease is None or lease.stint is None or lease.actor != actor:
        return []
    return [EndedStint(0, actor, lease.stint, max(lease.stint, case.now), "open")]


def length(stint: EndedStint) -> int:
    return stint.ended - stint.started


def hours(amount: int) -> str:
    minutes, seconds = divmod(amount // SECOND, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def written(stint: EndedStint, now: Instant) -> str:
    return f"{brief(stint.started, now)} to {brief(stint.ended, now)}"


def period_fields(stint: EndedStint) -> dict[str, object]:
    return {"started_at": iso(stint.started), "ended_at": iso(stint.ended)}
