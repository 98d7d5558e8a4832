"""Other tools' exports: each element becomes an item with an origin, or a reported problem."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.importers import formats
from dibs.backlogs.importers.formats import FORMATS, beads, github, taskwarrior
from dibs.backlogs.importers.importing import import_items, number_of
from dibs.domain.model import BLOCKED, COMPLETE, DROPPED, IN_PROGRESS, OPEN
from dibs.intake.request import normalised_ref
from dibs.safe_files import Unreadable

UUID = "a360fc44-315c-4366-b70c-ea7e7520b749"
OTHER = "b1c2d3e4-0000-4000-8000-0123456789ab"
ISSUE = {"id": "bd-42", "title": "Fix login", "status": "open", "priority": 1, "issue_type": "bug"}
GITHUB = {
    "number": 12,
    "title": "Fix login",
    "state": "OPEN",
    "url": "https://github.com/o/r/issues/12",
}
BARE = GITHUB | {"url": None}
PLACE = "https://github.com/o/r/issues"
TASK = {"id": 1, "uuid": UUID, "description": "Fix login", "status": "pending", "urgency": 2.5}
SAMPLES = {"beads": ISSUE, "github": GITHUB, "taskwarrior": TASK}


def lines(*elements) -> bytes:
    return b"".join(json.dumps(element).encode() + b"\n" for element in elements)


def listed(*elements) -> bytes:
    return json.dumps(elements, indent=2).encode()


def one(parse, **fields):
    """The item of one element that is read without a doubt."""
    [item], problems = parse(lines(SAMPLES[parse.__name__] | fields))
    assert problems == []
    return item


def doubted(parse, **fields):
    """The item of one element, and what was doubted."""
    [item], [problem] = parse(lines(SAMPLES[parse.__name__] | fields))
    return item, problem


# What each becomes.


def test_an_issue_of_beads_becomes_an_item():
    item = one(
        beads,
        assignee="ana",
        description="secret",
        dependencies=[
            {"issue_id": "bd-42", "depends_on_id": "bd-1", "type": "blocks"},
            {"issue_id": "bd-42", "depends_on_id": "bd-2", "type": "related"},
            {"issue_id": "bd-42", "depends_on_id": "bd-3", "type": "parent-child"},
            {"issue_id": "bd-9", "depends_on_id": "bd-4", "type": "blocks"},
            {"depends_on_id": "bd-5", "type": "blocks"},
        ],
    )
    assert (item.channel, item.ref, item.id) == ("beads", "bd-42", "bd-42")
    assert (item.title, item.state, item.said) == ("Fix login", OPEN, "open")
    assert (item.priority, item.owner, item.after) == (1, "ana", ("bd-1", "bd-5"))


def test_an_issue_of_github_becomes_an_item():
    item = one(
        github,
        body="secret",
        labels=[{"name": "bug"}, {"name": "priority: high"}],
        assignees=[{"login": "ana", "name": "Ana"}, {"login": "ben"}],
        blockedBy=[{"number": 7, "url": "https://github.com/o/r/issues/7"}],
    )
    assert (item.channel, item.ref, item.id) == ("github", GITHUB["url"], "GH-12")
    assert (item.title, item.state, item.said) == ("Fix login", OPEN, "open")
    assert (item.priority, item.owner, item.after) == (1, "ana, ben", ("GH-7",))


def test_a_task_of_taskwarrior_becomes_an_item():
    item = one(taskwarrior, priority="H", depends=[OTHER], annotations=[{"description": "secret"}])
    assert (item.channel, item.ref, item.id) == ("taskwarrior", UUID, "TW-a360fc44")
    assert (item.title, item.state, item.said) == ("Fix login", OPEN, "pending")
    assert (item.priority, item.owner, item.after) == (1, "", ("TW-b1c2d3e4",))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("form", [lines, listed])
def test_elements_are_in_lines_or_in_a_list(name, form):
    [item], problems = FORMATS[name](form(SAMPLES[name]))
    assert (item.title, problems) == ("Fix login", [])


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_but_the_title_is_kept_of_the_texts(name):
    texts = (
        "body",
        "description",
        "design",
        "notes",
        "comments",
        "annotations",
        "acceptance_criteria",
    )
    more = {text: "SECRET" for text in texts if name != "taskwarrior" or text != "description"}
    items, _ = FORMATS[name](lines(more | SAMPLES[name]))
    assert "SECRET" not in repr(items)


@pytest.mark.parametrize(
    ("status", "state", "gate"),
    [
        ("open", OPEN, False),
        ("in_progress", IN_PROGRESS, False),
        ("hooked", OPEN, True),
        ("blocked", BLOCKED, False),
        ("deferred", OPEN, True),
        ("pinned", OPEN, True),
        ("closed", COMPLETE, False),
        ("tombstone", DROPPED, False),
    ],
)
def test_the_states_of_beads(status, state, gate):
    item = one(beads, status=status)
    assert (item.state, item.said, bool(item.gate)) == (state, status, gate)


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"state": "OPEN"}, OPEN),
        ({"state": "OPEN", "stateReason": "REOPENED"}, OPEN),
        ({"state": "OPEN", "stateReason": ""}, OPEN),
        ({"state": "CLOSED"}, COMPLETE),
        ({"state": "CLOSED", "stateReason": None}, COMPLETE),
        ({"state": "CLOSED", "stateReason": "COMPLETED"}, COMPLETE),
        ({"state": "CLOSED", "stateReason": "NOT_PLANNED"}, DROPPED),
        ({"state": "CLOSED", "stateReason": "DUPLICATE"}, DROPPED),
        ({"state": "CLOSED", "stateReason": "SOMETHING_NEW"}, COMPLETE),
        ({"state": "closed"}, COMPLETE),
        ({"state": None, "closed": True}, COMPLETE),
        ({"state": None, "closed": False}, OPEN),
    ],
)
def test_the_states_of_github(fields, state):
    assert one(github, **fields).state == state


@pytest.mark.parametrize(
    ("fields", "state", "gate"),
    [
        ({"status": "pending"}, OPEN, False),
        ({"status": "pending", "start": "20261115T080000Z"}, IN_PROGRESS, False),
        ({"status": "waiting", "wait": "20270101T000000Z"}, OPEN, True),
        ({"status": "completed", "start": "20261115T080000Z"}, COMPLETE, False),
        ({"status": "deleted"}, DROPPED, False),
    ],
)
def test_the_states_of_taskwarrior(fields, state, gate):
    item = one(taskwarrior, **fields)
    assert (item.state, bool(item.gate)) == (state, gate)


@pytest.mark.parametrize("name", ["beads", "taskwarrior"])
def test_a_state_of_ones_own_counts_as_open_and_is_reported(name):
    item, problem = doubted(FORMATS[name], status="on_fire")
    assert (item.state, item.said) == (OPEN, "on_fire")
    assert "on_fire" in problem.what and item.problems == (problem,)


def test_an_issue_of_github_without_a_state_counts_as_open_and_is_reported():
    item, problem = doubted(github, state=None)
    assert (item.state, "no state" in problem.what) == (OPEN, True)


@pytest.mark.parametrize(
    ("labels", "priority"),
    [
        ([], 2),
        (["bug", "high", "critical path", "p", "P9", "p10", "prioritised"], 2),
        (["P0"], 0),
        (["p3"], 3),
        (["P1: high"], 1),
        (["priority:critical"], 0),
        (["priority/low"], 3),
        (["Priority - Medium"], 2),
        (["prio=1"], 1),
        (["priority p4"], 4),
        (["low priority"], 3),
        (["P3", "priority:high"], 1),
        (["priority"], 2),
        (["priority:strange"], 2),
    ],
)
def test_the_priority_of_an_issue_of_github_is_in_its_labels(labels, priority):
    assert one(github, labels=[{"name": name} for name in labels]).priority == priority
    assert one(github, labels=labels).priority == priority


@pytest.mark.parametrize(
    ("written", "priority"), [("H", 1), ("M", 2), ("L", 3), ("", 2), (None, 2)]
)
def test_the_priorities_of_taskwarrior(written, priority):
    assert one(taskwarrior, priority=written).priority == priority


@pytest.mark.parametrize("priority", range(5))
def test_the_priorities_of_beads_are_ours(priority):
    assert one(beads, priority=priority).priority == priority


def test_an_issue_without_an_address_is_known_by_its_number():
    assert one(github, url=None).ref == one(github, url="javascript:alert(1)").ref == "#12"


def test_an_issue_that_occurs_with_its_url_and_without_is_one():
    for elements in (BARE, GITHUB), (GITHUB, BARE):
        [item], [problem] = github(lines(*elements))
        assert (item.ref, problem.what) == (GITHUB["url"], "#12 stands in it with its url, too")


@pytest.mark.parametrize(
    "others",
    [
        (GITHUB | {"title": "Another"},),
        (GITHUB | {"number": 13, "url": f"{PLACE}/13"},),
        (GITHUB, GITHUB | {"url": "https://github.com/o/other/issues/12"}),
    ],
)
def test_a_number_without_a_url_is_not_taken_for_another_issue(others):
    items, problems = github(lines(BARE, *others))
    assert (len(items), problems) == (len(others) + 1, [])


def imported(yard, *elements, check=False):
    """As `dibs import` does it, with refs as they are known everywhere."""
    items, _ = github(lines(*elements))
    items = [item.but(ref=normalised_ref("github", item.ref)) for item in items]
    return import_items(yard.board, yard.person("ana").identity, items, check=check)


def test_an_issue_that_came_without_its_url_is_known_when_it_has_one(yard):
    assert imported(yard, BARE).added == 1
    for check in (True, False, False):
        done = imported(yard, GITHUB, check=check)
        assert (done.added, done.known) == (0, 1)
        [problem] = done.problems
        assert problem.what.startswith("o/r#12 (GH-12) came before without a url")


def test_what_waits_for_an_issue_that_came_without_its_url_finds_it(yard):
    imported(yard, BARE)
    later = GITHUB | {"number": 13, "title": "Next", "url": f"{PLACE}/13", "blockedBy": [BARE]}
    assert imported(yard, GITHUB, later).added == 1
    assert yard.task("GH-13").waits_on == 1


def test_a_number_is_no_name_where_there_are_two_repositories_or_the_title_is_another(yard):
    """Rather is one issue two tasks than two issues one."""
    imported(yard, BARE)
    elsewhere = GITHUB | {"url": "https://github.com/o/other/issues/12"}
    done = imported(yard, GITHUB | {"number": 1, "url": f"{PLACE}/1"}, elsewhere)
    assert (done.added, done.problems) == (2, ())
    done = imported(yard, GITHUB | {"title": "Another"})
    assert done.added == 1
    assert "o/r#12 (GH-12) may have come before" in done.problems[0].what


def test_a_number_that_comes_after_the_url_is_reported_and_is_a_task_of_its_own(yard):
    imported(yard, GITHUB)
    done = imported(yard, BARE, BARE | {"number": 2})
    assert done.added == 2
    [problem] = done.problems
    assert problem.what == "#12 (GH-12) without a url may be what came before with one"
    assert imported(yard, BARE).problems == ()


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        ("o/r#12", "#12"),
        ("ghe.example/o/r#12", "#12"),
        ("https://x/o/r/issues/12", "#12"),
        ("o/r#7/comment/12", ""),
        ("#12", ""),
        ("https://x/12", ""),
    ],
)
def test_only_an_issue_that_is_named_in_full_has_a_number(ref, number):
    assert number_of(ref) == number


def test_an_issue_of_another_repository_is_not_waited_for():
    """It has another key here, or none."""
    there = {"number": 7, "url": "https://github.com/o/other/issues/7"}
    assert one(github, blockedBy={"nodes": [there, {"number": 8}]}).after == ("GH-8",)


def test_dependencies_of_an_older_taskwarrior_are_in_one_text():
    assert one(taskwarrior, depends=f"{OTHER}, {OTHER}").after == ("TW-b1c2d3e4",)


@pytest.mark.parametrize(
    ("parse", "fields"),
    [
        (beads, {"dependencies": [{"depends_on_id": "bd-42", "type": "blocks"}]}),
        (github, {"blockedBy": [{"number": 12, "url": GITHUB["url"]}]}),
        (taskwarrior, {"depends": f"{UUID},{UUID}"}),
    ],
)
def test_what_waits_for_itself_is_reported_and_waits_for_nothing(parse, fields):
    item, problem = doubted(parse, **fields)
    assert (item.after, problem.what) == ((), "it waits for itself")


def test_what_is_only_related_to_itself_is_not_reported():
    assert one(beads, dependencies=[{"depends_on_id": "bd-42", "type": "related"}]).after == ()


def test_the_pattern_of_a_task_that_recurs_is_no_task():
    items, [problem] = taskwarrior(lines(TASK | {"status": "recurring"}))
    assert (items, "recurs" in problem.what) == ([], True)


def test_what_beads_exports_beside_issues_is_left_out():
    items, problems = beads(lines({"_type": "memory", "key": "x"}, ISSUE | {"is_template": True}))
    assert (items, len(problems)) == ([], 2)


# What is not as it should be.


BAD = (
    None,
    True,
    7,
    1.5,
    "x",
    [],
    [1],
    {},
    {"title": "t"},
    {"id": 5, "number": "5", "uuid": 5},
    {"number": 0, "uuid": "a360fc44"},
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_element_is_reported_with_its_place_and_the_rest_is_read(name, bad):
    [item], [problem] = FORMATS[name](lines(SAMPLES[name], bad), "file.json")
    assert (problem.path, problem.line, item.line) == ("file.json", 2, 1)
    [item], [problem] = FORMATS[name](listed(SAMPLES[name], bad), "file.json")
    assert problem.what.startswith("element 2: ") and "left out" in problem.choice


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_that_is_no_json_is_reported_and_the_rest_is_read(name):
    data = b"\n{cut off\n" + lines(SAMPLES[name]) + b"[" * 100_000 + b"\n"
    [item], problems = FORMATS[name](data)
    assert (item.line, [problem.line for problem in problems]) == (3, [2, 4])


@pytest.mark.parametrize("name", FORMATS)
def test_an_origin_that_occurs_twice_counts_once(name):
    twice = {"title": "again", "description": "again"}
    [item], [problem] = FORMATS[name](lines(SAMPLES[name], SAMPLES[name] | twice))
    assert (item.title, problem.line) == ("Fix login", 2)


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_title_is_cut_and_reported(name):
    field = "description" if name == "taskwarrior" else "title"
    item, problem = doubted(FORMATS[name], **{field: "x" * 201})
    assert (len(item.title), "201 characters" in problem.what) == (200, True)
    assert len(one(FORMATS[name], **{field: "x" * 200}).title) == 200


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("title", ["", "  ", None, "\x00\x1b", "\ud800"])
def test_an_element_without_a_title_is_called_by_its_key(name, title):
    field = "description" if name == "taskwarrior" else "title"
    item, problem = doubted(FORMATS[name], **{field: title})
    assert (item.title, "no title" in problem.what) == (item.id, True)


@pytest.mark.parametrize("name", FORMATS)
def test_control_characters_do_not_come_in(name):
    field = "description" if name == "taskwarrior" else "title"
    item = one(FORMATS[name], **{field: "a\x1b[31m\nb\u202e\x00\ud800c\u2028d"})
    assert item.title == "a [31m b c d"


@pytest.mark.parametrize("priority", [5, -1, "1", 1.0, True, [], 10**30])
def test_a_priority_that_is_none_of_beads_is_reported(priority):
    item, problem = doubted(beads, priority=priority)
    assert (item.priority, "priority" in problem.what) == (2, True)


def test_a_number_of_thousands_of_digits_stops_nothing():
    data = b'[{"number": %s}, %s]' % (b"9" * 10_000, json.dumps(GITHUB).encode())
    [item], [problem] = github(data)
    assert (item.id, problem.what) == ("GH-12", "element 1: it has no number")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("wrong", [7, "x", {"a": 1}, [7, None, {"a": []}, [[]]]], ids=repr)
def test_fields_of_the_wrong_type_never_stop_an_import(name, wrong):
    known = set(ISSUE) | set(GITHUB) | {"dependencies", "labels", "assignees", "assignee"}
    known |= {"blockedBy", "stateReason", "depends", "priority", "start", "status"}
    known -= {"id", "number", "uuid", "description" if name == "taskwarrior" else "title"}
    [item], _ = FORMATS[name](lines(SAMPLES[name] | dict.fromkeys(known, wrong)))
    assert item.title == "Fix login" and all(isinstance(one, str) for one in item.after)


def test_a_crowd_of_dependencies_is_cut_and_reported():
    stated = [{"depends_on_id": f"x-{n}", "type": "blocks"} for n in range(1001)]
    item, problem = doubted(beads, dependencies=stated)
    assert (len(item.after), "1001" in problem.what) == (1000, True)


def test_a_name_that_is_too_long_is_no_name():
    with pytest.raises(Unreadable):
        beads(lines(ISSUE | {"id": "x" * 1001}))
    assert one(github, url="https://x/" + "y" * 1000).ref == "#12"


# What is something else.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "data",
    [
        b"# Backlog\n\n- fix it\n",
        b'{"message": "Not Found"}',
        b'[{"cut": ',
        b"[" * 100_000,
        b"\xff\xfe[]",
        b"SQLite format 3\0",
        b"[1, 2, 3]",
        b"[] []",
        b'"text"',
    ],
    ids=repr,
)
def test_what_is_not_the_format_at_all_cannot_be_read(name, data):
    with pytest.raises(Unreadable):
        FORMATS[name](data)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_no_format_is_taken_for_another(name, other):
    if name != other:
        with pytest.raises(Unreadable):
            FORMATS[name](lines(SAMPLES[other]))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", [b"", b"\n\n", b"[]", b"\xef\xbb\xbf[]\r\n"])
def test_an_export_of_nothing_is_nothing(name, data):
    assert FORMATS[name](data) == ([], [])


def test_where_it_breaks_is_reported():
    with pytest.raises(Unreadable) as problem:
        github(b'[\n{"number": 1},\n{"number" 2}\n]')
    assert problem.value.line == 3
    with pytest.raises(Unreadable) as problem:
        github(b"[\n\xff]")
    assert problem.value.line == 2


def test_there_is_a_limit_to_everything(monkeypatch):
    monkeypatch.setattr(formats, "ITEMS_MAX", 2)
    beads(lines(*(ISSUE | {"id": f"b-{n}"} for n in range(2))))
    for form in (lines, listed):
        with pytest.raises(Unreadable):
            beads(form(*(ISSUE | {"id": f"b-{n}"} for n in range(3))))
    monkeypatch.setattr(formats, "SIZE_MAX", 10)
    with pytest.raises(Unreadable):
        beads(lines(ISSUE))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
names = st.sampled_from(
    ["id", "title", "status", "priority", "dependencies", "assignee", "number", "url", "state",
     "stateReason", "labels", "assignees", "uuid", "description", "depends", "start", "blockedBy", "_type"]
)  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_whatever_an_element_holds_it_is_an_item_or_a_problem(name, data):
    fields = data.draw(st.dictionaries(names, values))
    items, problems = FORMATS[name](lines(SAMPLES[name], SAMPLES[name] | fields))
    assert items and len(items) + len(problems) >= 2
    for item in items:
        assert 0 < len(item.title) <= 200 and item.title.isprintable()
        assert 0 <= item.priority <= 4 and item.ref and item.id


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=200))
def test_whatever_the_bytes_are_nothing_breaks(name, data):
    try:
        FORMATS[name](data)
    except Unreadable as why:
        assert str(why)
