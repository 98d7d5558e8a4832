"""The server dies and another takes its place: no token is given twice, and what is lost is told."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dibs import Refused
from kit.history import BEGINS
from kit.postgres import QUICK, Node, Server, server
from kit.postgres_cluster import Cluster, copy_database
from kit.postgres_ground import until
from kit.repositories import Repo
from kit.writers import Writers, board_with, name_of, opened_by

ALL = 100_000


def code_of(act, *arguments, **options) -> str:
    with pytest.raises(Refused) as refused:
        act(*arguments, **options)
    return refused.value.code


def epoch_of(token: str) -> int:
    return int(token.partition(".")[0])


def new_epoch(board):
    """The event that began it: there is one, however many came at once."""
    [event] = [event for event in board.log(limit=ALL) if event.verb == "epoch_raised"]
    return event


def leases_begun(board):
    return [event for event in board.log(limit=ALL) if event.verb in BEGINS]


def check_tokens(board) -> None:
    """Each is given once; what begins after the epoch was raised is of the new one."""
    raised, begun = new_epoch(board), leases_begun(board)
    assert len({(event.task, event.token) for event in begun}) == len(begun)
    for event in begun:
        new = epoch_of(event.token) == raised.facts["epoch"]
        assert new == (event.seq > raised.seq), event


# A promotion.


def test_a_failover_to_a_synchronous_standby_loses_nothing_and_every_writer_goes_on(tmp_path):
    """Six writers and a keeper; the first change after the promotion raises the epoch, once."""
    with Cluster(synchronous=True) as cluster:
        url = cluster.url()
        kept, *keys = board_with(url, tasks=30)
        with opened_by(url, "keeper") as board, board.hold(kept, ttl="20s") as lease:
            with Writers(tmp_path, url, keys) as writers:
                writers.go_on(5)
                died = time.monotonic_ns()
                cluster.primary.kill()
                cluster.promote()
                away = (time.monotonic_ns() - died) / 1e9
                writers.go_on(5)
                writers.finish()
            lease.check()
            assert board.renew(kept, token=lease.token).token == lease.token == "1.1"
            assert new_epoch(board).facts["why"] == "promotion"
            check_tokens(board)
        operations = writers.judge(url)
    cut = [op for op in operations if op.invoked < died < op.returned]
    longest = max((op.returned - op.invoked) / 1e9 for op in cut)
    print(f"{len(operations)} operations, {len(cut)} met the failover of {away:.2f} s")
    print(f"the longest took {longest:.2f} s")
    assert [op for op in operations if op.answer is None] == [], "nobody gave up"


def test_what_an_asynchronous_standby_did_not_hear_is_lost_and_told_and_no_token_is_given_twice(
    tmp_path,
):
    with Cluster(synchronous=False) as cluster:
        url = cluster.url()
        replicated, unheard, taken, *keys = board_with(url, tasks=20)
        with opened_by(url, "codex") as codex, opened_by(url, "claude") as claude:
            with Writers(tmp_path, url, keys) as writers:
                writers.go_on(4)
                lives = codex.claim(replicated).token
                cluster.await_streaming()
                cluster.cut()
                lost = {key: codex.claim(key).token for key in (unheard, taken)}
                writers.go_on(4)
                cluster.primary.kill()
                cluster.promote()
                back = time.monotonic_ns()
                writers.go_on(4)
                assert codex.renew(replicated, token=lives).token == lives
                assert epoch_of(claude.claim(taken).token) > epoch_of(lost[taken])
                check_refusals(Repo(tmp_path, url), codex, lost)
                writers.finish()
            check_tokens(claude)
            check_losses(writers, claude, back)
            assert claude.verify() == ()


def check_refusals(repo, codex, lost) -> None:
    """Whoever held what was lost hears 5, and why: by the library and by the command."""
    unheard, taken = lost
    assert code_of(codex.complete, unheard, token=lost[unheard]) == "token_ahead"
    assert code_of(codex.renew, taken, token=lost[taken]) == "lease_lost"
    stated = ["--token", lost[unheard], "--agent", "codex", "--session", "codex"]
    ran = repo.run("complete", unheard, *stated)
    assert ran.code == 5 and "the board has lost changes" in ran.err


def check_losses(writers, board, back) -> None:
    """A token has one holder in all that was ever said; one that was lost opens nothing."""
    holder = {(event.task, event.token): event.session for event in leases_begun(board)}
    kept, lost = {*holder}, set()
    for request, reply in writers.answered():
        answer = reply["answer"]
        if isinstance(answer, dict) and answer["holder"]:
            lease = (request["key"], answer["token"])
            assert holder.setdefault(lease, answer["holder"]) == answer["holder"], lease
            lost |= {lease} - kept
    late = [
        reply["answer"]
        for request, reply in writers.answered()
        if request["at"] > back and (request["key"], request["stated"]) in lost
    ]
    print(f"{len(kept)} leases are known, {len(lost)} are lost; their holders heard {late}")
    assert lost
    assert {*late} <= {"token_ahead", "lease_lost"}


def test_a_command_that_finds_no_server_waits_for_the_promotion(tmp_path):
    """It was started while there was none, and has no connection to lose."""
    with Cluster(synchronous=False) as cluster:
        repo = Repo.create(tmp_path / "repo", cluster.url())
        [key] = board_with(cluster.url(), tasks=1)
        cluster.await_streaming()
        cluster.standby.configure({"log_connections": "on"})
        cluster.primary.kill()
        claim = repo.start("claim", key, "--agent", "codex", "--session", "s1")
        until(lambda: calls(cluster.standby) > 1 or claim.poll(), "a second try")
        cluster.promote()
        _, err = claim.communicate(timeout=60)
        assert claim.returncode == 0, err


def calls(node) -> int:
    return node.log.read_text().count("connection received: host=")


# A restore.


def test_a_restore_of_the_server_itself_raises_the_epoch_and_leases_run_on():
    """As after a promotion: the holders may still be at work."""
    with Cluster(synchronous=False) as cluster:
        url = cluster.url()
        one, two = board_with(url, tasks=2)
        with opened_by(url, "codex") as codex, opened_by(url, "claude") as claude:
            held = codex.claim(one).token
            backup = cluster.backup()
            lost = codex.claim(two).token
            cluster.restore(backup)
            assert codex.renew(one, token=held).token == held
            assert code_of(codex.renew, two, token=lost) == "token_ahead"
            token = claude.claim(two).token
            assert epoch_of(token) == new_epoch(claude).facts["epoch"] > epoch_of(lost)
            assert new_epoch(claude).facts["why"] == "promotion"
            assert claude.verify() == ()


@pytest.fixture
def restored():
    """A board whose dump was put into another server, as a URL there; and the server."""
    source = server().new_database()
    keys = board_with(source, tasks=8)
    node = Node(QUICK).init().start()
    try:
        with opened_by(source, "codex") as codex:
            token = codex.claim(keys[0]).token
        url = Server(node.url(), node).new_database()
        copy_database(source, url)
        yield url, node, keys, token
    finally:
        node.remove()


def test_a_board_in_another_server_ends_every_lease_and_raises_the_epoch(restored):
    """The system identifier is another one: nobody knows what happened since the dump."""
    url, _, keys, token = restored
    with opened_by(url, "codex") as codex, opened_by(url, "claude") as claude:
        assert code_of(codex.complete, keys[0], token=token) == "lease_lost"
        assert new_epoch(codex).facts["why"] == "restore"
        taken = claude.claim(keys[0])
        assert taken.token == f"{new_epoch(codex).facts['epoch']}.2"
        assert codex.log(keys[0])[3].verb == "lease_ended"
        assert codex.verify() == ()


def test_those_who_wait_while_the_epoch_is_raised_do_not_raise_it_again(restored):
    """Else a lease that was granted after the restore would be ended by the next who waited."""
    url, node, keys, _ = restored
    boards = [opened_by(url, f"a{n}") for n in range(4)]
    database = name_of(url)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        f" AND datname = '{database}'"
    )
    with ThreadPoolExecutor() as pool, node.connect(database) as other:
        with other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(1684628083, 1)")
            claims = [pool.submit(board.claim, key) for board, key in zip(boards, keys)]
            until(lambda: node.query(waiting) == len(boards), "all of them wait")
        tokens = [claim.result(60).token for claim in claims]
    for board, key, token in zip(boards, keys, tokens):
        assert board.renew(key, token=token).token == token
    assert new_epoch(boards[0]).facts["why"] == "restore"
    for board in boards:
        board.close()
