"""Clocks: the wall clock is stepped while processes run, and the machine sleeps for an hour."""

from __future__ import annotations

import time

import pytest

from kit import clocks
from kit.boards_on_disk import board_with, ledger_of
from kit.hands import Hand
from kit.repositories import Repo

HOUR = 3_600
DRIFT = 1_000
"""Microseconds by which the two clocks, of the board and of this test, may drift in one step."""

STEPS = (0, HOUR, -HOUR, 40 * 86_400, -40 * 86_400, 20 * 365 * 86_400, -5, 0)


@pytest.fixture
def shim(tmp_path):
    shim = clocks.shim(tmp_path)
    if shim is None:
        pytest.skip("there is no C compiler: the wall clock of a process cannot be stepped")
    return shim


def test_no_step_of_the_wall_clock_changes_what_is_left_of_a_lease(tmp_path, shim):
    """Steps of seconds and of years, there and back, while the processes run on."""
    [key] = board_with(tmp_path / "board", tasks=1)
    with (
        Hand(tmp_path / "board", "holder", **shim.environment) as holder,
        Hand(tmp_path / "board", "other", **shim.environment) as other,
    ):
        holder.do("command", "Claim", task=key, ttl=1800 * 1_000_000)
        begun, before = time.monotonic(), holder.do("remaining", key)
        for step in STEPS:
            clocks.step(shim.offset, step)
            assert abs(other.do("wall") - time.time() - step) < 5, "the step was not seen"
            left, passed = other.do("remaining", key), (time.monotonic() - begun) * 1e6
            assert before - passed - DRIFT <= left <= before, step
            assert other.do("command", "Takeover", task=key) == "held", step
            assert holder.do("command", "Note", task=key, note=f"at {step}") == "1.1"
            begun, before = time.monotonic(), holder.do("remaining", key)
        assert holder.do("command", "Complete", task=key, token="1.1") == "1.1"
    entries, faults = ledger_of(tmp_path / "board")
    instants = [entry.at for entry in entries]
    assert instants == sorted(instants)
    assert len(entries) == len(STEPS) + 4 and faults == ()


def test_commands_started_under_a_stepped_clock_agree_with_all_others(tmp_path, shim):
    """Every command is a process of its own, born into another year."""
    [key] = board_with(tmp_path / "board", tasks=1)
    repo = Repo(tmp_path / "board")
    mine, other = ("--agent", "codex", "--session", "s1"), ("--agent", "claude", "--session", "s9")
    repo.ok("claim", key, *mine, "--ttl", "30m")
    expires = repo.json("show", key)["task"]["lease_expires_at"]
    for step in STEPS:
        clocks.step(shim.offset, step)
        shown = repo.ok("show", key, "--json", **shim.environment)
        assert shown.json["task"]["lease_expires_at"] == expires and shown.err == ""
        assert repo.run("takeover", key, *other, **shim.environment).code == 4
        repo.ok("note", key, "noted", "--as", "ana", **shim.environment)
    repo.ok("complete", key, *mine)
    assert repo.json("log", "--verify")["ok"]


def test_a_wall_clock_behind_the_last_nanosecond_that_fits_is_no_failure(tmp_path, shim):
    """After April 2262 the nanoseconds since 1970 do not fit into 64 bits."""
    clocks.step(shim.offset, 300 * 366 * 86_400)
    repo = Repo.create(tmp_path / "board")
    (repo.folder / ".wg").mkdir()
    (repo.folder / ".wg/graph.jsonl").write_text(
        '{"kind":"task","id":"item","title":"An item","status":"open"}\n'
    )
    mine = ("--agent", "codex", "--session", "s1")
    for line in (
        ("init",), ("add", "work", "--as", "ana"), ("sync", "--as", "ana"), ("claim", "T-1", *mine), ("claim", "item", *mine),
        ("complete", "T-1", *mine), ("show", "T-1"), ("log", "--verify"), ("day", "codex"), ("doctor",),
        ("board", "backup", "../saved.db"),
    ):  # fmt: skip
        repo.ok(*line, **shim.environment)
    assert repo.json("show", "T-1")["task"]["created_at"] > "2300"


def test_an_hour_of_sleep_ends_a_lease_of_half_an_hour_and_not_one_of_two(tmp_path, shim):
    """The clock since boot is an hour ahead: as after a laptop was opened again."""
    short, long = board_with(tmp_path / "board", tasks=2)
    repo = Repo(tmp_path / "board")

    def after_sleep(*arguments: str) -> int:
        return repo.run(*arguments, **shim.environment).code

    mine, other = ("--agent", "codex", "--session", "s1"), ("--agent", "claude", "--session", "s9")
    repo.ok("claim", short, *mine, "--ttl", "30m")
    repo.ok("claim", long, *mine, "--ttl", "2h")
    assert after_sleep("takeover", short, *other) == 4
    clocks.step(shim.slept, HOUR)
    assert after_sleep("takeover", long, *other) == 4
    assert after_sleep("takeover", short, *other) == 0
    assert repo.run("complete", short, *mine).code == 5
    assert repo.json("log", "--verify")["ok"]
