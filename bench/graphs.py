"""Graphs of tasks: `next` on boards of any size, barred scopes, dependants, reset, an idle tick.

In each graph task n waits for task n - 500: five hundred are ready at the start, and each that is
completed makes one more ready. Times are of the board's own functions in this process.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress

import apsw
from measure import Figure, Report, agent, make_board, open_board, scratch, show, spread

from dibs.board.identity import Identity
from dibs.board.matching import matches
from dibs.board.settings import Agent
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.workers.next import next_task
from dibs.workers.sweep import sweep

SIZES = (1_000, 100_000, 1_000_000)
WIDTH = 500
ROUNDS = 6
CYCLES = 60
GOAL = 1.3
BARRED = 10_000
CLOSURE = 10_000
DEPENDANTS = 1_000


def measure(sizes: tuple[int, ...] = SIZES, rounds: int = ROUNDS) -> Report:
    with scratch() as folder:
        lines, figures = [], []
        for part in (of_next, of_barred, of_dependants, of_reset, of_tick):
            results, found = part(folder, sizes, rounds)
            lines += ["", *results] if lines else results
            figures += found
    return Report("Graphs of tasks", figures, lines)


def graph(folder: str, tasks: int, width: int = WIDTH) -> None:
    """A board in which each task waits for the one `width` before it."""
    make_board(folder, tasks)
    change(
        folder,
        f"INSERT INTO dependency SELECT 1, id, id - {width} FROM task WHERE id > {width}",
        f"UPDATE task SET waits_on = 1 WHERE id > {width}",
    )


def change(folder: str, *statements: str) -> None:
    connection = apsw.Connection(f"{folder}/board.db")
    connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    for statement in statements:
        connection.execute(statement)
    connection.execute("COMMIT; PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def timed(act) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def of_next(folder: str, sizes: tuple[int, ...], rounds: int):
    boards = {}
    for size in sizes:
        graph(f"{folder}/next-{size}", size)
        boards[size] = open_board(f"{folder}/next-{size}")
    os.sync()
    who = agent("worker", folder)
    medians = {size: [] for size in sizes}
    for turn in range(rounds + 1):
        times = {size: [] for size in sizes}
        for _ in range(CYCLES):
            for size, board in boards.items():
                began = time.perf_counter()
                outcome = next_task(board, who, c.Next())
                times[size].append(time.perf_counter() - began)
                board.execute(who, c.Complete(outcome.task.key))
        for size in sizes if turn else ():  # the first round warms
            medians[size].append(statistics.median(times[size]))
    for board in boards.values():
        board.store.close()
    best = {size: min(each) for size, each in medians.items()}
    ratio = max(best.values()) / min(best.values())
    lines = [
        f"next, with its sweep: best of {rounds} rounds of {CYCLES}, the median of each round",
        f"{'tasks':>10} {'next ms':>9} {'rounds: lowest / median / highest':>36}",
    ]
    for size in sizes:
        rounds_ = spread([each * 1000 for each in medians[size]], "{:.3f}")
        lines.append(f"{size:>10,} {best[size] * 1000:9.3f} {rounds_:>36}")
    turns = [max(turn) / min(turn) for turn in zip(*medians.values())]
    name = f"next at {', '.join(f'{size:,}' for size in sizes)} tasks, slowest / fastest"
    figure = Figure(
        name, f"{ratio:.2f}", f"at most {GOAL}", ratio <= GOAL, f"rounds {spread(turns)}"
    )
    return lines, [figure]


def of_barred(folder: str, _sizes, rounds: int):
    """All ready tasks are barred by a scope that somebody holds; each has a scope of its own."""
    place = f"{folder}/barred"
    make_board(place, BARRED + 1)
    change(
        place,
        """UPDATE task SET scope = '["src/' || id || '/**"]' WHERE id > 1""",
        """UPDATE task SET scope = '["src/**"]' WHERE id = 1""",
    )
    board = open_board(place)
    board.execute(agent("holder", folder), c.Claim(TaskKey("T-1")))
    who = agent("worker", folder)

    def barred() -> None:
        with suppress(Refused):
            board.execute(who, c.Next())
            raise AssertionError("something was offered")

    times = [timed(barred) for _ in range(rounds + 1)][1:]
    board.store.close()
    low = min(times)
    line = f"next where {BARRED:,} ready tasks are all barred by a held scope: {low * 1000:.1f} ms"
    figure = Figure(
        f"next, {BARRED:,} tasks barred by scopes, per task",
        f"{low / BARRED * 1e6:.1f} us",
        "",
        None,
        spread([each / BARRED * 1e6 for each in times], "{:.1f}"),
    )
    return [line], [figure]


def of_dependants(folder: str, _sizes, rounds: int):
    """Completing a task that one waits for, and one that a thousand wait for."""
    place = f"{folder}/dependants"
    make_board(place, 3 * DEPENDANTS * (rounds + 1))
    board, who = open_board(place), agent("worker", folder)
    free = DEPENDANTS * (rounds + 1) * 2
    times = {1: [], DEPENDANTS: []}
    for turn in range(rounds + 1):
        for count, found in times.items():
            cause = turn * 2 + (1 if count == 1 else 2)
            first = free + 1
            change(
                place,
                f"INSERT INTO dependency SELECT 1, id, {cause} FROM task "
                f"WHERE id >= {first} ORDER BY id LIMIT {count}",
                f"UPDATE task SET waits_on = 1 WHERE id IN "
                f"(SELECT task FROM dependency WHERE on_task = {cause})",
            )
            key = TaskKey(f"T-{cause}")
            board.execute(who, c.Claim(key))
            found.append(timed(lambda key=key: board.execute(who, c.Complete(key))))
            change(place, f"DELETE FROM dependency WHERE on_task = {cause}")
    board.store.close()
    one, many = (min(times[count][1:]) for count in times)
    line = (
        f"complete: with 1 dependant {one * 1000:.2f} ms, with {DEPENDANTS:,} {many * 1000:.2f} ms"
    )
    figure = Figure(
        f"complete, {DEPENDANTS:,} dependants / 1",
        f"{many / one:.1f}",
        "",
        None,
        spread([b / a for a, b in zip(*(times[count][1:] for count in times))], "{:.1f}"),
    )
    return [line], [figure]


def of_reset(folder: str, _sizes, _rounds):
    """One transaction for a task and ten thousand that depend on it, all of them complete."""
    place = f"{folder}/reset"
    graph(place, CLOSURE, width=1)
    change(place, "UPDATE task SET state = 'complete', waits_on = 0")
    board = open_board(place)
    ana = Identity("ana", person=True, session="")
    command = c.Reset((TaskKey("T-1"),), redo=True, yes=True)
    took = []
    for _ in range(3):
        took.append(timed(lambda board=board: board.execute(ana, command)))
        board.store.close()
        change(place, "UPDATE task SET state = 'complete', waits_on = 0")
        board = open_board(place)
    board.store.close()
    low = min(took)
    line = f"reset of a closure of {CLOSURE:,} tasks in one transaction: {low:.2f} s"
    figure = Figure(
        f"reset of {CLOSURE:,} tasks, per task",
        f"{low / CLOSURE * 1e6:.0f} us",
        "",
        None,
        spread([each / CLOSURE * 1e6 for each in took], "{:.0f}"),
    )
    return [line], [figure]


def of_tick(folder: str, sizes: tuple[int, ...], rounds: int):
    """What a dispatcher does when nothing has changed: looks who is dead, and what could be started."""
    found = {}
    for size in (1_000, 100_000) if len(sizes) > 1 else (1_000,):
        place = f"{folder}/next-{size}" if size in sizes else f"{folder}/tick-{size}"
        if size not in sizes:
            graph(place, size)
        board, who = open_board(place), agent("worker", folder)
        for _ in range(3):
            next_task(board, who, c.Next())
        agents = (Agent("worker", ("true",), max=3),)

        def tick(board=board, who=who, agents=agents) -> None:
            assert sweep(board, who) is None
            assert matches(board, agents, 10).starts == ()

        found[size] = [timed(tick) for _ in range(rounds * 10)]
        board.store.close()
    best = {size: min(times) for size, times in found.items()}
    lines = [
        f"an idle tick on {size:,} tasks: {best[size] * 1000:.2f} ms, nothing written"
        for size in found
    ]
    ratio = max(best.values()) / min(best.values())
    name = f"an idle tick at {', '.join(f'{size:,}' for size in found)} tasks, slowest / fastest"
    return lines, [Figure(name, f"{ratio:.2f}", "", None, "minimum of all")]


if __name__ == "__main__":
    show(measure())
