"""Words of one's own, the report of a sync, and syncs after our own writes."""

from __future__ import annotations

import json

import pytest

from dibs.backlogs.discover import wrong_in
from dibs.backlogs.formats.words import Words
from dibs.backlogs.report import Options
from dibs.domain import commands as c
from kit.backlogs import KANO, QUEUE, difference, ready
from kit.boards import of_a_file

ALL = Options(everything=True)


def backlog_md(yard) -> tuple[str, str]:
    yard.put("backlog/config.yml", 'statuses: ["To Do", "In Progress", "Done"]\n')
    text = "---\nid: task-1\ntitle: T\nstatus: To Do\nassignee: []\n---\n"
    return yard.put("backlog/tasks/task-1 - T.md", text), "TASK-1"


def graph(yard) -> tuple[str, str]:
    line = json.dumps({"kind": "task", "id": "t", "title": "T", "status": "open"})
    return yard.put(".wg/graph.jsonl", f"{line}\n"), "t"


def tasks_json(yard) -> tuple[str, str]:
    task = {"id": 1, "title": "T", "status": "pending"}
    return yard.put(
        ".taskmaster/tasks/tasks.json", json.dumps({"master": {"tasks": [task]}})
    ), "TM-1"


BACKLOGS = {
    "kano": lambda yard: (yard.kano("KABSD-TSK-0001"), "KABSD-TSK-0001"),
    "wrk": lambda yard: (yard.wrk("WRK-1"), "WRK-1"),
    "backlog.md": backlog_md,
    "workgraph": graph,
    "taskmaster": tasks_json,
}


@pytest.mark.parametrize("name", BACKLOGS)
def test_a_sync_after_our_own_writes_counts_nothing_as_changed(yard, name):
    _, key = BACKLOGS[name](yard)
    yard.sync()
    codex = yard.agent("codex", "s1")
    for command in (
        c.Claim(key), c.Renew(key), c.Block(key, reason="r"), c.Unblock(key), c.Claim(key), c.Fail(key, reason="r"),
        c.Retry(key), c.Claim(key), c.Release(key), c.Claim(key), c.Complete(key),
    ):  # fmt: skip
        codex.do(command)
        report = yard.sync(ALL)
        assert (report.added, report.changed, report.written) == (0, 0, 0), command.verb
    assert yard.faults() == ()


OWN = {
    "kano": ("state", "On Hold", "blocked"),
    "wrk": ("status", "parked-2026", "blocked"),
}


@of_a_file
@pytest.mark.parametrize("name", OWN)
def test_a_backlog_may_have_words_of_its_own(yard, name):
    key_, word, state = OWN[name]
    path, key = BACKLOGS[name](yard)
    old = next(line for line in yard.text(path).splitlines() if line.startswith(f"{key_}: "))
    yard.edit(path, old, f"{key_}: {word}")
    yard.put("dibs.toml", f'[backlogs.{name}.words]\n"{word[:4]}*" = "{state}"\n')
    yard.sync()
    assert yard.task(key).state == state
    assert ready(yard) == []


def test_a_word_of_ones_own_is_written_where_the_tool_has_none():
    words = Words({"a": "open"}, {"open": "a", "review": "a"}).extended({"Checking": "review"})
    assert words.writes == {"open": "a", "review": "Checking"}
    assert words.state("checking") == "review"


@of_a_file
@pytest.mark.parametrize(
    "text",
    [
        "kano.words = 7",
        '[backlogs.kano.words]\nX = "none"',
        '[backlogs.kano]\noffer = "Task"',
        '[backlogs.workgraph.words]\nX = "open"',
        "[backlogs.wrk]\noffer = []",
        '[backlogs.kano]\npath = "/etc"',
    ],
)
def test_what_is_wrong_in_the_table_is_reported_and_not_followed(yard, text):
    yard.kano("KABSD-TSK-0001")
    yard.put("dibs.toml", text if text.startswith("[") else f"[backlogs]\n{text}")
    assert wrong_in(str(yard.root)) != []
    assert yard.sync().added == 1


def test_the_report_lists_what_was_skipped_and_apart_what_is_finished(yard):
    yard.kano("KABSD-TSK-0001")
    yard.kano("KABSD-TSK-0002", state="Done")
    yard.wrk("WRK-1", folder="done", status="done")
    index = yard.put(f"{KANO}/task/tasks.index.md", "x")
    notes = yard.put(f"{QUEUE}/pending/notes.md", "x")
    report = yard.sync(ALL)
    assert {problem.path for problem in report.skipped} == {index, notes}
    assert len(report.finished) == 2
    assert yard.sync().skipped == ()


@pytest.mark.parametrize("name", BACKLOGS)
def test_claim_block_unblock_and_release_leave_only_what_is_documented(yard, name):
    path, key = BACKLOGS[name](yard)
    before = yard.text(path)
    yard.sync()
    codex = yard.agent("codex", "s1")
    for command in (
        c.Claim(key),
        c.Block(key, reason="r"),
        c.Unblock(key),
        c.Claim(key),
        c.Release(key),
    ):
        codex.do(command)
    if name in ("workgraph", "taskmaster"):
        after = json.loads(yard.text(path))
        own = after if name == "workgraph" else after["master"]["tasks"][0]
        assert own.pop("dibs")
        own.pop("log", None)
        own.pop("retry_count", None)
        assert after == json.loads(before)
        return
    left = {line[2:].partition(":")[0][:12] for line in difference(before, yard.text(path))}
    worklog = {line[2:14] for line in difference(before, yard.text(path)) if line[2:4] == "20"}
    stays = {"kano": {"dibs", "updated"}, "wrk": {"dibs", "locked_by", "locked_at"}}
    assert left - {line[:12] for line in worklog} == stays.get(name, {"dibs", "updated_date"})
