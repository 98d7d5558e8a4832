"""What is offered after an import, against each tool's own rule, read anew here."""

from __future__ import annotations

import json
import random

import pytest

from dibs.backlogs.importers.formats import FORMATS
from dibs.backlogs.importers.importing import import_items
from dibs.domain import commands as c
from dibs.domain.values import iso
from kit.backlogs import ready
from kit.soak import seed

PAST, FUTURE = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
SIZE = 60
SEEDS = range(6)


def brought_in(yard, format_: str, elements: list[dict], *, update: bool = False, text: str = ""):
    data = (text or json.dumps(elements)).encode()
    items, _ = FORMATS[format_](data, "export", yard.now())
    return import_items(yard.board, yard.person("ana").identity, items, update=update)


# beads.


def issues(chance: random.Random) -> list[dict]:
    found = []
    for n in range(SIZE):
        issue = {
            "id": f"x-{n}", "title": f"Issue {n}", "priority": chance.randrange(5),
            "status": chance.choice(["open"] * 6 + ["closed", "closed", "blocked", "deferred", "hooked", "pinned", "tombstone"]),
            "issue_type": chance.choice(["task"] * 6 + ["bug", "epic", "agent", "message", "gate", "molecule"]),
            "dependencies": [
                {"issue_id": f"x-{n}", "depends_on_id": f"x-{chance.randrange(n)}", "type": type_}
                for type_ in chance.sample(["blocks", "waits-for", "conditional-blocks", "related", "discovered-from"], 2)
                if n and chance.random() < 0.25
            ],
        }  # fmt: skip
        if n and chance.random() < 0.3:
            issue["dependencies"].append(
                {
                    "issue_id": f"x-{n}",
                    "depends_on_id": f"x-{chance.randrange(n)}",
                    "type": "parent-child",
                }
            )
        if chance.random() < 0.1:
            issue["ephemeral"] = True
        if chance.random() < 0.2:
            issue["defer_until"] = chance.choice([PAST, FUTURE])
        found.append(issue)
    return found


def bd_ready(issues: list[dict]) -> set[str]:
    """`bd ready`: open work that nothing open blocks, nor a parent of it."""
    by_id = {issue["id"]: issue for issue in issues}

    def own_work(issue: dict) -> bool:
        return issue["issue_type"] not in (
            "agent",
            "message",
            "gate",
            "molecule",
        ) and not issue.get("ephemeral")

    def edges(issue: dict, *types: str) -> list[dict]:
        return [
            by_id[one["depends_on_id"]] for one in issue["dependencies"] if one["type"] in types
        ]

    def is_blocked(issue: dict) -> bool:
        waits = edges(issue, "blocks", "waits-for", "conditional-blocks")
        if any(one["status"] not in ("closed", "tombstone") for one in waits):
            return True
        return any(holds_back(parent) for parent in edges(issue, "parent-child"))

    def holds_back(issue: dict) -> bool:
        idle = issue["status"] in ("blocked", "deferred", "hooked", "pinned")
        return (
            idle or not own_work(issue) or issue.get("defer_until") == FUTURE or is_blocked(issue)
        )

    return {
        issue["id"]
        for issue in issues
        if issue["status"] == "open"
        and own_work(issue)
        and issue.get("defer_until") != FUTURE
        and not is_blocked(issue)
    }


@pytest.mark.parametrize("number", SEEDS)
def test_beads_are_offered_as_bd_ready_lists_them(quick, number):
    yard = quick()
    made = issues(random.Random(f"{seed()}-{number}"))
    brought_in(yard, "beads", made)
    assert set(ready(yard)) == bd_ready(made)
    yard.close()


# GitHub.


