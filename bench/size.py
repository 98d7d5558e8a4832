"""A claim at 1,000, 100,000 and 1,000,000 tasks: it should cost the same.

Each board has its own file. Claims of tasks chosen by chance go to the boards in turn, one by one,
so that a slow moment of the disk meets all of them; the task is released again outside of the
measured time. Of each round the median counts: a minimum would hide pages that had to be read. Of
the rounds the best counts. The first round is not counted: in it the WAL grows to its full size.
"""

from __future__ import annotations

import os
import random
import statistics
import time

from measure import Figure, Report, agent, make_board, open_board, profile, scratch, show, spread

from dibs.domain import commands as c

SIZES = (1_000, 100_000, 1_000_000)
CLAIMS = 150
ROUNDS = 6
GOAL = 1.3


def measure(sizes: tuple[int, ...] = SIZES, rounds: int = ROUNDS) -> Report:
    chance = random.Random(1)
    with scratch() as folder:
        boards = {}
        for size in sizes:
            make_board(f"{folder}/{size}", size)
            boards[size] = open_board(f"{folder}/{size}")
        os.sync()
        who = agent("worker", folder)
        medians = {size: [] for size in sizes}
        for turn in range(rounds + 1):
            times = {size: [] for size in sizes}
            for _ in range(CLAIMS):
                for size, board in boards.items():
                    times[size].append(claim(board, who, f"T-{chance.randint(1, size)}"))
            for size in sizes if turn else ():  # the first round warms
                medians[size].append(statistics.median(times[size]))
        best = {size: min(all_) for size, all_ in medians.items()}
        ratio = max(best.values()) / min(best.values())
        lines = [
            f"best of {rounds} rounds of {CLAIMS} claims on each board, the median of each round",
            f"{'tasks':>10} {'file MB':>8} {'claim ms':>9} {'rounds: lowest / median / highest':>36}",
        ]
        for size in sizes:
            megabytes = os.stat(boards[size].store.path).st_size / 1e6
            of_rounds = spread([each * 1000 for each in medians[size]], "{:.3f}")
            lines.append(f"{size:>10,} {megabytes:8.0f} {best[size] * 1000:9.3f} {of_rounds:>36}")
        if ratio > GOAL:
            lines += why(boards, sizes, who)
        for board in boards.values():
            board.store.close()
    ratios = [max(turn) / min(turn) for turn in zip(*medians.values())]
    figure = Figure(
        f"a claim at {', '.join(f'{size:,}' for size in sizes)} tasks, slowest / fastest",
        f"{ratio:.2f}",
        f"at most {GOAL}",
        ratio <= GOAL,
        f"rounds {spread(ratios)}",
    )
    return Report("Size of the board", [figure], lines)


def claim(board, who, key: str) -> float:
    """The time of a claim; the task is given back afterwards, outside of it."""
    began = time.perf_counter()
    board.execute(who, c.Claim(key))
    elapsed = time.perf_counter() - began
    board.execute(who, c.Release(key))
    return elapsed


def why(boards, sizes: tuple[int, ...], who) -> list[str]:
    """The profile of claims on the smallest and on the largest board."""
    lines = []
    for size in (sizes[0], sizes[-1]):
        keys = [f"T-{number}" for number in random.Random(2).sample(range(1, size), 50)]
        lines += ["", f"50 claims at {size:,} tasks under cProfile:"]
        lines += profile(lambda: [claim(boards[size], who, key) for key in keys], 8)  # noqa: B023
    return lines


if __name__ == "__main__":
    show(measure())
