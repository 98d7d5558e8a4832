"""Backlog.md's folders: read as they are, and changed in place, in the tool's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.formats.backlog_md import BacklogMd, statuses_in
from dibs.backlogs.item import Record
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    HUMAN,
    IN_PROGRESS,
    OPEN,
    REVIEW,
    STATES,
    Actor,
    ActorId,
    ItemSnapshot,
    Lease,
    Task,
    TaskId,
    TaskKey,
    Terms,
    Token,
)
from dibs.domain.values import HOUR, SECOND, Duration, Instant
from dibs.safe_files import Unreadable

NOW = Instant(1_794_752_999 * SECOND)
"""2026-11-15T14:29:59Z."""
PATH = "backlog/tasks/task-12 - Fix-login.md"
CODEX = Actor(ActorId(7), "codex", "agent")

FILE = b"""---
id: TASK-12
title: 'Fix: login'
status: To Do
assignee: []
created_date: '2026-11-01 08:00'
labels:
  - web
dependencies:
  - TASK-3
priority: high
ordinal: 1000
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
status: Done is not a status here
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 it works
<!-- AC:END -->
"""

CONFIG = b"""project_name: "Shop"
default_status: "To Do"
statuses: ["To Do", "In Progress", "Done"]
labels: []
date_format: yyyy-mm-dd hh:mm
task_prefix: "task"
"""


def with_line(old: str, new: str, data: bytes = FILE) -> bytes:
    assert old.encode() in data
    return data.replace(old.encode(), new.encode(), 1)


def item_of(data: bytes = FILE, path: str = PATH, dialect: BacklogMd | None = None):
    [item], problems = (dialect or BacklogMd()).read(path, data, NOW)
    return item, problems


def read(data: bytes = FILE, path: str = PATH, dialect: BacklogMd | None = None):
    """An item that is read without a doubt."""
    item, problems = item_of(data, path, dialect)
    assert problems == []
    return item


def task(state=OPEN, number: int = 1, lease: Lease | None = None, status: str = "To Do") -> Task:
    mirrored = ItemSnapshot(status)
    return Task(
        TaskId(1), "uid", TaskKey("TASK-12"), Terms("Fix: login"), NOW, NOW, ActorId(1),
        state=state, token=Token(1, number), lease=lease, item=mirrored,
    )  # fmt: skip


def held(state=IN_PROGRESS, holder: Actor = CODEX, session: str | None = "s1") -> Record:
    lease = Lease(holder.id, session, NOW, NOW, Duration(2 * HOUR))
    return Record(task(state, lease=lease), "board-1", NOW, holder)


def free(state=OPEN, number: int = 1, status: str = "To Do") -> Record:
    return Record(task(state, number, status=status), "board-1", NOW)


def written(record: Record, data: bytes = FILE, path: str = PATH, dialect=None) -> bytes:
    return (dialect or BacklogMd()).written(path, data, {"TASK-12": record})


def differences(before: bytes, after: bytes) -> list[str]:
    """The lines that are new."""
    old = before.decode().split("\n")
    return [line for line in after.decode().split("\n") if line not in old]


# Which files.


@pytest.fixture
def root(tmp_path):
    for folder in ("tasks", "completed", "archive/tasks", "archive/drafts", "drafts", "docs"):
        (tmp_path / "backlog" / folder).mkdir(parents=True)
        (tmp_path / "backlog" / folder / f"{folder[:1]}-1 - X.md").write_bytes(FILE)
    (tmp_path / "backlog" / "config.yml").write_bytes(CONFIG)
    return tmp_path


def test_tasks_and_what_became_of_them_are_read_but_no_drafts(root):
    for name in ("README.md", ".hidden.md", "notes.txt"):
        (root / "backlog" / "tasks" / name).write_bytes(FILE)
    assert list(BacklogMd.at(str(root)).paths(str(root))) == [
        "backlog/tasks/t-1 - X.md",
        "backlog/completed/c-1 - X.md",
        "backlog/archive/tasks/a-1 - X.md",
    ]


def test_an_id_that_was_given_out_again_is_that_of_the_file_that_is_worked_on(root):
    """The tool forgets the ids of what it archives."""
    (root / "backlog" / "archive" / "tasks" / "T-1 - Older.md").write_bytes(FILE)
    assert "backlog/archive/tasks/T-1 - Older.md" not in list(BacklogMd().paths(str(root)))


def test_a_backlog_may_lie_elsewhere_and_lack_folders(tmp_path):
    (tmp_path / "doc" / "plan" / "tasks").mkdir(parents=True)
    (tmp_path / "doc" / "plan" / "config.yml").write_bytes(CONFIG)
    (tmp_path / "doc" / "plan" / "tasks" / "task-1.md").write_bytes(FILE)
    dialect = BacklogMd.at(str(tmp_path), "doc/plan")
    assert list(dialect.paths(str(tmp_path))) == ["doc/plan/tasks/task-1.md"]


# Reading.


def test_a_file_becomes_an_item():
    item = read(with_line("assignee: []", "assignee:\n  - '@ana'\n  - ben"))
    assert (item.channel, item.ref, item.id, item.path) == (
        "backlog.md",
        "TASK-12",
        "TASK-12",
        PATH,
    )
    assert (item.title, item.state, item.said) == ("Fix: login", OPEN, "To Do")
    assert (item.priority, item.owner, item.after) == (1, "ana, ben", ("TASK-3",))
    assert (item.pointer, item.expires, item.gate) == (None, None, "")


@pytest.mark.parametrize("form", ["[@ana]", '["@ana"]', "'@ana'", "@ana", "ana", "\n  - '@ana'"])
def test_an_assignee_is_read_however_people_and_the_tool_write_it(form):
    """`@ana` without quotes is no YAML; the tool takes it all the same."""
    assert read(with_line("assignee: []", f"assignee: {form}")).owner == "ana"
    assert (
        read(with_line("assignee: []", f"assignee: {form}").replace(b"\n", b"\r\n")).owner == "ana"
    )


@pytest.mark.parametrize("form", ["[@ana, ben,@eve]", "@ana", "[ @ana ]"])
def test_a_line_of_assignees_that_is_no_yaml_stays_as_it_is_until_somebody_else_holds_it(form):
    data = with_line("assignee: []", f"assignee: {form}")
    assert written(free(number=0), data) == data
    assert f"\nassignee: {form}\n".encode() in written(free(BLOCKED), data)
    people = read(data).owner.split(", ")
    listed = ", ".join(f'"{name}"' for name in ("@ana", "ben", "@eve")[: len(people)])
    assert f'\nassignee: [{listed}, "@codex"]\n'.encode() in written(held(), data)


def test_only_the_key_is_meant_and_not_the_text_below():
    data = FILE.replace(b"assignee: []\n", b"") + b"\nassignee: @ana\n"
    assert read(data).owner == ""
    assert written(held(), data).endswith(b"\nassignee: @ana\n")


def test_ids_are_compared_in_capitals():
    """Older versions of the tool wrote small letters, and newer ones change them."""
    item = read(with_line("id: TASK-12", "id: task-12", with_line("TASK-3", "task-3.01")))
    assert (item.ref, item.after) == ("TASK-12", ("TASK-3.01",))


def test_a_dependency_may_be_a_number_alone():
    assert read(with_line("  - TASK-3", "  - 3")).after == ("TASK-3",)


@pytest.mark.parametrize(
    ("value", "priority"), [("high", 1), ("Medium", 2), ("low", 3), ("odd", 2)]
)
def test_priorities(value, priority):
    assert read(with_line("priority: high", f"priority: {value}")).priority == priority


def test_a_file_without_an_id_is_known_by_its_name_and_that_is_reported():
    item, [problem] = item_of(with_line("id: TASK-12\n", ""))
    assert (item.id, problem.what) == ("TASK-12", "it has no id")


def test_a_file_without_a_title_is_called_by_its_id_and_that_is_reported():
    item, [problem] = item_of(with_line("title: 'Fix: login'\n", ""))
    assert (item.title, problem.what) == ("TASK-12", "it has no title")


def test_a_status_that_the_config_does_not_have_is_reported_and_the_item_is_not_offered():
    item, [problem] = item_of(with_line("To Do", "Somewhere"))
    assert (item.state, item.said, "Somewhere" in item.gate) == (OPEN, "Somewhere", True)
    assert "cannot be started" in problem.choice


def test_what_is_in_the_archive_is_not_wanted_any_more_unless_it_was_done():
    path = "backlog/archive/tasks/task-12 - Fix-login.md"
    item = read(FILE, path)
    assert (item.state, BacklogMd().words.state(item.said)) == (DROPPED, DROPPED)
    assert read(with_line("To Do", "Done"), path).state == COMPLETE


@pytest.mark.parametrize(
    "data", [b"", b"# no frontmatter\n", b"---\nid: x\n", b"---\nid: [\n---\n"]
)
def test_what_is_no_item_cannot_be_read(data):
    with pytest.raises(Unreadable):
        BacklogMd().read(PATH, data, NOW)


# Statuses.


CONFIGS = [
    (b'statuses: ["To Do", "In Progress", "Done"]\n', ("To Do", "In Progress", "Done")),
    (b"statuses:\n  - Todo\n  - 'Doing: it'\n  - Done # end\n", ("Todo", "Doing: it", "Done")),
    (b"---\nstatuses: [a, b, a]\r\n", ("a", "b")),
    (b"project_name: x\n", ("To Do", "In Progress", "Done")),
    (b"statuses: []\n", ("To Do", "In Progress", "Done")),
]


@pytest.mark.parametrize(("config", "statuses"), CONFIGS)
def test_the_statuses_are_those_of_the_config(config, statuses):
    assert statuses_in(config) == statuses


def test_the_config_of_a_root_is_used(root):
    (root / "backlog" / "config.yml").write_bytes(b"statuses: [Idea, Ready, Live]\n")
    dialect = BacklogMd.at(str(root))
    assert read(with_line("To Do", "Live"), dialect=dialect).state == COMPLETE


def test_a_config_that_cannot_be_read_is_named_where_it_matters(root):
    (root / "backlog" / "config.yml").write_bytes(b'statuses: ["To Do\n\xff')
    dialect = BacklogMd.at(str(root))
    assert read(dialect=dialect).state == OPEN
    item, _ = item_of(with_line("To Do", "Ready"), dialect=dialect)
    assert "config.yml cannot be read" in item.gate


MEANT = {
    "Backlog": OPEN, "Ready": OPEN, "In Progress": IN_PROGRESS, "IN PROGRESS": IN_PROGRESS,
    "In Review": REVIEW, "Blocked": BLOCKED, "Failed": FAILED, "Cancelled": DROPPED, "Done": COMPLETE,
    "Shipped": COMPLETE, "Won't do": DROPPED,
}  # fmt: skip
STATUSES = (
    "Backlog", "Ready", "In Progress", "In Review", "Blocked", "Failed", "Cancelled", "Done",
    "Won't do", "Shipped",
)  # fmt: skip


@pytest.mark.parametrize("value", MEANT)
def test_the_first_is_open_the_last_is_complete_and_names_say_the_rest(value):
    dialect = BacklogMd(statuses=STATUSES)
    assert read(with_line("To Do", value), dialect=dialect).state == MEANT[value]


def test_a_last_status_that_is_no_success_is_none():
    words = BacklogMd(statuses=("To Do", "Done", "Cancelled")).words
    assert (words.state("done"), words.state("cancelled")) == (COMPLETE, DROPPED)
    assert (words.writes[COMPLETE], words.writes[DROPPED]) == ("Done", "Cancelled")


@given(st.lists(st.text("abcdeprogsviewblck ", min_size=1, max_size=12), min_size=1, max_size=6))
def test_every_state_has_a_word_of_the_backlogs_own(statuses):
    statuses = tuple(dict.fromkeys(status.strip() or "x" for status in statuses))
    words = BacklogMd(statuses=statuses).words
    for state in STATES:
        assert words.writes[state] in statuses
    for status in statuses:
        assert words.state(status) in STATES


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (OPEN, "To Do"),
        (IN_PROGRESS, "In Progress"),
        (REVIEW, "In Progress"),
        (BLOCKED, "To Do"),
        (FAILED, "To Do"),
        (COMPLETE, "Done"),
        (DROPPED, "Done"),
    ],
)
def test_a_state_without_a_word_gets_the_nearest(state, word):
    assert BacklogMd().words.writes[state] == word


# Writing.


def test_a_claim_changes_the_lines_of_a_claim_and_nothing_else():
    after = written(held())
    assert differences(FILE, after) == [
        "status: In Progress",
        'assignee: ["@codex"]',
        "dibs: board-1 1.1 codex s1 2h",
        'updated_date: "2026-11-15 14:29"',
        "lease_expires_at: 2026-11-15T16:29:59Z",
    ]
    assert after.endswith(FILE[FILE.index(b"---\n\n## Description") :])


def test_what_was_written_is_read_back():
    item = read(written(held()))
    assert (item.state, item.owner, str(item.pointer)) == (
        IN_PROGRESS, "codex", "board-1 1.1 codex s1 2h",
    )  # fmt: skip
    assert item.expires == NOW + 2 * HOUR


def test_the_same_record_again_changes_nothing():
    for record in (held(), free(), free(COMPLETE), free(BLOCKED)):
        once = written(record)
        assert written(record.but(now=Instant(NOW + HOUR)), once) == once


def test_a_renewal_is_no_change_of_the_task():
    """The tool sorts by `updated_date`: a keeper does not stir it."""
    once = written(held())
    later = held().but(expires=Instant(NOW + 3 * HOUR), now=Instant(NOW + HOUR))
    assert differences(once, written(later, once)) == ["lease_expires_at: 2026-11-15T17:29:59Z"]


def test_after_a_release_nobody_is_named_and_the_pointer_stays():
    after = written(free(), written(held()))
    assert differences(FILE, after) == [
        "dibs: board-1 1.1",
        'updated_date: "2026-11-15 14:29"',
    ]


def test_after_completion_the_file_says_who_did_it():
    item = read(written(free(COMPLETE), written(held())))
    assert (item.said, item.owner, str(item.pointer)) == ("Done", "codex", "board-1 1.1")


def test_an_assignee_whom_dibs_did_not_write_stays():
    data = with_line("assignee: []", "assignee: ['@ana']")
    assert read(written(free(number=3), data)).owner == "ana"
    assert b"assignee: ['@ana']" in written(free(BLOCKED, number=3), data)


def test_a_task_that_nobody_ever_held_leaves_its_file_alone():
    assert written(free(number=0)) == FILE


@pytest.mark.parametrize("form", ["codex", "'@codex'", "[codex]", "['@codex']"])
def test_a_holder_who_is_named_already_is_not_named_anew(form):
    data = with_line("assignee: []", f"assignee: {form}")
    assert f"assignee: {form}\n".encode() in written(held(), data)


PEOPLE = [
    "['@al', '@bo']",
    "[al, bo]",
    "[@al, @bo]",
    "\n  - '@al'\n  - bo",
    "['@bo', '@al', '@di']",
]


@pytest.mark.parametrize("form", PEOPLE)
def test_people_who_are_named_stay_while_somebody_holds_it_and_after(form):
    data = with_line("assignee: []", f"assignee: {form}")
    people = read(data).owner
    begun = written(held(), data)
    assert read(begun).owner == f"{people}, codex"
    assert written(held(), begun) == begun
    assert read(written(free(), begun)).owner == people


@pytest.mark.parametrize("form", ["[codex]", "['@codex']", "['@codex', '@al']", "[@al, codex, bo]"])
def test_a_holder_whom_people_named_before_stays_named_after_a_release(form):
    data = with_line("assignee: []", f"assignee: {form}")
    begun = written(held(), data)
    assert written(held(), begun) == begun
    for after in (begun, written(free(), begun), written(free(), written(free(BLOCKED), begun))):
        assert f"assignee: {form}\n".encode() in after


def test_a_later_holder_takes_the_place_of_the_one_before_and_of_nobody_else():
    ana = Actor(ActorId(8), "ana", HUMAN)
    data = with_line("assignee: []", "assignee: ['@al', '@ana']")
    taken = written(held(holder=ana, session=""), written(held(), data))
    assert read(taken).owner == "al, ana"
    assert read(written(held(), taken)).owner == "al, ana, codex"
    assert read(written(free(), taken)).owner == "al, ana"


@pytest.mark.parametrize("end", [FAILED, BLOCKED, REVIEW])
def test_who_worked_on_it_is_named_until_it_is_open_again(end):
    data = with_line("assignee: []", "assignee: ['@al']")
    over = written(free(end), written(held(), data))
    assert read(over).owner == "al, codex"
    assert written(free(end), over) == over
    assert read(written(free(), over)).owner == "al"
    ana = Actor(ActorId(8), "ana", HUMAN)
    assert read(written(held(holder=ana, session=""), over)).owner == "al, ana"


@pytest.mark.parametrize("end", [COMPLETE, DROPPED])
def test_who_ended_it_stays_named_for_good(end):
    over = written(free(end), written(held()))
    assert b"dibs_assignee" not in over
    assert read(written(free(), over)).owner == "codex"


def test_a_holder_whose_name_somebody_took_away_is_named_again():
    begun = written(held(), with_line("assignee: []", "assignee: ['@codex']"))
    again = written(held(), with_line("assignee: ['@codex']", "assignee: ['@al']", begun))
    assert read(again).owner == "al, codex"
    assert read(written(free(), again)).owner == "al"


def test_a_holder_with_an_address_for_a_name_is_read_back():
    ana = Actor(ActorId(8), "ana@shop.example", HUMAN)
    assert read(written(held(holder=ana, session=""))).owner == "ana@shop.example"


def test_a_word_that_says_the_same_stays():
    dialect = BacklogMd(statuses=("Backlog", "To Do", "In Progress", "Done"))
    assert b"status: To Do\n" in written(free(), dialect=dialect)
    begun = written(held(), dialect=dialect)
    assert b"status: In Progress\n" in begun
    assert b"status: To Do\n" in written(free(status="To Do"), begun, dialect=dialect)
    assert b"status: Backlog\n" in written(free(status="Backlog"), begun, dialect=dialect)


def test_the_day_is_written_where_the_file_has_days():
    data = with_line("created_date: '2026-11-01 08:00'", "created_date: '2026-11-01'")
    assert b'updated_date: "2026-11-15"\n' in written(held(), data)


def test_a_date_that_is_there_keeps_its_place_and_quotes():
    data = with_line("labels:", "updated_date: '2026-11-02 09:00'\nlabels:")
    after = written(held(), data)
    assert b"08:00'\nupdated_date: '2026-11-15 14:29'\nlabels:" in after


def test_in_the_archive_a_status_is_left_as_it_was():
    path = "backlog/archive/tasks/task-12 - Fix-login.md"
    assert written(free(DROPPED, number=0), path=path) == FILE
    assert b"status: To Do\n" in written(free(DROPPED), path=path)


def test_line_ends_of_another_system_stay():
    data = FILE.replace(b"\n", b"\r\n")
    after = written(held(), data)
    assert after.count(b"\n") == after.count(b"\r\n")
    assert read(after).said == "In Progress"
