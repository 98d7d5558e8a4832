"""The demo judges by the ledger and by its workers' clocks, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from dibs import open_board
from dibs.cli.demo import Screen, progress
from dibs.demo.crew import (
    AGENTS,
    Crew,
    CrewReport,
    FaultInjector,
    Story,
    at_once,
    double_owners,
    worked,
)
from dibs.library.records import Event
from kit.repositories import clean_environment

PATIENCE = 60
"""Seconds after which a test gives up waiting for something that must happen."""

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def event(verb: str, token: str, ending: str = "", task: str = "T-1", **facts) -> Event:
    stint = {"started": 0, "ended": 90_000_000}
    over = {"ending": {"token": ending, "actor": 1, "stint": stint}} if ending else {}
    return Event(1, task, NOW, "a", "s", token, verb, "", over | facts, "")


def test_one_owner_after_another_is_no_double_owner():
    events = (
        event("claimed", "1.1"),
        event("taken_over", "1.2", ending="1.1"),
        event("completed", "1.2", ending="1.2"),
        event("claimed", "1.1", task="T-2"),
    )
    assert double_owners(events) == 0


@pytest.mark.parametrize(
    "events",
    [
        (event("claimed", "1.1"), event("claimed", "1.2")),
        (
            event("claimed", "1.1"),
            event("forced", "1.2", ending="1.1"),
            event("completed", "1.2", ending="1.1"),
        ),
        (event("completed", "1.1", ending="1.1"),),
    ],
    ids=["two claims", "a zombie completes", "an end without a beginning"],
)
def test_a_second_owner_would_be_seen(events):
    assert double_owners(events) > 0


def test_one_worker_after_another_is_not_at_once():
    """Each report of a stint is later than the one before; a forced takeover is seen a bit later."""
    assert not at_once(
        [
            CrewReport("a", "works", "T-1", 10, 20),
            CrewReport("a", "works", "T-1", 10, 30),
            CrewReport("b", "works", "T-2", 15, 25),
            CrewReport("b", "works", "T-1", 30, 40),
            CrewReport("ana", "forced", "T-1", 35, 50),
        ]
    )


@pytest.mark.parametrize(
    "second",
    [CrewReport("b", "works", "T-1", 29, 40), CrewReport("b", "works", "T-1", 12, 13)],
    ids=["too early", "in between"],
)
def test_two_who_work_at_once_would_be_seen(second):
    first = [CrewReport("a", "works", "T-1", 10, 20), CrewReport("a", "works", "T-1", 10, 30)]
    assert at_once([*first, second]) == at_once([second, *first]) == 1


def test_stints_are_added_up_by_actor():
    registered = event("actor_registered", "0.0", task="", id=1, name="codex")
    events = (
        registered,
        event("completed", "1.1", ending="1.1"),
        event("released", "1.1", ending="1.1"),
    )
    assert worked(events) == {"codex": timedelta(seconds=180)}


def test_the_demo_is_as_expected_only_if_everything_is():
    good = Story(40, 40, 3, 1, ("a", "b"), "c", True, 0, 0, {}, {}, (), 20.0)
    assert good.as_expected
    for wrong in (
        {"complete": 39},
        {"takeovers": 0},
        {"zombie_refused": False},
        {"double_owners": 1},
        {"at_once": 1},
        {"faults": ("x",)},
    ):
        assert not good.but(**wrong).as_expected


# On a terminal.


def test_a_line_takes_one_row_of_the_terminal(monkeypatch):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        screen = Screen(quiet=False)
        screen.draw("x" * 200, 0)
        screen.report("y" * 200)
        output = ""
        while output.count("x") < 2 * 39:
            output += os.read(ours, 10_000).decode()
    os.close(ours)
    drawn = output.split("\r\033[K")
    assert [line.rstrip() for line in drawn] == ["", "x" * 39, "y" * 39, "x" * 39]


# Who is struck, and when.


@pytest.fixture
def kind():
    """The demo makes a board in a file."""
    return "sqlite"


@pytest.fixture
def fate(repo, monkeypatch):
    """A crew that is not there, and what would be done to it."""
    with open_board(str(repo.folder), agent="codex", session="s1", environment={}) as board:
        board.add("one")
        crew, news = Crew(str(repo.folder), 1), []
        for act in ("kill", "stop", "wake"):
            monkeypatch.setattr(crew, act, lambda name, act=act: news.append(f"{act} {name}"))
        yield FaultInjector(crew, board, random.Random(1), news.append), repo, news


def test_a_victim_has_worked_a_bit_and_holds_its_task(fate, monkeypatch):
    fate, repo, news = fate
    victim = fate._to_kill[0]
    monkeypatch.setattr("dibs.demo.crew.WORKED_SECONDS", 3_600)
    fate.record(CrewReport(victim, "holds", "T-1"))
    repo.ok("claim", "T-1", "--agent", victim, "--session", "s")
    fate.inject()
    assert news == []
    monkeypatch.setattr("dibs.demo.crew.WORKED_SECONDS", 0)
    fate.inject()
    assert news == [f"kill {victim}", f"{victim} is killed at work on T-1"]
    fate.record(CrewReport(fate._to_kill[0], "holds", "T-1"))
    fate.inject()
    assert len(news) == 2


def test_what_happens_is_reported_as_it_happens(fate, monkeypatch):
    monkeypatch.setattr("dibs.demo.crew.WORKED_SECONDS", 0)
    monkeypatch.setattr("dibs.demo.crew.ZOMBIE_SLEEPS_SECONDS", 0)
    fate, repo, news = fate
    zombie = fate.zombie
    repo.ok("claim", "T-1", "--agent", zombie, "--session", "s")
    fate.record(CrewReport(zombie, "holds", "T-1"))
    fate.inject()
    fate.inject()
    repo.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ben")
    fate.record(CrewReport("ben", "forces", "T-1"))
    fate.inject()
    fate.inject()
    fate.record(CrewReport(zombie, "lost", "T-1"))
    fate.record(CrewReport("agent-2", "took", "T-3"))
    fate.record(CrewReport("agent-2", "refused:held", "T-4"))
    assert news == [
        f"stop {zombie}",
        f"{zombie} is stopped at work on T-1",
        "ben, a person, takes T-1 by force",
        f"wake {zombie}",
        f"{zombie} wakes up and is refused: T-1 is no longer its task",
        "agent-2 takes over T-3: its holder's lease has expired",
    ]
    assert (fate.zombie_knows, fate.takeovers, fate.refusals) == (True, 1, 2)
    assert progress({"complete": 20, "in_progress": 3}, fate) == (
        "[##########          ] 20/40 done, 3 held, 1 taken over, 2 refused"
    )


# What goes wrong.


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        ("fatal: cannot mkdir: No space left on device", 74, "No space left on device"),
        ("fatal: cannot mkdir: Permission denied", 2, "Permission denied"),
        ("", 2, "git failed: exit 128"),
        (None, 2, "the demo needs git"),
    ],
    ids=["full disk", "not allowed", "silent", "no git"],
)
def test_the_message_of_git_is_printed(tmp_path, output, code, expected):
    if output is not None:
        git = tmp_path / "git"
        git.write_text(f"#!/bin/sh\necho '{output}' >&2\nexit 128\n")
        git.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "demo"],
        env=clean_environment() | {"PATH": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, expected in done.stderr) == (code, True), done.stderr


# Nothing is left behind.


def test_the_crew_leaves_no_process_and_no_pipe(repo):
    """And what is typed at the terminal is not for its agents: they have a group of their own."""
    crew = Crew(str(repo.folder), 1)
    crew.start()
    groups = {os.getpgid(process.pid) for process in crew._processes.values()}
    crew.end()
    assert groups == {process.pid for process in crew._processes.values()}
    for process in crew._processes.values():
        assert (process.returncode, process.stdin.closed) == (-signal.SIGKILL, True)
        assert process.stdout.closed


def is_an_agent(process: psutil.Process) -> bool:
    """Still; the dead have no command."""
    try:
        return "dibs.demo.agent" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@pytest.fixture
def demo(tmp_path):
    """A demo at work, with one agent that is stopped."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dibs", "demo"],
        env=clean_environment() | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    output = ""
    while "is stopped" not in output:
        output = process.stderr.readline()
        assert output, "the demo ended by itself"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL],
    ids=["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"],
)
def test_a_signal_ends_every_agent_and_removes_the_folder(demo, tmp_path, number):
    """Also one that is stopped. Signals that follow change nothing; nobody prints a traceback."""
    crew = psutil.Process(demo.pid).children()
    agents = [process for process in crew if is_an_agent(process)]
    assert len(agents) > AGENTS // 2
    for _ in range(4):
        if demo.poll() is None:
            os.killpg(demo.pid, number)
            time.sleep(0.02)
    output = demo.communicate(timeout=PATIENCE)[1]
    until = time.monotonic() + PATIENCE
    while any(is_an_agent(agent) for agent in agents):
        assert time.monotonic() < until, "somebody is left"
        time.sleep(0.01)
    assert "Traceback" not in output, output
    assert demo.returncode in (128 + number, -number)  # the last one may come when all is cleared
    if number != signal.SIGKILL:
        assert os.listdir(tmp_path) == []
