"""Commands under `dibs run` that write down what they do; and whether two ever worked at once.

All append to one file, a line at a time. The kernel puts the lines in order, so the file needs no
clock: once somebody has begun with a newer token, nobody says anything more under an older one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from kit.repositories import DIBS, Repo

SAY = 'say() { echo "$DIBS_TASK $DIBS_TOKEN $1" >> "$WORKSHOP"; }'
WORK = f"{SAY}; say start; n=0; while [ $n -lt $1 ]; do sleep 0.02; say tick; n=$((n + 1)); done"
ALONE = f"{WORK}; say end; exit $2"
WITH_A_CHILD = f"({WORK}) & wait; {SAY}; say end; exit $2"
"""The work is done by a child of the command: it does not die with it."""
KEPT = " ".join(f'{name}="${name}"' for name in ("PATH", "WORKSHOP", "DIBS_TASK", "DIBS_TOKEN"))
WITH_A_HIDDEN_CHILD = f"env -i {KEPT} sh -c '{WORK}' work $1 & wait; {SAY}; say end; exit $2"
"""The same, and the child has lost the mark of its run."""


class Line(NamedTuple):
    key: str
    token: tuple[int, ...]
    what: str


class Workshop:
    """`with Workshop(repo) as shop` leaves no process behind."""

    def __init__(self, repo: Repo) -> None:
        self.repo, self.file = repo, repo.folder.parent / "workshop"
        self.file.touch()
        self.runs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        wanted = f"WORKSHOP={self.file}".encode()
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            with contextlib.suppress(OSError):
                if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
        for process in self.runs:
            process.wait(60)

    def run(
        self, *what: str, ticks: int = 5, code: int = 0, script: str = ALONE, **environment: str
    ) -> subprocess.Popen[bytes]:
        """`dibs run` with these words, and a command that says so often that it works."""
        process = subprocess.Popen(
            [DIBS, "run", *what, "--", "sh", "-c", script, "work", str(ticks), str(code)],
            cwd=self.repo.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.repo.environment(WORKSHOP=str(self.file), **environment),
        )  # fmt: skip
        self.runs.append(process)
        return process

    def lines(self) -> list[Line]:
        return lines_of(self.file)

    def tokens_of(self, key: str, what: str) -> list[tuple[int, ...]]:
        """The tokens under which this line was written."""
        return [line.token for line in self.lines() if (line.key, line.what) == (key, what)]


def lines_of(file: Path) -> list[Line]:
    rows = [line.split() for line in file.read_text().splitlines()]
    return [Line(key, tuple(map(int, token.split("."))), what) for key, token, what in rows]


def two_at_once(lines: list[Line]) -> list[str]:
    """What somebody did under a token after somebody else had begun under a newer one."""
    newest: dict[str, tuple[int, ...]] = {}
    faults = []
    for line in lines:
        if line.token < newest.setdefault(line.key, line.token):
            faults.append(f"{line.key}: {line.what} under {line.token} after {newest[line.key]}")
        newest[line.key] = max(newest[line.key], line.token)
    return faults
