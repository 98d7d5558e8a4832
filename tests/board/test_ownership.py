"""Who owned what when, also where the clock was set; and heads, which find what a ledger cannot prove."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dibs.board.queries import who
from dibs.board.verify import Head, head, parse_heads, prove
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR, SECOND
from kit import soak
from kit.boards import START, of_a_file

K = TaskKey("T-1")
MINUTE = 60


def owner(bench, at):
    seen = who(bench.board, K, at)
    session = f"/{seen.session}" if seen.session else ""
    return f"{seen.actor.name}{session}{' expired' if seen.expired else ''}" if seen.actor else ""


def at(minute: float) -> int:
    """Minutes after the board's first instant, by its clock."""
    return START + round(minute * MINUTE * SECOND)


def set_clock(bench, minute: float) -> None:
    bench.machine.wall_us = at(minute)
    bench.person("ana").do(c.SetClock(reason="it was wrong"))


# Who owned it.


def test_from_its_end_on_a_lease_owns_nothing_and_from_its_begin_on_it_does(bench):
    """A period has its first instant, and not its last."""
    bench.add()
    codex, claude = bench.agent("codex", "s1"), bench.agent("claude", "s9")
    bench.advance(10)
    codex.claim()
    begun = bench.now()
    bench.advance(10)
    codex.do(c.Release(K))
    ended = bench.now()
    bench.advance(10)
    claude.claim()
    assert [owner(bench, instant) for instant in (begun - 1, begun, ended - 1, ended)] == [
        "", "codex/s1", "codex/s1", "",
    ]  # fmt: skip
    assert owner(bench, bench.now()) == "claude/s9"


def test_a_lease_is_not_expired_at_its_last_instant_but_right_after_it(bench):
    bench.add()
    bench.agent("codex", "s1").claim(ttl=HOUR)
    bench.advance(2 * 3600)
    expires = bench.task().lease.expires
    assert owner(bench, expires) == "codex/s1"
    assert owner(bench, expires + 1) == "codex/s1 expired"


def test_an_assignment_that_lapsed_and_was_taken_up_late_is_reported(bench):
    bench.add()
    bench.person("dora").do(c.Note(K, note="hello"))
    bench.agent("codex", "s1").do(c.Note(K, note="hello"))
    bench.person("ana").do(c.Assign(K, to="codex", ttl=HOUR))
    bench.advance(2 * 3600)
    bench.agent("codex", "s1").claim()
    bench.advance(60)
    bench.agent("codex", "s1").do(c.Handoff(K, to="dora"))
    bench.advance(60)
    owners = {minute: owner(bench, at(minute)) for minute in (30, 90, 120.5, 121.5)}
    assert owners == {30: "codex", 90: "codex expired", 120.5: "codex/s1", 121.5: "dora"}


@of_a_file
def test_a_lease_that_ran_while_the_clock_was_set_forward_goes_on(bench):
    bench.add()
    bench.agent("codex", "s1").claim(ttl=HOUR)
    bench.advance(30 * MINUTE)
    set_clock(bench, 300)
    bench.advance(31 * MINUTE)
    seen = {minute: owner(bench, at(minute)) for minute in (1, 29, 200, 301, 331)}
    assert seen == {
        1: "codex/s1", 29: "codex/s1", 200: "codex/s1", 301: "codex/s1", 331: "codex/s1 expired",
    }  # fmt: skip


@of_a_file
def test_an_instant_that_the_clock_showed_twice_means_the_second_time(bench):
    """The clock that was set back had been wrong."""
    bench.add()
    codex, claude = bench.agent("codex", "s1"), bench.agent("claude", "s9")
    bench.advance(200 * MINUTE)
    codex.claim(ttl=HOUR)
    bench.advance(20 * MINUTE)
    codex.do(c.Release(K))
    bench.advance(20 * MINUTE)
    claude.claim(ttl=HOUR)
    bench.advance(10 * MINUTE)
    set_clock(bench, 100)
    bench.advance(20 * MINUTE)
    claude.do(c.Complete(K))
    bench.advance(200 * MINUTE)
    seen = {minute: owner(bench, at(minute)) for minute in (50, 95, 100, 119, 121, 210, 245)}
    assert seen == {
        50: "", 95: "", 100: "claude/s9", 119: "claude/s9", 121: "", 210: "", 245: "",
    }  # fmt: skip


@of_a_file
def test_that_a_lease_had_expired_is_reported_also_if_the_clock_was_set_before_anybody_saw_it(
    bench,
):
    bench.add()
    codex = bench.agent("codex", "s1")
    codex.claim(ttl=HOUR)
    bench.advance(90 * MINUTE)
    set_clock(bench, 300)
    bench.advance(10 * MINUTE)
    codex.do(c.Renew(K))
    bench.advance(10 * MINUTE)
    seen = {minute: owner(bench, at(minute)) for minute in (59, 61, 89, 305, 311)}
    assert seen == {
        59: "codex/s1", 61: "codex/s1 expired", 89: "codex/s1 expired", 305: "codex/s1 expired",
        311: "codex/s1",
    }  # fmt: skip


# Heads.


@pytest.fixture
def busy(apart):
    bench = apart
    for number in range(3):
        bench.add(f"task {number}")
    codex, ana = bench.agent("codex", "s1"), bench.person("ana")
    codex.claim()
    codex.do(c.Note(K, note="half way"))
    bench.kept = head(bench.board)
    codex.do(c.Complete(K, note="done"))
    ana.do(c.Park(TaskKey("T-2")))
    assert bench.faults() == ()
    return bench


