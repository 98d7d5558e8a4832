"""A workgraph repository: a `.wg/graph.jsonl`, the real command, real processes.

Claims in a graph can outlive their agents: `wg reset` left them on the task, and `wg retry` on everything that
depends on it, so that a dispatcher skipped both without a message.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from dibs.backlogs.formats.workgraph import WRITES
from kit.dispatching import BEGIN, HOLD, Ground
from kit.graphs import node
from kit.repositories import Repo
from kit.running import Running, here, lives, until

GRAPH = ".wg/graph.jsonl"
PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "work-with-workgraph.md"
ANA = ("--as", "ana")
LIVE = ("--agent", "live", "--session", "l1")
OTHER = ("--agent", "other", "--session", "o1")
CLAIM = {
    "status": "in-progress",
    "assigned": "agent-979",
    "started_at": "2026-04-28T22:32:48.975627211+00:00",
}
"""A claim as workgraph writes it."""

CLAIMED = ("assigned", "started_at", "lease_expires_at")
"""All that says in a line that somebody has it."""


@pytest.fixture
def ground(repo):
    with Ground(repo) as ground:
        yield ground


def graph(repo: Repo, *lines: str) -> None:
    (repo.folder / ".wg").mkdir(exist_ok=True)
    (repo.folder / GRAPH).write_text("".join(f"{line}\n" for line in lines))


def edit(repo: Repo, id_: str, **changes) -> None:
    """As `wg` writes it: the whole graph anew. A field that is None is removed."""
    lines = []
    for line in (repo.folder / GRAPH).read_text().splitlines():
        fields = json.loads(line)
        if fields["id"] == id_:
            fields |= changes
            fields = {key: value for key, value in fields.items() if value is not None}
        lines.append(json.dumps(fields))
    graph(repo, *lines)


def fields(repo: Repo, id_: str) -> dict:
    lines = (repo.folder / GRAPH).read_text().splitlines()
    return next(one for one in map(json.loads, lines) if one["id"] == id_)


def is_free(repo: Repo, *ids: str) -> bool:
    """The graph says of none of them that somebody has it."""
    found = [fields(repo, id_) for id_ in ids]
    return all(one["status"] == "open" and not set(CLAIMED) & set(one) for one in found)


def dies(repo: Repo, key: str) -> None:
    """An agent works on it, and is killed as by `kill -9`."""
    with Running(repo, key, f"{here('it')}; sleep 600", "--agent", "dead") as run:
        run.pid_of("it")
        run.send(signal.SIGKILL)
        until(lambda: not lives(run.pid), "a killed process is gone")


# Smoke scenario: the reset path.


def test_reset_leaves_no_stale_claim_and_the_dispatcher_starts_the_task_on_the_next_tick(ground):
    repo = ground.repo
    ground.agents(codex=f"{BEGIN}; {HOLD}")
    graph(repo, node("design"), node("build", after=["design"]))
    repo.ok("sync", *ANA)
    dies(repo, "design")
    assert fields(repo, "design")["assigned"] == "dead"
    repo.ok("reset", "design", "--yes", *ANA)
    assert is_free(repo, "design", "build")
    assert ground.task("design").lease is None
    assert "started design with codex" in ground.once()
    until(lambda: fields(repo, "design").get("assigned") == "codex")
    assert is_free(repo, "build")


def test_what_wg_reset_left_claimed_is_started_on_the_next_tick_too(ground):
    """The bug itself: the status is open again, and the claim of a dead agent is still there."""
    repo = ground.repo
    ground.agents(codex=f"{BEGIN}; {HOLD}")
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    edit(repo, "design", assigned="agent-979")
    output = ground.once()
    assert "1 stale claim healed: design (agent-979)" in output
    assert "started design with codex" in output
    until(lambda: fields(repo, "design").get("assigned") == "codex")


# Smoke scenario: the retry path, with what is downstream.


def test_retry_frees_downstream_tasks_of_long_dead_agents_and_they_spawn(ground):
    repo = ground.repo
    ground.agents(codex=BEGIN)
    down = ["left", "right", "last"]
    graph(
        repo,
        node("up"),
        node("left", after=["up"]),
        node("right", after=["up"]),
        node("last", after=["left"]),
        node("living", after=["up"]),
    )
    repo.ok("sync", *ANA)
    for verb in ("claim", "complete"):
        repo.ok(verb, "up", *LIVE)
    dies(repo, "left")
    dies(repo, "right")
    token = repo.json("claim", "living", *LIVE)["lease"]["token"]
    repo.ok("reset", "up", "--only", *ANA)
    repo.ok("claim", "up", *OTHER)
    repo.ok("fail", "up", "--reason", "worse", *OTHER)
    changes = repo.json("retry", "up", *ANA)["changes"]
    assert {change["key"] for change in changes} == {"up", "left", "right"}
    assert is_free(repo, "up", *down)
    assert fields(repo, "living")["dibs"].split()[1] == token, "a live holder keeps its task"
    ground.start()
    until(lambda: [fields(repo, id_)["status"] for id_ in ("up", *down)] == ["done"] * 4)
    begun = ground.begun()
    assert begun[0] == "up"
    assert begun.index("left") < begun.index("last")
    assert sorted(begun) == sorted(["up", *down])


def test_what_wg_retry_left_claimed_downstream_is_freed_and_spawns(ground):
    """The bug itself: the upstream task is open again, and what waits for it belongs to the dead."""
    repo = ground.repo
    ground.agents(codex=BEGIN)
    graph(repo, node("up", retry_count=1), node("down", after=["up"], **CLAIM))
    ground.start()
    until(lambda: [fields(repo, id_)["status"] for id_ in ("up", "down")] == ["done", "done"])
    assert ground.begun() == ["up", "down"]


# The heartbeat as a safety net.


@pytest.mark.parametrize("how", ["dispatch", "sweep", "next"])
def test_the_heartbeat_frees_what_a_killed_agent_held_whatever_looks_first(ground, how):
    repo = ground.repo
    ground.agents(codex=f"{BEGIN}; {HOLD}")
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    dies(repo, "design")
    if how == "dispatch":
        output = ground.once()
        assert "1 lease ended: design (process gone)" in output
        assert "started design with codex" in output
        until(lambda: fields(repo, "design").get("assigned") == "codex")
    elif how == "sweep":
        assert "design is open again: process gone" in repo.ok("sweep", *ANA).out
        assert is_free(repo, "design")
    else:
        assert repo.json("next", *OTHER)["task"]["key"] == "design"
        assert fields(repo, "design")["assigned"] == "other"
    assert repo.json("log", "--verify")["ok"]


def test_a_live_agents_task_is_not_freed(ground):
    repo = ground.repo
    ground.agents(codex=BEGIN)
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    with Running(repo, "design", f"{here('it')}; sleep 600", *LIVE) as run:
        run.pid_of("it")
        before = (repo.folder / GRAPH).read_text()
        assert ground.once() == ""
        assert repo.ok("sweep", *ANA).out == "nothing to do\n"
        assert (repo.folder / GRAPH).read_text() == before


def test_a_claim_of_an_agent_that_wgs_own_registry_knows_to_live_is_left_alone(ground):
    repo = ground.repo
    ground.agents(codex=BEGIN)
    graph(repo, node("design", **CLAIM))
    service = repo.folder / ".wg" / "service"
    service.mkdir()
    agent = {"id": "agent-979", "pid": os.getpid(), "status": "working"}
    (service / "registry.json").write_text(json.dumps({"agents": {"agent-979": agent}}))
    assert "healed" not in ground.once()
    assert fields(repo, "design")["assigned"] == "agent-979"
    assert repo.fails(4, "claim", "design", *OTHER, "--json").error["code"] == "locked_in_file"
    agent["status"] = "dead"
    (service / "registry.json").write_text(json.dumps({"agents": {"agent-979": agent}}))
    assert "started design with codex" in ground.once()


# Backward compatibility: existing graphs with stale claims.


def test_an_existing_graph_with_stale_claims_heals_on_the_first_tick_with_one_summary_line(ground):
    repo = ground.repo
    ground.agents(codex=f"{BEGIN}; {HOLD}")
    worked = [node(f"t{n}", **CLAIM | {"assigned": f"agent-{n}"}) for n in range(40)]
    early = [node(f"e{n}", assigned=f"agent-{n}") for n in range(10)]
    ended = node("over", status="done", assigned="agent-1", completed_at="2026-04-28T22:42:26Z")
    graph(repo, *worked, *early, ended)
    output = ground.once()
    [line] = [line for line in output.splitlines() if "stale" in line]
    assert "50 stale claims healed: t0 (agent-0), t1 (agent-1)" in line
    assert line.endswith("and 45 more")
    assert output.count("started ") == 2
    started = re.findall(r"^started (\w+) with", output, re.MULTILINE)
    free = [f"t{n}" for n in range(40)] + [f"e{n}" for n in range(10)]
    assert is_free(repo, *(id_ for id_ in free if id_ not in started))
    assert fields(repo, "over")["assigned"] == "agent-1", "who did it is no claim"
    assert "stale" not in ground.once()


def test_a_cycle_in_a_graph_ends_and_is_reported_and_the_dispatcher_goes_on(ground):
    repo = ground.repo
    ground.agents(codex=BEGIN)
    graph(repo, node("a", after=["c"]), node("b", after=["a"]), node("c", after=["b"]))
    problems = repo.json("sync", *ANA)["sync"]["problems"]
    assert len([one for one in problems if "cycle" in one["what"]]) == 1
    ground.start()
    until(lambda: [fields(repo, id_)["status"] for id_ in "abc"] == ["done"] * 3)
    assert sorted(ground.begun()) == ["a", "b", "c"]


def test_a_task_is_not_started_for_ever_and_its_attempts_are_counted_once(ground):
    """`retry_count` in the graph is the number of attempts less one, whoever counts."""
    repo = ground.repo
    graph(repo, node("design", retry_count=1))
    repo.ok("sync", *ANA)
    ground.settings("max_attempts = 3\n")
    counts = []
    for again in (False, True, True):
        if again:
            repo.ok("retry", "design", *ANA)
        repo.ok("claim", "design", *LIVE)
        counts.append((ground.task("design").attempts, fields(repo, "design")["retry_count"]))
        repo.ok("fail", "design", "--reason", "no luck", *LIVE)
    assert counts == [(1, 1), (2, 1), (3, 2)]


# The advice of the status.


def test_status_names_stale_claims_as_a_possibility_and_the_command_that_helps(repo):
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    dies(repo, "design")
    output = repo.ok("status").out
    assert "stale: process gone; dibs sweep" in output
    assert "agent configuration" not in output


# Field changes in graph.jsonl.


def changed(before: dict, after: dict) -> set[str]:
    keys = set(before) | set(after)
    return {key for key in keys if before.get(key) != after.get(key)}


def test_every_field_change_in_the_graph_is_a_documented_one(repo):
    """Through all that can happen to a task, with fields of every other name beside."""
    other = {
        "tags": ["bug"],
        "unknown": {"x": 1.5},
        "model": "opus",
        "verify": None,
        "agent": "3184",
    }
    graph(repo, node("design", **other, retry_count=0, log=[]), node("build", after=["design"]))
    repo.ok("sync", *ANA)
    steps = (
        ("claim", "design", "--reserve", *LIVE), ("start", "design", *LIVE),
        ("renew", "design", "--ttl", "3h", *LIVE), ("handoff", "design", "--to", "live", *LIVE),
        ("claim", "design", *LIVE), ("block", "design", "--reason", "x", *LIVE),
        ("unblock", "design", *LIVE), ("claim", "design", *LIVE), ("release", "design", *LIVE),
        ("claim", "design", *OTHER), ("fail", "design", "--reason", "x", *OTHER),
        ("retry", "design", "--force", "--reason", "x", *ANA), ("claim", "design", *OTHER), ("submit", "design", *OTHER),
        ("accept", "design", *ANA), ("claim", "build", *OTHER), ("complete", "build", *OTHER),
        ("reset", "design", "--redo", "--yes", *ANA), ("drop", "build", "--reason", "x", *ANA),
    )  # fmt: skip
    seen: set[str] = set()
    for step in steps:
        before = [fields(repo, id_) for id_ in ("design", "build")]
        repo.ok(*step)
        after = [fields(repo, id_) for id_ in ("design", "build")]
        for old, new in zip(before, after):
            seen |= changed(old, new)
            assert changed(old, new) <= set(WRITES), step
    assert seen == set(WRITES), "and each of them is written"
    assert {key: fields(repo, "design")[key] for key in other} == other


def test_the_fields_that_the_page_documents_are_those_that_are_written_and_cleared():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {key: when.replace("|", "\\|") for key, when in WRITES.items()}


# What wg itself does to a line: it drops the keys that it does not know.


def test_a_pointer_that_wg_dropped_is_no_release_and_comes_back(repo):
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    token = repo.json("claim", "design", *LIVE)["lease"]["token"]
    full = fields(repo, "design")
    edit(repo, "design", dibs=None, lease_expires_at=None)
    assert repo.fails(4, "claim", "design", *OTHER).out == ""
    assert repo.fails(75, "next", *OTHER).out == ""
    repo.ok("sync", *ANA)
    assert repo.json("show", "design")["task"]["token"] == token
    assert fields(repo, "design")["dibs"] == full["dibs"]
    assert "lease_expires_at" in fields(repo, "design")
    repo.ok("complete", "design", "--token", token, *LIVE)


def test_a_pointer_that_wg_dropped_from_a_task_that_is_done_leaves_it_done(repo):
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    for verb in ("claim", "complete"):
        repo.ok(verb, "design", *LIVE)
    edit(repo, "design", dibs=None)
    repo.ok("sync", *ANA)
    assert repo.json("show", "design")["task"]["state"] == "complete"
    assert fields(repo, "design")["dibs"].split()[1] == "1.1"


def test_what_wg_says_of_a_task_that_somebody_holds_is_reported_and_does_not_end_the_lease(repo):
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    token = repo.json("claim", "design", *LIVE)["lease"]["token"]
    edit(repo, "design", status="done")
    [problem] = repo.json("sync", *ANA)["sync"]["problems"]
    assert "somebody holds design" in problem["what"]
    repo.ok("renew", "design", "--token", token, *LIVE)


def test_a_claim_is_valid_though_another_program_keeps_the_graphs_lock_and_a_sync_writes_it(repo):
    import fcntl

    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    before = (repo.folder / GRAPH).read_text()
    with (repo.folder / ".wg" / "graph.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = repo.ok("claim", "design", *LIVE)
    assert "dibs sync does it later" in ran.err
    assert (repo.folder / GRAPH).read_text() == before
    assert repo.fails(4, "claim", "design", *OTHER).out == ""
    repo.ok("sync", *ANA)
    assert fields(repo, "design")["assigned"] == "live"


@pytest.mark.parametrize(("end", "word"), [("complete", "done"), ("fail", "failed")])
def test_what_wg_alone_opens_again_is_reported_with_the_command_that_does_it(repo, end, word):
    """It cannot be distinguished from an old copy of the graph, and finished work is not begun for one."""
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    repo.ok("claim", "design", *LIVE)
    repo.ok(end, "design", *(("--reason", "x") if end == "fail" else ()), *LIVE)
    edit(repo, "design", status="open", assigned=None, completed_at=None, dibs=None)
    [problem] = repo.json("sync", *ANA)["sync"]["problems"]
    assert "dibs reset or retry opens it again" in problem["choice"]
    assert fields(repo, "design")["status"] == word
    repo.ok("reset", "design", *ANA)
    assert is_free(repo, "design")
    assert repo.json("sync", *ANA)["sync"]["problems"] == []


def test_reset_of_a_live_holders_task_is_a_persons_with_a_reason(repo):
    graph(repo, node("design"))
    repo.ok("sync", *ANA)
    repo.ok("claim", "design", *LIVE)
    before = (repo.folder / GRAPH).read_text()
    repo.fails(1, "reset", "design", "--reason", "mine", *OTHER)
    repo.fails(2, "reset", "design", *ANA)
    assert (repo.folder / GRAPH).read_text() == before
    assert "live" in repo.ok("reset", "design", "--reason", "wrong branch", *ANA).out
    assert is_free(repo, "design")
    assert repo.fails(5, "complete", "design", *LIVE).out == ""
