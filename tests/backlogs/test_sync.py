"""Sync: what comes in, what goes out, what is news and what is only behind."""

from __future__ import annotations

import os

import pytest

from dibs.backlogs import doctor, index
from dibs.backlogs.missing import GONE
from dibs.backlogs.report import Options
from dibs.domain import commands as c
from dibs.domain.model import BacklogItem, Token
from dibs.domain.values import HOUR
from dibs.storage.store import Finding
from kit.backlogs import KANO, TASK, Yard, difference
from kit.boards import of_a_file

KEY = "KABSD-TSK-0001"
SECOND_KEY = "KABSD-TSK-0002"


def problems_in(report) -> str:
    return "\n".join(str(problem) for problem in report.problems)


def notes(yard, key=KEY) -> list[str]:
    with yard.store.read() as tx:
        return [note.text for note in tx.notes(tx.task(key).id)]


def finish(yard, key=KEY, session="s1"):
    codex = yard.agent("codex", session)
    codex.claim(key)
    codex.do(c.Complete(key))


# What comes in.


def test_an_item_is_one_task_however_often_it_is_read(yard):
    yard.kano(KEY)
    assert yard.sync().added == 1
    again = yard.sync(Options(everything=True))
    assert (again.added, again.changed, again.written) == (0, 0, 0)
    assert yard.verbs(KEY) == ["added"]


def test_in_progress_by_nobody_comes_in_as_open_with_a_note_and_a_word(yard):
    path = yard.kano(KEY, state="InProgress", owner="None")
    before = yard.text(path)
    report = yard.sync()
    assert yard.task(KEY).state == "open"
    assert notes(yard) == ["its file says InProgress by None, and no live lease stands behind that"]
    assert "nobody is at work on it; it is open here" in str(report.problems[-1])
    yard.sync(Options(everything=True))
    assert len(notes(yard)) == 1
    assert yard.text(path) == before


@pytest.mark.parametrize("owner", ["None", "assistant", "CODEX", "Claude Opus", "~", '""'])
def test_a_name_that_is_no_actor_stays_text(yard, owner):
    yard.kano(KEY, state="InProgress", owner=owner)
    yard.sync()
    with yard.store.read() as tx:
        assert [actor.name for actor in tx.actors().values()] == ["ana"]


def test_an_alias_is_proposed_for_a_name_that_looks_like_a_known_one(yard):
    yard.add()
    yard.agent("codex-2", "s1").claim("T-1")
    yard.kano(KEY, owner="Codex_2")
    [proposal] = yard.sync().proposals
    assert "dibs actor set codex-2 --alias Codex_2" in proposal


def test_text_is_taken_from_the_file_also_while_somebody_holds_it(yard):
    path = yard.kano(KEY)
    yard.sync()
    yard.agent("codex", "s1").claim(KEY)
    yard.edit(path, "Define assignment records", "Define all records")
    yard.edit(path, "priority: P1", "priority: P3")
    assert yard.sync().changed == 1
    task = yard.task(KEY)
    assert task.terms.title.startswith("Define all records")
    assert task.terms.priority == 3
    assert task.lease is not None


def test_the_title_and_what_it_waits_for_are_changed_in_the_file_not_here(yard):
    yard.kano(KEY)
    yard.kano(SECOND_KEY)
    yard.sync()
    ana = yard.person("ana")
    assert ana.refused(c.Edit(KEY, title="x")) == "file_says_it"
    assert ana.refused(c.Edit(KEY, priority=0)) == "file_says_it"
    assert ana.refused(c.Depend(KEY, on=(SECOND_KEY,))) == "file_says_it"
    ana.do(c.Edit(KEY, tier=3))
    assert yard.task(KEY).terms.tier == 3


def test_dependencies_follow_the_file(yard):
    yard.kano(KEY)
    path = yard.kano(SECOND_KEY, blocked_by=f"[{KEY}]")
    yard.sync()
    assert yard.task(SECOND_KEY).waits_on == 1
    yard.edit(path, f"blocked_by: [{KEY}]", "blocked_by: []")
    yard.sync()
    assert yard.task(SECOND_KEY).waits_on == 0
    assert yard.faults() == ()


