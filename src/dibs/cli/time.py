"""The time verbs: timesheet, day, stint, approve, reopen."""

from __future__ import annotations

from dibs.board import queries, stints
from dibs.board import stints as approvals
from dibs.cli import text
from dibs.cli.call import REASON, Call, Verb, VerbResult, argument, refuse_inapplicable
from dibs.cli.tasks import billable
from dibs.cli.text import count
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.events.board import Approved
from dibs.domain.model import EndedStint
from dibs.domain.refusals import Refusal, Refused, bad_argument
from dibs.domain.stints import CERTAINTIES, UNKNOWN
from dibs.domain.values import SECOND, Duration, Instant, brief, iso
from dibs.output import payloads
from dibs.output.error_map import REFUSED
from dibs.timesheets import rounding, zones
from dibs.timesheets.formats import hms, money
from dibs.timesheets.query import ACTOR, BY, EFFORT, WORKING, SheetQuery, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome
    from dibs.board.stints import Before, Checked, Record, Touched
    from dibs.domain.stints import WorkedStint
    from dibs.timesheets.sheet import Sheet


FORMATS = ("table", "csv", "json", "ics", "markdown", "toggl")
LISTS = ("ics", "toggl")
"""Formats that list single stints; the others have sums."""

SUMMED: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("by", "bill_by", "round"), tuple(f"--format {name}" for name in FORMATS if name not in LISTS)
)
NOT_VERIFIED: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        "since", "until", "week", "month", "tz", "by", "charge_code", "billable", "not_billable",
        "bill_by", "round", "format",
    ),
    ("timesheet",),
)  # fmt: skip
"""Options that do not go with --verify: an approved period is compared as it was approved."""

TZ = argument(
    "--tz", metavar="ZONE", help="the time zone, such as Europe/Berlin (default: this machine's)"
)
PERIOD = (
    argument("--from", dest="since", metavar="DAY", help="the first day"),
    argument("--to", dest="until", metavar="DAY", help="the last day"),
    argument("--week", metavar="WEEK", help="an ISO week: 2026-W47"),
    argument("--month", metavar="MONTH", help="a month: 2026-11"),
    TZ,
)


def zone_of(call: Call) -> str:
    name: str = zones.here() if call["tz"] is None else call["tz"]
    zones.zone(name)
    return name


def period(call: Call, zone: str, now: Instant) -> tuple[Instant, Instant]:
    """The requested period; by default the current week."""
    given = [name for name in ("week", "month") if call[name]]
    span = call["since"] or call["until"]
    if len(given) + bool(span) > 1:
        raise bad_argument("use only one of --from and --to, --week, --month")
    if given:
        return zones.period(zone, call[given[0]], f"--{given[0]}")
    if not span:
        return zones.week_of(zone, now)
    if not (call["since"] and call["until"]):
        raise bad_argument("--from requires --to, and the reverse")
    since, _ = zones.period(zone, call["since"], "--from")
    _, until = zones.period(zone, call["until"], "--to")
    if until <= since:
        raise bad_argument("--to is before --from")
    return since, until


def timesheet(call: Call) -> VerbResult:
    arguments = VERBS["timesheet"].arguments
    if call["verify"]:
        refuse_inapplicable(call.arguments, arguments, NOT_VERIFIED, "timesheet --verify")
        return verify_approvals(call)
    if call["format"] not in FORMATS:
        raise bad_argument(
            f"the format is {checks.quoted(call['format'])}; it is one of {', '.join(FORMATS)}"
        )
    refuse_inapplicable(call.arguments, arguments, SUMMED, f"--format {call['format']}")
    zone, now = zone_of(call), queries.now(call.board)
    since, until = period(call, zone, now)
    rule = rounding.parse_rule(call["round"])
    query = SheetQuery(
        since,
        until,
        zone,
        by_of(call),
        call["bill_by"],
        rule,
        charge_code=call["charge_code"] and checks.charge_code(call["charge_code"]),
        billable=billable(call),
    )
    if call["format"] in LISTS:
        return listed(call, stints.worked(call.board, since, until, call["actor"]), query)
    made = stints.summed(call.board, query, zones.local_days(zone), call["actor"])
    if not made.rows:
        stints.refuse_unknown_code(call.board, query.charge_code)
    return written(call, made)


def by_of(call: Call) -> tuple[str, ...]:
    names = tuple(call["by"] or (ACTOR,))
    for name in names:
        if name not in BY:
            raise bad_argument(f"--by is {checks.quoted(name)}; it is one of {', '.join(BY)}")
    return names


