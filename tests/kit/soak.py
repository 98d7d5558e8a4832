"""How long, how often, and with which seed: shorter under `make quick`, longer under `make soak`."""

from __future__ import annotations

import os

MINUTES = float(os.environ.get("DIBS_SOAK_MINUTES") or 0)
"""How long a soak lasts; 0 in the default suite."""

QUICK = bool(os.environ.get("DIBS_QUICK"))
"""Whether only what is quick runs: see the rules in `conftest.py`."""

FEW = 10
"""Examples of a property under `make quick`."""


def examples(number: int) -> int:
    """How many examples of a property are tried, where the usual hundred are too few or too many."""
    return min(number, FEW) if QUICK else number


def seconds(short: float, share: float) -> float:
    """How long a test goes on: `short` by default, its share of the minutes of a soak."""
    return max(short, MINUTES * 60 * share)


def times(short: int, share: float, each: float) -> int:
    """How often, for a test whose rounds take about `each` seconds."""
    return max(short, round(MINUTES * 60 * share / each))


def seed() -> int:
    """`DIBS_SEED` if it is set, else always the same one. A test prints it: it is shown when the test fails."""
    chosen = int(os.environ.get("DIBS_SEED") or 1)
    print(f"DIBS_SEED={chosen}")
    return chosen
