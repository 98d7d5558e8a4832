"""What the measurements share: boards to measure on, figures with their goals, and a profile."""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import re
import shutil
import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from dibs.board.identity import Identity
from dibs.board.locate import Place
from dibs.domain import commands as c
from dibs.domain.model import Session, Terms
from dibs.opening import create_at, open_at

DATA = Path(__file__).parent / ".data"
"""On the disk of the repository, not on one that is made of memory: a commit costs a sync."""


class Figure(NamedTuple):
    """One number, what it should be, and how far it moved between repeats."""

    name: str
    value: str
    goal: str
    met: bool | None
    spread: str

    @property
    def verdict(self) -> str:
        return {True: "met", False: "FALLS SHORT", None: ""}[self.met]


class Report(NamedTuple):
    """What a script found: its figures, and the lines that explain them."""

    title: str
    figures: list[Figure]
    lines: list[str]


def show(report: Report) -> None:
    print(f"== {report.title}")
    for line in report.lines:
        print(line)
    for figure in report.figures:
        goal = f"; goal: {figure.goal}: {figure.verdict}" if figure.goal else ""
        print(f"-> {figure.name}: {figure.value} ({figure.spread}){goal}")


def spread(values: list[float], shape: str = "{:.2f}") -> str:
    """The lowest, the middle and the highest of several repeats."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{shape.format(low)} / {shape.format(middle)} / {shape.format(high)}"


# Boards.


@contextmanager
def scratch():
    """A folder on the repository's disk, gone afterwards."""
    DATA.mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def agent(name: str, folder: str) -> Identity:
    """An agent with one session that works in `folder`, as the command line would find it."""
    place = Session(actor=0, name="", host=os.uname().nodename, worktree=folder, branch="main")
    return Identity(name, person=False, session="s1", place=place)


def open_board(folder: str):
    return open_at(Place(folder))


def make_board(folder: str, tasks: int) -> None:
    """A board with open tasks T-1 to T-n: the first by the rules, the rest as copies of its row.

    Each has its `added` event. The digests are copies too, so the ledger of the copies does not
    verify: only time is measured here.
    """
    board, _ = create_at(Place(folder))
    board.execute(agent("bench", folder), c.Add(Terms("work")))
    path = board.store.path
    board.store.close()
    connection = apsw.Connection(path)
    connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    copy(connection, "task", tasks, id="n", uid="printf('%032d', n)", key="'T-' || n")
    copy(connection, "event", tasks, seq="last.seq + n - 1", task="n", position="1")
    connection.execute(
        "UPDATE board SET seq = seq + :more, tasks = tasks + :more, keys = keys + :more",
        {"more": tasks - 1},
    )
    connection.execute("COMMIT; PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def copy(connection: apsw.Connection, table: str, tasks: int, **changed: str) -> None:
    """Copies of the row of task 1, for the tasks 2 to n."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    which = "id" if table == "task" else "task"
    [row] = connection.execute(f"SELECT * FROM {table} WHERE board = 1 AND {which} = 1")
    values = ", ".join(changed.get(column, f":{column}") for column in columns)
    connection.execute(
        f"WITH RECURSIVE number(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < :tasks), "
        f"last AS MATERIALIZED (SELECT seq FROM board) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM number, last "
        f"WHERE n <= :tasks",
        dict(zip(columns, row)) | {"tasks": tasks},
    )


def counts(folder: str) -> dict[str, int]:
    """How many rows each table of the ledger has: what was measured did the same work."""
    connection = apsw.Connection(f"{folder}/board.db")
    found = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("event", "ended_lease")
    }
    connection.close()
    return found


# Where the time goes.


def profile(work, lines: int = 22) -> list[str]:
    """The functions with the most time of their own, while `work` ran once."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).sort_stats("tottime").print_stats(lines)
    text = re.sub(r"(/\S*/(?:src|site-packages|python3[^/]*)/)", "", out.getvalue())
    kept = [line.rstrip()[:100] for line in text.splitlines() if line.strip()]
    start = next(i for i, line in enumerate(kept) if "ncalls" in line)
    return [kept[0].strip(), *kept[start:]]
