"""Workgraph's own file: read whatever is in it, written where a record has news, else untouched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.formats.json_line import Line
from dibs.backlogs.formats.workgraph import WRITES, Workgraph
from dibs.backlogs.formats.workgraph_fields import STATES, WORDS, instant_of, stamp
from dibs.backlogs.formats.workgraph_files import registry_of
from dibs.backlogs.item import Lock, Pointer
from dibs.backlogs.report import Report, summary
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    IN_PROGRESS,
    OPEN,
    REVIEW,
    Lease,
    Token,
)
from dibs.domain.model import STATES as ALL_STATES
from dibs.domain.values import HOUR, MINUTE, SECOND, iso
from dibs.safe_files import Unreadable
from kit import graphs
from kit.boards import FakeMachine
from kit.graphs import BOARD, NOW, PATH, file, line, node, record, step

LIVING, GONE = 4000, 4001


def read(data: bytes, **options):
    return Workgraph().read(PATH, data, NOW, **options)


def items(data: bytes):
    return {item.id: item for item in read(data)[0]}


def only(text: str):
    [item], problems = read(file(text))
    return item, [str(problem) for problem in problems]


def written(text: str, output) -> dict:
    return json.loads(Workgraph().written(PATH, file(text), {"t": output}))


# What is read.


def test_a_task_is_read_as_its_line_has_it():
    item, problems = only(
        node(
            "t", title="Fix login", status="in-progress", priority=50, assigned="agent-7",
            after=["a"], dibs=f"{BOARD} 1.7 codex-2 s1 2h", lease_expires_at=stamp(NOW + HOUR),
        )
    )  # fmt: skip
    assert problems == []
    assert (item.channel, item.ref, item.id, item.path, item.line) == (
        "workgraph",
        "t",
        "t",
        PATH,
        1,
    )
    assert (item.title, item.state, item.said, item.priority) == (
        "Fix login", IN_PROGRESS, "in-progress", 1,
    )  # fmt: skip
    assert (item.owner, item.after, item.gate, item.lock) == ("agent-7", ("a",), "", None)
    assert item.pointer == Pointer(BOARD, Token(1, 7), "codex-2", "s1", 2 * HOUR)
    assert item.expires == NOW + HOUR


def test_comments_blank_lines_and_unknown_kinds_are_ignored():
    data = file(
        "# a comment", "  // another", "", "   ", '{"kind":"resource","id":"gpu"}',
        '{"kind":"actor","id":"erik"}', node("t"),
    )  # fmt: skip
    found, problems = read(data)
    assert ([item.line for item in found], problems) == ([7], [])


BAD_LINES = [
    '{"kind":"task","id":"x"', "not json", "[1]", "3", '{"id":"x","title":"no kind"}',
    '{"kind":"task","title":"no id"}', '{"kind":"task","id":7}', '{"kind":"task","id":" "}',
    '{"kind":"task","id":"x","n":NaN}', '{"kind":"task","id":"\\ud800"}',
    '{"kind":"task","id":"\\u0000"}', '{"kind":"task","id":"' + "x" * 1001 + '"}',
    '{"kind":"task","id":"x","n":' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"kind":"task","id":"x"} {"kind":"task","id":"y"}',
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_reported_with_its_number_and_does_not_stop_the_rest(bad):
    data = file(node("a"), bad, node("b"))
    found, problems = read(data)
    assert [item.id for item in found] == ["a", "b"]
    assert [problem.line for problem in problems] == [2]
    assert str(problems[0]).startswith(f"{PATH}:2: ")
    assert len(str(problems[0])) < 300
    with pytest.raises(Unreadable) as stopped:
        read(data, strict=True)
    assert stopped.value.line == 2


@pytest.mark.parametrize(
    ("id_", "why"),
    [
        ("7", "the id of the task is 7, and an id is text"),
        ("0", "the id of the task is 0, and an id is text"),
        ("1.5", "the id of the task is 1.5, and an id is text"),
        ('["a"]', "the id of the task is ['a'], and an id is text"),
        ("null", "the task has no id"),
        ('""', "the task has no id"),
    ],
)
def test_what_is_wrong_with_an_id_is_reported(id_, why):
    found, [problem] = read(file(f'{{"kind":"task","id":{id_}}}'))
    assert (found, problem.what) == ([], f"the line cannot be read: {why}")


def test_a_line_that_is_not_utf8_is_a_bad_line_and_stays():
    data = file(node("a")) + b'{"kind":"task","id":"x\xff"}\n' + file(node("t"))
    found, problems = read(data)
    assert [item.id for item in found] == ["a", "t"]
    assert [problem.line for problem in problems] == [2]
    assert data.split(b"\n")[1] in Workgraph().written(PATH, data, {"t": record(COMPLETE)})


def test_what_is_not_a_bad_line_passes_the_strict_reader():
    data = file(node("t", status="odd", title="x" * 300, dibs="odd"), node("t"), "# note")
    assert len(read(data, strict=True)[0]) == 1


def test_of_a_repeated_id_the_last_line_counts_as_for_the_tool_and_it_is_listed():
    data = file(node("t", title="first"), node("u"), node("t", title="second"))
    found, problems = read(data)
    assert [(item.id, item.title, item.line) for item in found] == [
        ("u", "Task u", 2),
        ("t", "second", 3),
    ]
    assert [str(problem) for problem in problems] == [
        f"{PATH}:3: the id 't' stands in line 1 too; the last counts, as for wg"
    ]
    lines = Workgraph().written(PATH, data, {"t": record(COMPLETE)}).split(b"\n")
    assert lines[:2] == data.split(b"\n")[:2]
    assert json.loads(lines[2])["status"] == "done"


def test_edges_are_the_same_whichever_end_names_them():
    found = items(
        file(
            node("a", before=["c"]),
            node("b", blocks=["c", "gone"]),
            node("c", after=["d"], blocked_by=["e", "d"]),
            node("d", before=["c"]),
        )
    )
    assert found["c"].after == ("d", "e", "a", "b")
    assert [found[id_].after for id_ in "abd"] == [(), (), ()]


@pytest.mark.parametrize("after", [["a", 7, None, "", ["b"], {}], "", 7, {"a": 1}, None])
def test_what_is_no_id_is_no_edge(after):
    found, _ = read(file(node("t", after=after, before=after), node("u")))
    assert found[0].after == (("a",) if isinstance(after, list) else ())


@pytest.mark.parametrize("key", ["after", "blocked_by"])
def test_a_text_alone_names_what_a_task_waits_for(key):
    item, problems = only(node("t", **{key: "a"}))
    assert (item.after, problems) == (("a",), [])


@pytest.mark.parametrize("key", ["before", "blocks"])
def test_a_text_alone_names_what_waits_for_a_task(key):
    assert items(file(node("t", **{key: "later"}), node("later")))["later"].after == ("t",)


@pytest.mark.parametrize("key", ["after", "blocked_by", "before", "blocks"])
@pytest.mark.parametrize("value", [7, 0, True, False, 1.5, {"a": 1}, {}], ids=repr)
def test_what_cannot_be_an_edge_is_reported_and_nobody_begins_the_task(key, value):
    """It waits for something, or something for it, and what is not known."""
    [item], [problem] = read(file(node("t", **{key: value})))
    assert repr(key) in item.gate
    assert str(problem).startswith(f"{PATH}:1: {key!r} is {value!r}")


@pytest.mark.parametrize("value", [None, [], "", ["a"], "a"], ids=repr)
def test_what_can_be_an_edge_stops_nobody(value):
    edges = dict.fromkeys(("after", "blocked_by", "before", "blocks"), value)
    item, problems = only(node("t", **edges))
    assert (item.gate, problems) == ("", [])


def test_a_repeated_line_that_does_not_count_makes_no_edges():
    found = items(file(node("a", before=["b"]), node("b"), node("a")))
    assert found["b"].after == ()


@pytest.mark.parametrize(("word", "state"), STATES.items())
def test_every_word_of_the_tool_has_a_state(word, state):
    item, problems = only(node("t", status=word))
    assert (item.state, item.said, problems) == (state, word, [])


@pytest.mark.parametrize("word", ["in_progress", "In-Progress", "IN_PROGRESS"])
def test_a_word_in_other_letters_means_the_same_and_stays(word):
    item, problems = only(node("t", status=word))
    assert (item.state, item.said, problems) == (IN_PROGRESS, word, [])
    assert written(node("t", status=word), record(IN_PROGRESS, "codex-2"))["status"] == word


def test_every_state_has_a_word_that_means_it():
    assert {state: STATES[WORDS[state]] for state in ALL_STATES} == {s: s for s in ALL_STATES}
    assert WORDS == {
        OPEN: "open", IN_PROGRESS: "in-progress", BLOCKED: "blocked", REVIEW: "pending-validation",
        FAILED: "failed", COMPLETE: "done", DROPPED: "abandoned",
    }  # fmt: skip


@pytest.mark.parametrize("status", ["odd", "", 42, ["open"]])
def test_an_unknown_status_is_reported_and_the_task_is_not_offered(status):
    item, problems = only(node("t", status=status))
    assert item.state == OPEN and "status" in item.gate
    assert len(problems) == 1 and "is not known" in problems[0]


@pytest.mark.parametrize("text", ['{"kind":"task","id":"t"}', node("t", status=None)])
def test_without_a_status_a_task_is_open(text):
    item, problems = only(text)
    assert (item.state, item.said, item.gate, problems) == (OPEN, "open", "", [])


@pytest.mark.parametrize(
    ("given", "priority"),
    [
        (1000, 0), (100, 0), (50, 1), (10, 2), (5, 3), (0, 4), ("critical", 0), ("High", 1),
        ("normal", 2), ("low", 3), ("idle", 4), ("odd", 2), (None, 2), (-1, 2), (True, 2), (7.5, 2),
    ],
)  # fmt: skip
def test_higher_numbers_of_the_tool_are_more_urgent(given, priority):
    assert only(node("t", priority=given))[0].priority == priority


def test_a_long_title_is_cut_for_the_board_and_reported():
    item, problems = only(node("t", title="x" * 201))
    assert item.title == "x" * 199 + "\u2026"
    assert problems == [f"{PATH}:1: the title has 201 characters; 200 of them are shown"]
    assert only(node("t", title="x" * 200)) == (only(node("t", title="x" * 200))[0], [])


@pytest.mark.parametrize("title", ["", "  ", None, 7])
def test_without_a_title_it_is_called_by_its_id(title):
    assert only(node("t", title=title))[0].title == "t"


def test_a_title_can_be_kept_by_a_board_whatever_json_names():
    item, _ = only('{"kind":"task","id":"t","title":"a\\ud800b\\u0000c","assigned":"x\\udfff"}')
    assert item.title.encode() and "\0" not in item.title and item.owner.encode()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"paused": True}, "paused"),
        ({"status": "waiting"}, "waits"),
        ({"cron_enabled": True}, "its times"),
        ({"not_before": stamp(NOW + HOUR)}, f"not before {iso(NOW + HOUR)}"),
        ({"ready_after": stamp(NOW + 1)}, "not before"),
        ({"id": ".evaluate-t"}, "workgraph's own"),
        ({"paused": False}, ""),
        ({"not_before": stamp(NOW)}, ""),
        ({"not_before": "soon"}, ""),
    ],
)
def test_what_the_tool_would_not_start_has_a_gate(fields, why):
    item, problems = only(
        line(**{"kind": "task", "id": "t", "title": "x", "status": "open"} | fields)
    )
    assert (why in item.gate if why else item.gate == "") and problems == []


@pytest.mark.parametrize("garbage", ["odd", "", "b 1", 7, [], "b 1.2 ana"])
def test_a_pointer_that_is_garbage_counts_for_nothing_and_is_reported(garbage):
    item, problems = only(node("t", dibs=garbage, lease_expires_at=stamp(NOW)))
    assert (item.pointer, item.expires) == (None, None)
    assert problems == [f"{PATH}:1: the key 'dibs' cannot be read; it counts for nothing"]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-14T22:26:40+00:00", 1_794_695_200_000_000),
        ("2026-11-14T22:26:40.000001999+00:00", 1_794_695_200_000_001),
        ("2026-11-14T22:26:40Z", 1_794_695_200_000_000),
        ("2026-11-15T00:26:40+02:00", 1_794_695_200_000_000),
        ("2026-11-14T22:26:40", 1_794_695_200_000_000),
        ("1960-01-01T00:00:00Z", None), ("0001-01-01T00:00:00+23:00", None), ("soon", None),
        ("", None), (7, None), (None, None),
    ],
)  # fmt: skip
def test_times_are_read_in_every_form_of_the_tool(text, instant):
    assert instant_of(text) == instant


@given(st.integers(0, 4_000_000_000_000_000))
def test_a_time_is_read_as_it_is_written(instant):
    assert instant_of(stamp(instant)) == instant


def test_a_key_that_occurs_twice_is_reported_and_the_line_is_not_written():
    text = '{"kind":"task","id":"t","status":"open","status":"open","x":1}'
    item, problems = only(text)
    assert item.id == "t"
    assert problems == [f"{PATH}:1: the key 'status' stands there twice; it is not written"]
    assert Workgraph().written(PATH, file(text), {"t": record(COMPLETE)}) == file(text)
    nested = line(kind="task", id="t", status="open", wait_condition={"status": "done"})
    assert only(nested)[1] == []


# Whose claim counts.


class Machine(FakeMachine):
    def process(self, pid):
        return None if pid == GONE else super().process(pid)


def registry(**agents):
    return registry_of("registry.json", json.dumps({"agents": agents, "next_agent_id": 9}).encode())


def locks(data: bytes, known) -> dict[str, Lock | None]:
    found, _ = Workgraph(known, Machine()).read(PATH, data, NOW)
    return {item.id: item.lock for item in found}


KNOWN = registry(
    **{
        "agent-1": {"pid": LIVING, "status": "working"},
        "agent-2": {"pid": GONE, "status": "working"},
        "agent-3": {"pid": LIVING, "status": "dead"},
    }
)
BEGUN = stamp(NOW - HOUR)


@pytest.mark.parametrize("status", ["in-progress", "open"])
def test_a_claim_counts_only_while_its_agent_is_known_to_live(status):
    data = file(
        *(
            node(f"t{n}", status=status, assigned=f"agent-{n}", started_at=BEGUN)
            for n in range(1, 5)
        )
    )
    lock = Lock("agent-1", NOW - HOUR)
    assert locks(data, KNOWN) == {"t1": lock, "t2": None, "t3": None, "t4": None}
    assert set(locks(data, None).values()) == {None}


@pytest.mark.parametrize("status", ["done", "failed", "abandoned", "pending-eval"])
def test_what_is_over_is_not_claimed_by_a_name_that_stayed(status):
    assert locks(file(node("t", status=status, assigned="agent-1")), KNOWN) == {"t": None}


def test_our_own_lease_is_no_lock_of_another_tool():
    fields = {"status": "in-progress", "assigned": "agent-1"}
    held = node("t", dibs=f"{BOARD} 1.7 agent-1 s1 2h", **fields)
    over = node("t", dibs=f"{BOARD} 1.7", **fields)
    assert locks(file(held), KNOWN) == {"t": None}
    assert locks(file(over), KNOWN) == {"t": Lock("agent-1", None)}


def test_a_damaged_registry_is_reported_to_who_begins_work():
    damaged = registry_of("service/registry.json", b"{")
    _, problems = Workgraph(damaged).read(PATH, file(node("t")), NOW)
    reported = [(problem.path, problem.warns) for problem in problems]
    assert reported == [("service/registry.json", True)]


@pytest.mark.parametrize("torn", [b"", b'{"agents": {"agent-1": {"pid', b"\xff\x00", b"[]", b"{}"])
def test_with_a_registry_that_cannot_be_read_every_claim_counts(torn):
    """Unreadable is not absent: the agent may live, and nobody may take its work."""
    data = file(
        node("begun", status="in-progress", assigned="agent-1", started_at=BEGUN),
        node("early", assigned="agent-2"),
        node("over", status="done", assigned="agent-3"),
        node("nobody's", status="in-progress"),
        node("ours", assigned="codex", dibs=f"{BOARD} 1.7 codex s1 2h"),
    )
    found, _ = Workgraph(registry_of("registry.json", torn), Machine()).read(PATH, data, NOW)
    claims = {item.id: item.lock for item in found if item.lock is not None}
    assert {id_: (lock.holder, lock.since) for id_, lock in claims.items()} == {
        "begun": ("agent-1", NOW - HOUR),
        "early": ("agent-2", None),
    }
    assert all("cannot be read" in lock.problem for lock in claims.values())
    assert graphs.stale_claims(item for item in found if item.id in claims) == []


def test_old_graphs_full_of_stale_claims_are_reported_in_one_line():
    found, problems = read(graphs.old_graph(agents=3, tasks=100))
    stale = graphs.stale_claims(found)
    assert problems == []
    assert len(stale) == 50
    assert {item.state for item in stale} == {OPEN, IN_PROGRESS}
    healed = tuple(f"{item.id} ({item.owner})" for item in stale)
    assert summary(Report(healed=healed)) == (
        "item files: 50 stale claims healed: t1 (agent-0), t3 (agent-1), t5 (agent-2), t7 (agent-0),"
        " t9 (agent-1) and 45 more"
    )
    one = summary(Report(healed=healed[:1]))
    assert one == "item files: 1 stale claim healed: t1 (agent-0)"


def test_a_claim_of_the_living_a_lease_and_what_is_over_are_not_stale():
    data = file(
        node("a", status="in-progress", assigned="agent-1"),
        node("b", status="in-progress", assigned="codex-2", dibs=f"{BOARD} 1.7 codex-2 s1 2h"),
        node("c", status="done", assigned="agent-2"),
        node("d", status="open"),
        node("e", status="open", assigned="agent-2"),
    )
    found, _ = Workgraph(KNOWN, Machine()).read(PATH, data, NOW)
    assert [item.id for item in graphs.stale_claims(found)] == ["e"]


def test_an_old_graph_is_healed_with_its_claims_and_nothing_else():
    data = graphs.old_graph(agents=3, tasks=20)
    stale = graphs.stale_claims(read(data)[0])
    healed = Workgraph().written(
        PATH, data, {item.ref: record(OPEN, token=(0, 0)) for item in stale}
    )
    assert graphs.stale_claims(read(healed)[0]) == []
    for before, after in zip(data.splitlines()[1:], healed.splitlines()[1:], strict=True):
        expected = json.loads(before) | {"status": "open"}
        assert json.loads(after) == {
            key: expected[key] for key in expected if key not in ("assigned", "started_at")
        }


# What is written.


def test_a_claim_is_written_with_all_that_belongs_to_it():
    claimed = record(IN_PROGRESS, "codex-2", [step(3, text="first\ntry", model="opus")], attempts=3)
    assert written(node("t", log=[graphs.entry("made")], tags=["x"]), claimed) == {
        "kind": "task",
        "id": "t",
        "title": "Task t",
        "status": "in-progress",
        "log": [
            graphs.entry("made"),
            {
                "timestamp": stamp(NOW - MINUTE + 3),
                "actor": "codex-2",
                "message": "claim, in-progress (opus): first\ntry (dibs 1.1 #3)",
            },
        ],
        "tags": ["x"],
        "assigned": "codex-2",
        "started_at": stamp(NOW - 10 * MINUTE),
        "lease_expires_at": stamp(NOW - 10 * SECOND + HOUR),
        "retry_count": 2,
        "dibs": f"{BOARD} 1.1 codex-2 s1 1h",
    }


CLAIMED = {
    "status": "in-progress", "assigned": "codex-2", "started_at": BEGUN,
    "lease_expires_at": stamp(NOW + HOUR), "dibs": f"{BOARD} 1.1 codex-2 s1 1h",
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "left"),
    [
        (OPEN, {"status": "open"}),
        (BLOCKED, {"status": "blocked"}),
        (REVIEW, {"status": "pending-validation", "started_at": BEGUN}),
        (FAILED, {"status": "failed", "started_at": BEGUN}),
        (DROPPED, {"status": "abandoned", "started_at": BEGUN, "assigned": "codex-2"}),
        (
            COMPLETE,
            {
                "status": "done",
                "started_at": BEGUN,
                "assigned": "codex-2",
                "completed_at": stamp(NOW),
            },
        ),
    ],
)
def test_with_the_lease_goes_all_that_says_who_has_it(state, left):
    after = written(node("t", **CLAIMED), record(state))
    expected = {"kind": "task", "id": "t", "title": "Task t", "dibs": f"{BOARD} 1.1"} | left
    assert after == expected


def test_what_is_done_shows_its_last_holder_and_no_earlier_one():
    assert "assigned" not in written(node("t", **CLAIMED), record(COMPLETE, token=(1, 2)))
    assert "assigned" not in written(node("t", assigned="agent-7"), record(COMPLETE))
    text = node("t", status="done", assigned="agent-7")
    assert written(text, record(COMPLETE, token=(0, 0))) == json.loads(text)


@pytest.mark.parametrize(("state", "word"), [(state, word) for word, state in STATES.items()])
def test_a_word_that_means_the_same_state_stays(state, word):
    assert written(node("t", status=word), record(state, token=(0, 0)))["status"] == word


def test_an_unknown_word_stays_until_the_board_has_another_state():
    assert written(node("t", status="odd"), record(OPEN))["status"] == "odd"
    assert written(node("t", status="odd"), record(FAILED))["status"] == "failed"


def test_a_held_task_that_is_not_begun_or_is_blocked_shows_its_holder():
    for state, word in ((OPEN, "open"), (BLOCKED, "blocked")):
        after = written(node("t", started_at=BEGUN), record(state, "codex-2"))
        assert (after["status"], after["assigned"]) == (word, "codex-2")
        assert ("started_at" in after) == (state == BLOCKED)


def test_completion_is_dated_by_its_step_and_the_tools_own_date_stays():
    at = step(1, "complete", COMPLETE)
    assert written(node("t"), record(COMPLETE, steps=[at]))["completed_at"] == stamp(at.at)
    text = node("t", status="done", completed_at=BEGUN)
    assert written(text, record(COMPLETE, steps=[at]))["completed_at"] == BEGUN
    assert "completed_at" not in written(node("t", status="done"), record(COMPLETE))


@pytest.mark.parametrize("state", [OPEN, IN_PROGRESS, BLOCKED])
def test_what_goes_on_is_not_completed(state):
    going = record(state, "codex-2")
    assert "completed_at" not in written(node("t", status="done", completed_at=BEGUN), going)
    given_back = node("t", status="incomplete", completed_at=BEGUN)
    assert ("completed_at" in written(given_back, going)) == (state == OPEN)


@pytest.mark.parametrize(
    ("there", "attempts", "expected"),
    [(None, 0, None), (None, 1, None), (None, 3, 2), (1, 3, 2), (5, 3, 5), (0, 1, 0), ("x", 2, 1)],
)
def test_retries_are_counted_on_and_never_back(there, attempts, expected):
    fields = {} if there is None else {"retry_count": there}
    assert written(node("t", **fields), record(attempts=attempts)).get("retry_count") == expected


def test_a_task_that_was_never_held_gets_no_pointer():
    text = node("t")
    assert Workgraph().written(PATH, file(text), {"t": record(token=(0, 0))}) == file(text)


def test_a_null_says_nothing_already():
    text = node("t", assigned=None, started_at=None, completed_at=None, lease_expires_at=None)
    assert Workgraph().written(PATH, file(text), {"t": record(token=(0, 0))}) == file(text)


def test_a_step_is_written_once():
    steps = [step(1), step(10)]
    once = Workgraph().written(PATH, file(node("t")), {"t": record(steps=steps[1:])})
    twice = Workgraph().written(PATH, once, {"t": record(steps=steps)})
    assert [each["message"][-15:] for each in json.loads(twice)["log"]] == [
        " (dibs 1.1 #10)",
        "s (dibs 1.1 #1)",
    ]
    assert Workgraph().written(PATH, twice, {"t": record(steps=steps)}) == twice


def test_the_text_of_one_step_cannot_hide_another():
    hiding = step(1, text=f"nothing {step(2).mark}")
    log = written(node("t", log=[]), record(steps=[hiding]))["log"]
    assert len(written(node("t", log=log), record(steps=[hiding, step(2)]))["log"]) == 2


def test_entries_of_another_form_stay_in_the_log():
    log = ["odd", None, {"message": 7}, {"text": "x"}]
    assert written(node("t", log=log), record(steps=[step(1)]))["log"][:4] == log


@pytest.mark.parametrize("log", ["odd", 7, {}])
def test_a_log_that_is_none_is_left_alone(log):
    assert written(node("t", log=log), record(steps=[step(1)]))["log"] == log


def renewed(ago: int, ttl: int = HOUR):
    return record(IN_PROGRESS, "codex-2", lease=Lease(1, "s1", NOW - HOUR, NOW - ago, ttl))


def test_a_renewal_is_written_when_less_than_half_of_the_time_is_left():
    for left, kept in ((HOUR, True), (HOUR // 2, True), (HOUR // 2 - 1, False), (-HOUR, False)):
        text = node("t", **CLAIMED | {"lease_expires_at": stamp(NOW + left)})
        after = written(text, renewed(0))["lease_expires_at"]
        assert after == stamp(NOW + left) if kept else after == stamp(NOW + HOUR), left


def test_another_lease_or_a_longer_one_than_there_is_is_written_at_once():
    later = stamp(NOW + HOUR)
    shorter = written(node("t", **CLAIMED | {"lease_expires_at": later}), renewed(MINUTE))
    assert shorter["lease_expires_at"] == stamp(NOW + HOUR - MINUTE)
    other = CLAIMED | {
        "dibs": f"{BOARD} 1.0 codex-2 s1 1h",
        "lease_expires_at": stamp(NOW + HOUR - 1),
    }
    assert written(node("t", **other), renewed(0))["lease_expires_at"] == later


def test_the_same_instant_in_other_digits_stays():
    acquired = stamp(NOW - HOUR).replace("+00:00", ".000000123+00:00")
    text = node("t", **CLAIMED | {"started_at": acquired})
    assert Workgraph().written(PATH, file(text), {"t": renewed(0)}) == file(text)


def test_a_record_of_a_task_that_is_not_there_changes_nothing():
    data = file(node("t"), "# note")
    assert Workgraph().written(PATH, data, {"gone": record(COMPLETE)}) == data


def test_line_ends_a_byte_order_mark_and_other_letters_survive():
    text = '{ "kind" : "task", "id":"t", "title":"caf\\u00e9 \u00e9 \u2028", "n":1.0e+3 }'
    data = f"\ufeff{text}\r\n# end\r\n{node('u')}".encode()
    after = Workgraph().written(PATH, data, {"t": record(FAILED, token=(0, 0))})
    assert after.decode() == f'\ufeff{text[:-2]}, "status":"failed" }}\r\n# end\r\n{node("u")}'
    assert [item.id for item in read(after)[0]] == ["t", "u"]


@given(
    graphs.graphs(), st.dictionaries(st.sampled_from(("t0", "t1", "t2", "t9")), graphs.records())
)
def test_of_any_graph_only_the_lines_with_news_change_and_in_them_only_our_fields(data, told):
    found, _ = read(data)
    after = Workgraph().written(PATH, data, told)
    assert Workgraph().written(PATH, after, told) == after

    places = {item.line: item.ref for item in found if item.ref in told}
    lines = zip(data.split(b"\n"), after.split(b"\n"), strict=True)
    for number, (old, new) in enumerate(lines, 1):
        if number not in places:
            assert new == old
            continue
        assert shape(new) == shape(old)
        before, now = json.loads(old.decode("utf-8-sig")), json.loads(new.decode("utf-8-sig"))
        if before == now:
            assert new == old
        earlier = before["log"] if isinstance(before.get("log"), list) else []
        assert now.get("log", [])[: len(earlier)] == earlier

    again = {item.ref: item for item in read(after)[0]}
    for ref in places.values():
        agrees(again[ref], told[ref])


def shape(text: bytes) -> tuple[list[str], bytes]:
    """The fields that are not ours, as they are written and in their order, and what ends the line."""
    read_line = Line(text.decode())
    ours = [
        read_line.text[member.start : member.end]
        for member in read_line.members
        if member.key not in WRITES
    ]
    return ours, text[text.rindex(b"}") :]


def agrees(item, output) -> None:
    """The file says what the board says."""
    assert item.state == output.task.state
    if output.task.token.number:
        assert item.pointer == output.pointer
    if output.task.lease:
        assert item.owner == output.holder.name
        assert item.expires <= output.task.lease.expires
    elif item.state not in (COMPLETE, DROPPED):
        assert item.owner == ""


def test_every_field_that_is_written_is_listed():
    seen = set()
    for state in ALL_STATES:
        held = "codex-2" if state == IN_PROGRESS else ""
        for text in (node("t"), node("t", completed_at=BEGUN, retry_count=0, **CLAIMED)):
            after = written(text, record(state, held, [step(1)], attempts=3))
            before = json.loads(text)
            seen |= {key for key in after | before if after.get(key) != before.get(key)}
    assert seen == set(WRITES)


@pytest.mark.parametrize("count", [2_000])
def test_a_large_graph_is_decoded_once(count, monkeypatch):
    from dibs.backlogs.formats import workgraph

    decoded = []
    decoder = workgraph.strict_decoder()

    class Counting:
        def decode(self, text):
            decoded.append(text)
            return decoder.decode(text)

    monkeypatch.setattr(workgraph, "strict_decoder", Counting)
    assert len(read(graphs.large_graph(count))[0]) == count
    assert len(decoded) == count
