"""Approves timesheets: a person confirms another's period, which is closed from then on. Pure.

An approval covers the stints of one actor in one period as they are then: their sum, their union, and a
digest over each of them. Correcting an approved period requires reopening it first.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Decision
from dibs.domain.events.board import Approved, Reopened
from dibs.domain.facts import ApprovalFacts
from dibs.domain.ledger import digest_of
from dibs.domain.model import Actor, Approval
from dibs.domain.refusals import Refusal, several, unknown_actor
from dibs.domain.stints import OPEN, WorkedStint, clipped
from dibs.domain.values import Instant, Value, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class PeriodTotals(Value):
    """The totals of a period, and a digest over its stints."""

    stints: int
    effort: int
    working: int
    digest: str


def period_totals(stints: Iterable[WorkedStint], since: Instant, until: Instant) -> PeriodTotals:
    """Sum, union and digest of the parts of one actor's stints inside the period.

    A correction outside the period does not change them.
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
    return PeriodTotals(len(inside), effort, working, digest_of("\n".join(lines)))


# Decisions.


def approve(facts: ApprovalFacts, command: c.Approve) -> Decision:
    found = period_totals(facts.stints, command.since, command.until)
    approved = Approved(
        actor=subject(facts).id,
        since=command.since,
        until=command.until,
        zone=command.zone,
        label=command.label,
        **found.named(),
    )
    return Decision((approved,), actor=subject(facts))


def reopen(facts: ApprovalFacts, command: c.Reopen) -> Decision:
    approval = exactly(facts)
    assert approval is not None, "otherwise refused before"
    reason = command.reason.strip()
    reopened = Reopened(approval.seq, approval.actor, approval.label, reason)
    return Decision((reopened,), actor=subject(facts))


# Guards.


def is_known(facts: ApprovalFacts) -> Refusal | None:
    """The owner of the timesheet is registered."""
    return None if facts.receiver is not None else unknown_actor(period_command(facts).actor)


def is_anothers(facts: ApprovalFacts) -> Refusal | None:
    """The caller does not approve their own hours."""
    if subject(facts).id != facts.caller.actor.id:
        return None
    name = subject(facts).name
    return Refusal("own_timesheet", f"{name} does not approve the own hours", {"actor": name})


def is_over(facts: ApprovalFacts) -> Refusal | None:
    """The period is over, so no new work falls into it."""
    command = period_command(facts)
    if command.until <= facts.now:
        return None
    message = f"{command.label} is not over until {iso(command.until)}"
    return Refusal(
        "period_not_over", message, {"period": command.label, "until": iso(command.until)}
    )


def has_nothing_open(facts: ApprovalFacts) -> Refusal | None:
    """No open stint overlaps the period."""
    open_ = [one.key for one in facts.stints if one.source == OPEN]
    if not open_:
        return None
    name, label = subject(facts).name, period_command(facts).label
    return Refusal(
        "stint_open",
        f"{name} has an open stint in {label}: on {several(open_)}",
        {"actor": name, "period": label, "tasks": open_, "task": open_[0]},
    )


def is_not_approved(facts: ApprovalFacts) -> Refusal | None:
    """No part of the period is approved already."""
    command = period_command(facts)
    for one in facts.approved:
        if one.since < command.until and command.since < one.until:
            return approved_already(one, subject(facts).name)
    return None


def is_approved(facts: ApprovalFacts) -> Refusal | None:
    """Exactly this period is approved."""
    if exactly(facts) is not None:
        return None
    name, label = subject(facts).name, period_command(facts).label
    known = [f"{one.label} ({one.zone})" for one in facts.approved]
    known_ones = f"; approved are {', '.join(known)}" if known else ""
    return Refusal(
        "not_approved",
        f"{label} of {name} is not approved{known_ones}",
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
    approvals: Iterable[Approval], before: Iterable[WorkedStint], after: Iterable[WorkedStint]
) -> Approval | None:
    """The first approval whose period the correction would change, if there is one."""
    old, new = list(before), list(after)
    for one in approvals:
        if [*spans(old, one)] != [*spans(new, one)]:
            return one
    return None


def spans(stints: Iterable[WorkedStint], one: Approval) -> Iterable[tuple[Instant, Instant]]:
    inside = clipped(stints, one.since, one.until)
    return ((part.start, part.end) for part in inside if part.length)


# Accessors.


def period_command(facts: ApprovalFacts) -> c.Approve | c.Reopen:
    assert isinstance(facts.command, c.Approve | c.Reopen), facts.command.verb
    return facts.command


def subject(facts: ApprovalFacts) -> Actor:
    assert facts.receiver is not None, "an unknown actor was refused before"
    return facts.receiver


def exactly(facts: ApprovalFacts) -> Approval | None:
    command = period_command(facts)
    wanted = (command.since, command.until)
    return next((one for one in facts.approved if (one.since, one.until) == wanted), None)
