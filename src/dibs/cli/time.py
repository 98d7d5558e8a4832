"""The verbs timesheet and day. (`stint` has its own module.)"""

from __future__ import annotations

from dibs.board import queries, stints
from dibs.cli.arguments import argument, refuse_inapplicable
from dibs.cli.call import Call, Verb, VerbResult
from dibs.cli.tasks import billable
from dibs.domain import checks
from dibs.domain.instants import SECOND, Instant, iso
from dibs.domain.refusals import bad_argument
from dibs.output import payloads
from dibs.timesheets import rounding, zones
from dibs.timesheets.formats import money
from dibs.timesheets.query import ACTOR, BY, EFFORT, WORKING, SheetQuery, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.stints import Record
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

TZ = argument("--tz", metavar="ZONE", help="the time zone: Europe/Berlin (this machine's)")
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
        raise bad_argument("--from and --to, --week, or --month: one of them")
    if given:
        return zones.period(zone, call[given[0]], f"--{given[0]}")
    if not span:
        return zones.week_of(zone, now)
    if not (call["since"] and call["until"]):
        raise bad_argument("--from and --to go together")
    since, _ = zones.period(zone, call["since"], "--from")
    _, until = zones.period(zone, call["until"], "--to")
    if until <= since:
        raise bad_argument("--to is before --from")
    return since, until


def timesheet(call: Call) -> VerbResult:
    arguments = VERBS["timesheet"].arguments
    if call["verify"]:
        from dibs.cli.approval import verify

        refuse_inapplicable(call.arguments, arguments, NOT_VERIFIED, "timesheet --verify")
        return verify(call)
    if call["format"] not in FORMATS:
        raise bad_argument(
            f"the format is {checks.quoted(call['format'])}; it is one of {', '.join(FORMATS)}"
        )
    refuse_inapplicable(call.arguments, arguments, SUMMED, f"--format {call['format']}")
    zone, now = zone_of(call), queries.now(call.board)
    since, until = period(call, zone, now)
    rule = rounding.parse_rule(call["round"])
    asked = SheetQuery(
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
        return listed(call, stints.worked(call.board, since, until, call["actor"]), asked)
    made = stints.summed(call.board, asked, zones.local_days(zone), call["actor"])
    if not made.rows:
        stints.refuse_unknown_code(call.board, asked.charge_code)
    return written(call, made)


CODE = argument("--charge-code", metavar="CODE", help="only this one; '' for what has none")


def by_of(call: Call) -> tuple[str, ...]:
    names = tuple(call["by"] or (ACTOR,))
    for name in names:
        if name not in BY:
            raise bad_argument(f"--by is {checks.quoted(name)}; it is one of {', '.join(BY)}")
    return names


def written(call: Call, made: Sheet) -> VerbResult:
    """Renders the sheet in the requested format; with --json the payload is the same for all formats."""
    from dibs.timesheets.formats import csv, markdown, payload, table

    def told() -> dict[str, object]:
        return payloads.answer(timesheet=payload.sheet_payload(made))

    if call["format"] == "json":
        import json

        return VerbResult(told, file=json.dumps(told(), indent=2) + "\n")
    if call["format"] == "table":
        return VerbResult(told, table.lines(made))
    text = csv.render(made) if call["format"] == "csv" else markdown.render(made)
    return VerbResult(told, file=text)


def listed(call: Call, record: Record, asked: SheetQuery) -> VerbResult:
    """Exports single stints, split at midnight, for a calendar or another time tracker."""
    from dibs.domain.stints import WorkedStint, split
    from dibs.timesheets.formats import ics, toggl

    days = zones.local_days(asked.zone)
    wanted = chosen(record.stints, asked, WorkedStint.fields)
    cut = list(split(wanted, asked.since, asked.until, days))
    if not cut:
        stints.refuse_unknown_code(call.board, asked.charge_code)
    names = {number: actor.name for number, actor in record.actors.items()}
    if call["format"] == "ics":
        text = ics.render(cut, record.now, record.board, names, record.titles)
    else:
        people = {number: toggl.Person(name) for number, name in names.items()}
        text = toggl.render(cut, zones.wall(asked.zone), people, record.titles)
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
    assert actor is not None, "one was asked for"
    happened = [
        Moment(one.at, one.what, one.key, one.text)
        for one in stints.moments(call.board, actor.id, since, until)
    ]
    that_day = Day(actor.name, zones.wall(zone)(since)[0], zone, since, until)
    clock = zones.clock(zone, since, until)
    lines = timeline(that_day, record.stints, happened, clock, record.titles)

    def told() -> dict[str, object]:
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

    return VerbResult(told, lines)


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


VERBS = {
    "timesheet": Verb(
        timesheet,
        (
            *PERIOD,
            argument("--by", action="append", metavar="WHAT", help=f"{', '.join(BY)}; repeatable"),
            argument("--actor", metavar="NAME", help="only this one"),
            CODE,
            argument("--billable", action="store_true", help="only what is billed"),
            argument("--not-billable", action="store_true", help="only what is not billed"),
            argument("--bill-by", metavar="WHAT", default=EFFORT, help=f"{EFFORT} or {WORKING}"),
            argument(
                "--round",
                metavar="RULE",
                default="none",
                help="none, 6m, 15m-up-day ...; of sums, not of ics and toggl",
            ),
            argument("--format", metavar="NAME", default="table", help=", ".join(FORMATS)),
            argument(
                "--verify", action="store_true", help="compare all approved periods with the stints"
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
                help="whose; else your own. One word that is a date is the day",
            ),
            argument("date", nargs="?", metavar="DAY", help="2026-11-15; else today"),
            TZ,
        ),
        looks=True,
    ),
}
