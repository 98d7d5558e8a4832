"""Stints: a person works on one task at a time, people correct stints, agents report usage. Pure.

A correction changes an ended stint, never a total. The stint that it replaces stays in the ledger.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.events.base import evolve, sign_of_life, stint_until
from dibs.domain.events.stints import StintAdded, StintAmended, UsageReported
from dibs.domain.facts import ClaimFacts, StintFacts
from dibs.domain.model import ActorId, EndedStint
from dibs.domain.refusals import Refusal, bad_argument, unknown_actor
from dibs.domain.values import MINUTE, SECOND, Instant, brief, iso

# One stint at a time.


def one_at_a_time(facts: ClaimFacts, decision: Decision) -> Decision:
    """Stops a person's other open stints when a new one begins; their leases stay."""
    if decision.refusal is not None or not opens(facts, decision):
        return decision
    stops = []
    for task in facts.working:
        lease = e.lease_of(task)
        stint = stint_until(lease, sign_of_life(lease, facts.now))
        if task.id != facts.task.id and stint is not None:
            stops.append(Change(task, (e.Stopped(stint=stint),)))
    return decision.but(others=(*decision.others, *stops))


def opens(facts: ClaimFacts, decision: Decision) -> bool:
    """Whether the decision opens a stint."""
    before = after = facts.task
    for event in decision.events:
        assert isinstance(event, e.TaskEvent), event.verb
        after = evolve(after, event, facts.now)
    if after.lease is None or after.lease.stint is None:
        return False
    was = before.lease and before.lease.stint
    return (before.token, was) != (after.token, after.lease.stint)


# Corrections.


def add_stint(facts: StintFacts, command: c.AddStint) -> Decision:
    """Adds an untracked period of the caller or of the named actor."""
    new = corrected(facts)
    stint = e.Stint(new.started, new.ended)
    return Decision((StintAdded(new.actor, stint, command.reason.strip()),))


def amend_stint(facts: StintFacts, command: c.AmendStint) -> Decision:
    """Replaces start or end. If both are the same, the stint no longer counts."""
    old, new = numbered(facts), corrected(facts)
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


def report_usage(facts: StintFacts, command: c.ReportUsage) -> Decision:
    """Records usage. A second report replaces the first."""
    old = numbered(facts)
    used = UsageReported(old.seq, command.tokens, command.cost, command.spending)
    return Decision((used,))


def corrected(facts: StintFacts) -> EndedStint:
    """The stint as it would be after the command."""
    command = facts.command
    if isinstance(command, c.AddStint):
        actor = facts.receiver
        assert actor is not None, "an unknown actor was refused before"
        return EndedStint(0, actor.id, command.started, command.ended, StintAdded.source)
    old = numbered(facts)
    if not isinstance(command, c.AmendStint):
        return old
    started = old.started if command.started is None else command.started
    ended = old.ended if command.ended is None else command.ended
    return old.but(started=started, ended=ended, source=StintAmended.source, amends=old.seq)


# Guards.


def actor_is_known(facts: StintFacts) -> Refusal | None:
    """The actor whose work it was is registered."""
    known = facts.receiver is not None
    return None if known else unknown_actor(facts.command.named()["actor"])


def is_the_callers(facts: StintFacts) -> Refusal | None:
    """The stint belongs to the caller, or the caller is a person."""
    stint = corrected(facts)
    if facts.caller.is_person or stint.actor == facts.caller.actor.id:
        return None
    whose = facts.actor(stint.actor).name
    return Refusal(
        "not_your_stint",
        f"the stint {stint.seq} on {facts.task.key} is {whose}'s",
        {"stint": stint.seq, "actor": whose, "task": facts.task.key},
    )


def counts_still(facts: StintFacts) -> Refusal | None:
    """No amendment has replaced the stint."""
    stint = corrected(facts)
    by = facts.stints.replaced_by
    number = stint.amends or stint.seq
    if by is None:
        return None
    return Refusal(
        "already_amended",
        f"the stint {number} on {facts.task.key} was amended before: {by} counts in its place",
        {"stint": number, "replaced_by": by, "task": facts.task.key},
    )


def is_another(facts: StintFacts) -> Refusal | None:
    """The start or the end changes."""
    new = corrected(facts)
    old = numbered(facts)
    if (old.started, old.ended) != (new.started, new.ended):
        return None
    return bad_argument("the stint stays as it is: use --from or --to with another time").refusal


def ends_after_it_starts(facts: StintFacts) -> Refusal | None:
    """The stint does not end before it starts."""
    new = corrected(facts)
    if new.ended >= new.started:
        return None
    message = f"it would end at {iso(new.ended)}, before it starts ({iso(new.started)})"
    return Refusal("bad_period", message, period_fields(new))