def written(call: Call, made: Sheet) -> VerbResult:
    """Renders the sheet in the requested format; with --json the payload is the same for all formats."""
    from dibs.timesheets.formats import csv, markdown, payload, table

    def payload_of() -> dict[str, object]:
        return payloads.answer(timesheet=payload.sheet_payload(made))

    if call["format"] == "json":
        import json

        return VerbResult(payload_of, file=json.dumps(payload_of(), indent=2) + "\n")
    if call["format"] == "table":
        return VerbResult(payload_of, table.lines(made))
    text = csv.render(made) if call["format"] == "csv" else markdown.render(made)
    return VerbResult(payload_of, file=text)


def listed(call: Call, record: Record, query: SheetQuery) -> VerbResult:
    """Exports single stints, split at midnight, for a calendar or another time tracker."""
    from dibs.domain.stints import WorkedStint, split
    from dibs.timesheets.formats import ics, toggl

    days = zones.local_days(query.zone)
    wanted = chosen(record.stints, query, WorkedStint.fields)
    cut = list(split(wanted, query.since, query.until, days))
    if not cut:
        stints.refuse_unknown_code(call.board, query.charge_code)
    names = {number: actor.name for number, actor in record.actors.items()}
    if call["format"] == "ics":
        text = ics.render(cut, record.now, record.board, names, record.titles)
    else:
        people = {number: toggl.Person(name) for number, name in names.items()}
        text = toggl.render(cut, zones.wall(query.zone), people, record.titles)
    return VerbResult(payloads.answer(format=call["format"], text=text), file=text)


def day(call: Call) -> VerbResult:
    from dibs.timesheets.formats.day import Day, Moment, in_it, part, timeline, total

    zone, now = zone_of(call), queries.now(call.board)
    whose, date = call["actor"], call["date"]
    if date is None and whose is not None and zones.is_like_a_day(whose):
        whose, date = None, whose
    since, until = zones.day_of(zone, now) if date is None else zones.period(zone, date, "DAY")
    name = whose or call.who().name
    record = stints.worked(call.board, since, until, name)
    actor = record.actor
    assert actor is not None, "an unknown one was refused"
    happened = [
        Moment(one.at, one.what, one.key, one.text)
        for one in stints.moments(call.board, actor.id, since, until)
    ]
    that_day = Day(actor.name, zones.wall(zone)(since)[0], zone, since, until)
    clock = zones.clock(zone, since, until)
    lines = timeline(that_day, record.stints, happened, clock, record.titles)

    def payload_of() -> dict[str, object]:
        worked = in_it(that_day, record.stints)
        row = total(that_day, worked)
        return payloads.answer(
            actor=actor.name,
            day=that_day.label,
            zone=zone,
            length_seconds=(until - since) / SECOND,
            effort_seconds=row.effort / SECOND,
            working_seconds=row.working / SECOND,
            overlap_seconds=row.overlap / SECOND,
            stints=[stint_payload(one, record, part(that_day, one)) for one in worked],
            events=[{"at": iso(one.at), "what": one.what, "task": one.key} for one in happened],
        )

    return VerbResult(payload_of, lines)


def stint_payload(
    one: WorkedStint, record: Record, within: tuple[Instant, Instant] | None = None
) -> dict[str, object]:
    """A stint as JSON. `within`: the part of it that `seconds` counts."""
    start, end = within or (one.start, one.end)
    return {
        "number": one.number,
        "actor": record.actors[one.actor].name,
        "task": one.key,
        "started_at": iso(one.start),
        "ended_at": None if one.source == "open" else iso(one.end),
        "seconds": (end - start) / SECOND,
        "source": one.source,
        "cause": one.cause or None,
        "tokens": one.tokens,
        "cost": None if one.cost is None else money(one.cost),
        "spending": one.spending or None,
    }


# stint: lists and corrects periods of work, and records their usage. Totals are never typed.


DAYS_SHOWN = 3
"""Limit on daily totals in the message; the facts contain more."""


def stint(call: Call) -> VerbResult:
    action = call["action"]
    if action not in ACTIONS:
        message = f"{checks.quoted(action)}: use {', '.join([*ACTIONS][:-1])} or {[*ACTIONS][-1]}"
        raise bad_argument(message)
    refuse_inapplicable(call.arguments, VERBS["stint"].arguments, HOMES, f"stint {action}")
    return ACTIONS[action](call)


