"""A `dibs run` that is going on, and what it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from dibs.board.liveness import end_survivors, mark_of
from dibs.domain.model import LeaseProcess
from dibs.machine import this_machine
from dibs.opening import open_board
from kit.repositories import DIBS, Ran, Repo

DEADLINE = 60
"""Seconds: longer than anything takes, and only waited for when something is wrong."""

SEEN = "DIBS_TESTS_SEEN"
"""Where a command writes the pid of each of its processes."""


def until(condition, what: str = ""):
    """What the condition says at last."""
    deadline = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < deadline, what or "this did not happen in time"
        time.sleep(0.01)
    return found


class Running:
    """`with Running(repo, "T-1", "script") as run` leaves no process behind."""

    def __init__(
        self, repo: Repo, key: str, script: str, *options: str, **environment: str
    ) -> None:
        self.folder = repo.folder.parent / f"seen-{time.monotonic_ns()}"
        self.folder.mkdir()
        self.repo, self.key = repo, key
        self.process = subprocess.Popen(
            [DIBS, "run", key, *options, "--", "sh", "-c", script], cwd=repo.folder,
            env=repo.environment(SEEN=str(self.folder), **environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=as_in_a_terminal,  # noqa: PLW1509
        )  # fmt: skip
        self.pid = self.process.pid
        self.run = LeaseProcess(this_machine().process(self.pid))
        self.mark = mark_of(self.run.process)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        assert end_survivors(this_machine(), self.run, 0) == []
        for file in self.folder.iterdir():
            self.kill_if_ours(file.read_text().strip())

    def kill_if_ours(self, pid: str) -> None:
        """Who hides the mark is known by the folder."""
        with suppress(OSError, ValueError):
            if f"SEEN={self.folder}" in Path(f"/proc/{int(pid)}/environ").read_text():
                os.kill(int(pid), signal.SIGKILL)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """Stopped when this returns; not while it records on the board what it has started."""
        until(lambda: process_behind(self.repo, self.key).command, "the command is not known")
        self.send(signal.SIGSTOP)
        until(lambda: this_machine().is_stopped(self.pid))

    def signal_word(self, word: str) -> None:
        """What a script waits for with `wait_for`."""
        (self.folder / word).touch()

    def pid_of(self, name: str) -> int:
        """Of a process that wrote it down with `here`."""
        file = self.folder / name
        return int(until(lambda: file.is_file() and file.read_text().strip(), f"no {name}"))

    def line(self) -> str:
        """The next line of its output, as soon as it is there."""
        assert select.select([self.process.stdout], [], [], DEADLINE)[0], "it says nothing"
        return self.process.stdout.readline().decode()

    def ended(self) -> Ran:
        out, err = self.process.communicate(timeout=DEADLINE)
        texts = [data.decode("utf-8", "backslashreplace") for data in (out, err)]
        return Ran(self.process.returncode, *texts)


def as_in_a_terminal() -> None:
    """What a shell starts in the background ignores Ctrl-C, and the tests may be that."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def here(name: str) -> str:
    """A line of a script: this process is `name`."""
    return f"echo $$ > $SEEN/{name}.part; mv $SEEN/{name}.part $SEEN/{name}"


def wait_for(word: str) -> str:
    return f"while [ ! -e $SEEN/{word} ]; do sleep 0.02; done"


def lives(pid: int) -> bool:
    return this_machine().process(pid) is not None


def waits_for_a_lock(pid: int) -> bool:
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and str(pid) in line.split() for line in lines)


def process_of_session(repo: Repo, name: str, session: str):
    """The process that the board knows a session by."""
    board = open_board(str(repo.folder), environment=repo.environment())
    try:
        with board.read() as tx:
            return tx.session(tx.actor_named(name).id, session).process
    finally:
        board.store.close()


def process_behind(repo: Repo, key: str):
    """The process of the last lease of a task."""
    board = open_board(str(repo.folder), environment=repo.environment())
    try:
        with board.read() as tx:
            task = tx.task(key)
            return tx.process_behind(task.id, task.token)
    finally:
        board.store.close()


def mode_of(path: Path) -> int:
    return os.stat(path).st_mode & 0o777
