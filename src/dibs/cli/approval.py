"""Approval of hours: approve, reopen, and the check that stints still match what was approved."""

from __future__ import annotations

from dibs.board import approval as approving
from dibs.board import queries
from dibs.cli.arguments import argument
from dibs.cli.call import REASON, Call, Verb, VerbResult
from dibs.cli.output.text import count
from dibs.cli.time import PERIOD, period, zone_of
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.events.board import Approved
from dibs.domain.instants import SECOND, Duration, Instant, iso
from dibs.domain.refusals import bad_argument
from dibs.output import payloads
from dibs.output.error_map import REFUSED
from dibs.timesheets.formats import hms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.approval import Checked

ACTOR = argument("actor", metavar="ACTOR", help="whose hours")


def requested_period(call: Call) -> tuple[Instant, Instant, str, str]:
    """The period, its zone and its label. It has no default: nobody approves by accident."""
    if not any(call[name] for name in ("since", "until", "week", "month")):
        raise bad_argument("which period? Say --week 2026-W47, --month 2026-11, or --from and --to")
    zone = zone_of(call)
    since, until = period(call, zone, queries.now(call.board))
    label = call["week"] or call["month"] or f"{call['since']} to {call['until']}"
    return since, until, zone, label


def approve(call: Call) -> VerbResult:
    since, until, zone, label = requested_period(call)
    command = c.Approve(checks.actor_name(call["actor"]), since, until, zone, label)
    outcome = call.execute(command)
    [entry], actor = outcome.entries, outcome.actor
    event = entry.event
    assert isinstance(event, Approved), event.verb
    assert actor is not None, "an unknown one was refused"
    line = (
        f"{actor.name}, {label} ({zone}): approved by {outcome.caller.actor.name}, "
        f"{count(event.stints, 'stint')}, effort {hms(Duration(event.effort))}, "
        f"working {hms(Duration(event.working))}; closed from now on (event {entry.seq})"
    )
    told = {
        "event": entry.seq,
        "actor": actor.name,
        "by": outcome.caller.actor.name,
        "period": label,
        "from": iso(since),
        "to": iso(until),
        "zone": zone,
        "stints": event.stints,
        "effort_seconds": event.effort / SECOND,
        "working_seconds": event.working / SECOND,
        "digest": event.digest,
    }
    return call.render_with(outcome, (line,), approved=told)


def reopen(call: Call) -> VerbResult:
    since, until, _, label = requested_period(call)
    name = checks.actor_name(call["actor"])
    outcome = call.execute(c.Reopen(name, since, until, label, call.reason))
    [entry], actor = outcome.entries, outcome.actor
    assert actor is not None, "an unknown one was refused"
    told = {"event": entry.seq, "actor": actor.name, "period": label}
    line = f"{actor.name}, {label}: opened again, it can be corrected (event {entry.seq})"
    return call.render_with(outcome, (line,), reopened=told)


def verify(call: Call) -> VerbResult:
    """Recomputes every approval in force and reports differences."""
    actor = None if call["actor"] is None else checks.actor_name(call["actor"])
    found = approving.check(call.board, actor)
    wrong = sum(not one.holds for one in found)
    summary = f"{count(len(found), 'approved period')}, {count(wrong, 'difference')}"
    payload = payloads.answer(ok=not wrong, approvals=[approval_payload(one) for one in found])
    lines = (*map(line_of, found), summary)
    return VerbResult(payload, lines, exit=REFUSED if wrong else 0)


def approval_payload(one: Checked) -> dict[str, object]:
    approval = one.approval
    return {
        "event": approval.seq,
        "actor": one.actor.name,
        "by": one.by.name,
        "period": approval.label,
        "from": iso(approval.since),
        "to": iso(approval.until),
        "zone": approval.zone,
        "ok": one.holds,
        "approved": {"stints": approval.stints, "effort_seconds": approval.effort / SECOND,
                     "working_seconds": approval.working / SECOND, "digest": approval.digest},
        "now": {"stints": one.now.stints, "effort_seconds": one.now.effort / SECOND,
                "working_seconds": one.now.working / SECOND, "digest": one.now.digest},
    }  # fmt: skip


def line_of(one: Checked) -> str:
    approval, now = one.approval, one.now
    head = f"{one.actor.name}, {approval.label} ({approval.zone}), approved by {one.by.name}"
    was = f"effort {hms(Duration(approval.effort))}, working {hms(Duration(approval.working))}"
    if one.holds:
        return f"{head}: {was}, as approved"
    is_ = f"effort {hms(Duration(now.effort))}, working {hms(Duration(now.working))}"
    return f"{head}: NOT as approved: {was} then, {is_} now"


VERBS = {
    "approve": Verb(approve, (ACTOR, *PERIOD)),
    "reopen": Verb(reopen, (ACTOR, *PERIOD, REASON)),
}
