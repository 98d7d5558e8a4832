"""How long, and with which seed: the short form by default, the long one under `make soak`."""

from __future__ import annotations

import os
import random

MINUTES = float(os.environ.get("DIBS_SOAK_MINUTES") or 0)
"""How long a soak lasts; 0 in the default suite."""


def seconds(short: float, share: float) -> float:
    """How long a test goes on: `short` by default, its share of the minutes of a soak."""
    return max(short, MINUTES * 60 * share)


def times(short: int, share: float, each: float) -> int:
    """How often, for a test whose rounds take about `each` seconds."""
    return max(short, round(MINUTES * 60 * share / each))


def seed() -> int:
    """`DIBS_SEED` if it is set; where a change is judged always the same; else a new one.

    A test prints it: it is shown when the test fails.
    """
    stated = os.environ.get("DIBS_SEED") or ("1" if os.environ.get("CI") else "")
    chosen = int(stated) if stated else random.randrange(2**32)
    print(f"DIBS_SEED={chosen}")
    return chosen
