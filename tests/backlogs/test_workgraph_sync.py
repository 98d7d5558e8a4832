"""A workgraph as a backlog: its claims heal, its tasks are imported, claimed and finished."""

from __future__ import annotations

import json

import pytest

from dibs.backlogs import files
from dibs.backlogs.report import summary
from dibs.domain import commands as c

GRAPH = ".wg/graph.jsonl"


def line(id_: str, **fields) -> str:
    return json.dumps({"kind": "task", "id": id_, "title": f"do {id_}", "status": "open", **fields})


def graph(yard, *lines: str) -> str:
    return yard.put(GRAPH, "".join(f"{one}\n" for one in lines))


def fields(yard, id_: str) -> dict:
    found = [json.loads(one) for one in yard.text(GRAPH).splitlines() if one.startswith("{")]
    return next(one for one in found if one.get("id") == id_)


def test_a_claim_and_a_completion_are_written_to_the_line_of_the_task_alone(yard):
    others = ["# a comment", "", line("b", extra=[1.0, 1e3]), '{"kind": "resource", "id": "r"}']
    graph(yard, others[0], others[1], line("a", unknown={"x": 1}), others[2], others[3])
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim("a")
    held = fields(yard, "a")
    assert (held["status"], held["assigned"], held["unknown"]) == ("in-progress", "codex", {"x": 1})
    codex.do(c.Complete("a"))
    done = fields(yard, "a")
    assert done["status"] == "done"
    assert len(done["log"]) == 2
    lines = yard.text(GRAPH).splitlines()
    assert [lines[0], lines[1], lines[3], lines[4]] == others


def test_a_graph_may_be_larger_than_any_item_file(yard):
    """Its lines are many; that of one task is read again when it is claimed."""
    graph(yard, line("a"), line("b", description="x" * files.LIMIT))
    yard.sync()
    yard.agent("codex", "s1").claim("a")
    assert fields(yard, "a")["assigned"] == "codex"


def test_old_graphs_with_stale_claims_heal_with_one_summary_line(yard):
    """Also a claim on an open task, whose agent died before it began."""
    graph(
        yard,
        *(line(f"t{n}", status="in-progress", assigned=f"agent-{n}") for n in range(14)),
        line("early", assigned="agent-99"),
        line("done", status="done", assigned="agent-1"),
    )
    report = yard.sync()
    assert len(report.healed) == 15
    assert "15 stale claims healed: t0 (agent-0)" in summary(report)
    assert "\n" not in summary(report)
    assert fields(yard, "t3")["status"] == "open"
    assert "assigned" not in fields(yard, "t3")
    assert "assigned" not in fields(yard, "early")
    assert fields(yard, "done")["assigned"] == "agent-1"
    assert summary(yard.sync()) == ""
    assert yard.agent().do(c.Next()).task.state == "in_progress"


def test_a_claim_whose_agent_lives_is_respected(yard):
    import os

    registry = {"agents": {"agent-1": {"id": "agent-1", "pid": os.getpid(), "status": "working"}}}
    yard.put(".wg/service/registry.json", json.dumps(registry))
    graph(yard, line("a", status="in-progress", assigned="agent-1"))
    assert yard.sync().healed == ()
    assert yard.agent().refused(c.Claim("a")) == "locked_in_file"
    assert yard.agent().refused(c.Next()) == "nothing_ready"
    with yard.store.read() as tx:
        assert tx.tasks_ready(10) == []
    registry["agents"]["agent-1"]["status"] = "dead"
    yard.put(".wg/service/registry.json", json.dumps(registry))
    assert len(yard.sync().healed) == 1
    assert yard.agent().claim("a").task.state == "in_progress"


def test_a_torn_registry_heals_nothing_and_lets_nobody_in(yard):
    """Unreadable is not absent: whose claim it is may be at work."""
    graph(yard, line("a", status="in-progress", assigned="agent-1"), line("b", assigned="agent-2"))
    before = yard.text(GRAPH)
    yard.put(".wg/service/registry.json", '{"agents": {"agent-1": {"pi')
    report = yard.sync()
    assert (report.healed, yard.text(GRAPH)) == ((), before)
    assert [problem.path for problem in report.problems if problem.warns] == [
        ".wg/service/registry.json"
    ]
    for id_ in ("a", "b"):
        assert yard.agent().refused(c.Claim(id_)) == "locked_in_file"
    yard.put(".wg/service/registry.json", '{"agents": {}}')
    assert len(yard.sync().healed) == 2
    assert yard.agent().claim("a").task.state == "in_progress"