def test_a_cycle_in_the_files_ends_and_is_reported(yard):
    yard.kano(KEY, blocked_by=f"[{SECOND_KEY}]")
    yard.kano(SECOND_KEY, blocked_by=f"[{KEY}]")
    assert "cycle" in problems_in(yard.sync())
    waits = [yard.task(key).waits_on for key in (KEY, SECOND_KEY)]
    assert sorted(waits) == [0, 1]
    assert yard.faults() == ()


def test_nobody_begins_an_item_before_what_it_waits_for_is_taken_in(yard):
    """The first half of a sync that was cut: the second half is still to come."""
    from dibs.backlogs.sync import NOT_YET, SyncPass

    yard.kano(KEY, blocked_by=f"[{SECOND_KEY}]")
    yard.kano(SECOND_KEY)
    yard.look()
    ana = yard.person("ana").identity

    class Cut(Exception):  # noqa: N818 - as if the process had ended here
        pass

    class Half(SyncPass):
        def again(self, one, verdict):
            raise Cut

    with pytest.raises(Cut):
        Half(yard.board.backlog, yard.board, ana, Options()).run()
    assert yard.task(KEY).item.gate == NOT_YET
    with yard.store.read() as tx:
        assert [task.key for task in tx.tasks_ready(10)] == [SECOND_KEY]
    yard.sync()
    assert yard.agent().refused(c.Claim(KEY)) == "waits"


# State: news, or behind.


@pytest.mark.parametrize(
    ("word", "state"), [("Done", "complete"), ("Dropped", "dropped"), ("Blocked", "blocked")]
)
def test_a_state_that_somebody_wrote_into_the_file_is_taken_in_if_nobody_holds_it(
    yard, word, state
):
    path = yard.kano(KEY)
    yard.sync()
    yard.edit(path, "state: Proposed", f"state: {word}")
    yard.sync()
    assert yard.task(KEY).state == state
    assert yard.faults() == ()
    before = yard.text(path)
    yard.sync(Options(everything=True))
    assert yard.text(path) == before


def test_a_state_in_the_file_does_not_end_a_lease(yard):
    path = yard.kano(KEY)
    yard.sync()
    yard.agent("codex", "s1").claim(KEY)
    yard.edit(path, "state: InProgress", "state: Done")
    report = yard.sync()
    assert "somebody holds" in problems_in(report)
    assert yard.task(KEY).state == "in_progress"
    assert yard.task(KEY).lease.session == "s1"


def test_a_file_moves_only_what_nobody_holds(yard):
    """Whatever a reader of files thought: the rule is decided in the transaction."""
    yard.kano(KEY)
    yard.sync()
    yard.agent("codex", "s1").claim(KEY)
    task = yard.task(KEY)
    item = BacklogItem(
        "kano", task.origin_ask_ref, KEY, task.terms.title, 1, task.item, state="complete"
    )
    yard.person("ana").do(c.Sync((item,)))
    assert yard.task(KEY).state == "in_progress"
    assert yard.task(KEY).lease.session == "s1"


def test_a_file_from_an_old_checkout_is_behind_and_is_brought_up_to_date(yard):
    path = yard.kano(KEY)
    yard.sync()
    old = yard.text(path)
    finish(yard)
    new = yard.text(path)
    yard.sync()
    yard.put(path, old)
    assert yard.sync().written == 1
    assert yard.text(path) == new
    assert yard.task(KEY).state == "complete"


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_every_earlier_state_of_the_file_is_behind(yard, steps):
    path = yard.kano(KEY)
    yard.sync()
    codex, texts = yard.agent("codex", "s1"), [yard.text(path)]
    for command in (c.Claim(KEY, reserve=True), c.Start(KEY), c.Submit(KEY)):
        codex.do(command)
        texts.append(yard.text(path))
    yard.person("ana").do(c.Accept(KEY))
    yard.put(path, texts[steps])
    yard.sync()
    assert yard.task(KEY).state == "complete"
    assert "state: Done\n" in yard.text(path)
    assert "assignee_agent:" not in yard.text(path)


