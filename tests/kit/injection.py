"""Faults in the system calls of one command: it is killed at one of them, or one of them fails.

`strace` does it, for the calls that touch the board's files and for no others.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kit import forked
from kit.repositories import Ran, clean_environment
from kit.running import until

FILES = ("", "board.db", "board.db-wal", "board.db-shm", "write.lock")
KILLED = -9


class Point(NamedTuple):
    """The n-th time that a command makes a call."""

    call: str
    n: int


@cache
def why_not() -> str:
    """Why faults cannot be injected here, or ""."""
    if shutil.which("strace") is None:
        return "strace is not installed: no fault can be injected into a system call"
    probe = ["strace", "-f", "-e", "trace=none", "-e", "inject=getppid:signal=KILL:when=1", "true"]
    done = subprocess.run(probe, capture_output=True, check=False)
    return "" if done.returncode == 0 else "ptrace is not allowed here: strace cannot work"


def traced(place: Path, board: Path, arguments: tuple[str, ...], *how: str) -> tuple[Ran, str]:
    """The command under `strace`: how it ended, and what it did to the board's files.

    It is traced from its first step on, but not while Python starts: that is most of all calls, and
    none of them is about the board.
    """
    trace = board.with_suffix(".trace")
    watched = [part for name in FILES for part in ("-P", str(board / name).rstrip("/"))]
    tracers = []

    def attend(pid: int) -> None:
        command = ["strace", "-f", "-qq", "-o", str(trace), *watched, *how, "-p", str(pid)]
        tracers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        until(lambda: is_traced(pid) or tracers[0].poll(), "a tracer")
        os.kill(pid, signal.SIGCONT)

    around = clean_environment(DIBS_BOARD=str(board))
    ran = Ran(*forked.run([*arguments], place, around, attend=attend))
    assert tracers[0].wait(60) == 0, "strace"
    return ran, trace.read_text()


def is_traced(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return "(stopped)" not in status and "TracerPid:\t0\n" not in status


def points(place: Path, board: Path, arguments: tuple[str, ...]) -> list[Point]:
    """Every call of the command on the board's files, in their order. It is carried out."""
    ran, trace = traced(place, board, arguments)
    assert ran.code == 0, ran.err
    found: list[Point] = []
    times: dict[str, int] = {}
    for call in re.findall(r"^\d+ +(\w+)\(", trace, re.MULTILINE):
        times[call] = times.get(call, 0) + 1
        found.append(Point(call, times[call]))
    return found


def struck(
    place: Path, board: Path, arguments: tuple[str, ...], point: Point, fault: str
) -> tuple[Ran, bool]:
    """The command with a fault at one point; and whether the point was reached.

    `fault` is a signal (`KILL`), an error (`EIO`), or an error from that point on (`EIO+`).
    """
    what = "signal=KILL" if fault == "KILL" else f"error={fault.rstrip('+')}"
    when = f"{point.n}{'+' * fault.endswith('+')}"
    inject = ("-e", f"trace={point.call}", "-e", f"inject={point.call}:{what}:when={when}")
    ran, trace = traced(place, board, arguments, *inject)
    return ran, ran.code == KILLED or "(INJECTED)" in trace
