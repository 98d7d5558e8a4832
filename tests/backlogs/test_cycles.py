"""What waits for itself is cut where the circle closes, and told."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.cycles import broken_cycles
from dibs.backlogs.item import Item
from dibs.domain.model import OPEN


def item(id_: str, *after: str, line: int = 1) -> Item:
    return Item(
        "workgraph", f"ref-{id_}", id_, "graph.jsonl", id_, OPEN, "open", after=after, line=line
    )


def test_a_cycle_loses_the_edge_that_closes_it_and_is_shown():
    items = [item("a", "b"), item("b", "c"), item("c", "a", "x", line=3)]
    after, problems = broken_cycles(items)
    assert after == {"ref-a": ("b",), "ref-b": ("c",), "ref-c": ("x",)}
    assert [str(problem) for problem in problems] == [
        "graph.jsonl:3: a cycle: a waits for b waits for c waits for a; c does not wait for a"
    ]


def test_a_task_does_not_wait_for_itself():
    after, problems = broken_cycles([item("a", "a", "b"), item("b")])
    assert after == {"ref-a": ("b",), "ref-b": ()}
    assert "a waits for a" in str(problems[0])


def test_two_ways_to_the_same_task_are_no_cycle():
    items = [item("a", "b", "c"), item("b", "d"), item("c", "d"), item("d", "unknown")]
    after, problems = broken_cycles(items)
    assert after == {each.ref: each.after for each in items}
    assert problems == []


def test_a_long_cycle_is_shown_by_its_ends():
    count = 100
    items = [item(f"t{n}", f"t{(n + 1) % count}") for n in range(count)]
    _, problems = broken_cycles(items)
    assert len(problems) == 1
    message = str(problems[0])
    assert "t0 waits for t1" in message and "t99 waits for t0" in message and "(92 more)" in message
    assert len(message) < 300


@pytest.mark.parametrize("shape", ["chain", "back edges"])
def test_fifty_thousand_tasks_are_walked_in_a_moment(shape):
    count = 50_000
    back = ("t0",) if shape == "back edges" else ()
    items = [item(f"t{n}", f"t{n + 1}", *back) for n in range(count)]
    begun = time.process_time()
    after, problems = broken_cycles(items)
    assert time.process_time() - begun < 30  # a busy machine; one that is quadratic takes longer
    assert len(after) == count
    assert len(problems) == (count if back else 0)


def test_many_ways_to_the_same_tasks_are_not_each_walked():
    levels = 20
    items = [
        item(f"{side}{n}", f"a{n + 1}", f"b{n + 1}") for n in range(levels) for side in ("a", "b")
    ]
    begun = time.process_time()
    after, problems = broken_cycles(items)
    assert time.process_time() - begun < 1
    assert (len(after), problems) == (2 * levels, [])


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=10))
def test_what_is_left_has_an_order_and_each_cut_was_in_a_cycle(edges):
    items = [item(f"t{n}", *(f"t{other}" for other in others)) for n, others in enumerate(edges)]
    after, problems = broken_cycles(items)
    assert (after, problems) == broken_cycles(items)

    kept = {each.id: after[each.ref] for each in items}
    left = dict(kept)
    while ready := [id_ for id_, needs in left.items() if not set(needs) & left.keys()]:
        for id_ in ready:
            del left[id_]
    assert left == {}

    def reaches(start: str, goal: str) -> bool:
        seen, todo = set(), [start]
        while todo:
            here = todo.pop()
            if here == goal:
                return True
            if here not in seen:
                seen.add(here)
                todo += kept.get(here, ())
        return False

    cut = [
        (each.id, wanted)
        for each in items
        for wanted in dict.fromkeys(each.after)
        if wanted not in after[each.ref]
    ]
    assert len(cut) == len(problems)
    assert all(reaches(wanted, id_) for id_, wanted in cut)
