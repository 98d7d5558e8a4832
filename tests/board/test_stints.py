"""Periods of work, as the ledger records them: nobody types a total."""

from __future__ import annotations

import csv
import io
import json
from shlex import split

import pytest

from dibs.board.stints import moments, worked
from dibs.domain import commands as c
from dibs.domain.values import SECOND
from kit.boards import START

HOUR = 3600


def periods(bench, actor=None):
    """Who worked from when to when, in seconds after the test began."""
    record = worked(bench.board, 0, START + 10**15, actor)
    return [
        (record.actors[one.actor].name, one.key, (one.start - START) // SECOND,
         (one.end - START) // SECOND, one.source)
        for one in record.stints
    ]  # fmt: skip


def test_a_stint_runs_from_the_start_to_the_end_of_the_work(bench):
    bench.add()
    codex = bench.agent("codex", "s1")
    codex.claim("T-1")
    assert periods(bench) == [("codex", "T-1", 0, 0, "open")]
    bench.advance(600)
    codex.do(c.Complete("T-1"))
    bench.advance(600)
    assert periods(bench) == [("codex", "T-1", 0, 600, "claim")]


def test_stop_ends_the_stint_and_start_opens_the_next(bench):
    bench.add()
    ana = bench.person("ana")
    ana.do(c.Claim("T-1"))
    bench.advance(HOUR)
    ana.do(c.Stop("T-1"))
    bench.advance(64 * HOUR)
    ana.do(c.Start("T-1"))
    bench.advance(60)
    ana.do(c.Complete("T-1"))
    assert [one[2:4] for one in periods(bench)] == [(0, HOUR), (65 * HOUR, 65 * HOUR + 60)]


def test_who_died_worked_until_the_last_sign_of_life(bench):
    """A crash leaves no stint open."""
    bench.add()
    codex = bench.agent("codex", "s1")
    codex.claim("T-1", ttl=600 * SECOND)
    bench.advance(300)
    codex.do(c.Renew("T-1"))
    bench.advance(5000)
    assert periods(bench) == [("codex", "T-1", 0, 300, "open")]
    bench.agent("x", "s9").do(c.Takeover("T-1"))
    bench.advance(60)
    assert periods(bench, "codex") == [("codex", "T-1", 0, 300, "claim")]
    assert periods(bench, "x") == [("x", "T-1", 5300, 5360, "open")]


def test_a_reservation_is_no_work(bench):
    bench.add()
    bench.agent().claim("T-1", reserve=True)
    bench.advance(60)
    assert periods(bench) == []


def test_a_day_shows_claims_and_what_was_lost(bench):
    bench.add()
    bench.agent("codex", "s1").claim("T-1", ttl=60 * SECOND)
    bench.advance(61)
    bench.agent("x", "s9").do(c.Takeover("T-1"))
    codex = bench.actor_id("codex")
    found = [one.what for one in moments(bench.board, codex, 0, START + 10**15)]
    assert found == ["claimed", "started", "lost it: taken over by x"]


# The command line.


@pytest.fixture
def done(repo):
    repo.ok("add", "=Fix, the login", "--as", "ana")
    repo.ok("claim", "T-1", "--as", "ana")
    repo.ok("complete", "T-1", "--as", "ana")
    return repo


def test_a_timesheet_is_the_same_in_every_format(done):
    sheet = done.json("timesheet", "--by", "task")["timesheet"]
    assert [row["task"] for row in sheet["rows"]] == ["T-1"]
    effort = sheet["total"]["effort_us"]
    assert sheet["rows"][0]["effort_us"] == effort > 0
    assert (
        json.loads(done.ok("timesheet", "--by", "task", "--format", "json").out)["timesheet"]
        == sheet
    )
    rows = list(
        csv.DictReader(io.StringIO(done.ok("timesheet", "--by", "task", "--format", "csv").out))
    )
    assert round(float(rows[0]["effort_s"]) * SECOND) == effort
    assert "| T-1 |" in done.ok("timesheet", "--by", "task", "--format", "markdown").out
    assert "T-1" in done.ok("timesheet", "--by", "task").out


def test_a_calendar_holds_the_same_intervals(done):
    import subprocess

    import icalendar

    from kit.repositories import DIBS

    raw = subprocess.run(
        [DIBS, "timesheet", "--format", "ics"], cwd=done.folder, env=done.environment(),
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert raw.count(b"\r\n") == raw.count(b"\n")
    [event] = icalendar.Calendar.from_ical(raw).walk("VEVENT")
    [stint] = done.json("stint", "list")["stints"]
    assert str(event["X-DIBS-START"]) == stint["started_at"]
    assert str(event["X-DIBS-END"]) == stint["ended_at"]
    assert "T-1 =Fix, the login" in str(event["SUMMARY"])


def test_toggl_gets_its_columns_and_no_formula(done):
    rows = list(csv.reader(io.StringIO(done.ok("timesheet", "--format", "toggl").out)))
    assert rows[0] == [
        "User", "Email", "Client", "Project", "Task", "Description", "Billable", "Start date",
        "Start time", "Duration", "Tags",
    ]  # fmt: skip
    assert not rows[1][5].startswith("=")


def test_an_actor_is_known_by_any_of_its_names(done):
    done.ok("actor", "set", "ana", "--alias", "anna", "--as", "ana")
    assert len(done.json("timesheet", "--actor", "Anna")["timesheet"]["rows"]) == 1
    assert done.json("day", "anna")["actor"] == "ana"


def test_a_day_reads_like_a_diary(done):
    lines = done.ok("day", "ana", "--tz", "UTC").out
    assert "ana" in lines.splitlines()[0]
    assert "T-1" in lines
    assert "effort" in lines


NIGHT = (
    "stint",
    "add",
    "T-1",
    "--from",
    "2025-10-25 22:30",
    "--to",
    "2025-10-26 03:30",
    "--backdated",
)
IN_BERLIN = ("--tz", "Europe/Berlin")


@pytest.mark.parametrize(
    ("day", "hours", "worked"), [("2025-10-25", 24, 1.5), ("2025-10-26", 25, 4.5)]
)
def test_a_day_in_json_says_what_the_text_says(done, day, hours, worked):
    """A stint over midnight counts on each day with its part: the clock went back in that night."""
    done.ok(*NIGHT, *IN_BERLIN, "--reason", "forgotten", "--yes", "--as", "ana")
    reply = done.json("day", "ana", day, *IN_BERLIN)
    assert reply["length_seconds"] == hours * 3600
    sums = {name: reply[f"{name}_seconds"] for name in ("effort", "working", "overlap")}
    assert sums == {"effort": worked * 3600, "working": worked * 3600, "overlap": 0}
    [stint] = reply["stints"]
    assert stint["seconds"] == worked * 3600
    assert (stint["started_at"], stint["ended_at"]) == ("2025-10-25T20:30:00Z", "2025-10-26T02:30:00Z")  # fmt: skip
    text = done.ok("day", "ana", day, *IN_BERLIN).out
    assert f"effort {int(worked)}:30:00, working {int(worked)}:30:00" in text


def test_one_word_that_is_a_date_is_the_day(done):
    reply = done.json("day", "2026-02-02", "--as", "ana")
    assert (reply["actor"], reply["day"]) == ("ana", "2026-02-02")
    assert done.json("day", "ana", "--tz", "UTC")["actor"] == "ana"
    assert "DAY is '2026-02-31'" in done.fails(2, "day", "2026-02-31", "--as", "ana").err


def test_a_day_without_work_adds_up_to_nothing_in_json(done):
    reply = done.json("day", "ana", "2025-10-20", *IN_BERLIN)
    assert (reply["stints"], reply["effort_seconds"], reply["length_seconds"]) == ([], 0, 86400)


BAD = {
    "timesheet --tz Mars/Phobos": "time zone",
    "timesheet --week 2026-W60": "--week",
    "timesheet --month November": "--month",
    "timesheet --week 2026-W47 --month 2026-11": "only one of",
    "timesheet --from 2026-11-02": "--from requires --to",
    "timesheet --from 2026-11-02 --to 2026-11-01": "before",
    "timesheet --by moon": "--by is 'moon'",
    "timesheet --format pdf": "the format is 'pdf'",
    "timesheet --round 7m": "rounding",
    "timesheet --bill-by hope": "bill_by",
    "timesheet --actor nobody-known": "nobody-known",
    "timesheet --tz ''": "time zone",
    "day ana --tz ''": "time zone",
    "stint list --tz ''": "time zone",
    "stint add T-1 --from 09:00 --to 09:30 --tz '' --as ana": "time zone",
    "approve ana --week 2026-W02 --tz '' --as bo": "time zone",
    "timesheet --verify --week 2026-W47": "--week is for timesheet, not for timesheet --verify",
    "timesheet --verify --by day": "--by is for timesheet, not for",
    "timesheet --verify --format csv": "--format is for timesheet, not for",
    "timesheet --format toggl --round 15m-up-day": "--round is for --format table",
    "timesheet --format ics --by day": "--by is for --format table",
    "timesheet --format ics --bill-by working": "--bill-by is for --format table",
    "stint burn": "use list",
    "day nobody-known": "nobody-known",
    "day": "use --agent",
}


@pytest.mark.parametrize("line", BAD)
def test_what_makes_no_sense_is_refused(repo, line):
    ran = repo.run(*split(line))
    assert ran.code == 2, ran.out
    assert BAD[line] in ran.err
