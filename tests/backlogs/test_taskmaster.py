"""task-master's tasks.json: which tasks are offered, and how little of the file is changed."""

from __future__ import annotations

import json
import random

import pytest

from dibs.backlogs.report import Options
from dibs.domain import commands as c
from kit.backlogs import difference, ready, told
from kit.soak import seed

FILE = ".taskmaster/tasks/tasks.json"
ALL = Options(everything=True)


def task(number, status="pending", after=(), subtasks=(), **more) -> dict:
    return {
        "id": number, "title": f"Task {number}", "description": "ü", "status": status,
        "dependencies": list(after), "priority": "medium", "subtasks": list(subtasks),
    } | more  # fmt: skip


def put(yard, *tasks: dict, **tags: list[dict]) -> str:
    lists = {"master": {"tasks": list(tasks), "metadata": {"created": "2026-01-01"}}}
    lists |= {tag: {"tasks": each} for tag, each in tags.items()}
    return yard.put(FILE, json.dumps(lists, indent=2, ensure_ascii=False) + "\n")


def test_tasks_wait_for_tasks_whether_ids_are_numbers_or_texts(yard):
    put(
        yard,
        task(1, "done"),
        task("2", after=[1]),
        task(3, after=["2"]),
        task(4, "deferred"),
        task(5, "odd"),
    )
    report = yard.sync()
    assert ready(yard) == ["TM-2"]
    assert "its status 'odd' is unknown" in told(report)


def test_subtasks_wait_for_siblings_and_for_what_their_task_waits_for(yard):
    inner = [
        {"id": 1, "title": "a", "status": "done"},
        {"id": 2, "title": "b", "status": "pending", "dependencies": [1]},
        {"id": 3, "title": "c", "status": "pending", "dependencies": ["22.2"]},
    ]
    put(
        yard,
        task(1),
        task(22, subtasks=inner),
        task(23, after=[1], subtasks=[{"id": 1, "title": "d", "status": "pending"}]),
    )
    yard.sync()
    assert ready(yard) == ["TM-1", "TM-22.2"]
    codex = yard.agent("codex", "s1")
    for key in ("TM-22.2", "TM-22.3", "TM-1"):
        codex.do(c.Claim(key))
        codex.do(c.Complete(key))
    assert ready(yard) == ["TM-22", "TM-23.1"]


def test_each_tag_has_its_own_tasks(yard):
    put(yard, task(1), feature=[task(1, after=[2]), task(2)])
    yard.sync()
    assert ready(yard) == ["TM-1", "feature-TM-2"]


def test_a_file_without_tags_is_read(yard):
    yard.put(FILE, json.dumps({"tasks": [task(1)], "metadata": {}}))
    yard.sync()
    assert ready(yard) == ["TM-1"]


LIFE = (
    c.Claim("TM-22.1"), c.Block("TM-22.1", reason="r"), c.Unblock("TM-22.1"), c.Claim("TM-22.1"),
    c.Release("TM-22.1"),
)  # fmt: skip


@pytest.mark.parametrize("indent", [2, 4, None])
def test_after_a_life_only_the_pointer_is_left(yard, indent):
    inner = [
        {"id": 1, "title": "a", "status": "pending"},
        {"id": 2, "title": "b", "status": "pending"},
    ]
    put(yard, task(1), task(22, subtasks=inner))
    path = yard.put(
        FILE, json.dumps(json.loads(yard.text(FILE)), indent=indent, ensure_ascii=False)
    )
    before = yard.text(path)
    yard.sync()
    codex = yard.agent("codex", "s1")
    for command in LIFE:
        codex.do(command)
    after = json.loads(yard.text(path))
    pointer = after["master"]["tasks"][1]["subtasks"][0].pop("dibs")
    assert pointer.endswith(" 1.2")
    assert after == json.loads(before)
    if indent:
        assert len(difference(before, yard.text(path))) == 3, "a comma, and the pointer"
    assert yard.sync(ALL).problems == ()
    assert yard.faults() == ()


def test_a_claim_changes_the_status_and_names_the_holder(yard):
    path = put(yard, task(1))
    yard.sync()
    yard.agent("codex", "s1").do(c.Claim("TM-1"))
    [only] = json.loads(yard.text(path))["master"]["tasks"]
    assert only["status"] == "in-progress"
    assert "codex s1 2h" in only["dibs"]
    assert only["lease_expires_at"].endswith("Z")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"master": {"tasks": 7}}',
        '{"master": {"tasks": [{"id": "x"}, 7]}}',
        "[" * 5000,
    ],
)
def test_what_is_no_list_of_tasks_offers_nothing(yard, text):
    yard.put(FILE, text)
    assert yard.sync().added == 0
    assert yard.text(FILE) == text


def offered(tasks: list[dict]) -> set[str]:
    """task-master's rule, read anew: pending, and every dependency done; subtasks of what is free to begin."""
    by_id = {str(one["id"]): one for one in tasks}

    def over(number: str) -> bool:
        head, _, rest = number.partition(".")
        found = (
            by_id[head]
            if not rest
            else next(s for s in by_id[head]["subtasks"] if str(s["id"]) == rest)
        )
        return found["status"] == "done"

    found = set()
    for one in tasks:
        free = all(over(str(d)) for d in one["dependencies"])
        for sub in one["subtasks"]:
            siblings = (f"{one['id']}.{d}" for d in sub.get("dependencies", ()))
            if sub["status"] == "pending" and free and all(map(over, siblings)):
                found.add(f"TM-{one['id']}.{sub['id']}")
        if (
            one["status"] == "pending"
            and free
            and all(sub["status"] == "done" for sub in one["subtasks"])
        ):
            found.add(f"TM-{one['id']}")
    return found


@pytest.mark.parametrize("number", range(4))
def test_the_ready_list_is_that_of_the_tool(quick, number):
    chance, tasks = random.Random(f"{seed()}-{number}"), []
    states = ["pending", "pending", "done", "deferred", "review", "blocked"]
    for n in range(1, 61):
        subs = [
            {"id": s, "title": "s", "status": chance.choice(states), "dependencies": [s - 1] if s > 1 and chance.random() < 0.5 else []}
            for s in range(1, chance.randrange(4))
        ]  # fmt: skip
        after = (
            [chance.choice([int, str])(chance.randrange(1, n))]
            if n > 1 and chance.random() < 0.5
            else []
        )
        tasks.append(task(n, chance.choice(states), after, subs))
    yard = quick()
    put(yard, *tasks)
    yard.sync()
    assert set(ready(yard)) == offered(tasks)
    yard.close()
