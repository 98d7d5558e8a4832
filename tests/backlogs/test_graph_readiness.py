"""A graph on a board: which tasks are offered, as `wg ready` offers them; and how little of it is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dibs.backlogs.formats.workgraph import Workgraph
from dibs.board import explain
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.values import Instant
from kit import soak
from kit.backlogs import ready

GRAPH = ".wg/graph.jsonl"
NOW = Instant(1_794_752_999_000_000)


def line(id_: str, status: str = "open", **fields: object) -> str:
    return json.dumps({"kind": "task", "id": id_, "title": id_.upper(), "status": status} | fields)


def graph(yard, *lines: str) -> str:
    return yard.put(GRAPH, "".join(f"{one}\n" for one in lines))


def test_an_abandoned_task_holds_nobody_back(yard):
    graph(
        yard,
        line("a", "abandoned"),
        line("b", after=["a"]),
        line("c", "failed"),
        line("d", after=["c"]),
    )
    yard.sync()
    assert ready(yard) == ["b"]
    yard.agent("codex", "s1").claim("b")


def test_what_is_abandoned_later_holds_nobody_back_after_a_sync(yard):
    graph(yard, line("a"), line("b", after=["a"]))
    yard.sync()
    assert ready(yard) == ["a"]
    yard.person("ana").do(c.Drop("a", reason="not wanted"))
    yard.sync()
    assert ready(yard) == ["b"]
    assert yard.faults() == ()


@pytest.mark.parametrize(
    ("status", "offered"),
    [("open", []), ("in-progress", []), ("done", ["y"]), ("abandoned", ["y"]), ("failed", ["y"])],
)
def test_an_open_evaluation_holds_back_what_waits_for_the_task(yard, status, offered):
    graph(yard, line("x", "done"), line(".evaluate-x", status, after=["x"]), line("y", after=["x"]))
    yard.sync()
    assert ready(yard) == offered
    if not offered:
        assert yard.agent("codex", "s1").refused(c.Claim("y")) == "waits"


def test_why_never_advises_what_is_refused(yard):
    """The dependencies of an item are in its file, so `depend` would be refused."""
    yard.kano("KABSD-TSK-0001", state="Dropped")
    yard.kano("KABSD-TSK-0002", blocked_by="[KABSD-TSK-0001]")
    yard.sync()
    [step, *_] = explain.why(yard.board, TaskKey("KABSD-TSK-0002"))[0]
    assert "depend" not in step.helps
    assert "item file" in step.helps


IDS = st.sampled_from(["a", "b", "ab", "ä", 'q"', ".evaluate-a", ".evaluate-b", "a\\b"])
STATUS = st.sampled_from(["open", "done", "abandoned", "failed", "in-progress", "odd", "waiting"])


@st.composite
def graphs(draw) -> bytes:
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        fields = {
            "after": draw(st.lists(IDS, max_size=3)),
            "before": draw(st.lists(IDS, max_size=2)),
            "blocked_by": draw(st.sampled_from([None, "a", ["b"]])),
            "description": draw(st.sampled_from(["", 'about "a"', '{"id":"a"}'])),
        }
        text = line(draw(IDS), draw(STATUS), **fields)
        lines.append(
            draw(st.sampled_from([text, text.replace(": ", ":"), f"  {text}", "# note", "{"]))
        )
    return "\n".join(lines).encode() + draw(st.sampled_from([b"", b"\n"]))


@settings(max_examples=soak.examples(200))
@given(graphs())
@example(line("a", before=["b"]).encode() + b"\n" + line("b").encode() + b"\n" + line("a").encode())
def test_one_task_is_read_as_the_whole_graph_reads_it(data):
    """Without decoding the other lines."""
    dialect = Workgraph(folder=".wg")
    items, _ = dialect.read(GRAPH, data, NOW)
    for item in items:
        found, _ = dialect.read_one(GRAPH, data, NOW, item.ref)
        [alone] = [one for one in found if one.ref == item.ref]
        assert alone.but(after=()) == item.but(after=())
        assert set(alone.after) == set(item.after)


def wg_ready(tasks: list[dict]) -> set[str]:
    """The rule of `wg ready`, read anew: open, nothing of its own, and every task before it is over."""
    last = {task["id"]: task for task in tasks}
    before = {id_: set(task.get("after", ())) for id_, task in last.items()}
    for id_, task in last.items():
        for later in task.get("before", ()):
            if later in before:
                before[later].add(id_)
    over = {id_ for id_, task in last.items() if task["status"] in ("done", "abandoned")}
    judged = {
        id_ for id_, task in last.items() if task["status"] in ("done", "abandoned", "failed")
    }
    found = set()
    for id_, task in last.items():
        if (
            task["status"] not in ("open", "incomplete")
            or id_.startswith(".")
            or task.get("paused")
        ):
            continue
        waits = before[id_]
        if not waits <= over:
            continue
        abandoned = {one for one in waits if one in last and last[one]["status"] == "abandoned"}
        judges = {f".evaluate-{one}" for one in waits - abandoned if not one.startswith(".")} & set(
            last
        )
        if judges <= judged:
            found.add(id_)
    return found


@st.composite
def acyclic(draw) -> list[dict]:
    """Each task waits only for earlier ones; some have an evaluation."""
    names, tasks = [f"t{n}" for n in range(draw(st.integers(1, 9)))], []
    for place, name in enumerate(names):
        task = {
            "kind": "task",
            "id": name,
            "title": name,
            "status": draw(STATUS.filter(lambda s: s != "in-progress")),
        }
        if place:
            task["after"] = draw(st.lists(st.sampled_from(names[:place]), max_size=3, unique=True))
        if draw(st.booleans()):
            task["paused"] = draw(st.booleans())
        if place + 1 < len(names):
            task["before"] = draw(st.lists(st.sampled_from(names[place + 1 :]), max_size=1))
        tasks.append(task)
        if draw(st.booleans()):
            tasks.append(
                {
                    "kind": "task",
                    "id": f".evaluate-{name}",
                    "title": "e",
                    "status": draw(st.sampled_from(["open", "done", "failed"])),
                    "after": [name],
                }
            )
    return tasks


def test_the_ready_list_is_that_of_wg(quick):
    @settings(max_examples=soak.examples(25))
    @given(acyclic())
    def promise(tasks):
        yard = quick()
        try:
            graph(yard, *map(json.dumps, tasks))
            yard.sync()
            assert set(ready(yard)) == wg_ready(tasks)
        finally:
            yard.close()

    promise()
