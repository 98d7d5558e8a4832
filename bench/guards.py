"""What a guard costs: in front of a commit of 10, 1,000 and 10,000 paths, with 1,000 live leases around.

As a process, as git runs it, against the bare interpreter in the same run; minima of turns count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from measure import Figure, Report, scratch, show, spread

from dibs.board.identity import Identity
from dibs.board.locate import locate
from dibs.domain import commands as c
from dibs.domain.model import Session, Terms
from dibs.harness_table import KNOWN
from dibs.opening import open_at

RUNS = 20
LEASES = 1_000
PATHS = (10, 1_000, 10_000)
BARE = "python -I -c pass"
MARKS = {mark for harness in KNOWN for mark in harness.marks}
HIDDEN = {*MARKS, "PYTHONDONTWRITEBYTECODE", "DIBS_BOARD", "DIBS_URL", "DIBS_TASK"}
AROUND = {name: value for name, value in os.environ.items() if name not in HIDDEN} | {
    "DIBS_AGENT": "bench", "DIBS_SESSION": "s0", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "B", "GIT_AUTHOR_EMAIL": "b@example.org",
    "GIT_COMMITTER_NAME": "B", "GIT_COMMITTER_EMAIL": "b@example.org",
}  # fmt: skip


def run(folder: str, *command: str, event: str | None = None) -> float:
    began = time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=AROUND,
        input=event,
        text=True,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def made(folder: str, leases: int) -> None:
    """A repository with guards, and a board on which each of many sessions holds a scope of its own."""
    dibs = str(Path(sys.executable).parent / "dibs")
    run(folder, "git", "init", "-q", "-b", "main")
    run(folder, "git", "commit", "-q", "--allow-empty", "-m", "first")
    run(folder, dibs, "init")
    run(folder, dibs, "setup", "git")
    board = open_at(locate(folder, {}))
    for number in range(leases):
        scope = ("src/mine/**",) if number == 0 else (f"src/{number}/**", f"docs/{number}/*.md")
        session = Session(0, "", "bench")
        who = Identity("bench", False, f"s{number}", place=session)
        added = board.execute(who, c.Add(terms=Terms("work"), scope=scope))
        board.execute(who, c.Claim(added.task.key))
    board.store.close()


def stage(folder: str, paths: int) -> None:
    done = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input="x\n", cwd=folder, env=AROUND,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    blob = done.stdout.strip()
    lines = "".join(f"100644 {blob}\tsrc/mine/{n % 100}/{n}.py\n" for n in range(paths))
    run(folder, "git", "reset", "-q")
    run(folder, "git", "update-index", "--index-info", event=lines)


def fastest(folder: str, runs: int) -> dict[str, float]:
    commands = {
        BARE: (sys.executable, "-I", "-c", "pass"),
        "git diff --cached": ("git", "diff", "--cached", "--raw", "-z"),
        "the hook": (str(Path(folder) / ".git/hooks/pre-commit"),),
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(runs):
        for name, command in commands.items():
            best[name] = min(best[name], run(folder, *command))
    return best


def measure(runs: int = RUNS, paths: tuple[int, ...] = PATHS, repeats: int = 3) -> Report:
    lines = [f"minimum of {runs} alternating runs, {repeats} times; {LEASES} live leases"]
    figures = []
    with scratch() as folder:
        made(folder, LEASES)
        for number in paths:
            stage(folder, number)
            found = [fastest(folder, runs) for _ in range(repeats)]
            best = {name: min(each[name] for each in found) for name in found[0]}
            ratios = [each["the hook"] / each[BARE] for each in found]
            ratio = best["the hook"] / best[BARE]
            summary = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in best.items())
            lines.append(f"{number:>6} staged paths: {summary}")
            figures.append(
                Figure(
                    f"pre-commit with {number:,} paths / `{BARE}`",
                    f"{ratio:.2f}",
                    "",
                    None,
                    f"repeats {spread(ratios)}",
                )
            )
    return Report("The guard in front of a commit, as a process", figures, lines)


if __name__ == "__main__":
    show(measure(repeats=1))
