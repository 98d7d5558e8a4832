"""Approval on the command line: what is said, what JSON holds, and which exit means what."""

from __future__ import annotations

import pytest

ANA, BO = ("--as", "ana"), ("--as", "bo")
WEEK = ("--week", "2026-W02", "--tz", "UTC")


@pytest.fixture
def worked(repo):
    """Ana worked for two hours in the second week of the year."""
    repo.ok("add", "Fix login", *BO)
    repo.ok(
        "stint", "add", "T-1", "--from", "2026-01-06T09:00Z", "--to", "2026-01-06T11:00Z",
        "--reason", "on paper", "--yes", "--backdated", *ANA,
    )  # fmt: skip
    return repo


def test_a_week_is_approved_and_opened_again(worked):
    reply = worked.ok("approve", "ana", *WEEK, *BO, "--json").json["approved"]
    assert (reply["actor"], reply["by"], reply["period"]) == ("ana", "bo", "2026-W02")
    assert (reply["stints"], reply["effort_seconds"], reply["working_seconds"]) == (1, 7200, 7200)
    assert (reply["from"], reply["to"]) == ("2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z")
    checked = worked.ok("timesheet", "--verify", "--json").json
    assert checked["ok"] is True
    assert checked["approvals"][0]["approved"] == checked["approvals"][0]["now"]
    reopened = worked.ok("reopen", "ana", *WEEK, "--reason", "lunch", *BO, "--json").json
    assert reopened["reopened"]["period"] == "2026-W02"
    assert worked.ok("timesheet", "--verify", "--json").json["approvals"] == []
    assert worked.ok("log", "--verify").code == 0


def test_the_log_says_in_which_zone_a_period_was_approved(worked):
    worked.ok("approve", "ana", "--week", "2026-W02", "--tz", "Asia/Tokyo", *BO)
    assert "ana, 2026-W02 (Asia/Tokyo)" in worked.ok("log").out


def test_what_is_approved_is_neither_added_to_nor_amended(worked):
    worked.ok("approve", "ana", *WEEK, *BO)
    more = ("--reason", "more", "--yes", "--backdated", *ANA, "--json")
    times = ("--from", "2026-01-07T09:00Z", "--to", "2026-01-07T10:00Z")
    ran = worked.run("stint", "add", "T-1", *times, *more)
    assert (ran.code, ran.error["code"]) == (1, "approved")
    [stint] = worked.ok("stint", "list", *WEEK, "--json").json["stints"]
    number = str(stint["number"])
    ran = worked.run("stint", "amend", number, "--to", "2026-01-06T12:00Z", *more)
    assert (ran.code, ran.error["code"]) == (1, "approved")
    outside = ("--from", "2026-01-14T09:00Z", "--to", "2026-01-14T10:00Z")
    worked.ok("stint", "add", "T-1", *outside, *more)


def test_a_correction_outside_of_what_is_approved_changes_nothing_of_it(repo):
    repo.ok("add", "Fix login", *BO)
    over_midnight = ("--from", "2026-01-11T23:00Z", "--to", "2026-01-12T01:00Z")
    reason = ("--reason", "on paper", "--yes", "--backdated", *ANA)
    reply = repo.ok("stint", "add", "T-1", *over_midnight, *reason, "--json").json["stint"]
    repo.ok("approve", "ana", *WEEK, *BO)
    repo.ok("stint", "amend", str(reply["number"]), "--to", "2026-01-12T00:00Z", *reason)
    assert repo.ok("timesheet", "--verify", "--json").json["ok"] is True


def test_a_week_is_a_week_and_a_month_a_month(worked):
    for option, wrong in (("--week", "2026-10"), ("--week", "2025"), ("--month", "2026-W02")):
        ran = worked.run("approve", "ana", option, wrong, *BO, "--json")
        assert (ran.code, ran.error["code"]) == (2, "bad_argument")
    assert worked.run("day", "ana", "2026-W02").code == 2


REFUSALS = {
    "oneself": (("ana", *WEEK, *ANA), 1, "own_timesheet"),
    "no period": (("ana", *BO), 2, "bad_argument"),
    "two periods": (("ana", *WEEK, "--month", "2026-01", *BO), 2, "bad_argument"),
    "not over": (("ana", "--week", "9998-W02", *BO), 1, "period_not_over"),
    "nobody": (("zoe", *WEEK, *BO), 2, "unknown_actor"),
    "an agent": (("ana", *WEEK, "--agent", "codex", "--session", "s1"), 1, "people_only"),
}


@pytest.mark.parametrize(("given", "exit_", "code"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_approved_is_refused(worked, given, exit_, code):
    ran = worked.run("approve", *given, "--json")
    assert (ran.code, ran.error["code"]) == (exit_, code)


AGAIN = {
    "approve": f"approve ana {' '.join(WEEK)}",
    "reopen": f"reopen ana {' '.join(WEEK)} --reason lunch",
    "actor": "actor set ana --tier 2",
    "pause": "dispatch --pause --reason lunch",
    "resume": "dispatch --resume",
}


@pytest.mark.parametrize("line", AGAIN.values(), ids=AGAIN)
def test_what_was_answered_before_is_marked_where_it_is_not_about_a_task(worked, line):
    if line.startswith("reopen"):
        worked.ok("approve", "ana", *WEEK, *BO)
    command = (*line.split(), "--request-id", "r1", *BO)
    first = worked.json(*command)
    assert (first["replayed"], first["warnings"]) == (False, [])
    again = worked.ok(*command, "--json")
    assert again.json["replayed"] is True
    [warning] = again.json["warnings"]
    assert "this request id was answered before" in warning
    assert "this request id was answered before" in worked.ok(*command).err
    marks = {"replayed": 0, "warnings": 0}
    assert {**again.json, **marks} == {**first, **marks}


def test_a_pause_that_is_asked_for_again_after_it_is_over_has_the_same_answer(worked):
    pause = ("dispatch", "--pause", "--reason", "lunch", *BO)
    first = worked.json(*pause, "--request-id", "r1")
    worked.json(*pause, "--request-id", "r2")
    worked.ok("dispatch", "--resume", *ANA)
    again = worked.json(*pause, "--request-id", "r1")
    assert (again["by"], again["reason"]) == (first["by"], first["reason"]) == ("bo", "lunch")
    assert "no longer paused" in worked.ok(*pause, "--request-id", "r2").out
