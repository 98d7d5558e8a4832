"""Backlog.md's folders on a board: which work is offered, and what a life leaves in the file."""

from __future__ import annotations

import itertools

import pytest

from dibs.backlogs.report import Options
from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from kit.backlogs import Yard, difference, ready, told
from kit.boards import of_a_file

ALL = Options(everything=True)
CUSTOM = (
    ("To Do", "In Progress", "Done"),
    ("Triage", "To Do", "In Progress", "Done"),
    ("Backlog", "Ready", "Doing", "In Review", "Released"),
    ("Inbox", "Next", "In Progress", "Blocked", "Done"),
    ("New", "Selected", "Doing", "Failed", "Shipped"),
)


def config(yard, statuses=CUSTOM[0], folder="backlog") -> None:
    listed = ", ".join(f'"{status}"' for status in statuses)
    yard.put(f"{folder}/config.yml", f"project_name: p\nstatuses: [{listed}]\n")


def task(yard, id_: str, *lines: str, folder: str = "backlog/tasks", name: str = "x") -> str:
    stated = {
        "title": f"title: '{id_} {name}'",
        "status": "status: To Do",
        "assignee": "assignee: []",
    }
    stated |= {line.partition(":")[0]: line for line in lines}
    text = "\n".join(line for line in stated.values() if not line.endswith(":-"))
    return yard.put(f"{folder}/{id_} - {name}.md", f"---\nid: {id_}\n{text}\n---\n\nText\n")


@of_a_file
@pytest.mark.parametrize("place", ["backlog", ".backlog"])
@pytest.mark.parametrize("at_root", [False, True])
def test_a_backlog_is_found_by_itself(yard, place, at_root):
    if at_root:
        stated = f'backlog_directory: "{place}"\n' if place != "backlog" else ""
        yard.put("backlog.config.yml", f'statuses: ["New", "Done"]\n{stated}')
    else:
        config(yard, ("New", "Done"), place)
    task(yard, "task-1", "status: New", folder=f"{place}/tasks")
    yard.sync()
    assert ready(yard) == ["TASK-1"]


@of_a_file
@pytest.mark.parametrize("stated", ["../elsewhere", "/etc", "missing"])
def test_a_folder_that_the_root_names_is_inside_the_repository(yard, stated):
    yard.put("backlog.config.yml", f'backlog_directory: "{stated}"\n')
    assert yard.sync().files == 0


def paths_of_life():
    """Lives that end with the item open and free."""
    claim, release = c.Claim("TASK-1"), c.Release("TASK-1")
    block = c.Block("TASK-1", reason="r")
    fail = c.Fail("TASK-1", reason="r")
    return {
        "release": (claim, release),
        "block": (claim, block, c.Unblock("TASK-1")),
        "fail": (claim, fail, c.Retry("TASK-1")),
        "twice": (claim, block, c.Unblock("TASK-1"), claim, release),
        "review": (claim, c.Submit("TASK-1"), c.Reject("TASK-1", reason="r")),
    }


@pytest.mark.parametrize("life", paths_of_life())
@pytest.mark.parametrize("statuses", CUSTOM, ids="-".join)
def test_the_file_gets_back_the_word_that_it_had(yard, statuses, life):
    """Only the pointer, and the date that the tool keeps itself, stay."""
    config(yard, statuses)
    words = [word for word in statuses[:2] if word not in ("In Progress", "Doing")]
    for word in words:
        path = task(yard, "task-1", f"status: {word}")
        before = yard.text(path)
        yard.sync(ALL)
        codex, ana = yard.agent("codex", "s1"), yard.person("ana")
        for command in paths_of_life()[life]:
            (ana if isinstance(command, c.Reject) else codex).do(command)
            yard.sync()
        assert [line[2:].partition(":")[0] for line in difference(before, yard.text(path))] == [
            "dibs", "updated_date",
        ]  # fmt: skip
        assert yard.faults() == ()
        yard.put(path, before)


LISTS = (
    "assignee:\n  - '@kim'",
    'assignee:\n  - "@kim"\n  - "@lee"',
    "assignee:\n- kim",
    "assignee: ['@kim']",
    "assignee: []",
    "assignee:",
    "assignee:-",
)


@pytest.mark.parametrize("form", LISTS)
def test_a_claim_and_a_release_keep_the_style_of_a_list(yard, form):
    config(yard)
    path = task(yard, "task-1", form)
    before = yard.text(path)
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.do(c.Claim("TASK-1"))
    assert "@codex" in yard.text(path)
    assert ("\n- " in yard.text(path) or "\n  - " in yard.text(path)) == (
        "[" not in form and form != LISTS[-1]
    )
    codex.do(c.Release("TASK-1"))
    added = [line for line in difference(before, yard.text(path)) if line[2:6] != "dibs"]
    assert [line[2:14] for line in added] == ["updated_date"]


