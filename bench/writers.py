"""2, 8, 32 and 64 processes that write without a pause: nobody starves, nothing fails.

Each process claims and releases a task of its own, over and over. What is timed is the whole
command: its turn in the queue, its transaction, its commit. The ledger is verified afterwards.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time

from measure import Figure, Report, agent, open_board, scratch, show

from dibs.board.locate import Place
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import Terms
from dibs.opening import create_at

WRITERS = (2, 8, 32, 64)
SECONDS = 10.0
GOAL = 0.25
HEAD = (
    " writers  commits/s   median     99 %  longest  fewest     mean  fewest/mean  errors  ledger"
)


def hammer(folder: str, number: int, seconds: float, begin, results) -> None:
    """One process: opened after the fork, begun with all others."""
    board, who, key = open_board(folder), agent(f"w{number}", folder), f"T-{number}"
    times, errors = [], []
    commands = (c.Claim(key), c.Release(key))
    begin.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        try:
            board.execute(who, commands[len(times) % 2])
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts
            errors.append(f"{type(error).__name__}: {error}")
        times.append(time.perf_counter() - began)
    board.store.close()
    results.put((times, errors))


def run(writers: int, seconds: float) -> tuple[list[list[float]], list[str], bool]:
    """The times of each process, the errors of all, and whether the ledger verifies."""
    fork = multiprocessing.get_context("fork")
    with scratch() as folder:
        board, _ = create_at(Place(f"{folder}/board"))
        for _ in range(writers):
            board.execute(agent("bench", folder), c.Add(Terms("work")))
        board.store.close()
        begin, results = fork.Barrier(writers), fork.Queue()
        processes = [
            fork.Process(
                target=hammer, args=(f"{folder}/board", number + 1, seconds, begin, results)
            )
            for number in range(writers)
        ]
        for process in processes:
            process.start()
        found = [results.get(timeout=seconds + 120) for _ in processes]
        for process in processes:
            process.join()
        board = open_board(f"{folder}/board")
        sound = not verify(board).faults
        board.store.close()
    return [times for times, _ in found], [each for _, errors in found for each in errors], sound


def measure(
    writers: tuple[int, ...] = WRITERS, seconds: float = SECONDS, repeats: int = 3
) -> Report:
    lines = [
        f"{seconds:g} s each, {repeats} repeats; times in ms; commits of the process with the fewest",
        HEAD,
    ]
    shares: dict[int, list[float]] = {number: [] for number in writers}
    longest: dict[int, list[float]] = {number: [] for number in writers}
    errors: list[str] = []
    sound = True
    for _ in range(repeats):
        for number in writers:
            times, failed, verified = run(number, seconds)
            every = sorted(each for own in times for each in own)
            commits = [len(own) for own in times]
            share = min(commits) / statistics.mean(commits)
            shares[number].append(share)
            longest[number].append(every[-1])
            errors += failed
            sound = sound and verified
            lines.append(
                f"{number:>8} {len(every) / seconds:10.0f} {statistics.median(every) * 1000:8.1f} "
                f"{every[int(len(every) * 0.99)] * 1000:8.1f} {every[-1] * 1000:8.0f} "
                f"{min(commits):7} {statistics.mean(commits):8.1f} {share:12.2f} {len(failed):7} "
                f"{'sound' if verified else 'BROKEN':>7}"
            )
    lines += [f"error: {each}" for each in sorted(set(errors))[:10]]
    return Report("Many writers", figures(shares, longest, errors, repeats, sound=sound), lines)


def figures(shares, longest, errors: list[str], repeats: int, *, sound: bool) -> list[Figure]:
    worst = min(min(each) for each in shares.values())
    each_share = ", ".join(f"{number}: {min(each):.2f}" for number, each in shares.items())
    slowest = max(max(each) for each in longest.values())
    each_wait = ", ".join(
        f"{number}: {min(each):.2f}-{max(each):.2f} s" for number, each in longest.items()
    )
    return [
        Figure(
            "fewest commits of a writer / mean, the worst of all runs",
            f"{worst:.2f}",
            f"at least {GOAL}",
            worst >= GOAL,
            f"lowest of {repeats} for {each_share}",
        ),
        Figure(
            "longest wait of a writer",
            f"{slowest:.2f} s",
            "below the 5 s after which it gives up",
            slowest < 5,
            each_wait,
        ),
        Figure("errors of all writers", str(len(errors)), "none", not errors, f"{repeats} repeats"),
        Figure(
            "the ledger after each run",
            "sound" if sound else "BROKEN",
            "sound",
            sound,
            f"{repeats} repeats",
        ),
    ]


if __name__ == "__main__":
    show(measure())
