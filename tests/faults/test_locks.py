"""Who waits for the board's lock on a server sees what was done meanwhile, and what time it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from dibs import Refused
from dibs.domain.events.base import renew
from dibs.domain.model import TaskKey
from dibs.storage.postgres import transaction
from kit import soak
from kit.history import Answer
from kit.postgres import Server
from kit.postgres_ground import until
from kit.writers import Writers, board_with, name_of, opened, opened_by

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
CLOCK = "SELECT clock_timestamp()"
SECOND = timedelta(seconds=1)


@pytest.fixture
def url(node):
    return Server(node.url(), node).new_database()


@pytest.fixture
def raw(node, url):
    """A connection beside the board's."""
    with node.connect(name_of(url)) as connection:
        yield connection


def await_waiting(node, count: int) -> None:
    until(lambda: node.query(WAITING) == count, f"{count} that wait for a lock")


def test_two_claims_at_once_come_one_after_the_other(node, url, raw):
    """The first is stopped in its middle, before it has written its task; the second waits for it.

    They are about different tasks: it is the board that they share, with its ledger and counters.
    """
    one, two = board_with(url, tasks=2)
    with (
        opened_by(url, "a1") as first,
        opened_by(url, "a2") as second,
        ThreadPoolExecutor() as pool,
    ):
        with raw.transaction():
            raw.execute("SELECT FROM dibs.task WHERE key = %s FOR UPDATE", (one,))
            claims = [pool.submit(first.claim, one)]
            await_waiting(node, 1)
            claims.append(pool.submit(second.claim, two))
            await_waiting(node, 2)
        assert [claim.result(60).token for claim in claims] == ["1.1", "1.1"]
        events = [event.session for event in first.log() if event.verb in ("claimed", "started")]
        assert events == ["a1", "a1", "a2", "a2"]
        assert first.verify() == ()


def test_a_claim_that_waited_for_the_lock_has_its_full_time(node, url, raw):
    """Time is read after the lock was won: a lease of a second survives a wait that was longer."""
    [key] = board_with(url, tasks=1)
    with opened_by(url, "a1") as board, ThreadPoolExecutor() as pool:
        with raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(1684628083, 1)")
            claim = pool.submit(board.claim, key, ttl="1s")
            await_waiting(node, 1)
            since = node.query(CLOCK)
            until(lambda: node.query(CLOCK) > since + 1.2 * SECOND, "a wait of more than a second")
            released = node.query(CLOCK)
        lease = claim.result(60).lease
        assert lease.acquired_at >= released
        assert lease.expires_at >= released + SECOND


def test_a_claim_that_meets_a_renewal_waits_for_it_and_gets_the_new_time(node, url):
    """A renewal shares the board's lock with other renewals, and with no claim."""
    [key] = board_with(url, tasks=1)
    with (
        opened_by(url, "holder") as holder,
        opened_by(url, "other") as other,
        opened(url) as board,
        ThreadPoolExecutor() as pool,
    ):
        before = holder.claim(key, ttl="1m").lease
        with board.store.renewal(TaskKey(key)) as tx:
            claim = pool.submit(other.claim, key)
            until(lambda: node.query(WAITING) or claim.done(), "a claim that waits")
            assert not claim.done()
            tx.save(renew(tx.task(TaskKey(key)), tx.now))
        with pytest.raises(Refused) as refused:
            claim.result(60)
        after = holder.show(key).lease
        facts = refused.value.refusal.facts
        assert refused.value.code == "held"
        assert after.expires_at > before.expires_at
        assert datetime.fromisoformat(facts["expires_at"]) == after.expires_at


def test_a_writer_that_says_nothing_loses_the_lock(node, url, monkeypatch):
    """It may have been stopped, or its machine be asleep; when it goes on, nothing was done."""
    monkeypatch.setattr(transaction, "IDLE", "100ms")
    [key] = board_with(url, tasks=1)
    with opened_by(url, "other") as other, opened(url) as board:
        with pytest.raises(Refused) as refused, board.store.write("a long one") as tx:
            assert other.claim(key).token == "1.1"
            tx.touch()
        assert (refused.value.code, refused.value.refusal.facts["unknown"]) == (
            "unreachable",
            False,
        )


def test_renewals_of_different_tasks_do_not_wait_for_each_other(node, url):
    one, two = board_with(url, tasks=2)
    with opened_by(url, "holder") as holder, opened(url) as board:
        for key in (one, two):
            holder.claim(key)
        with board.store.renewal(TaskKey(one)):
            assert holder.renew(two).lease.renewals == 1


def test_six_processes_that_claim_renew_and_take_over_leave_one_possible_history(
    node, url, tmp_path
):
    """Renewals in their own kind of transaction, leases of a second that do run out."""
    keys = board_with(url, tasks=60)
    with (
        opened_by(url, "reader") as board,
        Writers(tmp_path, url, keys, ttl=1, ids=False, seed=soak.seed()) as writers,
    ):
        writers.go_on(soak.times(25, share=0.1, each=0.02))
        until(lambda: takeovers(board), "a takeover")
        writers.finish()
        operations = writers.judge(url)
        renewals = [op for op in operations if op.verb == "renew" and isinstance(op.answer, Answer)]
        print(
            f"{len(operations)} operations, {len(renewals)} renewals, {takeovers(board)} takeovers"
        )
    assert renewals


def takeovers(board) -> int:
    return sum(event.verb == "taken_over" for event in board.log(limit=100_000))


def test_a_renewal_that_comes_later_does_not_pass_a_writer_that_waits(node, url):
    """Else those who renew all the time would keep every claim waiting for ever."""
    one, two, three = board_with(url, tasks=3)
    with (
        opened_by(url, "holder") as holder,
        opened_by(url, "later") as later,
        opened_by(url, "writer") as writer,
        opened(url) as board,
        ThreadPoolExecutor() as pool,
    ):
        holder.claim(one)
        later.claim(two)
        with board.store.renewal(TaskKey(one)):
            claim = pool.submit(writer.claim, three)
            await_waiting(node, 1)
            renewal = pool.submit(later.renew, two)
            await_waiting(node, 2)
        assert claim.result(60).token == "1.1"
        assert renewal.result(60).lease.renewals == 1
