"""`dibs` as a process of its own, without the price of a start.

Most of what a short command costs is the start of Python and of a database's driver. So one process
loads everything, opens nothing, and forks for each command: a process with its own pid, folder,
environment and files, which ends as `dibs` does.

What belongs to a start is not tested by this: which modules are loaded, what Python itself reads in
the environment, what others read in `/proc` of it. `Repo.start` starts the program.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dibs.machine import this_machine
from kit.postgres_ground import at_end, until

if TYPE_CHECKING:
    from collections.abc import Callable

DIBS = str(Path(sys.executable).parent / "dibs")

FORKS = Path(__file__).parent / "forking.py"

PATIENCE = 60
"""Seconds: longer than any command takes."""

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "DYLD_")
"""What an interpreter reads when it starts, and never again."""

STARTS_OTHERS = ("run", "dispatch", "demo")
"""Verbs whose processes are told apart by what `/proc` says of them."""


def can_be_forked(words: list[str], environment: dict[str, str]) -> bool:
    """Whether a forked process is as good as one that is started."""
    return not set(STARTS_OTHERS) & {*words} and at_start(environment) == at_start(os.environ)


def at_start(environment) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def run(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    fed: str = "",
    attend: Callable[[int], None] | None = None,
) -> tuple[int, str, str]:
    """The exit code of a command that has ended, or the signal that ended it, and what it said.

    `attend` is told its pid when it is about to begin and stands still, and lets it go on.
    """
    orders = {"words": words, "folder": str(folder), "environment": environment}
    with (
        fed_from(fed) as given,
        socket.socket(socket.AF_UNIX) as line,
        Heard() as out,
        Heard() as err,
    ):
        line.connect(parent())
        socket.send_fds(line, [b"+"], [given.fileno(), out.write, err.write])
        line.sendall(json.dumps(orders | {"stands_still": attend is not None}).encode())
        line.shutdown(socket.SHUT_WR)
        pid = int(line.makefile("rb", buffering=0).readline())
        if attend:
            until(lambda: this_machine().is_stopped(pid), "it stands still")
            attend(pid)
        return listen(pid, line, out, err), out.text(), err.text()


def fed_from(text: str):
    """A file to read the text from."""
    if not text:
        return open(os.devnull, "rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(text.encode())
    file.seek(0)
    return file


class Heard:
    """One end of a pipe for the process, and what came out of the other."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.chunks: list[bytes] = []

    def __enter__(self) -> Heard:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        os.close(self.read)

    def hang_up(self) -> None:
        """Only the process writes from now on."""
        if self.write >= 0:
            os.close(self.write)
        self.write = -1

    def text(self) -> str:
        return b"".join(self.chunks).decode().replace("\r\n", "\n").replace("\r", "\n")


def listen(pid: int, line: socket.socket, out: Heard, err: Heard) -> int:
    """Reads until nobody says anything any more, and the process has ended."""
    deadline = time.monotonic() + PATIENCE
    status: list[bytes] = []
    out.hang_up()
    err.hang_up()
    with selectors.DefaultSelector() as waiting:
        for file, buffer in (
            (line.fileno(), status),
            (out.read, out.chunks),
            (err.read, err.chunks),
        ):
            waiting.register(file, selectors.EVENT_READ, buffer)
        while waiting.get_map():
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError(f"not within {PATIENCE} s")
            for key, _ in waiting.select(1):
                data = os.read(key.fd, 1 << 16)
                key.data.append(data)
                if not data:
                    waiting.unregister(key.fd)
    return int(b"".join(status))


@functools.cache
def parent() -> str:
    """Where the process listens that forks; it ends with this one."""
    from kit.repositories import clean_environment

    folder = Path(tempfile.mkdtemp(prefix="dibs-fork-"))
    address = str(folder / "s")
    process = subprocess.Popen(
        [sys.executable, str(FORKS), address], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        env=clean_environment(), cwd="/",
    )  # fmt: skip

    def end() -> None:
        process.stdin.close()
        process.wait(PATIENCE)
        shutil.rmtree(folder)

    at_end(end)
    until(lambda: process.poll() is None and (folder / "ready").exists(), "a process that forks")
    return address
