"""Intake: many requests at once (`dibs intake --from FILE`), and one by one (the library).

The floor is what nobody can save: the same rows, with plain INSERTs into the same tables, in the same
journal mode, in as many transactions: one for each batch, or one for each request. Floor and intake take
turns; the best of the rounds counts. One by one fewer are taken in, and the time is told for each of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import apsw
from measure import Figure, Report, scratch, show, spread

from dibs import open_board
from dibs.board.locate import Place
from dibs.cli.intake import BATCH
from dibs.opening import create_at

REQUESTS = 100_000
SINGLE = 2_000
ROUNDS = 3
TABLES = ("actor", "actor_name", "session", "task", "event")


def measure(requests: int = REQUESTS, single: int = SINGLE, rounds: int = ROUNDS) -> Report:
    bulk, bulk_floor, one, one_floor = [], [], [], []
    for _ in range(rounds):
        with scratch() as folder:
            bulk.append(in_bulk(folder, requests))
            bulk_floor.append(floor(folder, BATCH))
        with scratch() as folder:
            one.append(one_by_one(folder, single))
            one_floor.append(floor(folder, 1))
    lines = [
        f"best of {rounds} rounds; {requests:,} requests in batches of {BATCH}, {single:,} one by one",
        f"{'':<12} {'requests':>8} {'seconds':>8} {'floor s':>8} {'us each':>8} {'floor us':>8}",
        row("in bulk", requests, min(bulk), min(bulk_floor)),
        row("one by one", single, min(one), min(one_floor)),
    ]
    figures = [
        figure(f"intake of {requests:,} requests in bulk / plain INSERTs", bulk, bulk_floor),
        figure(f"intake one by one (of {single:,}) / plain INSERTs", one, one_floor),
    ]
    return Report("Intake", figures, lines)


def row(name: str, requests: int, took: float, least: float) -> str:
    each, floor_each = took / requests * 1e6, least / requests * 1e6
    return f"{name:<12} {requests:>8,} {took:8.2f} {least:8.2f} {each:8.0f} {floor_each:8.0f}"


def figure(name: str, took: list[float], least: list[float]) -> Figure:
    ratios = [time_ / floor_ for time_, floor_ in zip(took, least)]
    return Figure(name, f"{min(took) / min(least):.2f}", "", None, f"rounds {spread(ratios)}")


def request_of(number: int) -> dict[str, str]:
    return {
        "channel": "mail",
        "ref": f"<{number}.{number * 7919 % 1_000_003}@example.org>",
        "title": f"Some request, number {number}",
        "url": f"https://example.org/{number}",
    }


def in_bulk(folder: str, requests: int) -> float:
    """The whole command, from its start to its end."""
    create_at(Place(f"{folder}/board"))[0].store.close()
    with open(f"{folder}/requests.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(request_of(number)) + "\n" for number in range(requests))
    os.sync()
    command = [sys.executable, "-m", "dibs", "intake", "--from", f"{folder}/requests.jsonl"]
    around = os.environ | {"DIBS_BOARD": f"{folder}/board"}
    began = time.perf_counter()
    subprocess.run(
        [*command, "--agent", "bench", "--session", "s1"],
        cwd=folder, env=around, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    elapsed = time.perf_counter() - began
    check(folder, requests)
    return elapsed


def one_by_one(folder: str, requests: int) -> float:
    """The calls alone, on a board that is open."""
    create_at(Place(f"{folder}/board"))[0].store.close()
    around = {"DIBS_BOARD": f"{folder}/board"}
    with open_board(folder, agent="bench", session="s1", environment=around) as board:
        os.sync()
        began = time.perf_counter()
        for number in range(requests):
            board.intake(**request_of(number))
        elapsed = time.perf_counter() - began
    check(folder, requests)
    return elapsed


def check(folder: str, requests: int) -> None:
    """What was measured did its work."""
    connection = apsw.Connection(f"{folder}/board/board.db")
    [(found,)] = connection.execute("SELECT count(*) FROM task")
    connection.close()
    assert found == requests, f"{found} tasks of {requests}"


def floor(folder: str, batch: int) -> float:
    """The rows that the intake wrote, into a new file with the same tables."""
    create_at(Place(f"{folder}/floor"))[0].store.close()
    connection = apsw.Connection(f"{folder}/floor/board.db")
    connection.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
    source = apsw.Connection(f"{folder}/board/board.db")
    rows = {table: read(source, table) for table in TABLES}
    source.close()
    for table in ("actor", "actor_name", "session"):
        connection.executemany(*rows[table])
    tasks, events = rows["task"], rows["event"]
    own = len(events[1]) - len(tasks[1])  # the first events are the board's own
    connection.executemany(events[0], events[1][:own])
    os.sync()
    began = time.perf_counter()
    for first in range(0, len(tasks[1]), batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(tasks[0], tasks[1][first : first + batch])
        connection.executemany(events[0], events[1][own + first : own + first + batch])
        connection.execute("COMMIT")
    elapsed = time.perf_counter() - began
    connection.close()
    return elapsed


def read(source: apsw.Connection, table: str) -> tuple[str, list[tuple]]:
    """An INSERT, and what it is to insert."""
    columns = [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]
    named, marks = ", ".join(columns), ", ".join("?" * len(columns))
    found = source.execute(f"SELECT {named} FROM {table}").fetchall()
    return f"INSERT INTO {table} ({named}) VALUES ({marks})", found


if __name__ == "__main__":
    small = "--quick" in sys.argv[1:]
    show(measure(5_000, 200, 1) if small else measure())
