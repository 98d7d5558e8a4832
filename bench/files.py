"""Item files: a first sync, one with nothing changed, a claim among many items, a large graph.

The floor is what nobody can save: to read every file once. Times are of this process, on one board.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from measure import Figure, Report, agent, scratch, show, spread

from dibs.backlogs.backlog import Backlog
from dibs.backlogs.discover import dialects_at
from dibs.backlogs.sync import sync
from dibs.board.locate import Place
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.opening import create_at

ITEMS = 10_000
LINES = 50_000
TASKS = 1_000
ROUNDS = 5
GOAL = 0.1

ITEM = """\
---
id: KB-TSK-{number:05}
uid: 019ba3c4-6d62-7ca6-b194-{number:012}
type: Task
title: "Some work, number {number}"
state: Proposed
priority: P{priority}
tags: ["one", "two"]
created: 2026-01-10
updated: 2026-01-10
owner: null
links:
  relates: []
  blocked_by: [{after}]
---

# Context

Why this is to be done.

# Goal

What is true when it is done.

# Approach

How it is done.

# Acceptance Criteria

- What is looked at.

# Risks / Dependencies

None.

# Worklog

2026-01-10 01:18 [agent=codex] Created.
"""


def measure(items: int = ITEMS, lines: int = LINES, rounds: int = ROUNDS) -> Report:
    with scratch() as folder:
        results, figures = of_items(f"{folder}/items", items, rounds)
        more = of_graph(f"{folder}/graph", lines, rounds)
        last = of_tasks_json(f"{folder}/tasks", min(TASKS, items), rounds)
    return Report("Item files", figures, [*results, "", *more, "", *last])


def timed(act) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def place(folder: str):
    """A board and the backlog beside it."""
    board, _ = create_at(Place(f"{folder}/.dibs"))
    board.backlog = Backlog(folder, f"{folder}/.dibs", dialects_at(folder))
    return board


def write_items(folder: str, items: int) -> None:
    for number in range(1, items + 1):
        bucket = Path(folder, "_kano/backlog/items/task", f"{number // 100:04}")
        bucket.mkdir(parents=True, exist_ok=True)
        after = f"KB-TSK-{number - 500:05}" if number > 500 and number % 4 == 0 else ""
        text = ITEM.format(number=number, priority=number % 4, after=after)
        (bucket / f"KB-TSK-{number:05}_some-work.md").write_text(text)
    old = time.time() - 60
    for path in Path(folder).rglob("*.md"):
        os.utime(path, (old, old))


def read_all(folder: str) -> None:
    for path in Path(folder, "_kano").rglob("*.md"):
        path.read_bytes()


def of_items(folder: str, items: int, rounds: int):
    os.makedirs(folder)
    write_items(folder, items)
    time.sleep(2.1)  # a file that has just changed is read again: those here are older
    board, who = place(folder), agent("worker", folder)
    backlog = board.backlog
    floor = [timed(lambda: read_all(folder)) for _ in range(rounds)]
    cold = timed(lambda: sync(backlog, board, who))
    quiet = [timed(lambda: sync(backlog, board, who)) for _ in range(rounds)]
    claims = []
    for number in range(1, rounds + 1):
        key = TaskKey(f"KB-TSK-{number:05}")
        claims.append(timed(lambda key=key: board.execute(who, c.Claim(key))))
    after = [timed(lambda: sync(backlog, board, who))]
    times = cold / min(floor)
    lines = [
        f"{items} items: a first sync takes {cold:.1f} s, {times:.1f} times reading every file",
        f"with nothing changed: {min(quiet) * 1e3:.0f} ms; spread {spread([t * 1e3 for t in quiet])} ms",
        f"a claim among them, with its file written: {min(claims) * 1e3:.0f} ms",
        f"the sync after {rounds} claims: {min(after) * 1e3:.0f} ms",
    ]
    share = min(quiet) / cold
    shares = spread([each / cold for each in quiet], "{:.3f}")
    name = "a sync with nothing changed, of the first"
    return lines, [Figure(name, f"{share:.3f}", f"at most {GOAL}", share <= GOAL, shares)]


def of_graph(folder: str, lines: int, rounds: int) -> list[str]:
    path = Path(folder, ".wg/graph.jsonl")
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        for number in range(lines):
            after = [f"t{number - 500}"] if number >= 500 else []
            task = {"kind": "task", "id": f"t{number}", "title": f"do {number}", "status": "open"}
            file.write(json.dumps({**task, "after": after, "log": []}) + "\n")
    floor = min(timed(lambda: [json.loads(one) for one in path.open()]) for _ in range(rounds))
    return of_one_file(folder, path, f"a graph of {lines} lines", floor, ("t3", "t4"), rounds)


def of_tasks_json(folder: str, tasks: int, rounds: int) -> list[str]:
    path = Path(folder, ".taskmaster/tasks/tasks.json")
    path.parent.mkdir(parents=True)
    listed = [
        {
            "id": number,
            "title": f"do {number}",
            "status": "pending",
            "dependencies": [number - 100] if number > 100 else [],
            "subtasks": [],
        }
        for number in range(1, tasks + 1)
    ]
    path.write_text(json.dumps({"master": {"tasks": listed}}, indent=2))
    floor = min(timed(lambda: json.loads(path.read_text())) for _ in range(rounds))
    return of_one_file(
        folder, path, f"tasks.json of {tasks} tasks", floor, ("TM-3", "TM-4"), rounds
    )


def of_one_file(
    folder: str, path: Path, name: str, floor: float, keys: tuple[str, ...], rounds: int
) -> list[str]:
    """A file that has all items: first sync, nothing changed, a claim."""
    os.utime(path, (time.time() - 60,) * 2)
    time.sleep(2.1)
    board, who = place(folder), agent("worker", folder)
    backlog = board.backlog
    cold = timed(lambda: sync(backlog, board, who))
    quiet = min(timed(lambda: sync(backlog, board, who)) for _ in range(rounds))
    claims = [timed(lambda key=key: board.execute(who, c.Claim(TaskKey(key)))) for key in keys]
    return [
        f"{name}: a first sync takes {cold:.1f} s, {cold / floor:.1f} times decoding it",
        f"with nothing changed: {quiet * 1e3:.0f} ms, {quiet / cold:.3f} of it",
        f"a claim in it, with its line written: {min(claims) * 1e3:.0f} ms",
    ]


if __name__ == "__main__":
    show(measure())