def faults(bench, *kept: Head) -> tuple[str, ...]:
    return prove(bench.board, kept).faults


def test_a_head_changes_with_every_event_and_with_nothing_else(bench):
    heads = [head(bench.board)]
    bench.add()
    codex = bench.agent()
    for command in (c.Claim(K), c.Note(K, note="x"), c.Stop(K), c.Complete(K)):
        heads.append(head(bench.board))
        codex.do(command)
    heads.append(head(bench.board))
    assert len({one.digest for one in heads}) == len(heads)
    codex.refused(c.Renew(K))
    assert head(bench.board) == heads[-1]
    assert faults(bench, *heads) == ()


def test_a_head_is_of_one_board(tmp_path, kind, bench):
    from kit.boards import Bench

    other = Bench(tmp_path / "other", kind=kind)
    assert head(other.board).digest != head(bench.board).digest
    other.close()


def test_a_head_that_was_kept_fits_however_the_board_went_on(busy):
    assert faults(busy, busy.kept) == ()
    busy.person("ana").do(c.Unpark(TaskKey("T-2")))
    assert faults(busy, busy.kept, head(busy.board)) == ()


def roll_back(bench, seq: int) -> None:
    """All that is known of the events after one of them is taken away, as a careful forger would."""
    tail = f"SELECT DISTINCT task FROM event WHERE seq > {seq}"
    last = f"SELECT max(position) FROM event WHERE seq <= {seq} AND event.task = task.id"
    bench.tamper(
        f"UPDATE task SET state = 'in_progress', holder = 2, session = 's1', acquired = {START},"
        f" renewed = {START}, ttl = 7200000000, expires = {START} + 7200000000, renewals = 0,"
        f" reason = '', stint = {START}, host = 'testhost', worktree = '', branch = '' WHERE id = 1;"
        "UPDATE task SET parked_by = NULL WHERE id = 2;"
        f"UPDATE task SET events = ({last}), head = (SELECT digest FROM event WHERE event.task ="
        f" task.id AND position = ({last})) WHERE id IN ({tail});"
        f"DELETE FROM ended_lease; DELETE FROM note WHERE seq > {seq};"
        f"DELETE FROM actor WHERE id > 2; DELETE FROM actor_name WHERE actor > 2;"
        f"DELETE FROM event WHERE seq > {seq};"
        f"UPDATE board SET seq = {seq}, actors = 2, events = 2,"
        " head = (SELECT digest FROM event WHERE task IS NULL AND position = 2)"
    )


def test_a_tail_that_is_cut_off_with_its_rows_is_found_only_against_a_kept_head(busy):
    """A ledger that was longer once looks like one that never was."""
    later = head(busy.board)
    roll_back(busy, busy.kept.seq)
    assert faults(busy) == ()
    assert faults(busy, busy.kept) == ()
    [fault] = faults(busy, busy.kept, later)
    assert fault == (
        f"the ledger ends with event {busy.kept.seq}, and the kept head is of event {later.seq}: "
        "events are missing at its end"
    )


def test_a_ledger_that_was_rewritten_with_all_its_digests_is_found_against_a_kept_head(busy):
    """Who computes all that follows anew leaves a sound ledger, which is another one."""
    from dibs.domain import ledger

    before, later = busy.kept, head(busy.board)
    with busy.store.read() as tx:
        own = list(tx.events_of(2))
    parked = own[-1].but(facts=own[-1].facts.replace('"reason":""', '"reason":"a whim"'))
    digest = ledger.chain(own[-2].digest, parked)
    busy.tamper(
        f"UPDATE event SET facts = '{parked.facts}', digest = '{digest}' WHERE seq = {parked.seq};"
        f"UPDATE task SET head = '{digest}' WHERE id = 2"
    )
    assert faults(busy) == ()
    [fault] = faults(busy, before, later)
    assert fault.startswith(f"the kept head of event {later.seq} does not fit: the ledger was")
    assert f"after event {before.seq} and not after event {later.seq}" in fault


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=soak.examples(25)
)
@given(st.integers(0, 40), st.integers(0, 63))
@of_a_file
def test_no_other_digest_fits(busy, seq, place):
    """A digit of the right head, changed, at any number that there is."""
    seq %= head(busy.board).seq + 1
    with busy.store.read() as tx:
        from dibs.board.verify import heads

        right = next(one for one in heads(tx, (seq,)) if one.seq == seq)
    assert faults(busy, right) == ()
    digit = "0" if right.digest[place] != "0" else "1"
    wrong = right.but(digest=right.digest[:place] + digit + right.digest[place + 1 :])
    assert len(faults(busy, wrong)) == 1


def test_kept_heads_are_read_as_they_were_printed():
    one, two = Head(3, "a" * 64), Head(70, "b" * 64)
    assert parse_heads(f"# monday\n{one}\n\n  {two}  \n") == (one, two)


@pytest.mark.parametrize(
    "text", ["", "#", "3", "3:", ":" + "a" * 64, "3:abc", "x:" + "a" * 64, "3:" + "A" * 64,
             "3:" + "g" * 64, "-1:" + "a" * 64, "9" * 19 + ":" + "a" * 64, "\uff13:" + "a" * 64],
)  # fmt: skip
def test_what_is_no_head_is_refused(text):
    with pytest.raises(Refused) as problem:
        parse_heads(text)
    assert problem.value.code == "bad_argument"
