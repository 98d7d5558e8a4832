"""WRK items: whose a lock is, since when it is held, and which sessions are known to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.formats.wrk import locked_since, sessions_in
from dibs.backlogs.index import File
from dibs.backlogs.report import Options
from dibs.domain import commands as c
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND, iso
from kit.backlogs import ready, told

KEY = "WRK-157"
ALL = Options(everything=True)


def locked_by(yard, path) -> str:
    [line] = [line for line in yard.text(path).splitlines() if line.startswith("locked_by:")]
    return line.partition(":")[2].strip().strip('"')


@pytest.mark.parametrize("session", ["s1", "ünï", "会話-1", "a:b"])
def test_the_lock_names_the_session_whatever_its_letters(yard, session):
    path = yard.wrk()
    yard.sync()
    agent = yard.agent("claude", session)
    agent.do(c.Claim(KEY, reserve=True))
    assert locked_by(yard, path) == session
    yard.sync()
    assert yard.faults() == ()
    agent.do(c.Release(KEY))
    assert locked_by(yard, path) == ""


def test_the_lock_of_a_person_is_by_name(yard):
    path = yard.wrk()
    yard.sync()
    yard.person("ana").do(c.Claim(KEY))
    assert locked_by(yard, path) == "ana"


NOON = 1_771_243_200
"""2026-02-16T12:00:00Z"""


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2026-02-16T12:00:00Z", NOON),
        ("2026-02-16T13:00:00+01:00", NOON),
        ("2026-02-16T12:00:00", NOON),
        ("2026-02-16 12:00:00", NOON),
        ("2026-02-16 12:00", NOON),
        ("2026-02-16", NOON - 12 * 3600),
        ("1771243200", NOON),
        (" 1771243200 ", NOON),
        ("177124320", None),
        ("1771243200000", None),
        ("١٧٧١٢٤٣٢٠٠", None),
        ("yesterday", None),
        ("2026-02", None),
        ("12:00", None),
        ("", None),
    ],
)
def test_the_time_of_a_lock_is_read_as_scripts_write_it(text, since):
    assert locked_since(text) == (None if since is None else since * SECOND)


@given(st.text(max_size=40))
def test_the_time_of_a_lock_may_be_any_text(text):
    assert locked_since(text) is None or locked_since(text) >= 0


@pytest.mark.parametrize("form", ["{}", "'{}'", '"{}"'])
@pytest.mark.parametrize(("age", "code"), [(HOUR, "locked_in_file"), (3 * HOUR, "")])
def test_a_lock_without_a_zone_holds_for_two_hours_and_no_longer(yard, form, age, code):
    since = iso(yard.now() - age)[:19]
    yard.wrk(locked_by="another", locked_at=form.format(since))
    yard.sync()
    claude = yard.agent("claude", "s1")
    if code:
        assert claude.refused(c.Claim(KEY)) == code
    else:
        claude.do(c.Claim(KEY))


def test_a_lock_by_the_clock_of_a_shell_holds_for_two_hours(yard):
    yard.wrk(locked_by="another", locked_at=str((yard.now() - MINUTE) // SECOND))
    yard.sync()
    assert yard.agent("claude", "s1").refused(c.Claim(KEY)) == "locked_in_file"


LISTED = {
    "names": "sessions:\n  - a\n  - b\n",
    "names at the margin": "sessions:\n- a  # the first\n- 'b'\nother:\n- c\n",
    "session ids": "sessions:\n  - session_id: a\n    host: h\n  - host: h\n    session_id: b\n",
    "ids": "active_sessions:\n  - id: a\n    tags: [x, y]\n  -\n    id: b\n",
    "a list in brackets": "sessions: [a, 'b']  # two\n",
    "brackets over lines": "active: [\n  a,\n  b\n]\nlast: c\n",
    "keys": "sessions:\n  a:\n    started_at: 2026-02-16\n    tools:\n      x: 1\n  b:\n    host: h\n",
    "keys with texts": "active:\n  a: 2026-02-16T19:30:00Z\n  b: working\n",
    "keys in braces": "active_sessions: {a: {host: h}, b: 2026-02-16}\nx: y\n",
    "keys of other names": "sessions:\n  one:\n    session_id: a\n  two:\n    id: b\n",
    "mappings in brackets": "sessions: [{session_id: a}, {host: 'x, y', id: b}]\n",
    "below another key": "---\nstate:\n  active:\n    - a\n    - b\n  tasks:\n    - id: WRK-1\n",
    "apart": "current:\n  session_id: a\nprevious:\n  session_id: b\n",
    "JSON": '{"sessions": [{"session_id": "a", "pid": 1}, {"session_id": "b"}]}',
    "JSON of keys": '{"active": {"a": {"pid": 1}, "b": null}, "tasks": [{"id": "WRK-1"}]}',
    "a JSON list": '[\n  {"session_id": "a"},\n  {"id": "b"}\n]',
}


@pytest.mark.parametrize("shape", LISTED)
def test_a_list_of_sessions_is_read(shape):
    assert sessions_in(LISTED[shape]) == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("session_id: a\nlast_command: review\n", {"a"}),
        ("active:\n  session_id: a\n  started_at: 2026-02-16\n  host: h\n", {"a"}),
        ("sessions:\n  one: {session_id: a}\n", {"a"}),
        ('{"session_id": "a", "pid": 7}', {"a"}),
        ("active: true\nsessions: 3\n", set()),
        ("tasks:\n  - id: WRK-1\n  - id: WRK-2\n", set()),
        ("sessions: []\nactive: {}\nsession_id:\n", set()),
        ("session_id: null\nsessions: [~, '']\n", set()),
        ("", set()),
    ],
)
def test_one_session_is_one_and_what_is_no_session_is_none(text, found):
    """More names than there are sessions would make a list of several, and end locks that live."""
    assert sessions_in(text) == found


@given(st.text("ab:-[]{}'\", #\n~", max_size=80) | st.sampled_from(["- " * 5000, "[" * 5000]))
def test_a_list_of_sessions_may_be_any_text(text):
    assert "" not in sessions_in(text)


@pytest.mark.parametrize(("others", "freed"), [("s1, s2", True), ("s1, gone", False)])
def test_the_lock_of_a_session_that_is_not_listed_is_free_at_once(yard, others, freed):
    yard.wrk(locked_by="gone", locked_at=iso(yard.now() - MINUTE))
    yard.put(".claude/session-state.yaml", f"sessions: [{others}]\n")
    yard.sync()
    claude = yard.agent("claude", "s1")
    if freed:
        claude.do(c.Claim(KEY))
    else:
        assert claude.refused(c.Claim(KEY)) == "locked_in_file"


# Which work is offered.


@pytest.mark.parametrize("folder", ["archive", "archived", "done", "archive/2026-02", "closed"])
@pytest.mark.parametrize("status", ["pending", "working", "blocked", "whatever"])
def test_what_is_in_a_folder_of_finished_work_is_not_offered_whatever_its_status(
    yard, folder, status
):
    path = yard.wrk(folder=folder, status=status)
    before = yard.text(path)
    report = yard.sync()
    assert yard.task(KEY).state == "complete"
    assert ready(yard) == []
    assert "the folder decides" in told(report)
    assert yard.text(path) == before


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("superseded", "dropped"),
        ("closed", "complete"),
        ("resolved", "complete"),
        ("resolved-duplicate", "complete"),
        ("Resolved-Upstream", "complete"),
        ("unresolved", "open"),
    ],
)
def test_words_for_the_end_are_final(yard, status, state):
    yard.wrk(status=status)
    yard.sync()
    assert yard.task(KEY).state == state
    assert ready(yard) == []


def test_of_two_copies_the_final_one_counts(yard):
    yard.wrk(folder="pending", status="pending")
    yard.wrk(folder="review-queue", status="done")
    assert "the same item as" in told(yard.sync())
    assert yard.task(KEY).state == "complete"


@pytest.mark.parametrize("late", ["a", "b"])
def test_of_two_copies_the_later_one_counts(yard, late):
    for folder in ("a", "b"):
        day = "2026-03-02" if folder == late else "2026-03-01"
        yard.wrk(folder=folder, updated_at=day, priority="low" if folder == late else "high")
    yard.sync()
    assert yard.task(KEY).terms.priority == 3


def test_another_title_under_the_same_id_is_another_item(yard):
    yard.wrk(folder="done", status="done", title="First work")
    other = yard.wrk(folder="pending", title="Other work")
    report = yard.sync()
    assert "has the same id WRK-157; its task is WRK-157-2" in told(report)
    assert [yard.task(key).terms.title for key in (KEY, f"{KEY}-2")] == ["First work", "Other work"]
    assert yard.sync(ALL).added == 0
    claude = yard.agent("claude", "s1")
    claude.do(c.Claim(f"{KEY}-2"))
    assert "status: working" in yard.text(other)
    assert "status: done" in yard.text(f".claude/work-queue/done/{KEY}.md")
    yard.edit(other, "Other work", "Other work, named better")
    yard.sync()
    assert yard.task(f"{KEY}-2").terms.title == "Other work, named better"
    claude.do(c.Release(f"{KEY}-2"))
    assert "status: pending" in yard.text(other)
    assert yard.faults() == ()


def test_an_item_waits_until_its_own_time(yard):
    yard.wrk(not_before=iso(yard.now() + DAY)[:10])
    yard.wrk("WRK-2", not_before="2020-01-01")
    yard.wrk("WRK-3", not_before="soon")
    yard.sync()
    assert ready(yard) == ["WRK-2"]
    assert yard.agent("claude", "s1").refused(c.Claim(KEY)) == "gate_not_met"
    yard.advance(24 * 3600)
    yard.sync()
    assert ready(yard) == [KEY, "WRK-2"]


def test_nothing_complains_about_what_dibs_wrote_itself(yard):
    yard.wrk(folder="pending")
    yard.sync()
    claude = yard.agent("claude", "s1")
    for command in (
        c.Claim(KEY),
        c.Block(KEY, reason="r"),
        c.Unblock(KEY),
        c.Claim(KEY),
        c.Complete(KEY),
    ):
        claude.do(command)
        assert yard.sync(ALL).problems == ()


def test_a_fault_is_told_of_the_file_that_has_it(yard):
    """Not of another file that is damaged too."""
    damaged, gone = yard.wrk("WRK-2"), yard.wrk("WRK-3")
    yard.put(".claude/work-queue/pending/WRK-1.md", "")
    yard.sync()
    claude = yard.agent("claude", "s1")
    for key in ("WRK-2", "WRK-3"):
        claude.do(c.Claim(key))
    yard.edit(damaged, "status:", "<<<<<<< HEAD\nstatus:")
    (yard.root / gone).unlink()
    yard.advance(3700)
    assert f"{damaged}: it is neither" in " ".join(claude.do(c.Renew("WRK-2")).warnings)
    assert f"{gone}: it is not there" in " ".join(claude.do(c.Renew("WRK-3")).warnings)


def test_an_unchanged_file_is_read_again_when_an_item_in_it_becomes_due():
    print_ = (1, 1, 1, 1)
    file = File(print_, 10**12, again=50)
    assert [file.is_as(print_, now) for now in (49, 50)] == [True, False]
    assert file.but(again=0).is_as(print_, 50)