def test_an_item_that_was_finished_elsewhere_since_it_was_listed_cannot_be_claimed(yard):
    """The file is read again at the claim."""
    path = yard.kano(KEY)
    yard.sync()
    yard.edit(path, "state: Proposed", "state: Done")
    assert yard.agent().refused(c.Claim(KEY)) == "final"


def test_an_item_that_nobody_has_read_yet_is_found_by_its_claim(yard):
    yard.kano(KEY)
    assert yard.agent().claim(KEY).task.state == "in_progress"


def test_next_offers_what_its_file_lets_begin(yard):
    first = yard.kano(KEY, priority="P0")
    yard.kano(SECOND_KEY)
    yard.sync()
    yard.edit(first, "# Goal\n", "# Nothing\n")
    assert yard.agent().do(c.Next()).task.key == SECOND_KEY


# Leases in files.


def test_a_renewal_is_shown_when_half_of_the_ttl_is_over(yard):
    path = yard.kano(KEY)
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    before = yard.text(path)
    yard.advance(3599)
    codex.do(c.Renew(KEY))
    assert yard.text(path) == before
    yard.advance(2)
    codex.do(c.Renew(KEY))
    changed = difference(before, yard.text(path))
    assert [line.split(":")[0] for line in changed] == ["- lease_expires_at", "+ lease_expires_at"]
    assert yard.sync().written == 0


def lost(yard: Yard, tmp_path) -> Yard:
    """The board's database is gone; its files are there."""
    with yard.store.read() as tx:
        uid = tx.board.uid
    (tmp_path / "again").mkdir()
    os.rename(yard.root, tmp_path / "again" / "root")
    return Yard(tmp_path / "again", yard.kind, uid if yard.kind == "sqlite" else "")


@of_a_file
def test_a_lost_database_comes_back_from_the_files_with_keys_and_live_leases(yard, tmp_path):
    for number in (1, 2, 3):
        yard.kano(f"KABSD-TSK-000{number}")
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    yard.person("ana").do(c.Claim(SECOND_KEY, reserve=True))
    finish(yard, "KABSD-TSK-0003", "s3")
    before = yard.task(KEY)
    again = lost(yard, tmp_path)
    report = again.sync()
    assert (report.added, report.brought_back) == (3, 2)
    held = again.task(KEY)
    assert held.state == "in_progress"
    assert (held.lease.session, held.lease.ttl) == ("s1", 2 * HOUR)
    assert tuple(held.token) > tuple(before.token)
    assert again.task(SECOND_KEY).lease.session == ""
    assert again.task("KABSD-TSK-0003").state == "complete"
    assert again.faults() == ()
    again.agent("codex", "s1").do(c.Complete(KEY))
    assert again.person("ana").do(c.Start(SECOND_KEY)).task.state == "in_progress"
    assert again.sync().brought_back == 0
    again.close()


@of_a_file
def test_an_expired_lease_in_a_file_does_not_come_back(yard, tmp_path):
    yard.kano(KEY)
    yard.sync()
    yard.agent("codex", "s1").claim(KEY, ttl=60_000_000)
    again = lost(yard, tmp_path)
    again.advance(61)
    again.sync()
    assert again.task(KEY).lease is None
    assert again.task(KEY).state == "open"
    assert "by codex" in notes(again)[0]
    again.close()


@of_a_file
def test_no_token_is_given_twice_after_a_loss(yard, tmp_path):
    yard.kano(KEY)
    yard.sync()
    finish(yard)
    again = lost(yard, tmp_path)
    again.sync()
    again.person("ana").do(c.Reset((KEY,), reason="once more"))
    token = again.agent("x", "s9").claim(KEY).task.token
    assert tuple(token) > (1, 1)
    again.close()


