"""A timesheet of 1,000,000 stints by actor and week, against one SQL aggregation over the same rows.

The same rows are the stints that count: those that ended with a lease and the others, without those that
were amended. The aggregation groups them by actor and week and sums lengths, and that is all: it cuts no
stint at the border of a week, and knows no union. The timesheet does both, in a named time zone with its
changes of clock. Beside it stand an aggregation of the largest table alone, and one that finds the union
too (with window functions).
"""

from __future__ import annotations

import subprocess
import sys
import time

import apsw
from measure import Figure, Report, agent, make_board, open_board, scratch, show, spread

from dibs.board import stints
from dibs.domain import commands as c
from dibs.domain.values import DAY, HOUR
from dibs.timesheets import zones
from dibs.timesheets.query import SheetQuery

STINTS = 1_000_000
TASKS = 1_000
ACTORS = 50
ZONE = "Europe/Berlin"
GOAL = 3.0
SINCE = 1_767_222_000_000_000  # 2026 begins, in Berlin
YEAR = 365 * DAY
WEEK = 7 * DAY

FILLED = f"""
WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < :stints - 1)
INSERT INTO ended_lease SELECT
    1, 1 + n % {TASKS}, 1, 2 + n / {TASKS}, 1 + n % {ACTORS}, 's1', t, t, t + {HOUR}, 0, t + {HOUR},
    'complete', 0, 0, 1000 + n, t, t + {HOUR} * (1 + n % 7) / 4, NULL, NULL, ''
FROM (SELECT n, {SINCE} + (n * 7919 % :stints) * ({YEAR} / :stints) AS t FROM number)
"""  # fmt: skip

PLAIN = f"""
SELECT actor, stint_started / {WEEK}, count(*), sum(stint_ended - stint_started)
FROM ended_lease WHERE board = 1 AND stint_ended >= :since AND stint_started < :until GROUP BY 1, 2
"""  # fmt: skip

WITH_UNION = f"""
SELECT actor, started / {WEEK}, count(*), sum(ended - started),
    sum(max(0, ended - max(started, coalesce(reach, 0))))
FROM (SELECT actor, stint_started AS started, stint_ended AS ended,
        max(stint_ended) OVER (PARTITION BY actor ORDER BY stint_started, stint_ended
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
    FROM ended_lease WHERE board = 1 AND stint_ended >= :since AND stint_started < :until)
GROUP BY 1, 2
"""  # fmt: skip


def over_the_same_rows(folder: str) -> str:
    """An aggregation of what the timesheet itself reads."""
    board = open_board(folder)
    with board.read():
        text = board.store.queries["stints"]  # to the letter what is measured
    board.store.close()
    inner = text[text.index("FROM (") + len("FROM (") : text.rindex(") AS stints")]
    return f"SELECT actor, started / {WEEK}, count(*), sum(ended - started) FROM ({inner}) GROUP BY 1, 2"


def filled(folder: str, count: int) -> None:
    make_board(folder, TASKS)
    board = open_board(folder)
    for number in range(ACTORS):
        board.execute(agent(f"a{number}", folder), c.Note("T-1", note="here"))
    path = board.store.path
    board.store.close()
    connection = apsw.Connection(path)
    connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    connection.execute(FILLED, {"stints": count})
    connection.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def aggregated(folder: str, query: str) -> float:
    connection = apsw.Connection(f"{folder}/board.db", flags=apsw.SQLITE_OPEN_READONLY)
    began = time.perf_counter()
    known = {
        "board": 1,
        "since": SINCE,
        "until": SINCE + YEAR,
        "now": SINCE + YEAR,
        "idle_since": 0,
    }
    rows = connection.execute(query, known).fetchall()
    took = time.perf_counter() - began
    assert len(rows) >= ACTORS
    connection.close()
    return took


def added_up(folder: str) -> float:
    board = open_board(folder)
    query = SheetQuery(SINCE, SINCE + YEAR, ZONE, ("actor", "week"))
    began = time.perf_counter()
    sheet = stints.summed(board, query, zones.local_days(ZONE))
    took = time.perf_counter() - began
    assert len(sheet.rows) >= ACTORS
    board.store.close()
    return took


def memory(folder: str) -> int:
    """The most that a process of its own had in memory, in kibibytes."""
    code = (
        f"import sys; sys.path.insert(0, {str(sys.path[0])!r})\n"
        f"import resource, timesheet\n"
        f"before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"timesheet.added_up({folder!r})\n"
        f"print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(ran.stdout)


def measure(count: int = STINTS, rounds: int = 5) -> Report:
    sheets, same, plain, union = [], [], [], []
    with scratch() as folder:
        few, many = f"{folder}/few", f"{folder}/many"
        filled(few, count // 10)
        filled(many, count)
        rows = over_the_same_rows(many)
        for _ in range(rounds):
            sheets.append(added_up(many))
            same.append(aggregated(many, rows))
            plain.append(aggregated(many, PLAIN))
            union.append(aggregated(many, WITH_UNION))
        grows = memory(many) - memory(few)
    ratios = [one / other for one, other in zip(sheets, same)]
    ratio = min(sheets) / min(same)
    lines = [
        f"best of {rounds} rounds over {count:,} stints of {ACTORS} actors in a year, by actor and week",
        f"timesheet {min(sheets):.2f} s, one aggregation {min(same):.2f} s",
        f"one of the largest table alone {min(plain):.2f} s, one with a union {min(union):.2f} s",
        f"peak memory: {grows / 1024:+.1f} MiB with ten times as many stints",
    ]
    figures = [
        Figure("a timesheet, against one aggregation over the same rows", f"{ratio:.2f}",
               f"at most {GOAL}", ratio <= GOAL, spread(ratios)),
        Figure("a timesheet, against one of the largest table", f"{min(sheets) / min(plain):.2f}", "",
               None, spread([one / other for one, other in zip(sheets, plain)])),
        Figure("a timesheet, against one with a union", f"{min(sheets) / min(union):.2f}", "", None,
               spread([one / other for one, other in zip(sheets, union)])),
    ]  # fmt: skip
    return Report("timesheet", figures, lines)


if __name__ == "__main__":
    show(measure())
