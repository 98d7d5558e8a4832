"""Faults in the system calls of one command: it is killed at one of them, or one of them fails.

`strace` does it, for the calls that touch the board's files and for no others.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kit.repositories import DIBS, Ran, clean_environment

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
    """The command under `strace`: how it ended, and what it did to the board's files."""
    trace = board.with_suffix(".trace")
    watched = [part for name in FILES for part in ("-P", str(board / name).rstrip("/"))]
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", str(trace), *watched, *how, DIBS, *arguments],
        cwd=place, env=clean_environment(DIBS_BOARD=str(board)), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr), trace.read_text()


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
    kill = fault == "KILL"
    what = "signal=KILL" if kill else f"error={fault.rstrip('+')}"
    when = f"{point.n}{'+' * fault.endswith('+')}"
    inject = ("-e", f"trace={point.call}", "-e", f"inject={point.call}:{what}:when={when}")
    # With this the command is faster, but strace 6.1 then sends no signals.
    faster = () if kill else ("--seccomp-bpf",)
    ran, trace = traced(place, board, arguments, *faster, *inject)
    return ran, ran.code == KILLED or "(INJECTED)" in trace