def test_a_lease_that_names_another_board_is_reported_and_never_followed(yard):
    other = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
    path = yard.kano(KEY, dibs=f"{other} 7.3 codex s1 30d", lease_expires_at="2099-01-01T00:00:00Z")
    report = yard.sync()
    assert f"another board, {other}" in problems_in(report)
    assert yard.task(KEY).lease is None
    assert yard.task(KEY).token == Token(0, 0)
    before = yard.text(path)
    yard.sync()
    assert yard.text(path) == before
    yard.agent("x", "s9").claim(KEY)
    assert f"dibs: {other}" not in yard.text(path)


# Files that are not as they should be.


def test_the_same_item_in_two_files_is_one_task(yard):
    yard.kano(KEY)
    yard.put(f"{KANO}/bug/{KEY}_copy.md", yard.text(f"{KANO}/task/0000/{KEY}_some-work.md"))
    report = yard.sync()
    assert report.added == 1
    assert "the same item as" in problems_in(report)


def test_two_items_with_one_id_are_two_tasks(yard):
    yard.kano(KEY)
    other = TASK.replace("KABSD-TSK-0141", KEY).replace("85f4752b9a45", "aaaaaaaaaaaa")
    yard.put(f"{KANO}/task/0001/{KEY}_other.md", other)
    report = yard.sync()
    assert report.added == 2
    assert "has the same id" in problems_in(report)
    assert {yard.task(KEY).uid, yard.task(f"{KEY}-2").uid} == {
        "019ba3c4-6d62-7ca6-b194-85f4752b0001",
        "019ba3c4-6d62-7ca6-b194-aaaaaaaaaaaa",
    }
    assert yard.sync(Options(everything=True)).added == 0


def test_an_item_without_an_id_is_known_by_its_name(yard):
    yard.put(f"{KANO}/task/KABSD-TSK-0077_x.md", TASK.replace("id: KABSD-TSK-0141\n", ""))
    assert "it has no id" in problems_in(yard.sync())
    assert yard.task("KABSD-TSK-0077") is not None


def test_a_uid_that_comes_later_makes_no_second_task(yard):
    uid = "uid: 019ba3c4-6d62-7ca6-b194-85f4752b0001\n"
    path = yard.kano(KEY)
    yard.edit(path, uid, "")
    yard.sync()
    yard.edit(path, f"id: {KEY}\n", f"id: {KEY}\n{uid}")
    assert yard.sync().added == 0


@pytest.mark.parametrize(
    "data", [b"", b"no frontmatter\n", b"---\nid: X-1\n", b"---\n{id: X-1}\n---\n", b"\x00\xff"]
)
def test_what_is_no_item_is_reported_and_left_alone(yard, data):
    """Nobody can claim it, and it does not stop the others."""
    yard.kano(KEY)
    path = yard.put(f"{KANO}/task/KABSD-TSK-0099_x.md", data)
    report = yard.sync()
    assert report.added == 1
    assert path in problems_in(report)
    assert yard.agent().refused(c.Claim("KABSD-TSK-0099")) == "unknown_task"
    assert (yard.root / path).read_bytes() == data


def test_strict_stops_at_what_cannot_be_read(yard):
    from dibs.domain.refusals import Refused

    yard.put(f"{KANO}/task/KABSD-TSK-0099_x.md", b"")
    with pytest.raises(Refused):
        yard.sync(Options(strict=True))


def test_a_check_changes_nothing(yard):
    yard.kano(KEY)
    report = yard.sync(Options(check=True, everything=True))
    assert report.added == 1
    assert yard.task(KEY) is None
    assert list(yard.beside.glob("backlog-index*")) == []


