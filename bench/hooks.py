"""What the edit guard costs: `dibs hook claude` before an edit, as a process against the bare interpreter.

The session holds one task of a board with some others, and renews it with every call, also with one
that is denied. The renewal is seen by all at once, and not waited for until it is on the disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from measure import Figure, Report, scratch, show, spread
from start import BARE, DIBS, ENVIRONMENT

RUNS = 30
GOAL = 2.5
OTHERS = 20
"""Tasks that other sessions hold, each with a scope of its own."""
HOOK = "dibs hook claude, before an edit"
DENIED = "the same, of what another session holds"
NO_BOARD = "the same where there is no board"
MARKS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID")


def run(command: list[str], folder: str, call: str = "") -> float:
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in MARKS}
    began = time.perf_counter()
    subprocess.run(
        command, cwd=folder, env=environment, input=call.encode(), stdout=subprocess.DEVNULL,
        check=True,
    )  # fmt: skip
    return time.perf_counter() - began


def board_in(folder: str) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    run([DIBS, "init"], folder)
    for number in range(1, OTHERS + 2):
        run([DIBS, "add", "work", "--scope", f"src/part{number}/**", "--as", "ana"], folder)
        who = ["--agent", "claude", "--session", "s1" if number == 1 else f"other{number}"]
        run([DIBS, "claim", f"T-{number}", *who], folder)


def event(folder: str, part: str = "part1") -> str:
    path = str(Path(folder) / "src" / part / "file.py")
    return json.dumps(
        {
            "session_id": "s1",
            "transcript_path": "/tmp/transcript.jsonl",
            "cwd": folder,
            "hook_event_name": "PreToolUse",
            "tool_name": "Edit",
            "tool_input": {"file_path": path, "old_string": "a" * 2000, "new_string": "b" * 2000},
        }
    )


def fastest(folder: str, empty: str, runs: int) -> dict[str, float]:
    bare, hook = [sys.executable, "-I", "-c", "pass"], [DIBS, "hook", "claude"]
    cases = {
        BARE: (bare, folder, ""),
        HOOK: (hook, folder, event(folder)),
        DENIED: (hook, folder, event(folder, "part2")),
        NO_BOARD: (hook, empty, event(empty)),
    }
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(runs):
        for name, (command, where, call) in cases.items():
            best[name] = min(best[name], run(command, where, call))
    return best


def measure(runs: int = RUNS, repeats: int = 3) -> Report:
    with scratch() as folder, scratch() as empty:
        board_in(folder)
        found = [fastest(folder, empty, runs) for _ in range(repeats)]
    best = {name: min(each[name] for each in found) for name in found[0]}
    ratio = best[HOOK] / best[BARE]
    lines = [f"minimum of {runs} alternating runs, {repeats} times; {OTHERS} other scopes are held"]
    for name, seconds in best.items():
        each = spread([one[name] / one[BARE] for one in found])
        times = seconds / best[BARE]
        lines.append(f"{name:<46} {seconds * 1000:6.1f} ms {times:6.2f} times  (repeats {each})")
    figure = Figure(
        f"`{HOOK}` / `{BARE}`",
        f"{ratio:.2f}",
        f"at most {GOAL:g}",
        ratio <= GOAL,
        f"repeats {spread([one[HOOK] / one[BARE] for one in found])}",
    )
    return Report("The edit guard as a process", [figure], lines)


if __name__ == "__main__":
    show(measure(repeats=1))