@pytest.mark.parametrize("number", SEEDS)
def test_issues_are_offered_that_are_open_and_not_blocked(quick, number):
    yard, chance = quick(), random.Random(f"{seed()}-{number}")
    made = []
    for n in range(1, SIZE + 1):
        issue = {
            "number": n,
            "title": f"Issue {n}",
            "state": chance.choice(["OPEN", "OPEN", "CLOSED"]),
        }
        if issue["state"] == "CLOSED":
            issue["stateReason"] = chance.choice(["COMPLETED", "NOT_PLANNED", "DUPLICATE"])
        if chance.random() < 0.2:
            issue["pull_request"] = {"url": "u"}
        if n > 1 and chance.random() < 0.4:
            issue["blockedBy"] = {"nodes": [{"number": chance.randrange(1, n)}]}
        made.append(issue)
    brought_in(yard, "github", made)
    closed = {one["number"] for one in made if one["state"] == "CLOSED" or "pull_request" in one}
    wanted = set()
    for issue in made:
        blockers = {node["number"] for node in issue.get("blockedBy", {}).get("nodes", ())}
        if issue["state"] == "OPEN" and "pull_request" not in issue and blockers <= closed:
            wanted.add(f"GH-{issue['number']}")
    assert set(ready(yard)) == wanted
    yard.close()


# Taskwarrior.


@pytest.mark.parametrize("number", SEEDS)
def test_tasks_are_offered_that_taskwarrior_calls_ready(quick, number):
    yard, chance = quick(), random.Random(f"{seed()}-{number}")
    made = []
    for n in range(SIZE):
        task = {
            "uuid": f"{n:08x}-0000-4000-8000-000000000000", "description": f"Task {n}",
            "status": chance.choice(["pending"] * 5 + ["waiting", "completed", "deleted", "recurring"]),
        }  # fmt: skip
        if task["status"] == "waiting" or chance.random() < 0.1:
            task["wait"] = "20990101T000000Z"
        if chance.random() < 0.2:
            task["scheduled"] = chance.choice(["20990101T000000Z", "20200101T000000Z"])
        if n and chance.random() < 0.4:
            task["depends"] = [made[chance.randrange(n)]["uuid"]]
        made.append(task)
    brought_in(yard, "taskwarrior", made)
    by_id = {task["uuid"]: task for task in made}
    wanted = {
        f"TW-{task['uuid'][:8]}"
        for task in made
        if task["status"] == "pending"
        and "wait" not in task
        and not task.get("scheduled", "2020").startswith("2099")
        and all(
            by_id[one]["status"] in ("completed", "deleted", "recurring")
            for one in task.get("depends", ())
        )
    }
    assert set(ready(yard)) == wanted
    yard.close()


# Once more, and as people print it.


def test_update_closes_what_was_closed_there_and_says_so(yard):
    made = [
        {"id": f"x-{n}", "title": f"T{n}", "status": "open", "issue_type": "task"} for n in range(4)
    ]
    brought_in(yard, "beads", made)
    yard.agent("codex", "s1").do(c.Claim("x-3"))
    made[0] |= {"status": "closed"}
    made[1] |= {"title": "Better", "status": "tombstone"}
    made[3] |= {"status": "closed"}
    done = brought_in(yard, "beads", made)
    assert ready(yard) == ["x-0", "x-1", "x-2"]
    assert "the task stays as it is" in str(done.problems[0])
    done = brought_in(yard, "beads", made, update=True)
    assert [yard.task(f"x-{n}").state for n in range(4)] == [
        "complete",
        "dropped",
        "open",
        "in_progress",
    ]
    assert [str(one).partition(": ")[2] for one in done.problems] == [
        "x-0 differs in state: complete; it is changed",
        "x-1 differs in title, state: dropped; it is changed",
        "x-3 differs in state: complete; somebody holds it, and it stays as it is",
    ]
    assert brought_in(yard, "beads", made[:3], update=True).problems == ()
    assert yard.faults() == ()


def test_what_was_deferred_there_is_offered_when_its_time_has_come(yard):
    made = [
        {
            "id": "x-1",
            "title": "T",
            "status": "open",
            "issue_type": "task",
            "defer_until": iso(yard.now() + 60_000_000),
        }
    ]
    brought_in(yard, "beads", made)
    assert ready(yard) == []
    yard.advance(61)
    brought_in(yard, "beads", made, update=True)
    assert ready(yard) == ["x-1"]


@pytest.mark.parametrize("form", ["list", "objects", "one"])
def test_pretty_printed_json_is_json(yard, form):
    made = [
        {"id": f"x-{n}", "title": f"T{n}", "status": "open"}
        for n in range(1 if form == "one" else 3)
    ]
    pretty = [json.dumps(one, indent=2) for one in made]
    text = json.dumps(made, indent=2) if form == "list" else "\n".join(pretty)
    assert brought_in(yard, "beads", [], text=text).added == len(made)
