"""Work that was under way in files before the board was there: who works on what stays known."""

from __future__ import annotations

import json

import pytest

from dibs.backlogs import index
from dibs.backlogs.report import Options, summary
from dibs.domain import commands as c
from dibs.domain.model import HUMAN
from dibs.domain.values import DAY, HOUR
from kit.backlogs import Yard

GRAPH = ".wg/graph.jsonl"
CONFIG = "backlog/config.yml"
CARD = """---
id: TASK-12
title: Fix login
status: {status}
assignee: [{owner}]
created_date: '2026-11-01 08:00'
dependencies: []
---

## Description

As it is.
"""


@pytest.fixture
def yard(tmp_path, kind):
    yard = Yard(tmp_path, kind)
    yield yard
    yard.close()


def in_a_graph(yard, owner: str) -> tuple[str, str]:
    one = {"kind": "task", "id": "a", "title": "do a", "status": "in-progress", "assigned": owner}
    return yard.put(GRAPH, json.dumps(one) + "\n"), "a"


def in_kano(yard, owner: str) -> tuple[str, str]:
    return yard.kano("KABSD-TSK-0001", state="InProgress", owner=owner), "KABSD-TSK-0001"


def in_wrk(yard, owner: str) -> tuple[str, str]:
    """Locked for longer than its own rule lets a lock live."""
    at = "2026-01-01T00:00:00Z"
    path = yard.wrk("WRK-157", "working", status="working", locked_by=owner, locked_at=at)
    return path, "WRK-157"


def in_backlog_md(yard, owner: str) -> tuple[str, str]:
    yard.put(CONFIG, 'statuses: ["To Do", "In Progress", "Done"]\n')
    card = CARD.format(status="In Progress", owner=f'"@{owner}"')
    return yard.put("backlog/tasks/task-12 - Fix-login.md", card), "TASK-12"


EVERYWHERE = pytest.mark.parametrize("at_work", [in_a_graph, in_kano, in_wrk, in_backlog_md])
ASKS = pytest.mark.parametrize("at_work", [in_a_graph, in_kano, in_backlog_md])
"""WRK has a rule of its own: a lock of somebody unknown is over after two hours."""


@EVERYWHERE
def test_a_persons_work_by_file_becomes_her_lease(yard, at_work):
    """Of the ordinary length, in progress, and without a stint: nobody knows since when."""
    yard.person("erik").do(c.Add(yard.terms()))
    _, key = at_work(yard, "erik")
    report = yard.sync()
    assert (report.adopted, report.healed) == ((f"{key} (erik)",), ())
    assert f"1 claim adopted: {key} (erik)" in summary(report)
    task = yard.task(key)
    assert (task.state, task.lease.actor, task.lease.session) == (
        "in_progress", yard.actor_id("erik"), "",
    )  # fmt: skip
    assert (task.lease.ttl, task.lease.stint, task.attempts) == (7 * DAY, None, 1)
    assert yard.agent("codex", "s1").refused(c.Claim(key)) == "held"
    assert yard.sync(Options(everything=True)).adopted == ()
    assert yard.person("erik").do(c.Complete(key)).task.state == "complete"
    assert yard.faults() == ()


@ASKS
def test_a_known_agents_work_by_file_waits_for_its_session(yard, at_work):
    codex = yard.agent("codex", "s1")
    codex.do(c.Add(yard.terms()))
    _, key = at_work(yard, "codex")
    yard.sync()
    task = yard.task(key)
    assert (task.state, task.lease.session, task.lease.ttl) == ("in_progress", None, 2 * HOUR)
    assert yard.agent("claude", "s9").refused(c.Claim(key)) == "held"
    assert codex.claim(key).task.lease.session == "s1"


@ASKS
def test_work_by_file_of_somebody_unknown_is_a_question(yard, at_work, monkeypatch):
    """Nothing is rewritten, nobody else begins it, and the answer makes it a lease."""
    monkeypatch.setattr(index, "RACY", -(10**18))  # it was written long ago
    path, key = at_work(yard, "erik")
    before = yard.text(path)
    report = yard.sync()
    assert (report.healed, yard.text(path), yard.task(key).state) == ((), before, "open")
    [questions] = [
        problem for problem in report.problems if "is erik at work on it?" in problem.what
    ]
    assert "dibs actor set erik --kind human" in questions.choice
    assert yard.agent("codex", "s1").refused(c.Claim(key)) == "locked_in_file"
    assert yard.agent("codex", "s1").refused(c.Next()) == "nothing_ready"
    yard.person("ana").do(c.SetActor("erik", kind=HUMAN))
    assert yard.sync().adopted == (f"{key} (erik)",)
    assert yard.task(key).state == "in_progress"
    assert yard.faults() == ()


@EVERYWHERE
def test_a_person_who_takes_a_known_item_by_its_file_has_it(yard, at_work):
    """Also one that was in progress on the board before, and was given back."""
    yard.person("erik").do(c.Add(yard.terms()))
    path, key = at_work(yard, "erik")
    yard.sync()
    yard.person("erik").do(c.Release(key))
    assert yard.task(key).lease is None
    free = yard.text(path)
    yard.put(path, by_hand(free))
    assert yard.sync().adopted == (f"{key} (erik)",)
    assert (yard.task(key).state, str(yard.task(key).token)) == ("in_progress", "1.2")


def by_hand(text: str) -> str:
    """As erik edits the file: in progress, and his."""
    for old, new in (
        ('"status": "open"', '"status": "in-progress", "assigned": "erik"'),
        ("state: Ready", "state: InProgress"),
        ("owner: null", "owner: erik"),
        ("status: pending", "status: working"),
        ('locked_by: ""', "locked_by: erik"),
        ('locked_at: ""', "locked_at: 2026-01-01T00:00:00Z"),
        ("status: To Do", "status: In Progress"),
    ):
        text = text.replace(old, new)
    return text


@EVERYWHERE
def test_a_check_counts_the_files_that_a_sync_writes(yard, at_work):
    """Of items that are not on the board yet, too."""
    yard.person("erik").do(c.Add(yard.terms()))
    at_work(yard, "erik")
    check = yard.sync(Options(check=True, everything=True))
    assert (check.written, check.adopted) == (1, yard.sync().adopted)


def test_a_check_counts_files_of_new_items_with_stale_claims(yard):
    in_a_graph(yard, "agent-9")
    check = yard.sync(Options(check=True, everything=True))
    done = yard.sync()
    assert (check.written, check.healed) == (done.written, done.healed) == (1, ("a (agent-9)",))


def test_a_persons_name_on_an_open_line_is_left_there(yard):
    yard.person("erik").do(c.Add(yard.terms()))
    line = {"kind": "task", "id": "a", "title": "do a", "status": "open", "assigned": "erik"}
    path = yard.put(GRAPH, json.dumps(line) + "\n")
    before = yard.text(path)
    report = yard.sync()
    assert (report.healed, yard.text(path)) == ((), before)
