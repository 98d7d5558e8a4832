"""What scopes cost: the slowest pair of a corpus of awkward patterns, and a claim beside 1,000 live leases.

A claim compares its scope with every distinct scope that is held. Beside it is a claim of a task
without a scope on the same board, in turns: that one compares nothing.
"""

from __future__ import annotations

import itertools
import time

from measure import Figure, Report, agent, open_board, scratch, show, spread

from dibs.board.locate import Place
from dibs.domain import commands as c
from dibs.domain.model import Terms
from dibs.domain.scopes.overlap import overlap
from dibs.opening import create_at

HELD = 1_000

AWKWARD = (
    "*a" * 120 + "b",
    "*?" * 120 + "b",
    "*[a-z]" * 40 + "c",
    "**/*a/" * 15 + "b",
    "**/" * 16 + "b",
    "*/" * 100 + "c",
    "[!a-z]*" * 36,
    "?" * 255,
    "a/" * 127 + "a",
    "**/*.py",
    "src/**/test_*_[0-9]*.py",
    "\u00e9*" * 100,
)


def fastest(act, runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        began = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - began)
    return best


def pairs(runs: int) -> tuple[float, tuple[str, str]]:
    timed = {
        (one, other): fastest(lambda one=one, other=other: overlap((one,), (other,)), runs)
        for one, other in itertools.combinations_with_replacement(AWKWARD, 2)
    }
    worst = max(timed, key=timed.get)
    return timed[worst], worst


def claims(folder: str, held: int, runs: int) -> tuple[float, float]:
    """Seconds of a claim with a scope and of one without, beside so many live leases."""
    create_at(Place(folder))[0].store.close()
    board = open_board(folder)
    founder = agent("founder", folder)
    for number in range(held):
        scope = (f"src/part{number}/**", f"tests/test_{number}_*.py")
        key = board.execute(founder, c.Add(Terms("held"), scope)).task.key
        board.execute(agent(f"a{number}", folder), c.Claim(key))
    scoped = board.execute(founder, c.Add(Terms("scoped"), ("docs/*.md", "lib/**/README"))).task.key
    plain = board.execute(founder, c.Add(Terms("plain"))).task.key

    def seconds(key: str) -> float:
        began = time.perf_counter()
        board.execute(founder, c.Claim(key))
        took = time.perf_counter() - began
        board.execute(founder, c.Release(key))
        return took

    found = [(seconds(scoped), seconds(plain)) for _ in range(runs)]
    board.store.close()
    return min(one for one, _ in found), min(other for _, other in found)


def measure(held: int = HELD, runs: int = 20, repeats: int = 3) -> Report:
    worst, (one, other) = pairs(runs)
    ratios, lines = [], []
    with scratch() as folder:
        for repeat in range(repeats):
            scoped, plain = claims(f"{folder}/{repeat}", held, runs)
            ratios.append(scoped / plain)
    lines.append(f"a claim beside {held:,} live leases: {scoped * 1000:.2f} ms with a scope")
    lines.append(f"and {plain * 1000:.2f} ms without one, which compares nothing")
    lines.append(f"slowest pair: {one[:30]!r}... and {other[:30]!r}...")
    ratio = min(ratios)
    return Report(
        "scopes",
        [
            Figure("the slowest pair of awkward patterns", f"{worst * 1e6:.0f} us", "", None, ""),
            Figure(
                f"a claim with a scope beside {held:,} leases, against one without",
                f"{ratio:.2f}",
                "",
                None,
                spread(ratios),
            ),
        ],
        lines,
    )


if __name__ == "__main__":
    show(measure())