def test_a_missing_status_is_missing_again_after_a_release(yard):
    config(yard)
    path = task(yard, "task-1", "status:-")
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.do(c.Claim("TASK-1"))
    assert "status: In Progress" in yard.text(path)
    codex.do(c.Release("TASK-1"))
    assert "status" not in yard.text(path)


def test_completed_means_complete_whatever_its_status(yard):
    config(yard, ("To Do", "In Progress", "Released"))
    task(yard, "task-1", "status: Done", folder="backlog/completed")
    task(yard, "task-2", "status: To Do", folder="backlog/completed")
    task(yard, "task-3", "dependencies: [task-1, task-2]")
    report = yard.sync()
    assert report.problems == ()
    assert [yard.task(f"TASK-{n}").state for n in (1, 2, 3)] == ["complete", "complete", "open"]
    assert ready(yard) == ["TASK-3"]


@pytest.mark.parametrize("stated", ["task-1", "TASK-001", "1", "001", "Task-01"])
def test_leading_zeros_and_case_of_ids_mean_nothing(yard, stated):
    config(yard)
    task(yard, "task-001")
    task(yard, "TASK-2", f"dependencies: [{stated}]")
    assert yard.sync().problems == ()
    assert ready(yard) == ["TASK-001"]
    codex = yard.agent("codex", "s1")
    codex.do(c.Claim("TASK-001"))
    codex.do(c.Complete("TASK-001"))
    assert ready(yard) == ["TASK-2"]
    codex.do(c.Claim("TASK-2"))


def test_the_report_names_what_is_in_subfolders_and_what_is_archived_twice(yard):
    config(yard)
    inside = task(yard, "task-6", folder="backlog/tasks/epics")
    task(yard, "task-5", "status: Done", folder="backlog/archive/tasks", name="First")
    task(yard, "task-5", "status: Done", folder="backlog/archive/tasks", name="Second")
    old = task(yard, "task-07", folder="backlog/archive/tasks")
    task(yard, "task-7")
    report = yard.sync(ALL)
    assert {problem.path for problem in report.skipped} == {inside, old}
    assert "subfolder" in str(report.skipped)
    assert "has the same id TASK-5; its task is TASK-5-2" in told(report)
    assert ready(yard) == ["TASK-7"]


def test_items_are_offered_in_the_order_of_people(yard):
    config(yard)
    for number, ordinal in enumerate(["3000", "1000", "none", "2000.5"], 1):
        task(yard, f"task-{number}", f"ordinal: {ordinal}")
    task(yard, "task-5", "ordinal: 9000", "priority: high")
    yard.sync()
    assert ready(yard) == ["TASK-5", "TASK-2", "TASK-4", "TASK-1", "TASK-3"]


ENDS = {
    "review": c.Submit("TASK-1"),
    "blocked": c.Block("TASK-1", reason="r"),
    "failed": c.Fail("TASK-1", reason="r"),
}


@of_a_file
@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("statuses", CUSTOM, ids="-".join)
def test_after_a_lost_database_what_waits_for_people_is_not_offered(
    yard, tmp_path, statuses, state
):
    config(yard, statuses)
    path = task(yard, "task-1", f"status: {statuses[0]}")
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.do(c.Claim("TASK-1"))
    codex.do(ENDS[state])
    (tmp_path / "again").mkdir()
    with yard.store.read() as tx:
        again = Yard(tmp_path / "again", uid=tx.board.uid)
    try:
        for name in ("backlog/config.yml", path):
            again.put(name, yard.text(name))
        again.sync()
        assert again.task("TASK-1").state == state
        assert ready(again) == []
        assert again.sync(ALL).problems == ()
    finally:
        again.close()


def test_a_life_of_many_verbs_never_writes_a_word_that_the_config_lacks(yard):
    verbs = (
        c.Claim("TASK-1"), c.Block("TASK-1", reason="r"), c.Unblock("TASK-1"), c.Submit("TASK-1"),
        c.Fail("TASK-1", reason="r"), c.Retry("TASK-1"), c.Release("TASK-1"),
    )  # fmt: skip
    config(yard, CUSTOM[2])
    path = task(yard, "task-1", "status: Ready")
    yard.sync()
    codex = yard.agent("codex", "s1")
    for one, other in itertools.product(verbs, verbs):
        for verb in (one, other):
            try:
                codex.do(verb)
            except Refused:
                continue
        [line] = [line for line in yard.text(path).splitlines() if line.startswith("status:")]
        assert line.partition(": ")[2] in CUSTOM[2]
    assert yard.faults() == ()