def test_dependencies_of_both_directions_are_kept(yard):
    graph(yard, line("a", before=["b"]), line("b"), line("c", after=["a"], blocked_by=["b"]))
    yard.sync()
    assert (yard.task("b").waits_on, yard.task("c").waits_on) == (1, 2)


def test_a_bad_line_does_not_stop_the_rest_and_strict_stops(yard):
    from dibs.backlogs.report import Options
    from dibs.domain.refusals import Refused

    graph(yard, line("a"), "{broken", line("b"))
    report = yard.sync()
    assert report.added == 2
    assert any(problem.line == 2 for problem in report.problems)
    with pytest.raises(Refused) as caught:
        yard.sync(Options(strict=True, everything=True))
    assert "2" in str(caught.value)


def test_an_id_that_cannot_be_a_key_gets_one(yard):
    graph(yard, line(".assign-x"), line("42"))
    yard.sync()
    assert yard.task("assign-x").origin_ask_ref == ".assign-x"
    assert yard.task("I-42").origin_ask_ref == "42"


def test_reset_clears_the_claim_and_what_depends_on_it_starts_again(yard):
    """Reset and retry of workgraph left claims behind, and dispatchers skipped the tasks."""
    graph(yard, line("up"), line("down", after=["up"]))
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim("up")
    codex.do(c.Complete("up"))
    codex.claim("down")
    yard.person("ana").do(c.Reset(("up",), yes=True, reason="once more"))
    for id_ in ("up", "down"):
        assert fields(yard, id_)["status"] == "open"
        assert "assigned" not in fields(yard, id_)
    assert yard.agent("x", "s2").do(c.Next()).task.key == "up"


def test_the_older_folder_is_found_too(yard):
    yard.put(".workgraph/graph.jsonl", line("a") + "\n")
    yard.sync()
    assert yard.task("a").channel == "workgraph"


def test_of_two_folders_the_newer_name_counts_and_that_is_said_once(yard):
    graph(yard, line("a"))
    yard.put(".workgraph/graph.jsonl", line("b") + "\n")
    problems = [str(problem) for problem in yard.sync().problems]
    assert problems == [
        ".workgraph/graph.jsonl: .wg has a graph.jsonl too; .wg counts, and this one is not read"
    ]
    with yard.store.read() as tx:
        assert [task.key for task in tx.tasks_of("workgraph")] == ["a"]


def test_an_older_name_that_leads_to_the_newer_is_no_second_graph(yard):
    graph(yard, line("a"))
    (yard.root / ".workgraph").symlink_to(".wg")
    assert yard.sync().problems == ()


def test_who_says_which_folder_counts_is_told_nothing(yard):
    graph(yard, line("a"))
    yard.put(".workgraph/graph.jsonl", line("b") + "\n")
    yard.put("dibs.toml", '[backlogs]\nworkgraph = ".workgraph"\n')
    assert yard.sync().problems == ()
    assert yard.task("b").channel == "workgraph"


def test_the_graphs_own_lock_is_taken_while_it_is_written(yard, monkeypatch):
    """`wg` writes the whole graph under its lock: neither overwrites the other."""
    import fcntl

    from dibs.backlogs import files

    graph(yard, line("a"))
    yard.sync()
    seen = []

    def watched(*given):
        with (yard.root / ".wg/graph.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                seen.append("free")
            except BlockingIOError:
                seen.append("taken")
        return replace(*given)

    replace = files.replace
    monkeypatch.setattr(files, "replace", watched)
    yard.agent("codex", "s1").claim("a")
    assert seen == ["taken"]


def test_who_keeps_the_graphs_lock_is_waited_for(yard):
    """`wg` writes the whole graph under its lock: neither overwrites the other."""
    import fcntl
    import threading

    graph(yard, line("a"))
    yard.sync()
    path = yard.root / ".wg/graph.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        timer = threading.Timer(0.5, lambda: fcntl.flock(lock, fcntl.LOCK_UN))
        timer.start()
        yard.agent("codex", "s1").claim("a")
        timer.join()
    assert fields(yard, "a")["status"] == "in-progress"