def is_not_empty(facts: StintFacts) -> Refusal | None:
    """The stint has a length."""
    new = corrected(facts)
    if new.ended > new.started:
        return None
    return Refusal(
        "bad_period", f"it would have no length ({iso(new.started)})", period_fields(new)
    )


def is_over(facts: StintFacts) -> Refusal | None:
    """The stint does not end in the future."""
    new = corrected(facts)
    if new.ended <= facts.now:
        return None
    message = f"it would end at {iso(new.ended)}, and it is {iso(facts.now)} now"
    return Refusal("bad_period", message, period_fields(new) | {"now": iso(facts.now)})


def is_of_the_tasks_time(facts: StintFacts) -> Refusal | None:
    """The stint does not start before its task existed, to the minute, unless the caller backdates it."""
    new = corrected(facts)
    old, created = facts.stints.numbered, facts.task.created
    first = created - created % MINUTE
    earliest = first if old is None else min(first, old.started)
    if new.started >= earliest or facts.command.named()["backdated"]:
        return None
    key = facts.task.key
    message = (
        f"it would start at {iso(new.started)}, before {key} existed ({iso(created)}); if the work is "
        "older than its task, use --backdated"
    )
    return Refusal(
        "bad_period", message, period_fields(new) | {"task": key, "created_at": iso(created)}
    )


def is_alone(facts: StintFacts) -> Refusal | None:
    """No other stint of this actor on this task, ended or open, overlaps it."""
    new = corrected(facts)
    if new.started == new.ended:
        return None
    for other in (*others(facts, new), *running(facts, new.actor)):
        if not length(other):
            continue  # amended to zero length: it no longer counts
        if other.started < new.ended and new.started < other.ended:
            which = f"the stint {other.seq}" if other.seq else "the one that is open"
            until = f" until {iso(other.ended)}" if other.seq else ""
            return Refusal(
                "stint_overlaps",
                f"{which} of {facts.actor(new.actor).name} on {facts.task.key} has a part of this time: "
                f"from {iso(other.started)}{until}",
                period_fields(new) | {"other": other.seq or None, "task": facts.task.key},
            )
    return None


def is_not_approved(facts: StintFacts) -> Refusal | None:
    """The change does not touch an approved period."""
    new = corrected(facts)
    from dibs.domain.decide.approval import approved_already, closed
    from dibs.domain.stints import WorkedStint

    old = facts.stints.numbered
    before, after = (
        [WorkedStint(one.actor, one.started, one.ended, facts.task.key) for one in (some,) if one]
        for some in (old, new)
    )
    touched = closed(facts.approved, before, after)
    return approved_already(touched, facts.actor(new.actor).name) if touched else None


def is_confirmed(facts: StintFacts) -> Refusal | None:
    """The caller has confirmed the change after seeing it."""
    new = corrected(facts)
    if facts.command.named()["yes"]:
        return None
    old = facts.stints.numbered
    kept = sum(length(one) for one in (*others(facts, new), *running(facts, new.actor)))
    kept += sum(length(one) for one in facts.stints.current if one.actor != new.actor)
    now, was = kept + length(new), kept + (length(old) if old else 0)
    changed = f"{written(old, facts.now)} becomes {written(new, facts.now)}" if old else ""
    name, key = facts.actor(new.actor).name, facts.task.key
    return Refusal(
        "unconfirmed",
        f"{name} on {key}: {changed or written(new, facts.now)}; {key} then adds up to {hours(now)}, "
        f"now {hours(was)}",
        {
            "command": facts.command.spec.typed,
            "task": key,
            "actor": name,
            "before": period_fields(old) if old else None,
            "after": period_fields(new),
            "total_before_seconds": was / SECOND,
            "total_after_seconds": now / SECOND,
        },
    )


# Accessors.


def numbered(facts: StintFacts) -> EndedStint:
    """The stint that the command names."""
    stint = facts.stints.numbered
    assert stint is not None, "an unknown number was refused before"
    return stint


def others(facts: StintFacts, new: EndedStint) -> list[EndedStint]:
    """The actor's other stints on the task that count."""
    return [
        one
        for one in facts.stints.current
        if one.actor == new.actor and (new.amends is None or one.seq != new.amends)
    ]


def running(facts: StintFacts, actor: ActorId) -> list[EndedStint]:
    """The actor's open stint, counted until now, if there is one."""
    lease = facts.task.lease
    if lease is None or lease.stint is None or lease.actor != actor:
        return []
    return [EndedStint(0, actor, lease.stint, max(lease.stint, facts.now), "open")]


def length(stint: EndedStint) -> int:
    return stint.ended - stint.started


def hours(amount: int) -> str:
    minutes, seconds = divmod(amount // SECOND, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def written(stint: EndedStint, now: Instant) -> str:
    return f"{brief(stint.started, now)} to {brief(stint.ended, now)}"


def period_fields(stint: EndedStint) -> dict[str, object]:
    return {"started_at": iso(stint.started), "ended_at": iso(stint.ended)}
