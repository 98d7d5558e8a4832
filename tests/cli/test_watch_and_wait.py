"""`watch`, `wait` and `status --watch` as real processes, beside others that change the board."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from itertools import islice

import pytest

import dibs
from dibs.domain.refusals import Refused
from kit.repositories import DIBS, Repo

A = ("--agent", "codex", "--session", "s1")
LONG = 30.0
"""Whatever takes longer is broken."""


class Listener:
    """A process whose lines are read as they come."""

    def __init__(self, repo: Repo, *arguments: str) -> None:
        self.process = repo.start(*arguments)
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self) -> str:
        return self._lines.get(timeout=LONG)

    def event(self) -> dict:
        return json.loads(self.line())

    def end(self) -> None:
        self.process.kill()
        self._reader.join()
        self.process.communicate()

    def ended(self) -> int:
        return self.process.wait(LONG)


@pytest.fixture
def listen(repo):
    """Starts processes, and ends them with the test."""
    started = []

    def start(*arguments: str) -> Listener:
        started.append(Listener(repo, *arguments))
        return started[-1]

    yield start
    for listener in started:
        listener.end()


# Watch.


def test_a_watch_tells_what_another_process_does(repo, listen):
    key = repo.add("Fix \x1b[31mlogin")
    watch = listen("watch", "--from-start")
    lines = [watch.line(), watch.line()]
    repo.ok("claim", key, *A)
    lines += [watch.line() for _ in range(3)]
    shown = [" ".join(line.split()) for line in lines]
    logged = [" ".join(line.split()) for line in repo.ok("log").out.splitlines()[1:]]
    assert shown == logged
    assert "\\x1b[31m" in lines[1]


def test_a_watch_begins_now_unless_it_is_told_otherwise(repo, listen):
    first = repo.add()
    seen = repo.json("log")["events"]
    watch = listen("watch", "--json", "--since", str(seen[-1]["seq"]))
    from_now = listen("watch", "--json")
    deadline = time.monotonic() + LONG
    output: list[dict] = []
    reader = threading.Thread(target=lambda: output.append(from_now.event()), daemon=True)
    reader.start()
    while not output and time.monotonic() < deadline:  # it may still be starting
        repo.ok("note", first, "hello", "--as", "ana")
        reader.join(0.2)
    assert output[0]["seq"] > seen[-1]["seq"]
    event = watch.event()
    assert event["schema"] == 1
    assert event == {"schema": 1, **repo.json("log")["events"][len(seen)]}


def test_a_watch_of_one_task_or_actor_tells_of_nothing_else(repo, listen):
    repo.add()
    repo.add()
    task = listen("watch", "T-2", "--json", "--since", "0", "--count", "2")
    repo.ok("note", "T-1", "x", "--as", "ana")
    repo.ok("note", "T-2", "x", "--as", "ana")
    assert [task.event()["verb"], task.event()["verb"]] == ["added", "noted"]
    assert task.ended() == 0
    actor = listen("watch", "--actor", "ana", "--json", "--from-start", "--count", "3")
    assert {actor.event()["actor"] for _ in range(3)} == {"ana"}
    assert actor.ended() == 0


WRITER = """
import sys
from dibs import open_board
name = sys.argv[1]
with open_board(agent=name, session=name) as board:
    key = board.add(name).task.key
    for n in range(25):
        board.note(key, str(n))
