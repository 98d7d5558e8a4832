"""What time is booked on: billable or not, on a code of the board's own list, in an area of its scope."""

from __future__ import annotations

import csv
import io

import pytest

from dibs.board.settings import Settings
from dibs.board.stints import area_of, refuse_unknown_code, summed, worked
from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from dibs.domain.values import DAY, HOUR
from dibs.timesheets.query import SheetQuery
from kit.boards import START, Bench

CODES = ("ACME-1", "ACME-2")
SHEET = SheetQuery(START, START + DAY, "UTC")


def one_day(since, until):
    return [("2026-11-15", since, until)]


@pytest.fixture
def booked(tmp_path, kind):
    """An hour on each of three tasks: one billed on a code, one on another, one on nothing."""
    bench = Bench(tmp_path / "dibs", Settings(charge_codes=CODES), kind=kind)
    bench.add(charge_code="ACME-1", billable=True, scope=("@web", "@api"))
    bench.add(charge_code="ACME-2", scope=("src/**", "@web"))
    bench.add()
    codex = bench.agent()
    for key in ("T-1", "T-2", "T-3"):
        codex.claim(key)
        bench.advance(3600)
        codex.do(c.Complete(key))
    yield bench
    bench.close()


def rows(bench, by, **only):
    sheet = summed(bench.board, SHEET.but(by=by, **only), one_day)
    assert sheet.total.effort == sum(row.effort for row in sheet.rows)
    return {row.labels: row.effort // HOUR for row in sheet.rows}


def test_time_adds_up_by_code_and_by_area(booked):
    assert rows(booked, ("charge_code",)) == {("",): 1, ("ACME-1",): 1, ("ACME-2",): 1}
    assert rows(booked, ("area",)) == {("",): 1, ("web",): 2}
    assert rows(booked, ("area", "task")) == {("web", "T-1"): 1, ("web", "T-2"): 1, ("", "T-3"): 1}


def test_only_what_is_billed_or_on_a_code_is_counted(booked):
    assert rows(booked, ("task",), billable=True) == {("T-1",): 1}
    assert rows(booked, ("task",), billable=False) == {("T-2",): 1, ("T-3",): 1}
    assert rows(booked, ("task",), charge_code="ACME-2") == {("T-2",): 1}
    assert rows(booked, ("actor",), charge_code="") == {("codex",): 1}


@pytest.mark.parametrize(
    ("scope", "area"),
    [((), ""), (("src/**",), ""), (("@web",), "web"), (("a", "@x", "@y"), "x")],
)
def test_the_area_of_a_task_is_the_first_that_its_scope_names(scope, area):
    assert area_of(scope) == area


def test_a_code_that_is_not_approved_is_refused_and_the_approved_ones_are_named(booked):
    ana = booked.person("ana")
    before = booked.snapshot()
    commands = (
        c.Add(booked.terms(charge_code="ACME-9")),
        c.Edit("T-1", charge_code="ACME-9"),
        c.Intake((c.Add(booked.terms(charge_code="ACME-9"), channel="mail", origin_ask_ref="1"),)),
    )
    for command in commands[:1] + commands[2:]:
        with pytest.raises(Refused) as problem:
            ana.do(command)
        assert problem.value.code == "bad_charge_code"
        assert problem.value.refusal.facts["known"] == list(CODES)
    assert booked.snapshot() == before


def test_a_code_may_be_changed_and_taken_away(booked):
    booked.add()
    ana = booked.person("ana")
    ana.do(c.Edit("T-4", charge_code="ACME-1", billable=True))
    assert booked.task("T-4").terms.charge_code == "ACME-1"
    assert ana.refused(c.Edit("T-4", charge_code="ACME-9")) == "bad_charge_code"
    ana.do(c.Edit("T-4", charge_code="", billable=False))
    assert (booked.task("T-4").terms.charge_code, booked.task("T-4").terms.billable) == ("", False)
    assert booked.faults() == ()


def test_a_code_that_is_approved_no_more_stays_where_it_is(booked):
    """Other terms of the task are edited as before."""
    booked.add(charge_code="ACME-1")
    booked.board.settings = Settings(charge_codes=("ACME-2",))
    booked.person("ana").do(c.Edit("T-4", title="another"))
    assert booked.task("T-4").terms.charge_code == "ACME-1"


def test_stints_are_listed_with_what_they_are_booked_on(booked):
    found = worked(booked.board, 0, START + DAY).stints
    assert [(one.key, one.area, one.charge_code, bool(one.billable)) for one in found] == [
        ("T-1", "web", "ACME-1", True), ("T-2", "web", "ACME-2", False), ("T-3", "", "", False),
    ]  # fmt: skip


# The command line.


@pytest.fixture
def sold(repo):
    settings = repo.folder / ".git" / "dibs" / "settings.toml"
    if repo.environment().get("DIBS_URL"):
        made = repo.folder / "codes.toml"
        made.write_text('charge_codes = ["ACME-1", "=2+2"]\n')
        repo.ok("config", "--load", str(made), "--as", "ana")
    else:
        settings.write_text('charge_codes = ["ACME-1", "=2+2"]\n')
    repo.ok("add", "one", "--billable", "--charge-code", "ACME-1", "--scope", "@web", "--as", "ana")
    repo.ok("add", "two", "--charge-code", "=2+2", "--as", "ana")
    for key in ("T-1", "T-2"):
        repo.ok("claim", key, "--as", "ana")
        repo.ok("complete", key, "--as", "ana")
    return repo


def test_a_task_shows_what_it_is_booked_on(sold):
    task = sold.json("show", "T-1")["task"]
    assert (task["billable"], task["charge_code"]) == (True, "ACME-1")
    assert "ACME-1" in sold.ok("show", "T-1").out
    assert "ACME-1, =2+2" in sold.ok("config").out


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown", "ics", "toggl"])
def test_every_format_knows_codes_areas_and_what_is_billed(sold, form):
    def sheet(*options):
        return sold.ok("timesheet", "--format", form, *options).out

    listed = form in ("ics", "toggl")
    by_task = () if listed else ("--by", "task")
    billed = sheet(*by_task, "--billable")
    assert "T-1" in billed
    assert "T-2" not in billed
    assert "T-2" in sheet(*by_task, "--not-billable")
    coded = sheet(*by_task, "--charge-code", "=2+2")
    assert "T-2" in coded
    assert "T-1" not in coded
    if not listed:
        assert "ACME-1" in sheet("--by", "charge_code")
        assert "web" in sheet("--by", "area")


@pytest.mark.parametrize("form", ["table", "csv", "json", "ics", "toggl"])
def test_a_code_that_the_board_never_had_is_a_slip_and_no_empty_sheet(sold, form):
    command = ("timesheet", "--format", form, "--week", "2020-W01", "--charge-code")
    refusal = sold.fails(2, *command, "ACME-2", "--json").error
    assert (refusal["code"], refusal["facts"]["known"]) == ("bad_charge_code", ["ACME-1", "=2+2"])
    assert "ACME-1, =2+2" in sold.fails(2, *command, "ACME-2").err
    for known in ("ACME-1", "=2+2", ""):
        sold.ok(*command, known)


def test_a_code_that_was_in_use_before_is_still_known(tmp_path, kind):
    bench = Bench(tmp_path / "dibs", Settings(charge_codes=("OLD-1", "NEW-1")), kind=kind)
    bench.add(charge_code="OLD-1")
    bench.agent("codex", "s1").claim("T-1")
    bench.board.settings = Settings(charge_codes=("NEW-1",))
    for known in ("OLD-1", "NEW-1", "", None):
        refuse_unknown_code(bench.board, known)
    with pytest.raises(Refused) as problem:
        refuse_unknown_code(bench.board, "OLD-2")
    assert problem.value.refusal.facts["known"] == ["NEW-1", "OLD-1"]
    bench.close()


def test_a_code_is_no_formula_in_a_spreadsheet(sold):
    text = sold.ok("timesheet", "--format", "csv", "--by", "charge_code").out
    cells = [row["charge_code"] for row in csv.DictReader(io.StringIO(text))]
    assert not any(cell.startswith("=") for cell in cells)
