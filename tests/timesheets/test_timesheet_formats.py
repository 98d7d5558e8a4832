"""A timesheet reads the same in every format, and no text in it is obeyed."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import icalendar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.stints import WorkedStint, clipped, in_order, split
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND, iso
from dibs.timesheets import rounding, zones
from dibs.timesheets.formats import CUT, ics, markdown, money, payload, table, toggl
from dibs.timesheets.formats import csv as sheet_csv
from dibs.timesheets.formats.day import Day, Moment, timeline
from dibs.timesheets.query import SheetQuery
from dibs.timesheets.sheet import FOOTER, make_sheet

ZONE = "Europe/Berlin"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = {1: "ana", 2: "codex-2"}
TITLES = {"T-1": "Fix login", "T-2": "Write docs"}
SINCE, UNTIL = zones.period(ZONE, "2026-W47")
MONDAY = SINCE + 8 * HOUR  # 08:00 in Berlin

STINTS = [
    WorkedStint(1, MONDAY, MONDAY + 90 * MINUTE, "T-1", "web", "C-7", billable=True, number=1),
    WorkedStint(1, MONDAY + HOUR, MONDAY + 2 * HOUR, "T-2", "web", "", source="amended", number=2),
    WorkedStint(2, MONDAY + 15 * HOUR, MONDAY + 17 * HOUR, "T-2", tokens=1000, cost=250_000,
           spending="actual", number=3),
]  # fmt: skip


def made(stints=STINTS, since=SINCE, until=UNTIL, **changes):
    query = SheetQuery(since, until, ZONE, **changes)
    return make_sheet(in_order(stints), query, zones.local_days(ZONE), NAMES)


# For people.


def test_a_table_has_a_head_its_rows_a_total_and_what_must_be_known():
    assert table.lines(made(by=("actor", "day"))) == (
        "timesheet 2026-11-16 to 2026-11-22, Europe/Berlin, by actor and day",
        "from 2026-11-15T23:00:00Z to 2026-11-22T23:00:00Z; bill_by = effort; rounding = none",
        "",
        "ACTOR    DAY         STINTS   EFFORT  WORKING  OVERLAP  CORRECTED  TOKENS   COST      KNOWN",
        "ana      2026-11-16       2  2:30:00  2:00:00  0:30:00          1",
        "codex-2  2026-11-16       1  1:00:00  1:00:00  0:00:00                500  0.125  estimated",
        "codex-2  2026-11-17       1  1:00:00  1:00:00  0:00:00                500  0.125  estimated",
        "total                     3  4:30:00  4:00:00  0:30:00          1    1000   0.25  estimated",
        "",
        FOOTER,
    )
    assert table.render(made()).endswith(f"{FOOTER}\n")


def test_a_plain_sheet_has_plain_columns_and_a_rounded_one_says_what_is_billed():
    plain = table.lines(made(STINTS[:1], by=("charge_code",)))
    assert plain[3].split() == ["CHARGE_CODE", "STINTS", "EFFORT", "WORKING", "OVERLAP"]
    rule = rounding.parse_rule("15m-up-day")
    rounded = table.lines(made(STINTS[1:2], by=("charge_code",), rule=rule, bill_by="working"))
    assert "bill_by = working; rounding = 15m-up-day" in rounded[1]
    assert rounded[4].split() == ["(none)", "1", "1:00:00", "1:00:00", "0:00:00", "1.00", "1"]


def test_what_a_sheet_leaves_out_is_in_its_head():
    found = made(actor=1, charge_code="C-7", billable=True)
    assert table.lines(found)[2:5] == ("only actor ana", "only charge code C-7", "only billable")
    assert table.lines(made(charge_code=""))[2] == "only without charge code"


def test_a_table_says_that_it_cuts_and_that_somebody_still_works():
    found = made([WorkedStint(1, MONDAY, MONDAY + 90 * SECOND + 1, "T-1", source="open")])
    assert table.lines(found)[-3:] == (
        FOOTER, "not over yet, and counted until now: 1 of the stints", CUT,
    )  # fmt: skip
    assert CUT not in table.lines(made())


def test_a_title_cannot_take_over_the_terminal():
    stint = STINTS[0].but(area="\x1b[2J=x\u202e", charge_code="\x1b")
    found = made([stint], by=("area",), charge_code="\x1b")
    assert "\\x1b[2J=x\\u202e" in table.render(found)
    assert "\x1b" not in table.render(found) + markdown.render(found) + sheet_csv.render(found)


def test_a_markdown_table_holds_what_it_holds():
    found = made([STINTS[0].but(area="a|b*c*<img>"), STINTS[1]], by=("area", "task"))
    lines = markdown.render(found).splitlines()
    assert lines[3:8] == [
        "| area | task | stints | effort | working | overlap | corrected |",
        "| :-- | :-- | --: | --: | --: | --: | --: |",
        "| a\\|b\\*c\\*\\<img\\> | T-1 | 1 | 1:30:00 | 1:30:00 | 0:00:00 |  |",
        "| web | T-2 | 1 | 1:00:00 | 1:00:00 | 0:00:00 | 1 |",
        "| **total** |  | **2** | **2:30:00** | **2:00:00** | **0:30:00** | **1** |",
    ]
    assert lines[-1].startswith("working is a union")


@pytest.mark.parametrize(
    ("millionths", "text"), [(0, "0.00"), (250_000, "0.25"), (1_004_000, "1.004"), (5, "0.000005")]
)
def test_money_is_exact(millionths, text):
    assert money(millionths) == text


# For programs.


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(st.integers(0, 7 * DAY), st.integers(0, DAY)), max_size=5))
def test_csv_and_json_hold_every_microsecond(pairs):
    stints = [
        WorkedStint(1, SINCE + start, SINCE + start + length, "T-1") for start, length in pairs
    ]
    found = made(stints, by=("day",), rule=rounding.parse_rule("6m-up-day"))
    reply = json.loads(json.dumps(payload.sheet_payload(found)))
    lines = read(sheet_csv.render(found))
    assert [line["line"] for line in lines] == [*["row"] * len(found.rows), "total"]
    for row, line, in_json in zip(
        (*found.rows, found.total), lines, (*reply["rows"], reply["total"])
    ):
        for name in ("effort", "working", "overlap", "billed"):
            assert line[f"{name}_s"].replace(".", "").lstrip("0") == str(getattr(row, name) or "")
            assert in_json[f"{name}_us"] == getattr(row, name)
        assert line["billed_hours"] == in_json["billed_hours"] == rounding.hours(row.billed)
    assert [in_json["day"] for in_json in reply["rows"]] == [line["day"] for line in lines[:-1]]


def test_json_says_how_the_sheet_was_made():
    reply = payload.sheet_payload(made(by=("actor", "week"), actor=2))
    assert reply["rows"] == [
        {
            "actor": "codex-2", "week": "2026-W47", "stints": 1, "effort_us": 2 * HOUR,
            "working_us": 2 * HOUR, "overlap_us": 0, "billed_us": 2 * HOUR, "billed_hours": None,
            "corrected": 0, "running": 0, "tokens": 1000, "cost_millionths": 250_000,
            "known": "actual",
        }
    ]  # fmt: skip
    del reply["rows"], reply["total"]
    assert reply == {
        "from": "2026-11-15T23:00:00Z", "to": "2026-11-22T23:00:00Z", "first_day": "2026-11-16",
        "last_day": "2026-11-22", "zone": ZONE, "by": ["actor", "week"], "bill_by": "effort",
        "rounding": "none", "only": ["actor codex-2"], "footer": FOOTER,
    }  # fmt: skip


def test_every_line_of_csv_says_how_it_was_made():
    text = sheet_csv.render(made(by=("actor",), billable=True))
    assert text.count("\r\n") == text.count("\n") == 3
    for line in read(text):
        assert (line["from"], line["to"]) == ("2026-11-15T23:00:00Z", "2026-11-22T23:00:00Z")
        assert (line["zone"], line["bill_by"], line["rounding"]) == (ZONE, "effort", "none")
        assert (line["only"], line["billed_hours"]) == ("billable", "")


BAD = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    '=HYPERLINK("http://x","y")',
]


@pytest.mark.parametrize("text", BAD)
def test_no_cell_is_taken_for_a_formula(text):
    stint = STINTS[0].but(area=text, charge_code=text, key=text)
    found = made([stint], by=("area", "charge_code", "task"), charge_code=text)
    people = {1: toggl.Person(text, text)}
    written = toggl.render([stint], zones.wall(ZONE), people, {text: text})
    cells = [
        cell for line in [*read(sheet_csv.render(found)), *read(written)] for cell in line.values()
    ]
    assert not [cell for cell in cells if cell[:1] in sheet_csv.FORMULA and cell]
    assert sum(cell.startswith("'") for cell in cells) == 3 + 6


@pytest.mark.parametrize("text", ["a=b", "", "1", "'=1", "T-1", "ü"])
def test_what_is_no_formula_is_left_as_it_is(text):
    assert sheet_csv.neutral(text) == text


# Calendars.


def when(instant):
    """As a calendar has it: whole seconds."""
    return EPOCH + timedelta(seconds=instant // SECOND)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=90)


@given(
    st.lists(st.tuples(st.integers(0, 10**15), st.integers(0, 10 * DAY)), max_size=4),
    texts,
    texts,
)
def test_a_calendar_holds_the_same_intervals(pairs, title, area):
    stints = [
        WorkedStint(1, start, start + length, f"T-{n}", area, number=n)
        for n, (start, length) in enumerate(pairs)
    ]
    titles = {stint.key: title for stint in stints}
    text = ics.render(stints, MONDAY, "board-1", NAMES, titles)
    lines = text.split("\r\n")
    assert lines.pop() == "" and all(len(line.encode()) <= 75 for line in lines)
    assert "\n" not in "".join(lines) and "\r" not in "".join(lines)
    events = icalendar.Calendar.from_ical(text).walk("VEVENT")
    assert len(events) == len(stints)
    for stint, event in zip(stints, events):
        assert (event.start, event.end) == (when(stint.start), when(stint.end))
        assert event["X-DIBS-START"] == iso(stint.start) and event["X-DIBS-END"] == iso(stint.end)
        assert event["DTSTAMP"].dt == when(MONDAY)
        assert event["UID"] == f"stint-{stint.number}-{ics.stamp(stint.start)}@board-1"
        if title.isprintable() and title.strip() == title:
            assert event["SUMMARY"] == f"{stint.key} {title}".strip()
        if area.isprintable() and area:
            assert event["CATEGORIES"].cats[0] == area
        assert event["DESCRIPTION"] == "ana"
        assert not event.errors


def test_an_event_as_it_is_written():
    stint = STINTS[0].but(charge_code="C;7,\\")
    text = ics.render([stint], MONDAY, "b", NAMES, {"T-1": "Fix\nlogin " + "é" * 40})
    assert text.split("\r\n")[3:-2] == [
        "BEGIN:VEVENT",
        "UID:stint-1-20261116T070000Z@b",
        "DTSTAMP:20261116T070000Z",
        "DTSTART:20261116T070000Z",
        "DTEND:20261116T083000Z",
        "SUMMARY:T-1 Fix\\nlogin " + "é" * 26,
        " " + "é" * 14,
        "DESCRIPTION:ana",
        "CATEGORIES:web,C\\;7\\,\\\\,billable,claim",
        "X-DIBS-START:2026-11-16T07:00:00Z",
        "X-DIBS-END:2026-11-16T08:30:00Z",
        "END:VEVENT",
    ]


@pytest.mark.parametrize("length", [*range(50, 90), 140, 141, 142, 143, 144, 500])
def test_a_long_line_is_folded_and_read_as_one(length):
    title = "x" * length
    text = ics.render(STINTS[:1], MONDAY, "b", NAMES, {"T-1": title})
    assert max(map(len, text.split("\r\n"))) <= 75
    (event,) = icalendar.Calendar.from_ical(text).walk("VEVENT")
    assert event["SUMMARY"] == f"T-1 {title}"


def test_a_title_cannot_take_over_what_reads_a_calendar():
    bad = "\x1b[2J\x00\u2028\r\nEND:VCALENDAR"
    text = ics.render(STINTS[:1], MONDAY, "b", NAMES, {"T-1": bad})
    assert "SUMMARY:T-1 \\\\x1b[2J\\\\x00\\\\u2028\\nEND:VCALENDAR\r\n" in text


def test_an_event_of_less_than_a_second_has_no_end_before_its_start():
    stints = [WorkedStint(1, MONDAY + 1, MONDAY + 2, "T-1"), WorkedStint(9, MONDAY, MONDAY, "T-2")]
    text = ics.render(stints, MONDAY, "b", NAMES, {})
    assert "DTEND" not in text
    one, other = icalendar.Calendar.from_ical(text).walk("VEVENT")
    assert one["UID"] != other["UID"] and one.start == one.end == other.start
    assert other["DESCRIPTION"] == "9"


# Toggl.


def test_toggl_gets_the_columns_that_it_documents():
    people = {
        1: toggl.Person("Ana", "ana@example.org"),
        2: toggl.Person("codex-2", "bot@example.org"),
    }
    cut = split(STINTS, SINCE, UNTIL, zones.local_days(ZONE))
    text = toggl.render(cut, zones.wall(ZONE), people, TITLES)
    assert text.splitlines()[0] == (
        "User,Email,Client,Project,Task,Description,Billable,Start date,Start time,Duration,Tags"
    )
    assert text.splitlines()[1:] == [
        "Ana,ana@example.org,,C-7,T-1,Fix login,Yes,2026-11-16,08:00:00,01:30:00,web",
        'Ana,ana@example.org,,web,T-2,Write docs,No,2026-11-16,09:00:00,01:00:00,"web, amended"',
        "codex-2,bot@example.org,,,T-2,Write docs,No,2026-11-16,23:00:00,01:00:00,",
        "codex-2,bot@example.org,,,T-2,Write docs,No,2026-11-17,00:00:00,01:00:00,",
    ]


def test_what_met_still_meets_in_whole_seconds():
    edges = [MONDAY + n * 1_700_000 for n in range(11)]
    stints = [WorkedStint(1, start, end, "T-1") for start, end in pairwise(edges)]
    people = {1: toggl.Person("Ana")}
    lines = read(toggl.render(stints, zones.wall(ZONE), people, {}))
    assert sum(int(line["Duration"][-2:]) for line in lines) == 17
    assert [line["Start time"] for line in lines][:3] == ["08:00:00", "08:00:01", "08:00:03"]


# A day.


def day_of(label, stints, moments=(), actor="ana"):
    since, until = zones.period(ZONE, label)
    clock = zones.clock(ZONE, since, until)
    return timeline(Day(actor, label, ZONE, since, until), stints, moments, clock, TITLES)


def test_a_day_reads_as_it_went():
    moments = [
        Moment(MONDAY + 30 * MINUTE, "note", "T-1", "found it:\n  the cookie"),
        Moment(MONDAY, "claimed", "T-1"),
        Moment(MONDAY + HOUR, "took over from codex-2", "T-2", "its process is gone"),
        Moment(MONDAY + DAY, "claimed", "T-9"),
        Moment(SINCE - 1, "claimed", "T-8"),
    ]
    assert day_of("2026-11-16", STINTS[1::-1], moments) == (
        "ana, 2026-11-16, Europe/Berlin",
        "  08:00:00              T-1  claimed",
        "  08:00:00 to 09:30:00  T-1  worked 1:30:00  Fix login",
        "  08:30:00              T-1  note: found it: the cookie",
        "  09:00:00              T-2  took over from codex-2: its process is gone",
        "  09:00:00 to 10:00:00  T-2  worked 1:00:00, amended  Write docs",
        "  effort 2:30:00, working 2:00:00, overlap 0:30:00",
    )


def test_a_night_over_midnight_in_which_the_clock_goes_back():
    since, until = zones.period(ZONE, "2026-10-25")
    stints = [
        WorkedStint(1, since - HOUR, since + 2 * HOUR + 30 * MINUTE, "T-1"),
        WorkedStint(1, since + 3 * HOUR + 30 * MINUTE, since + 4 * HOUR, "T-3"),
        WorkedStint(1, until - HOUR, until + HOUR, "T-1"),
    ]
    assert day_of("2026-10-25", stints) == (
        "ana, 2026-10-25, Europe/Berlin, a day of 25 h",
        "  00:00:00 CEST to 02:30:00 CEST  T-1  worked 2:30:00, since the day before  Fix login",
        "  02:30:00 CET to 03:00:00 CET    T-3  worked 0:30:00",
        "  23:00:00 CET to 00:00:00 CET    T-1  worked 1:00:00, into the next day  Fix login",
        "  effort 4:00:00, working 4:00:00, overlap 0:00:00",
    )
    assert day_of("2026-10-24", stints)[1:] == (
        "  23:00:00 to 00:00:00  T-1  worked 1:00:00, into the next day  Fix login",
        "  effort 1:00:00, working 1:00:00, overlap 0:00:00",
    )


def test_a_day_on_which_somebody_still_works():
    stint = WorkedStint(1, MONDAY, MONDAY + 90 * SECOND + 5, "T-1", source="open")
    assert day_of("2026-11-16", [stint])[1:] == (
        "  08:00:00 to now  T-1  worked 0:01:30, open  Fix login",
        "  effort 0:01:30, working 0:01:30, overlap 0:00:00, cut to whole seconds",
    )


def test_a_day_without_work_is_a_day():
    assert day_of("2026-11-16", [], actor="a\x1bb") == (
        "a\\x1bb, 2026-11-16, Europe/Berlin",
        "  effort 0:00:00, working 0:00:00, overlap 0:00:00",
    )


def test_a_calendar_of_a_period_is_clipped_to_it():
    (only,) = clipped([STINTS[0], STINTS[2]], MONDAY + HOUR, MONDAY + 2 * HOUR)
    assert (only.start, only.end, only.key) == (MONDAY + HOUR, MONDAY + 90 * MINUTE, "T-1")