"""


def test_nothing_is_missed_or_told_twice_under_four_writers(repo, listen):
    watch = listen("watch", "--from-start", "--json")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, f"w{n}"], cwd=repo.folder, env=repo.environment()
        )
        for n in range(4)
    ]
    assert [writer.wait(2 * LONG) for writer in writers] == [0] * 4
    newest = repo.json("log", "--limit", "1")["events"][0]["seq"]
    assert newest == 4 * (1 + 1 + 25)
    assert [watch.event()["seq"] for _ in range(newest)] == list(range(1, newest + 1))


def test_a_watch_ends_with_its_time_and_without_a_word(repo):
    ran = repo.ok("watch", "--timeout", "0s")
    assert (ran.out, ran.err) == ("", "")


def test_a_watch_that_is_interrupted_says_so_with_its_exit_code(repo, listen):
    repo.add()
    watch = listen("watch", "--from-start")
    watch.line()
    watch.process.send_signal(signal.SIGINT)
    assert watch.ended() == 130
    assert watch.process.stderr.read() == ""


def test_a_watch_that_is_told_to_end_ends(repo, listen):
    repo.add()
    watch = listen("watch", "--from-start")
    watch.line()
    watch.process.terminate()
    assert watch.ended() == -signal.SIGTERM
    assert watch.process.stderr.read() == ""


def test_a_watch_ends_when_nobody_reads_it_any_more(repo):
    """Also if nothing happens any more, so that there is nothing to write."""
    repo.add()
    shell = f"'{DIBS}' watch --from-start | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell], cwd=repo.folder, env=repo.environment(),
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "actor_registered" in done.stdout


def test_a_board_that_moves_is_watched_where_it_goes(repo, listen, tmp_path):
    """Its events are told from there, each once."""
    repo.add()
    watch = listen("watch", "--from-start", "--json")
    seen = [watch.event()["seq"], watch.event()["seq"]]
    repo.ok("board", "move", "--to", str(tmp_path / "elsewhere"), "--as", "ana")
    key = repo.add("there")
    while (event := watch.event())["task"] != key:
        seen.append(event["seq"])
    seen.append(event["seq"])
    assert seen == list(range(1, len(seen) + 1))


def test_what_cannot_be_watched_is_refused(repo):
    assert repo.run("watch", "T-9").code == 2
    assert repo.run("watch", "--actor", "nobody-here").code == 2
    assert repo.run("watch", "--since", "1", "--from-start").code == 2


# Wait.


def test_a_wait_wakes_when_another_process_completes_the_task(repo, listen):
    key = repo.add()
    repo.ok("claim", key, *A)
    wait = listen("wait", key, "--for", "complete")
    repo.ok("complete", key, *A)
    assert wait.line() == f"{key} is complete\n"
    assert wait.ended() == 0


def test_a_wait_wakes_when_a_lease_expires(repo):
    key = repo.add()
    repo.ok("claim", key, *A, "--ttl", "2s")
    task = repo.json("wait", key, "--for", "free", "--timeout", "60s")["task"]
    assert (task["key"], task["expired"], task["assignee_agent"]) == (key, True, "codex")
    other = repo.ok("takeover", key, "--agent", "claude", "--session", "s9", "--json").json
    assert other["lease"]["token"] == "1.2"


def test_a_wait_in_vain_is_75_and_tells_who_holds_it(repo):
    key = repo.add()
    repo.ok("claim", key, *A)
    ran = repo.run("wait", key, "--for", "free", "--timeout", "1s", "--json")
    assert (ran.code, ran.error["code"], ran.error["facts"]["holder"]) == (75, "timed_out", "codex")


def test_what_does_not_come_by_itself_is_1(repo):
    key = repo.add()
    repo.ok("drop", key, "--as", "ana")
    for goal in ("complete", "free", "ready"):
        ran = repo.run("wait", key, "--for", goal, "--json")
        assert (ran.code, ran.error["code"]) == (1, "never")


def test_a_wait_for_something_else_is_refused(repo):
    repo.add()
    assert repo.run("wait", "T-1", "--for", "rain").code == 2
    assert repo.run("wait", "T-1").code == 2


# Status.


def test_a_status_is_told_again_when_the_board_changes(repo, listen):
    status = listen("status", "--watch", "--every", "1h", "--json")
    assert status.event()["counts"] == {}
    repo.add()
    assert status.event()["counts"] == {"open": 1}


def test_a_status_is_told_again_when_its_time_is_over(repo, listen):
    """Blocks with a blank line between, and nothing that only a terminal understands."""
    status = listen("status", "--watch", "--every", "1s")
    lines = [status.line() for _ in range(4)]
    assert lines == ["no tasks yet: add one with dibs add TITLE\n", "\n"] * 2


def test_on_a_terminal_a_status_takes_the_place_of_the_one_before(repo):
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [DIBS, "status", "--watch"], cwd=repo.folder, env=repo.environment(), stdout=theirs
    )
    os.close(theirs)
    reply = b""
    while reply.count(b"no tasks yet") < 2:
        reply += os.read(ours, 1000)
    process.kill()
    process.wait()
    os.close(ours)
    assert reply.startswith(b"\x1b[H\x1b[2Jno tasks yet")


def test_an_interval_goes_with_watching(repo):
    assert repo.run("status", "--every", "5s").code == 2


# From Python.


@pytest.fixture
def board(repo):
    with dibs.open_board(
        repo.folder, agent="codex", session="s1", environment=repo.environment()
    ) as board:
        yield board


def test_a_program_watches_from_the_moment_it_says_so(board):
    board.add("before")
    events = board.watch(timeout="60s")
    key = board.add("after").task.key
    assert next(events).task == key
    events.close()


def test_a_program_watches_without_keeping_others_waiting(board):
    """One thread waits, another works on the same board."""
    key, seen = board.add("work").task.key, []

    def watch() -> None:
        seen.extend(event.verb for event in islice(board.watch(key, since=0), 3))

    watcher = threading.Thread(target=watch)
    watcher.start()
    board.claim(key)
    watcher.join(LONG)
    assert seen == ["added", "claimed", "started"]


def test_a_program_waits_for_a_goal(board):
    key = board.add("work").task.key
    assert board.wait(key, "free", timeout=timedelta(0)).key == key
    with pytest.raises(Refused) as problem:
        board.wait(key, timeout=timedelta(milliseconds=200))
    assert problem.value.code == "timed_out"


def test_a_watch_of_a_closed_board_is_refused(board):
    events = board.watch()
    board.close()
    with pytest.raises(Refused) as problem:
        next(events)
    assert problem.value.code == "closed"