def list_stints(call: Call) -> VerbResult:
    if call["what"] is not None:
        raise bad_argument(f"{checks.quoted(call['what'])}: stint list takes no KEY; use --actor")
    zone, now = zone_of(call), queries.now(call.board)
    since, until = period(call, zone, now)
    record = stints.worked(call.board, since, until, call["actor"])
    spends = any(one.spending for one in record.stints)
    wall = zones.wall(zone)

    def clock(at: Instant) -> str:
        return brief(at, record.now) if zone == "UTC" else " ".join(wall(at))

    rows = [
        (
            str(one.number or ""),
            record.actors[one.actor].name,
            one.key,
            clock(one.start),
            "" if one.source == "open" else clock(one.end),
            hms(Duration(one.end - one.start)),
            one.source,
            one.cause.replace("_", " "),
            *(usage_cells(one) if spends else ()),
        )
        for one in record.stints
    ]
    head: tuple[str, ...] = ("NUMBER", "ACTOR", "TASK", "FROM", "TO", "TIME", "SOURCE", "CAUSE")
    head += ("TOKENS", "COST", "KNOWN") if spends else ()
    lines = text.table(rows, head) if rows else ("no work in this period",)
    if rows and zone != "UTC":
        lines += (f"times of {zone}",)
    listed = [stint_payload(one, record) for one in record.stints]
    return VerbResult(payloads.answer(stints=listed), lines)


def usage_cells(one: WorkedStint) -> tuple[str, str, str]:
    tokens = "" if one.tokens is None else str(one.tokens)
    return tokens, "" if one.cost is None else money(one.cost), one.spending


# Corrections: previewed first, written only with --yes.


def add_stint(call: Call) -> VerbResult:
    if not (call["since"] and call["until"]):
        raise bad_argument("stint add needs --from and --to")
    name = call["actor"] or ""
    actor = stints.actor_called(call.board, name or call.who().name)
    zone = call["tz"] if call["tz"] is not None else actor.zone if actor else "UTC"
    now = queries.now(call.board)
    started = zones.moment(zone, call["since"], "--from", now)
    ended = zones.moment(zone, call["until"], "--to", now, started)
    command = call.build(
        c.AddStint, task=call["what"] or "", started=started, ended=ended, actor=name
    )
    new = EndedStint(0, actor.id, started, ended, "added") if actor else None
    return correct(call, command, zone, None, new)


def amend_stint(call: Call) -> VerbResult:
    before = stints.before(call.board, stint_number(call))
    old, now = before.stint, queries.now(call.board)
    zone = before.actor.zone if call["tz"] is None else call["tz"]
    since, until = call["since"], call["until"]
    started = None if since is None else zones.moment(zone, since, "--from", now, old.started)
    begins = old.started if started is None else started
    ended = None if until is None else zones.moment(zone, until, "--to", now, begins)
    command = call.build(c.AmendStint, number=old.seq, started=started, ended=ended)
    new = old.but(started=begins, ended=old.ended if ended is None else ended)
    return correct(call, command, zone, before, new)


def correct(
    call: Call,
    command: c.AddStint | c.AmendStint,
    zone: str,
    before: Before | None,
    new: EndedStint | None,
) -> VerbResult:
    """Executes the correction; without --yes refuses it with a preview in local time and UTC."""
    zones.zone(zone)
    try:
        outcome = call.execute(command)
    except Refused as problem:
        if problem.code != "unconfirmed" or new is None:
            raise
        old = before.stint if before else None
        touched = stints.days_with(call.board, zones.local_days(zone), new, old)
        raise Refused(preview(problem.refusal, zone, old, new, touched)) from None
    return render_correction(call, outcome, zone)


def preview(
    refusal: Refusal, zone: str, old: EndedStint | None, new: EndedStint, touched: Touched
) -> Refusal:
    facts, days = dict(refusal.facts), touched.days
    becomes = f"{span(zone, old)} becomes {span(zone, new)}" if old else span(zone, new)
    now, was = (Duration(round(facts[f"total_{when}_seconds"] * SECOND)) for when in ("after", "before"))  # type: ignore[operator]  # fmt: skip
    totals = [f"{facts['task']} {hms(now)} (now {hms(was)})"]
    totals += [f"{one.day} {hms(one.after)} (now {hms(one.before)})" for one in days[:DAYS_SHOWN]]
    hidden = len(days[DAYS_SHOWN:]) + touched.more
    more = f", and {text.count(hidden, 'more day')}" if hidden else ""
    message = (
        f"{facts['actor']} on {facts['task']}: {becomes}; new totals: "
        f"{', '.join(totals)}{more}; write it with --yes"
    )
    totals_by_day = [
        {"day": one.day, "before_seconds": one.before / SECOND, "after_seconds": one.after / SECOND}
        for one in days
    ]
    return refusal.but(
        message=message,
        facts=facts | {"zone": zone, "days": totals_by_day, "more_days": touched.more},
    )


