"""Claim+complete cycles per second beside a peer: Hermes kanban, in the same run.

`hermes-agent` is installed from PyPI into a virtual environment of its own under `bench/.data`. It
runs in a process of its own, one connection, and is told when its turn is: the turns alternate.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import count

from cycles import Dibs
from measure import DATA, Figure, Report, make_board, open_board, scratch, show, spread

CYCLES = 50
ROUNDS = 15
INSTALL_SECONDS = 600
HERMES = DATA / "hermes"
PYTHON = HERMES / "bin" / "python"

WORKER = """
import json, sys, time
from pathlib import Path
from importlib.metadata import version
from hermes_cli import kanban_db as k
tasks, path = int(sys.argv[1]), Path(sys.argv[2])
connection = k.connect(path)
made = [k.create_task(connection, title="work", assignee="bench") for _ in range(tasks)]
def pragma(name):
    return connection.execute("PRAGMA " + name).fetchone()[0]
import sqlite3
print(json.dumps({"version": version("hermes-agent"), "sqlite": sqlite3.sqlite_version,
    "journal_mode": pragma("journal_mode"), "synchronous": pragma("synchronous"),
    "wal_autocheckpoint": pragma("wal_autocheckpoint")}), flush=True)
for line in sys.stdin:
    mine, made = made[:int(line)], made[int(line):]
    began = time.perf_counter()
    for task in mine:
        assert k.claim_task(connection, task)
        assert k.complete_task(connection, task)
    print(time.perf_counter() - began, flush=True)
"""


def installed() -> str:
    """Installs the peer; nothing if it is there, else why it is not."""
    if PYTHON.exists() and imports():
        return ""
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(HERMES)], check=True)
        subprocess.run(
            [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "hermes-agent"],
            check=True,
            timeout=INSTALL_SECONDS,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"pip install hermes-agent took more than {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        return f"it cannot be installed: {(error.stderr or str(error)).strip().splitlines()[-1]}"
    return "" if imports() else "hermes_cli.kanban_db cannot be imported"


def imports() -> bool:
    command = [PYTHON, "-c", "import hermes_cli.kanban_db"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


ABOUT = """\
synchronous=2 is FULL: both sync each commit. A cycle of dibs is two commits. One of Hermes is one
commit for the claim and several for the completion (its counter of failures and its search for
tasks that became ready have transactions of their own). Hermes keeps no chained ledger."""


def line(name: str, rates: list[float], settings: str) -> str:
    return f"{name:<21} {max(rates):5.0f} cycles/s (rounds {spread(rates, '{:.0f}')})  {settings}"


class Hermes:
    """The peer's process."""

    def __init__(self, folder: str, tasks: int) -> None:
        environment = {**os.environ, "HERMES_HOME": folder, "HERMES_KANBAN_HOME": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.process = subprocess.Popen(
            [PYTHON, "-c", WORKER, str(tasks), f"{folder}/kanban.db"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.settings = json.loads(self.process.stdout.readline() or "{}")

    def run(self, cycles: int) -> float:
        print(cycles, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def measure(rounds: int = ROUNDS) -> Report:
    title = "A peer: Hermes kanban"
    problem = installed()
    if problem:
        figure = Figure(
            "cycles per second, dibs / Hermes kanban", "not measured", "", None, problem
        )
        return Report(title, [figure], [problem])
    tasks = CYCLES * (rounds + 1)
    with scratch() as folder:
        os.mkdir(f"{folder}/hermes")
        hermes = Hermes(f"{folder}/hermes", tasks)
        make_board(f"{folder}/dibs", tasks)
        dibs = Dibs(f"{folder}/dibs")
        keys = (f"T-{number}" for number in count(1))
        ours, theirs = [], []
        for turn in range(rounds + 1):  # the first one warms
            mine = [next(keys) for _ in range(CYCLES)]
            began = time.perf_counter()
            for key in mine:
                dibs.cycle(key)
            elapsed = time.perf_counter() - began
            peer = hermes.run(CYCLES)
            if turn:
                ours.append(CYCLES / elapsed)
                theirs.append(CYCLES / peer)
        board = open_board(f"{folder}/dibs")
        journal, synchronous = (
            board.store.connection.pragma(name) for name in ("journal_mode", "synchronous")
        )
        board.store.close()
        dibs.close()
        hermes.close()
    settings = hermes.settings
    ratio = max(ours) / max(theirs)
    lines = [
        f"best of {rounds} alternating rounds of {CYCLES} cycles, on {tasks} tasks",
        line("dibs", ours, f"journal_mode={journal} synchronous={synchronous}"),
        line(
            f"Hermes kanban {settings.pop('version')}",
            theirs,
            " ".join(f"{name}={value}" for name, value in settings.items()),
        ),
        "",
        *ABOUT.splitlines(),
    ]
    figure = Figure(
        "claim+complete cycles per second, dibs / Hermes kanban",
        f"{ratio:.2f}",
        "",
        None,
        f"rounds {spread([a / b for a, b in zip(ours, theirs)])}",
    )
    return Report(title, [figure], lines)


if __name__ == "__main__":
    show(measure())
