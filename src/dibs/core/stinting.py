"""Stints: a person has one at a time; people put them right; agents say what they used. Pure.

A correction is about a stint that is over, and never about a total. What it replaces stays in the ledger.
"""

from __future__ import annotations

from dibs.core import commands as c
from dibs.core import events as e
from dibs.core.decide import Change, Decision
from dibs.core.evolve import evolve, sign_of_life, stint_until
from dibs.core.facts import Case, Stints
from dibs.core.instants import MINUTE, SECOND, Instant, brief, iso
from dibs.core.model import ActorId, EndedStint
from dibs.core.refusals import Refusal, bad_argument, unknown_actor
from dibs.core.stint_events import StintAdded, StintAmended, UsageReported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Question = Callable[[Case, EndedStint], Refusal | None]


# One at a time.


def one_at_a_time(case: Case, decision: Decision) -> Decision:
    """A person who begins to work on a task stops working on the others; their leases are kept."""
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
    """Whether a stint begins by it."""
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
    """A period that was forgotten, of the caller or of whom it names."""
    actor = case.facts.receiver
    if actor is None:
        return Decision(refusal=unknown_actor(command.actor))
    new = EndedStint(0, actor.id, command.started, command.ended, StintAdded.source)
    stint = e.Stint(new.started, new.ended)
    return answered(case, new, StintAdded(actor.id, stint, command.reason.strip()))


def amend_stint(case: Case, command: c.AmendStint) -> Decision:
    """Another start or end; both may be the same, and it counts nothing then."""
    old = numbered(case)
    started = old.started if command.started is None else command.started
    ended = old.ended if command.ended is None else command.ended
    new = old.but(started=started, ended=ended, source=StintAmended.source, amends=old.seq)
    amended = StintAmended(
        actor=old.actor,
        stint=e.Stint(started, ended),
        amends=old.seq,
        reason=command.reason.strip(),
        tokens=old.tokens,
        cost=old.cost,
        spending=old.spending,
    )
    return answered(case, new, amended)


def report_usage(case: Case, command: c.ReportUsage) -> Decision:
    """A second report takes the place of the first."""
    old = numbered(case)
    used = UsageReported(old.seq, command.tokens, command.cost, command.spending)
    return answered(case, old, used)


def answered(case: Case, new: EndedStint, event: e.Event) -> Decision:
    """The first question that fails is the refusal."""
    for question in QUESTIONS[case.command.verb]:
        refusal = question(case, new)
        if refusal is not None:
            return Decision(refusal=refusal)
    return Decision((event,))


# Questions, each with its refusal.


def is_the_callers(case: Case, stint: EndedStint) -> Refusal | None:
    """Whose stint it is asks, or a person."""
    if case.caller.is_person or stint.actor == case.caller.actor.id:
        return None
    whose = case.actor(stint.actor).name
    return Refusal(
        "not_your_stint",
        f"the stint {stint.seq} on {case.task.key} is {whose}'s",
        {"stint": stint.seq, "actor": whose, "task": case.task.key},
    )


def counts_still(case: Case, stint: EndedStint) -> Refusal | None:
    """No other stint has taken its place."""
    by = around(case).replaced_by
    number = stint.amends or stint.seq
    if by is None:
        return None
    return Refusal(
        "already_amended",
        f"the stint {number} on {case.task.key} was amended before: {by} counts in its place",
        {"stint": number, "replaced_by": by, "task": case.task.key},
    )


def is_another(case: Case, new: EndedStint) -> Refusal | None:
    """Its start or its end changes."""
    old = numbered(case)
    if (old.started, old.ended) != (new.started, new.ended):
        return None
    return bad_argument("the stint stays as it is: say --from or --to with another time").refusal


def ends_after_it_starts(_case: Case, new: EndedStint) -> Refusal | None:
    """It does not end before it starts."""
    if new.ended >= new.started:
        return None
    message = f"it would end at {iso(new.ended)}, before it starts ({iso(new.started)})"
    return Refusal("bad_period", message, told(new))


def is_not_empty(_case: Case, new: EndedStint) -> Refusal | None:
    """There is time between its start and its end."""
    if new.ended > new.started:
        return None
    return Refusal("bad_period", f"it would have no length ({iso(new.started)})", told(new))


def is_over(case: Case, new: EndedStint) -> Refusal | None:
    """It does not end in the future."""
    if new.ended <= case.now:
        return None
    message = f"it would end at {iso(new.ended)}, and it is {iso(case.now)} now"
    return Refusal("bad_period", message, told(new) | {"now": iso(case.now)})


def is_of_the_tasks_time(case: Case, new: EndedStint) -> Refusal | None:
    """It does not start before its task existed, to the minute, unless a person says that it did."""
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
    return Refusal("bad_period", message, told(new) | {"task": key, "created_at": iso(created)})


def is_alone(case: Case, new: EndedStint) -> Refusal | None:
    """No other stint of this actor on this task, over or open, has a part of this time."""
    if new.started == new.ended:
        return None
    for other in (*others(case, new), *running(case, new.actor)):
        if not length(other):
            continue  # amended to nothing: it counts no more, wherever it stood
        if other.started < new.ended and new.started < other.ended:
            which = f"the stint {other.seq}" if other.seq else "the one that is open"
            until = f" until {iso(other.ended)}" if other.seq else ""
            return Refusal(
                "stint_overlaps",
                f"{which} of {case.actor(new.actor).name} on {case.task.key} has a part of this time: "
                f"from {iso(other.started)}{until}",
                told(new) | {"other": other.seq or None, "task": case.task.key},
            )
    return None


def is_not_approved(case: Case, new: EndedStint) -> Refusal | None:
    """It changes nothing in a period that is approved."""
    from dibs.core.approving import approved_already, closed
    from dibs.core.worked import Worked

    period, old = case.facts.period, around(case).numbered
    before, after = (
        [Worked(one.actor, one.started, one.ended, case.task.key) for one in (some,) if one]
        for some in (old, new)
    )
    touched = closed(period.approved, before, after) if period else None
    return approved_already(touched, case.actor(new.actor).name) if touched else None


def is_confirmed(case: Case, new: EndedStint) -> Refusal | None:
    """It was said that it is meant, after what it changes was shown."""
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
            "command": case.command.typed,
            "task": key,
            "actor": name,
            "before": told(old) if old else None,
            "after": told(new),
            "total_before_seconds": was / SECOND,
            "total_after_seconds": now / SECOND,
        },
    )


# What they look at.


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
    """The other stints of its actor on its task that count."""
    return [
        one
        for one in around(case).current
        if one.actor == new.actor and (new.amends is None or one.seq != new.amends)
    ]


def running(case: Case, actor: ActorId) -> list[EndedStint]:
    """The stint of the actor that is open, until now."""
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


def told(stint: EndedStint) -> dict[str, object]:
    return {"started_at": iso(stint.started), "ended_at": iso(stint.ended)}


QUESTIONS: dict[str, tuple[Question, ...]] = {
    "add_stint": (
        ends_after_it_starts, is_not_empty, is_over, is_of_the_tasks_time, is_alone, is_not_approved,
        is_confirmed,
    ),
    "amend_stint": (
        counts_still, is_another, ends_after_it_starts, is_over, is_of_the_tasks_time, is_alone,
        is_not_approved, is_confirmed,
    ),
    "report_usage": (is_the_callers, counts_still),
}  # fmt: skip
"""In this order, after the guards of the verb."""

ACTS: dict[str, Callable[..., Decision]] = {
    act.__name__: act for act in (add_stint, amend_stint, report_usage)
}