def span(zone: str, one: EndedStint) -> str:
    return f"{zones.both(zone, one.started)} to {zones.both(zone, one.ended)}"


def render_correction(call: Call, outcome: Outcome, zone: str) -> VerbResult:
    answer = call.render(outcome)
    [entry], [event], task = outcome.entries, outcome.events, outcome.task
    assert task is not None, "a stint has a task"
    made = event.named()
    stint, replaced = made["stint"], made.get("amends")
    line = (
        f"{task.key}: the stint {entry.seq}, from {zones.both(zone, stint.started)} "
        f"to {zones.both(zone, stint.ended)}"
    )
    payload = answer.json() | {
        "stint": {
            "number": entry.seq,
            "task": task.key,
            "started_at": iso(stint.started),
            "ended_at": iso(stint.ended),
            "amends": replaced,
            "zone": zone,
        }
    }
    lines = (line + (f", replaces stint {replaced}" if replaced else ""),)
    return answer.but(payload=payload, lines=lines)


# Usage.


def report_usage(call: Call) -> VerbResult:
    if call["tokens"] is None and call["cost"] is None:
        raise bad_argument("add --tokens, --cost, or both")
    known = UNKNOWN if call["source"] is None else call["source"]
    command = call.build(c.ReportUsage, number=stint_number(call), spending=known)
    outcome = call.execute(command)
    answer = call.render(outcome)
    assert outcome.task is not None, "a stint has a task"
    used = [f"{command.tokens} tokens"] if command.tokens is not None else []
    used += [f"cost {money(command.cost)}"] if command.cost is not None else []
    line = f"{outcome.task.key}: the stint {command.number} used {', '.join(used)} ({known})"
    return answer.but(lines=(line,))


def stint_number(call: Call) -> int:
    if call["what"] is None:
        raise bad_argument("give the stint's number, as shown by dibs stint list")
    return checks.whole(call["what"], "the number of the stint", 1, 10**18)


ACTIONS = {"list": list_stints, "add": add_stint, "amend": amend_stint, "usage": report_usage}

LIST, ADD, AMEND, USAGE = (f"stint {action}" for action in ACTIONS)
HOMES = {
    "since": (LIST, ADD, AMEND), "until": (LIST, ADD, AMEND), "tz": (LIST, ADD, AMEND),
    "week": (LIST,), "month": (LIST,), "actor": (LIST, ADD),
    "reason": (ADD, AMEND), "yes": (ADD, AMEND), "backdated": (ADD, AMEND),
    "tokens": (USAGE,), "cost": (USAGE,), "source": (USAGE,),
}  # fmt: skip
"""The actions that each option goes with."""


# approve, reopen.


WHOSE = argument("actor", metavar="ACTOR", help="the actor whose hours")


def requested_period(call: Call) -> tuple[Instant, Instant, str, str]:
    """The period, its zone and its label. It has no default: nobody approves by accident."""
    if not any(call[name] for name in ("since", "until", "week", "month")):
        raise bad_argument("give the period: --week 2026-W47, --month 2026-11, or --from and --to")
    zone = zone_of(call)
    since, until = period(call, zone, queries.now(call.board))
    label = call["week"] or call["month"] or f"{call['since']} to {call['until']}"
    return since, until, zone, label


