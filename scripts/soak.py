"""Tries what the suite does not: new examples of every property, then the long forms of the fault tests.

`make soak MINUTES=10 [SEED=...]`. Half of the time each. The seed is printed; the same seed tries the same
examples again. A counterexample becomes an example in the suite.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(minutes: float, seed: int) -> int:
    print(f"make soak MINUTES={minutes:g} SEED={seed}", flush=True)
    end = time.monotonic() + minutes * 30
    found, rounds = 0, 0
    while not found and (rounds == 0 or time.monotonic() < end):
        found = explored(minutes, seed + rounds)
        rounds += 1
    print(f"{rounds} rounds of examples, seeds {seed} to {seed + rounds - 1}", flush=True)
    return found or pytest(minutes / 2, seed, "tests/faults", "tests/simulation", "-rP")


def explored(minutes: float, seed: int) -> int:
    """Every test of a property once, with new examples."""
    print(f"seed {seed}", flush=True)
    return pytest(minutes, seed, "-m", "hypothesis", f"--hypothesis-seed={seed}")


def pytest(minutes: float, seed: int, *words: str) -> int:
    around = os.environ | {"DIBS_SOAK_MINUTES": f"{minutes:g}", "DIBS_SEED": str(seed)}
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, cwd=ROOT, env=around, check=False).returncode
    if done:
        shown = f"DIBS_SOAK_MINUTES={minutes:g} DIBS_SEED={seed} pytest {' '.join(words)}"
        print(f"to see it again: {shown}", flush=True)
    return done


if __name__ == "__main__":
    stated = sys.argv[2] if len(sys.argv) > 2 else ""
    sys.exit(main(float(sys.argv[1]), int(stated) if stated else random.randrange(2**32)))
