"""What one command costs: `dibs claim` as a process against the bare interpreter, in the same run.

The machine is shared and noisy: runs alternate, and the minimum of each counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from measure import Figure, Report, scratch, show, spread

RUNS = 30
GOAL = 3.0
DIBS = str(Path(sys.executable).parent / "dibs")
WHO = ["--agent", "bench", "--session", "s1"]
NOT_INHERITED = ("PYTHONDONTWRITEBYTECODE", "DIBS_AGENT", "DIBS_SESSION", "DIBS_BOARD")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}

BARE = "python -I -c pass"
MODULES = "import apsw, argparse, json"
COMMANDS = {
    BARE: [sys.executable, "-I", "-c", "pass"],
    f"python -I -c '{MODULES}'": [sys.executable, "-I", "-c", MODULES],
    "dibs claim": [DIBS, "claim", "T-1", *WHO],
    "dibs show": [DIBS, "show", "T-1"],
    "dibs list": [DIBS, "list"],
}


def seconds(command: list[str], folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def fastest(folder: str, runs: int) -> dict[str, float]:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(runs):
        for name, command in COMMANDS.items():
            best[name] = min(best[name], seconds(command, folder))
    return best


def measure(runs: int = RUNS, repeats: int = 3) -> Report:
    with scratch() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for setup in (["init"], ["add", "work", *WHO]):
            seconds([DIBS, *setup], folder)
        found = [fastest(folder, runs) for _ in range(repeats)]
        best = {name: min(each[name] for each in found) for name in COMMANDS}
        ratios = [each["dibs claim"] / each[BARE] for each in found]
        ratio = best["dibs claim"] / best[BARE]
        lines = [
            f"minimum of {runs} alternating runs, {repeats} times; Python {sys.version.split()[0]}"
        ]
        for name in COMMANDS:
            times = best[name] / best[BARE]
            each = spread([one[name] / one[BARE] for one in found])
            lines.append(
                f"{name:<46} {best[name] * 1000:6.1f} ms {times:6.2f} times  (repeats {each})"
            )
        if ratio > GOAL:
            lines += ["", "the slowest imports of dibs claim, us alone | with what they import:"]
            lines += imports(folder)
    figure = Figure(
        f"`dibs claim` / `{BARE}`",
        f"{ratio:.2f}",
        f"at most {GOAL:g}",
        ratio <= GOAL,
        f"repeats {spread(ratios)}",
    )
    return Report("One command as a process", [figure], lines)


def imports(folder: str, lines: int = 24) -> list[str]:
    command = [sys.executable, "-X", "importtime", DIBS, "claim", "T-1", *WHO]
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    rows = [line.removeprefix("import time:") for line in done.stderr.splitlines()[1:]]
    return sorted(rows, key=lambda line: -int(line.split("|")[1]))[:lines]


if __name__ == "__main__":
    show(measure(repeats=1))