def approve(call: Call) -> VerbResult:
    since, until, zone, label = requested_period(call)
    command = call.build(c.Approve, since=since, until=until, zone=zone, label=label)
    outcome = call.execute(command)
    [entry], actor = outcome.entries, outcome.actor
    event = entry.event
    assert isinstance(event, Approved), event.verb
    assert actor is not None, "an unknown one was refused"
    line = (
        f"{actor.name}, {label} ({zone}): approved by {outcome.caller.actor.name}, "
        f"{count(event.stints, 'stint')}, effort {hms(Duration(event.effort))}, "
        f"working {hms(Duration(event.working))}; now closed (event {entry.seq})"
    )
    facts = {
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
    return call.render_with(outcome, (line,), approved=facts)


def reopen(call: Call) -> VerbResult:
    since, until, _, label = requested_period(call)
    command = call.build(c.Reopen, since=since, until=until, label=label)
    outcome = call.execute(command)
    [entry], actor = outcome.entries, outcome.actor
    assert actor is not None, "an unknown one was refused"
    facts = {"event": entry.seq, "actor": actor.name, "period": label}
    line = f"{actor.name}, {label}: reopened for corrections (event {entry.seq})"
    return call.render_with(outcome, (line,), reopened=facts)


def verify_approvals(call: Call) -> VerbResult:
    """Recomputes every approval in force and reports differences."""
    actor = None if call["actor"] is None else checks.actor_name(call["actor"])
    found = approvals.check(call.board, actor)
    wrong = sum(not one.holds for one in found)
    summary = f"{count(len(found), 'approved period')}, {count(wrong, 'difference')}"
    payload = payloads.answer(ok=not wrong, approvals=[approval_payload(one) for one in found])
    lines = (*map(approval_line, found), summary)
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


def approval_line(one: Checked) -> str:
    approval, now = one.approval, one.now
    head = f"{one.actor.name}, {approval.label} ({approval.zone}), approved by {one.by.name}"
    was = f"effort {hms(Duration(approval.effort))}, working {hms(Duration(approval.working))}"
    if one.holds:
        return f"{head}: {was}, as approved"
    is_ = f"effort {hms(Duration(now.effort))}, working {hms(Duration(now.working))}"
    return f"{head}: NOT as approved: {was} then, {is_} now"


VERBS = {
    "timesheet": Verb(
        timesheet,
        (
            *PERIOD,
            argument("--by", action="append", metavar="WHAT", help=f"{', '.join(BY)}; repeatable"),
            argument("--actor", metavar="NAME", help="only this one"),
            argument("--charge-code", metavar="CODE", help="only this code; '' for work without"),
            argument("--billable", action="store_true", help="only what is billed"),
            argument("--not-billable", action="store_true", help="only what is not billed"),
            argument("--bill-by", metavar="WHAT", default=EFFORT, help=f"{EFFORT} or {WORKING}"),
            argument(
                "--round",
                metavar="RULE",
                default="none",
                help="none, 6m, 15m-up-day ...; rounds sums, so not with ics and toggl",
            ),
            argument("--format", metavar="NAME", default="table", help=", ".join(FORMATS)),
            argument(
                "--verify", action="store_true", help="compare approved periods with their stints"
            ),
        ),
        looks=True,
    ),
    "day": Verb(
        day,
        (
            argument(
                "actor",
                nargs="?",
                metavar="ACTOR",
                help="the actor; default: you. A single date is the day",
            ),
            argument("date", nargs="?", metavar="DAY", help="2026-11-15; default: today"),
            TZ,
        ),
        looks=True,
    ),
    "stint": Verb(
        stint,
        (
            argument("action", metavar="ACTION", help=", ".join(ACTIONS)),
            argument(
                "what",
                nargs="?",
                metavar="KEY or NUMBER",
                help="add: the task; amend, usage: the stint",
            ),
            argument(
                "--from",
                dest="since",
                metavar="TIME",
                help="list: the first day; add, amend: when it began, 2026-11-15 09:00, or 09:00 (add: today; amend: on the stint's day)",
            ),
            argument(
                "--to",
                dest="until",
                metavar="TIME",
                help="list: the last day; add, amend: when it ended; 18:00 is on the day on which it began",
            ),
            argument("--week", metavar="WEEK", help="list: an ISO week, 2026-W47"),
            argument("--month", metavar="MONTH", help="list: a month, 2026-11"),
            argument(
                "--tz",
                metavar="ZONE",
                help="list, add, amend: the time zone, Europe/Berlin (else: list this machine's, add and amend the actor's)",
            ),
            argument("--actor", metavar="NAME", help="list: only this one; add: whose it is"),
            argument("--reason", metavar="TEXT", default="", help="add, amend: why"),
            argument(
                "--yes",
                action="store_true",
                help="add, amend: write it; without it, only a preview",
            ),
            argument(
                "--backdated",
                action="store_true",
                help="add, amend: the work is older than its task",
            ),
            argument("--tokens", metavar="N", help="usage: how many tokens"),
            argument("--cost", metavar="AMOUNT", help="usage: what it cost, 1.25"),
            argument("--source", metavar="WORD", help=f"usage: {', '.join(CERTAINTIES)}"),
        ),
    ),
    "approve": Verb(approve, (WHOSE, *PERIOD)),
    "reopen": Verb(reopen, (WHOSE, *PERIOD, REASON)),
}