@of_a_file
def test_a_file_that_is_gone_leaves_its_task_which_nobody_begins(yard):
    path = yard.kano(KEY)
    other = yard.kano(SECOND_KEY)
    yard.sync()
    text = yard.text(path)
    os.remove(yard.root / path)
    os.remove(yard.root / other)
    assert problems_in(yard.sync()).count("not there, or cannot be read") == 2
    assert yard.task(KEY).state == "open"
    assert yard.agent().refused(c.Claim(KEY)) == "gate_not_met"
    assert yard.agent().refused(c.Next()) == "nothing_ready"
    yard.person("ana").do(c.Force(SECOND_KEY, reason="it is known what to do"))
    yard.put(path, text)
    assert yard.agent().claim(KEY).task.state == "in_progress"
    assert yard.faults() == ()


@of_a_file
@pytest.mark.parametrize("wrong", ["state: Ready\n", "owner: bob\n"])
def test_a_file_that_cannot_be_read_is_not_claimed(yard, wrong):
    """Nobody can have met what is in it."""
    path = yard.kano(KEY)
    yard.sync()
    yard.edit(path, "decisions: []\n", f"decisions: []\n{wrong}")
    before = yard.text(path)
    assert yard.agent().refused(c.Claim(KEY)) == "gate_not_met"
    assert "cannot be read" in yard.task(KEY).item.gate
    assert yard.text(path) == before
    yard.edit(path, wrong, "")
    assert yard.agent().claim(KEY).task.state == "in_progress"


@of_a_file
def test_who_holds_an_item_finishes_it_whatever_became_of_its_file(yard):
    path = yard.kano(KEY)
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    os.remove(yard.root / path)
    done = codex.do(c.Complete(KEY))
    assert done.task.state == "complete"
    assert f"{KEY} was not written to its file: {path}: it is not there" in done.warnings[-1]
    assert yard.sync().unwritten == 0
    [state] = [one for one in doctor.findings(yard.board) if one.what == "in step"]
    assert state == Finding("in step", f"1 are missing: {KEY}: {GONE}", "note")


@of_a_file
def test_an_item_whose_file_the_index_has_forgotten_is_named_by_its_key(yard):
    path = yard.kano(KEY)
    yard.sync()
    codex = yard.agent("codex", "s1")
    codex.claim(KEY)
    os.remove(yard.root / path)
    yard.sync()
    done = codex.do(c.Complete(KEY))
    assert f"the item file of {KEY}: it is not there" in done.warnings[-1]


def test_a_problem_is_reported_by_every_sync_until_it_is_solved(yard, monkeypatch):
    monkeypatch.setattr(index, "RACY", -(10**18))  # it was written long ago
    path = yard.kano(KEY)
    yard.kano(SECOND_KEY)
    yard.edit(path, "state: ", "state: Bananas # ")
    first = yard.sync().problems
    assert [problem.path for problem in first] == [path]
    again = yard.sync()
    assert (again.problems, again.read) == (first, 1)


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_file_that_another_machine_has_bars_nobody(yard):
    """The board is on a server, and this clone may be on another branch."""
    path = yard.kano(KEY)
    yard.sync()
    os.remove(yard.root / path)
    assert yard.sync().problems == ()
    outcome = yard.agent().claim(KEY)
    assert "cannot be read" in outcome.warnings[0]


def test_a_changed_id_is_reported_with_the_key_that_stays(yard):
    path = yard.kano(KEY)
    yard.sync()
    yard.edit(path, f"id: {KEY}", "id: KABSD-TSK-0777")
    assert f"its task keeps the key {KEY}" in problems_in(yard.sync())


def test_a_broken_item_that_was_never_read_says_why_it_is_no_task(yard):
    from dibs.domain.refusals import Refused

    yard.put(f"{KANO}/task/KABSD-TSK-0099_x.md", b"---\nid: X\n")
    with pytest.raises(Refused) as caught:
        yard.agent().do(c.Claim("KABSD-TSK-0099"))
    assert caught.value.code == "unknown_task"
    assert "KABSD-TSK-0099_x.md" in str(caught.value)


