"""What one command costs: `dibs claim` as a process against the bare interpreter, in the same run.

The machine is shared and noisy: runs alternate, and the minimum of each counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 30
DIBS = str(Path(sys.executable).parent / "dibs")
NOT_INHERITED = ("PYTHONDONTWRITEBYTECODE", "DIBS_AGENT", "DIBS_SESSION", "DIBS_BOARD")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}


def seconds(command: list[str], folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    who = ["--agent", "bench", "--session", "s1"]
    commands = {
        "python -I -c pass": [sys.executable, "-I", "-c", "pass"],
        "python -I -c 'import apsw, argparse, json'": [sys.executable, "-I", "-c", "import apsw, argparse, json"],
        "dibs claim": [DIBS, "claim", "T-1", *who],
        "dibs show": [DIBS, "show", "T-1"],
        "dibs list": [DIBS, "list"],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for setup in (["init"], ["add", "work", *who]):
            seconds([DIBS, *setup], folder)
        fastest = dict.fromkeys(commands, float("inf"))
        for _ in range(RUNS):
            for name, command in commands.items():
                fastest[name] = min(fastest[name], seconds(command, folder))
    floor = fastest["python -I -c pass"]
    print(f"minimum of {RUNS} alternating runs, Python {sys.version.split()[0]}")
    for name, best in fastest.items():
        print(f"{name:<46} {best * 1000:7.1f} ms  {best / floor:5.2f} times the bare interpreter")


if __name__ == "__main__":
    main()
