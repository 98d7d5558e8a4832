"""kano items: what a claim, a start and an end write, and what a start requires."""

from __future__ import annotations

import pytest

from dibs.backlogs.formats.kano import SECTIONS
from dibs.backlogs.report import Options
from dibs.domain import commands as c
from dibs.domain.values import HOUR, iso
from kit.backlogs import KANO, STORY, TASK, difference, ready, told

KEY = "KABSD-TSK-0001"


def day(yard) -> str:
    return iso(yard.now())[:10]


def minute(yard) -> str:
    return iso(yard.now())[:16].replace("T", " ")


def stamp(instant) -> str:
    return iso(instant // 1_000_000 * 1_000_000)


@pytest.fixture
def item(yard):
    path = yard.kano(KEY)
    yard.sync()
    return path


def uid(yard) -> str:
    with yard.store.read() as tx:
        return tx.board.uid


def test_a_claim_writes_the_assignment_record_and_a_line_of_the_worklog(yard, item):
    before = yard.text(item)
    yard.agent("codex", "s1").claim(KEY)
    seq = yard.events(KEY)[-1].seq
    now = yard.now()
    assert difference(before, yard.text(item)) == [
        "- state: Proposed",
        "+ state: InProgress",
        "- updated: 2026-01-10",
        f"+ updated: {day(yard)}",
        "- owner: null",
        "+ owner: codex",
        f"+ dibs: {uid(yard)} 1.1 codex s1 2h",
        "+ assignee_agent: codex",
        "+ assignee_tier: 1",
        f"+ assigned_at: {stamp(now)}",
        "+ lease_ttl: 2h",
        f"+ lease_expires_at: {stamp(now + 2 * HOUR)}",
        f"+ {minute(yard)} [agent=codex] [model=unknown] InProgress: started (dibs 1.1 #{seq})",
    ]


def test_the_end_clears_the_record_and_keeps_the_owner_and_the_token(yard, item):
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    held = yard.text(item)
    codex.do(c.Complete(KEY, note="it works\nas it should"))
    seq, step = yard.events(KEY)[-1].seq, "it works as it should"
    changed = difference(held, yard.text(item))
    assert [line for line in changed if line.startswith("+")] == [
        "+ state: Done",
        f"+ dibs: {uid(yard)} 1.1",
        f"+ {minute(yard)} [agent=codex] [model=unknown] Done: completed: {step} (dibs 1.1 #{seq})",
    ]
    assert "owner: codex\n" in yard.text(item)


def test_a_release_gives_back_the_word_that_the_file_had(yard, item):
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    codex.do(c.Release(KEY))
    text = yard.text(item)
    assert "state: Proposed\n" in text
    assert "owner: null\n" in text


def test_the_model_of_the_agent_is_in_its_line(yard, item, monkeypatch):
    monkeypatch.setenv("DIBS_MODEL", "opus")
    yard.agent("codex", "s1").claim(KEY)
    assert "[agent=codex] [model=opus] InProgress" in yard.text(item)


STATES = {
    "New": "open", "Proposed": "open", "Planned": "open", "Ready": "open", "InProgress": "open",
    "Review": "review", "Done": "complete", "Blocked": "blocked", "Dropped": "dropped",
    "Duplicate": "dropped",
}  # fmt: skip


@pytest.mark.parametrize("word", STATES)
def test_each_state_of_kano_is_read(yard, word):
    path = yard.kano(KEY, state=word)
    before = yard.text(path)
    yard.sync()
    assert yard.task(KEY).state == STATES[word]
    yard.sync()
    assert yard.text(path) == before
    assert yard.faults() == ()


WRITTEN = {
    "Review": [c.Claim(KEY), c.Submit(KEY)],
    "Blocked": [c.Claim(KEY), c.Block(KEY, reason="no key")],
    "Dropped": [c.Drop(KEY, reason="not wanted")],
    "Done": [c.Claim(KEY), c.Complete(KEY)],
}


@pytest.mark.parametrize("word", WRITTEN)
def test_each_state_of_the_board_is_written(yard, item, word):
    for command in WRITTEN[word]:
        yard.agent("codex", "s1").do(command)
    assert f"state: {word}\n" in yard.text(item)
    yard.sync()
    assert f"state: {word}\n" in yard.text(item)


def test_a_failed_task_is_shown_as_blocked_and_stays_failed(yard, item):
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    codex.do(c.Fail(KEY, reason="cannot be done"))
    assert "state: Blocked\n" in yard.text(item)
    yard.sync()
    assert yard.task(KEY).state == "failed"


@pytest.mark.parametrize("title", ["Context", "Goal", "Approach", "Acceptance Criteria", "Risks"])
def test_an_empty_section_is_the_ready_gate(yard, title):
    """Exit 3 before InProgress; a person's force passes it, and the Worklog says so."""
    text = emptied(TASK, title)
    path = yard.kano(KEY, text)
    yard.sync()
    codex = yard.agent("codex", "s1")
    assert codex.refused(c.Claim(KEY)) == "gate_not_met"
    assert codex.refused(c.Next()) == "nothing_ready"
    yard.person("ana").do(c.Force(KEY, reason="it burns"))
    text = yard.text(path)
    assert "[agent=ana] [model=unknown] InProgress: started" in text
    assert "forced: it burns" in text


def emptied(text: str, title: str) -> str:
    lines, keep, out = text.splitlines(keepends=True), True, []
    for line in lines:
        if line.startswith("# "):
            keep = not line.startswith(f"# {title}")
            out.append(line)
        elif keep:
            out.append(line)
    return "".join(out)


def test_a_gate_is_met_as_soon_as_the_file_is_mended(yard):
    path = yard.kano(KEY, emptied(TASK, "Goal"))
    yard.sync()
    codex = yard.agent("codex", "s1")
    assert codex.refused(c.Claim(KEY)) == "gate_not_met"
    yard.edit(path, "# Goal\n", "# Goal\n\nIt works.\n")
    assert codex.claim(KEY).task.state == "in_progress"


def test_what_it_is_blocked_by_is_closed_first(yard):
    yard.kano(KEY)
    yard.kano("KABSD-TSK-0002", blocked_by=f"[{KEY}]")
    yard.sync()
    codex = yard.agent("codex", "s1")
    assert codex.refused(c.Claim("KABSD-TSK-0002")) == "waits"
    codex.claim(KEY)
    codex.do(c.Complete(KEY))
    assert codex.claim("KABSD-TSK-0002").task.state == "in_progress"


def test_what_it_is_blocked_by_and_is_not_there_is_a_gate(yard):
    yard.kano(KEY, blocked_by="[KABSD-TSK-9999]")
    report = yard.sync()
    assert any("KABSD-TSK-9999" in str(problem) for problem in report.problems)
    assert yard.agent("codex", "s1").refused(c.Claim(KEY)) == "gate_not_met"


def test_the_users_story_is_read_with_its_uid(yard):
    yard.put("_kano/backlog/products/demo/items/userstory/KABSD-USR-0026_x.md", STORY)
    yard.sync()
    task = yard.task("KABSD-USR-0026")
    assert task.uid == "019ba3c3-ee9a-7124-9fd0-78d03c965a35"
    assert task.origin_ask_ref == task.uid
    assert (task.channel, task.terms.priority) == ("kano", 1)
    assert task.terms.title == "Assignment record and conflict isolation for dispatched work"


def test_a_title_with_a_colon_is_read_as_it_was_meant(yard):
    yard.kano(KEY, title="Fix: the login")
    yard.sync()
    assert yard.task(KEY).terms.title == "Fix: the login"


# Which work is offered, and whose key it is.


def kano_file(yard, name: str, *lines: str, body: str = "") -> str:
    head = "".join(f"{line}\n" for line in lines)
    text = body or "".join(f"# {title}\ntext\n" for title in SECTIONS)
    return yard.put(f"{KANO}/task/0000/{name}.md", f"---\n{head}---\n{text}")


@pytest.mark.parametrize("short", ["019b1111", "019B1111-0000", ""])
def test_a_reference_with_the_beginning_of_a_uid_names_that_item(yard, short):
    for number, uid_ in ((1, "019b1111"), (2, "019b2222")):
        kano_file(
            yard, f"P-TSK-0097_{number}", "id: P-TSK-0097", f"uid: {uid_}-0000-7000-8000-000000000003",
            "title: x", f"state: {'Done' if number == 1 else 'Proposed'}",
        )  # fmt: skip
    named = f"P-TSK-0097@{short}" if short else "P-TSK-0097"
    kano_file(
        yard,
        "P-TSK-0098_w",
        "id: P-TSK-0098",
        "title: w",
        "state: Proposed",
        f"links:\n  blocked_by:\n  - {named}",
    )
    yard.sync()
    assert ready(yard) == ["P-TSK-0097-2", "P-TSK-0098"]
    yard.agent("codex", "s1").claim("P-TSK-0098")


def test_a_reference_with_another_uid_names_nothing(yard):
    kano_file(
        yard,
        "P-TSK-0097_d",
        "id: P-TSK-0097",
        "uid: 019b1111-0000-7000-8000-000000000003",
        "title: x",
        "state: Done",
    )
    kano_file(
        yard,
        "P-TSK-0098_w",
        "id: P-TSK-0098",
        "title: w",
        "state: Proposed",
        "blocked_by: [P-TSK-0097@019b9999]",
    )
    assert "P-TSK-0097@019b9999, which is not there" in told(yard.sync())
    assert ready(yard) == []


@pytest.mark.parametrize("name", ["P-TSK-0096_GUIDE", "P-TSK-0096_zzz"])
def test_the_file_whose_id_is_the_key_gets_it(yard, name):
    """Not one that is only named so: that is an attachment."""
    kano_file(yard, name, "uid: 019b0000-0000-7000-8000-000000000001", body="An attachment\n")
    kano_file(yard, "P-TSK-0096_real", "id: P-TSK-0096", "title: The real item", "state: Proposed")
    report = yard.sync()
    assert yard.task("P-TSK-0096").terms.title == "The real item"
    assert yard.task("P-TSK-0096-2") is None
    assert f"{name}.md: it has no id" in told(report)
    yard.sync(Options(everything=True))
    assert yard.task("P-TSK-0096-2") is None


@pytest.mark.parametrize(
    ("type_", "offered"),
    [
        ("Task", True),
        ("Bug", True),
        ("UserStory", True),
        ("Epic", False),
        ("feature", False),
        ("", True),
    ],
)
def test_containers_are_never_offered(yard, type_, offered):
    yard.kano(KEY, type=type_)
    yard.sync()
    assert ready(yard) == ([KEY] if offered else [])
    if not offered:
        assert yard.agent("codex", "s1").refused(c.Claim(KEY)) == "gate_not_met"


def test_the_types_that_are_offered_can_be_named(yard):
    yard.put("dibs.toml", '[backlogs.kano]\noffer = ["Bug"]\n')
    yard.kano(KEY, type="Task")
    yard.kano("KABSD-TSK-0002", type="Bug")
    report = yard.sync()
    assert report.problems == ()
    assert ready(yard) == ["KABSD-TSK-0002"]


def test_a_section_may_be_filled_under_the_second_of_two_equal_headings(yard):
    text = "# Context\n\n" + "".join(f"# {title}\ntext\n" for title in SECTIONS)
    kano_file(yard, "P-TSK-0001_x", "id: P-TSK-0001", "title: x", "state: Proposed", body=text)
    yard.sync()
    assert ready(yard) == ["P-TSK-0001"]


@pytest.mark.parametrize(("word", "priority"), [("High", 1), ("P0", 0), ("low", 3), ("Urgent", 0)])
def test_a_priority_may_be_a_word(yard, word, priority):
    yard.kano(KEY, priority=word)
    yard.sync()
    assert yard.task(KEY).terms.priority == priority


@pytest.mark.parametrize("quote", ["'", '"', ""])
def test_a_date_keeps_its_quotes(yard, quote):
    path = yard.kano(KEY, updated=f"{quote}2026-01-10{quote}")
    yard.sync()
    yard.agent("codex", "s1").claim(KEY)
    day = iso(yard.now())[:10]
    assert f"\nupdated: {quote}{day}{quote}\n" in yard.text(path)


@pytest.mark.parametrize("owner", ["null", "alice", '""', "'bo b'"])
def test_a_claim_and_a_release_leave_the_pointer_the_day_and_the_worklog(yard, owner):
    path = yard.kano(KEY, owner=owner)
    before = yard.text(path)
    yard.sync()
    codex = yard.agent("codex", "s1")
    for command in (c.Claim(KEY), c.Block(KEY, reason="r"), c.Unblock(KEY), c.Claim(KEY)):
        codex.do(command)
        assert "null\n" not in yard.text(path).partition("\ndibs:")[2].partition("---")[0]
    codex.do(c.Release(KEY))
    left = difference(before, yard.text(path))
    assert {line[2:6] for line in left} == {"dibs", "upda", iso(yard.now())[:4]}
    assert yard.faults() == ()