def test_a_file_that_moved_is_found_again(yard):
    path = yard.kano(KEY)
    yard.sync()
    moved = f"{KANO}/task/0001/{KEY}_renamed.md"
    (yard.root / moved).parent.mkdir(parents=True)
    os.rename(yard.root / path, yard.root / moved)
    yard.agent().claim(KEY)
    assert "state: InProgress\n" in yard.text(moved)
    assert yard.sync().added == 0


def test_a_file_that_cannot_be_written_costs_no_claim_and_is_written_later(yard):
    path = yard.kano(KEY)
    yard.sync()
    folder = (yard.root / path).parent
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):  # root may write anywhere: the file becomes a folder's link
        folder.chmod(0o700)
        pytest.skip("this user may write everywhere")
    outcome = yard.agent().claim(KEY)
    assert outcome.task.state == "in_progress"
    assert "dibs sync" in outcome.warnings[0]
    folder.chmod(0o700)
    assert yard.sync().written == 1


def test_a_command_cut_before_its_file_is_made_good_by_the_next_sync(yard, monkeypatch):
    """Though the file has not changed, and is not read."""
    monkeypatch.setattr(index, "RACY", -(10**18))  # it was written long ago
    path = yard.kano(KEY)
    yard.sync()
    assert yard.sync().read == 0
    yard.board.backlog = None
    finish(yard)
    assert "state: Proposed\n" in yard.text(path)
    assert yard.sync().written == 1
    text = yard.text(path)
    assert "state: Done\n" in text
    assert text.count("(dibs 1.1 #") == 2
    assert yard.sync().written == 0


def test_a_note_writes_no_file(yard):
    path = yard.kano(KEY, state="InProgress", owner="bob")
    yard.sync()
    before = yard.text(path)
    yard.agent().do(c.Note(KEY, note="hello"))
    assert yard.text(path) == before


def test_every_field_of_the_row_is_proved_by_the_ledger(yard):
    path = yard.kano(KEY, scope='["src/**"]', constraints='["edit", "commit"]')
    yard.sync()
    assert yard.task(KEY).scope == ("src/**",)
    assert yard.task(KEY).terms.constraints == ("edit", "commit")
    yard.agent("codex", "s1").claim(KEY)
    yard.agent("codex", "s1").do(c.Release(KEY))
    yard.edit(path, 'scope: ["src/**"]', "scope: [lib]")
    yard.sync()
    assert yard.task(KEY).scope == ("lib",)
    assert yard.faults() == ()


def test_the_state_of_a_file_counts_for_nothing_once_its_task_has_changed(yard):
    """A claim between the look at the file and the transaction: the row is compared again inside it."""
    yard.kano()
    yard.sync()
    task = yard.task("KABSD-TSK-0001")
    old = BacklogItem(
        "kano", task.origin_ask_ref, task.key, "an old title", 2, task.item,
        note="nobody stands behind it", token=Token(1, 1), compared_with=task.events,
    )  # fmt: skip
    yard.agent("codex", "s1").do(c.Claim(task.key))
    held = yard.task(task.key)
    outcome = yard.person("ana").do(c.Sync((old,)))
    assert (outcome.entries, outcome.outdated) == ((), (task.origin_ask_ref,))
    assert yard.task(task.key) == held
    with yard.store.read() as tx:
        assert tx.board.epoch == held.token.epoch
    assert yard.faults() == ()


def test_a_sync_compares_again_what_changed_while_it_ran(yard):
    """Somebody writes a note after the sync has compared the item: its new title is taken in."""
    path = yard.kano()
    yard.sync()
    yard.edit(path, "title: ", "title: other ")
    yard.kano("KABSD-TSK-0002")

    def after_each_batch(_done, _total):
        yard.agent("codex", "s1").do(c.Note("KABSD-TSK-0001", note="beside it"))

    report = yard.sync(Options(progress=after_each_batch))
    assert (report.added, report.changed) == (1, 1)
    assert yard.task("KABSD-TSK-0001").terms.title.startswith("other ")
