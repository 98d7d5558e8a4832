"""Approval of timesheets: one person confirms another's period, which is closed from then on. Pure.

What is approved is the stints of one actor in one period, as they are then: their sum, their union,
and a digest over each of them. A correction of what is approved needs that it is opened again.
"""

from __future__ import annotations

from dibs.core import commands as c
from dibs.core.board_events import Approved, Reopened
from dibs.core.decide import Decision
from dibs.core.facts import Case, Period
from dibs.core.instants import Instant, iso
from dibs.core.ledger import digest_of
from dibs.core.model import Approval
from dibs.core.refusals import Refusal, several, unknown_actor
from dibs.core.values import Value
from dibs.core.worked import OPEN, Worked, clipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Reckoned(Value):
    """What the stints of a period come to."""

    stints: int
    effort: int
    working: int
    digest: str


def reckoned(stints: Iterable[Worked], since: Instant, until: Instant) -> Reckoned:
    """Of one actor's stints, what lies in the period: sum, union, and a digest over each of them.

    What is corrected outside of the period changes nothing of it.
    """
    parts = (one for one in clipped(stints, since, until) if one.length)
    inside = sorted(parts, key=lambda one: (one.start, one.end, one.key))
    effort = working = reach = 0
    lines = []
    for one in inside:
        effort += one.length
        working += max(0, one.end - max(one.start, reach))
        reach = max(reach, one.end)
        lines.append(f"{one.key} {one.start} {one.end}")
    return Reckoned(len(inside), effort, working, digest_of("\n".join(lines)))


# What is decided.


def approve(case: Case, command: c.Approve) -> Decision:
    refusal = first_of(case)
    if refusal is not None:
        return Decision(refusal=refusal)
    found = reckoned(period(case).stints, command.since, command.until)
    approved = Approved(
        actor=case.subject.id,
        since=command.since,
        until=command.until,
        zone=command.zone,
        label=command.label,
        **found.named(),
    )
    return Decision((approved,))


def reopen(case: Case, command: c.Reopen) -> Decision:
    refusal = first_of(case)
    if refusal is not None:
        return Decision(refusal=refusal)
    approval = exactly(case)
    assert approval is not None, "asked before"
    reason = command.reason.strip()
    return Decision((Reopened(approval.seq, approval.actor, approval.label, reason),))


def first_of(case: Case) -> Refusal | None:
    """The first question that fails is the refusal."""
    return next((no for question in QUESTIONS[case.command.verb] if (no := question(case))), None)


# Questions, each with its refusal.


def is_known(case: Case) -> Refusal | None:
    """Whose timesheet it is, is registered."""
    return None if case.facts.receiver is not None else unknown_actor(asked(case).actor)


def is_anothers(case: Case) -> Refusal | None:
    """Nobody approves the own hours."""
    if case.subject.id != case.caller.actor.id:
        return None
    name = case.subject.name
    return Refusal("own_timesheet", f"{name} does not approve the own hours", {"actor": name})


def is_over(case: Case) -> Refusal | None:
    """No work can be added to the period by itself any more."""
    command = asked(case)
    if command.until <= case.now:
        return None
    message = f"{command.label} is not over until {iso(command.until)}"
    return Refusal(
        "period_not_over", message, {"period": command.label, "until": iso(command.until)}
    )


def has_nothing_open(case: Case) -> Refusal | None:
    """No stint that touches the period is open."""
    open_ = [one.key for one in period(case).stints if one.source == OPEN]
    if not open_:
        return None
    name, label = case.subject.name, asked(case).label
    return Refusal(
        "stint_open",
        f"{name} has an open stint in {label}: on {several(open_)}",
        {"actor": name, "period": label, "tasks": open_, "task": open_[0]},
    )


def is_not_approved(case: Case) -> Refusal | None:
    """Nothing of the period is approved already."""
    command = asked(case)
    for one in period(case).approved:
        if one.since < command.until and command.since < one.until:
            return approved_already(one, case.subject.name)
    return None


def is_approved(case: Case) -> Refusal | None:
    """Exactly this period is approved."""
    if exactly(case) is not None:
        return None
    name, label = case.subject.name, asked(case).label
    known = [f"{one.label} ({one.zone})" for one in period(case).approved]
    said = f"; approved are {', '.join(known)}" if known else ""
    return Refusal(
        "not_approved",
        f"{label} of {name} is not approved{said}",
        {"actor": name, "period": label, "approved": known},
    )


def approved_already(one: Approval, name: str) -> Refusal:
    return Refusal(
        "approved",
        f"{one.label} of {name} ({one.zone}) is approved (event {one.seq}), "
        f"from {iso(one.since)} to {iso(one.until)}",
        {
            "actor": name,
            "period": one.label,
            "zone": one.zone,
            "from": iso(one.since),
            "to": iso(one.until),
            "approval": one.seq,
        },
    )


def closed(
    approvals: Iterable[Approval], before: Iterable[Worked], after: Iterable[Worked]
) -> Approval | None:
    """The approval that a correction would touch: what it changes lies, in part, in its period."""
    old, new = list(before), list(after)
    for one in approvals:
        if [*spans(old, one)] != [*spans(new, one)]:
            return one
    return None


def spans(stints: Iterable[Worked], one: Approval) -> Iterable[tuple[Instant, Instant]]:
    inside = clipped(stints, one.since, one.until)
    return ((part.start, part.end) for part in inside if part.length)


# What they look at.


def asked(case: Case) -> c.Approve | c.Reopen:
    assert isinstance(case.command, c.Approve | c.Reopen), case.command.verb
    return case.command


def period(case: Case) -> Period:
    found = case.facts.period
    assert found is not None, "read for every command about a period"
    return found


def exactly(case: Case) -> Approval | None:
    command = asked(case)
    wanted = (command.since, command.until)
    return next((one for one in period(case).approved if (one.since, one.until) == wanted), None)


QUESTIONS: dict[str, tuple[Callable[[Case], Refusal | None], ...]] = {
    "approve": (is_known, is_anothers, is_over, has_nothing_open, is_not_approved),
    "reopen": (is_known, is_approved),
}
"""In this order, after the guards of the verb."""

ACTS: dict[str, Callable[..., Decision]] = {act.__name__: act for act in (approve, reopen)}
