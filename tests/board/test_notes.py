"""Notes: a text can be removed for good, and a result that came too late is pointed out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dibs.board.explain import status
from dibs.board.queries import show
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain import ledger
from dibs.domain.model import TaskKey, Terms
from dibs.domain.values import HOUR
from kit.boards import of_a_file

K = TaskKey("T-1")
SECRET = "the password is hunter2, and it is long enough to be found"
WHY = "a password"


@pytest.fixture
def noted(apart):
    """A task with three notes, the second of which should not be there."""
    apart.add()
    codex = apart.agent("codex", "s1")
    codex.claim()
    codex.do(c.Note(K, note="half way"))
    codex.do(c.Note(K, note=SECRET), "r1")
    codex.do(c.Block(K, reason="no keys", keep=True))
    return apart


def seq_of(bench, text: str) -> int:
    return next(note.seq for note in show(bench.board, K).notes if note.text == text)


# Redaction.


def test_a_redacted_text_is_gone_and_who_did_it_and_why_is_reported(noted):
    seq = seq_of(noted, SECRET)
    noted.person("ana").do(c.Redact(K, seq, WHY))
    seen = show(noted.board, K)
    assert [note.text for note in seen.notes] == ["half way", "", "no keys"]
    gone = seen.redactions[seq]
    assert (seen.actors[gone.by].name, gone.reason) == ("ana", WHY)
    assert noted.verbs()[-1] == "redacted"
    assert noted.faults() == ()


def test_the_ledger_keeps_the_digest_of_a_redacted_text(noted):
    seq = seq_of(noted, SECRET)
    before = noted.events()
    noted.person("ana").do(c.Redact(K, seq, WHY))
    assert noted.events()[: len(before)] == before
    entry = next(entry for entry in before if entry.seq == seq)
    assert ledger.digest_of(SECRET) in entry.facts


def test_no_row_of_any_table_has_a_redacted_text(noted):
    noted.person("ana").do(c.Redact(K, seq_of(noted, SECRET), WHY), "r2")
    for table in ("note", "event", "request", "refusal", "task", "board", "ended_lease"):
        assert SECRET not in repr(noted.rows(table))


def test_redacting_twice_is_harmless_and_leaves_one_event(noted):
    ana, seq = noted.person("ana"), seq_of(noted, SECRET)
    ana.do(c.Redact(K, seq, WHY))
    again = ana.do(c.Redact(K, seq, "to be sure"))
    assert again.entries == ()
    assert noted.verbs().count("redacted") == 1
    assert noted.faults() == ()


@pytest.mark.parametrize("text", ["half way", "no keys", SECRET])
def test_a_note_of_any_kind_can_be_redacted(noted, text):
    noted.person("ana").do(c.Redact(K, seq_of(noted, text), WHY))
    assert text not in repr(noted.rows("note"))
    assert noted.faults() == ()


def test_what_the_next_one_should_know_is_a_note_and_can_be_redacted(noted):
    codex, ana = noted.agent("codex", "s1"), noted.person("ana")
    ana.do(c.Unblock(K))
    codex.do(c.Handoff(K, to="ana", reason="lunch", note=" look at auth.py "))
    kept = show(noted.board, K).notes[-1]
    assert (kept.kind, kept.text) == ("handed_off", "look at auth.py")
    ana.do(c.Redact(K, kept.seq, WHY))
    assert noted.faults() == ()


def test_a_block_reason_that_was_redacted_is_shown_as_redacted(noted):
    noted.person("ana").do(c.Redact(K, seq_of(noted, "no keys"), WHY))
    [waiting] = [one for one in status(noted.board).waiting if one.task.key == K]
    assert waiting.why == "blocked redacted"


def test_only_a_person_redacts_and_only_with_a_reason_and_only_a_note_of_this_task(noted):
    seq, ana = seq_of(noted, SECRET), noted.person("ana")
    other = ana.do(c.Add(Terms("other"))).task.key
    assert noted.agent("codex", "s1").refused(c.Redact(K, seq, WHY)) == "people_only"
    assert ana.refused(c.Redact(K, seq, "  ")) == "reason_missing"
    assert ana.refused(c.Redact(K, 1, WHY)) == "unknown_note"
    assert ana.refused(c.Redact(other, seq, WHY)) == "unknown_note"
    assert seq_of(noted, SECRET) == seq


MISSING = {
    "a text goes without a redaction": "UPDATE note SET text = '' WHERE text = 'half way'",
    "a redacted text comes back": f"UPDATE note SET text = '{SECRET}' WHERE text = ''",
    "a redacted text is replaced": "UPDATE note SET text = 'harmless' WHERE text = ''",
    "a redacted note is deleted": "DELETE FROM note WHERE text = ''",
    "a note is of another kind": "UPDATE note SET kind = 'late' WHERE text = 'half way'",
}


@pytest.mark.parametrize("how", MISSING)
def test_only_a_text_that_was_redacted_may_be_missing(noted, how):
    noted.person("ana").do(c.Redact(K, seq_of(noted, SECRET), WHY))
    noted.tamper(MISSING[how])
    assert len(verify(noted.board).faults) == 1


@of_a_file
@pytest.mark.parametrize("seed", range(3))
def test_no_byte_of_a_redacted_text_is_left_in_the_file_or_its_log(noted, seed):
    """Short, longer than a cell, longer than a page, among many others, whose pages were divided."""
    chance, ana = random.Random(seed), noted.person("ana")
    for number in range(80):
        length = chance.choice((5, 60, 300, 1_500, 20_000 - 12))
        ana.do(c.Note(K, note=f"secret-{number:04} " + "z" * length))
    notes = [note for note in show(noted.board, K).notes if note.text.startswith("secret")]
    for note in chance.sample(notes, 20):
        assert ana.do(c.Redact(K, note.seq, WHY)).warnings == ()
        files = (noted.store.path, f"{noted.store.path}-wal")
        left = b"".join(Path(path).read_bytes() for path in files)
        assert note.text[:11].encode() not in left
    assert noted.faults() == ()


@of_a_file
def test_while_nobody_else_may_write_a_warning_says_that_the_text_may_be_left(noted):
    """The redaction is done all the same: the lock comes to be held between the two."""
    from dibs.storage.sqlite import copy
    from dibs.storage.sqlite.write_lock import acquire_write_lock

    noted.store.wait = 0.05
    held = acquire_write_lock(noted.store.lock, "other", 1.0, noted.machine)
    try:
        assert copy.scrub(noted.store).startswith("unused parts of ")
    finally:
        held.end()
    assert copy.scrub(noted.store) == ""


@of_a_file
def test_while_somebody_reads_an_older_state_a_warning_says_where_the_text_still_is(noted):
    noted.store.wait = 0.05
    noted.store.close()
    reader = noted.store.another()
    with reader.read() as tx:
        assert list(tx.events())
        outcome = noted.person("ana").do(c.Redact(K, seq_of(noted, SECRET), WHY))
        [warnings] = outcome.warnings
        assert "another process reads an older state" in warnings
        kept = [path for path in files_of(noted) if SECRET.encode() in path.read_bytes()]
        assert kept
        assert {str(path) for path in kept} <= {*warnings.split()}
        with_reader = noted.person("ana").do(c.Redact(K, outcome.events[-1].of, WHY))
        assert with_reader.warnings == (warnings,)
    assert noted.person("ana").do(c.Redact(K, outcome.events[-1].of, WHY)).warnings == ()
    assert not any(SECRET.encode() in path.read_bytes() for path in files_of(noted))
    reader.close()


def files_of(bench) -> list[Path]:
    files = (Path(bench.store.path), Path(f"{bench.store.path}-wal"))
    return [path for path in files if path.exists()]


# Late notes.


@pytest.fixture
def late(bench):
    """One lost the task to claude, and reported too late that it is done."""
    bench.add()
    bench.agent("codex", "s1").claim(ttl=HOUR)
    bench.advance(3601)
    bench.agent("claude", "s9").claim()
    bench.agent("codex", "s1").refused(c.Complete(K, note="it was the cache"))
    return bench


def pointed_out(bench) -> list[tuple[str, str]]:
    return [(one.key, one.note.text) for one in status(bench.board).late]


def test_a_late_note_is_pointed_out_by_status_and_marked_by_show(late):
    assert pointed_out(late) == [("T-1", "it was the cache")]
    assert [note.kind for note in show(late.board, K).notes] == ["late"]


@pytest.mark.parametrize(
    "command",
    [c.Note(K, note="seen"), c.Complete(K), c.Stop(K), c.Release(K), c.Block(K, reason="x")],
    ids=lambda command: command.verb,
)
def test_a_late_note_is_pointed_out_until_somebody_else_has_done_something_with_the_task(
    late, command
):
    late.agent("codex", "s1").do(c.Release(K))  # its author says that it knows
    assert pointed_out(late)
    late.agent("claude", "s9").do(command)
    assert pointed_out(late) == []


def test_another_session_of_the_same_agent_is_somebody_else(bench):
    bench.add()
    bench.agent("codex", "s1").claim(ttl=HOUR)
    bench.advance(3601)
    bench.agent("codex", "s2").claim()
    bench.agent("codex", "s1").refused(c.Complete(K, note="done"))
    assert pointed_out(bench)
    bench.agent("codex", "s2").do(c.Note(K, note="seen"))
    assert pointed_out(bench) == []


def test_a_sweep_has_not_looked(late):
    late.advance(3 * 3600)
    late.person("ana").do(c.Sweep())
    late.advance(60)
    late.person("ana").do(c.Sweep())
    assert late.verbs()[-1] == "lease_ended"
    assert pointed_out(late)


def test_a_late_note_that_was_redacted_is_not_pointed_out_though_its_author_did_it(bench):
    bench.add()
    dora, ana = bench.person("dora"), bench.person("ana")
    dora.claim()
    ana.do(c.Force(K, reason="it burns"))
    dora.refused(c.Complete(K, note="done"))
    assert pointed_out(bench)
    dora.do(c.Redact(K, show(bench.board, K).notes[0].seq, WHY))
    assert pointed_out(bench) == []


def test_a_late_note_of_a_task_that_is_complete_is_pointed_out(late):
    late.agent("claude", "s9").do(c.Complete(K))
    late.agent("codex", "s1").refused(c.Fail(K, reason="it cannot work"))
    assert pointed_out(late) == [("T-1", "it cannot work")]
