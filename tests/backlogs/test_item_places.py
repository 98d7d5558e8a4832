"""Where an item is: everybody who begins to work on it is told its file, and its line in a graph."""

from __future__ import annotations

import json

import pytest

A = ("--agent", "codex", "--session", "s1")
ITEM = ".claude/work-queue/pending/WRK-7.md"
GRAPH = ".wg/graph.jsonl"


@pytest.fixture
def queue(repo):
    path = repo.folder / ITEM
    path.parent.mkdir(parents=True)
    path.write_text("---\nid: WRK-7\ntitle: T\nstatus: pending\n---\nBody\n")
    (repo.folder / ".wg").mkdir()
    tasks = [{"kind": "task", "id": name, "title": name, "status": "open"} for name in ("a", "b")]
    (repo.folder / GRAPH).write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    repo.ok("sync", "--as", "ana")
    return repo


def test_claim_next_show_and_prime_name_the_file(queue):
    assert f"  item {ITEM}" in queue.ok("claim", "WRK-7", *A).out
    assert ITEM in queue.ok("show", "WRK-7").out
    assert ITEM in queue.ok("prime", *A).out
    queue.ok("release", "WRK-7", *A)
    assert "item " in queue.ok("next", *A).out


def test_a_task_of_a_graph_is_named_with_its_line(queue):
    assert f"item {GRAPH}:2" in queue.ok("claim", "b", *A).out


@pytest.mark.parametrize(("key", "path", "line"), [("WRK-7", ITEM, None), ("b", GRAPH, 2)])
def test_json_names_file_and_line(queue, key, path, line):
    for verb in (("claim", key, *A), ("show", key)):
        item = queue.json(*verb)["task"]["item"]
        assert (item["path"], item["line"]) == (path, line)


def test_a_command_under_a_task_gets_the_file(queue):
    told = queue.ok("run", "WRK-7", *A, "--", "sh", "-c", 'echo "at $DIBS_ITEM"')
    assert f"at {queue.folder}/{ITEM}" in told.out
    told = queue.ok("run", "b", *A, "--", "sh", "-c", 'echo "at $DIBS_ITEM"')
    assert f"at {queue.folder}/{GRAPH}:2" in told.out


def test_a_task_without_an_item_has_no_file(queue):
    queue.ok("add", "One", "--as", "ana")
    assert "item" not in queue.ok("claim", "T-1", *A).out
    told = queue.ok("run", "T-1", *A, "--", "sh", "-c", 'echo "at [$DIBS_ITEM]"')
    assert "at []" in told.out
