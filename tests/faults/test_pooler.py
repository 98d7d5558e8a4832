"""Behind a transaction pooler: every transaction may meet another session of the server."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from dibs import Refused
from kit import postgres_proxy
from kit.postgres import Server, pooler
from kit.postgres_ground import until
from kit.postgres_proxy import Proxy
from kit.repositories import Repo
from kit.writers import Writers, board_with, name_of, opened_by

SYNC, FLUSH = "S", "H"

LEFT_BEHIND = {
    "prepared statements": "SELECT count(*) FROM pg_prepared_statements",
    "channels": "SELECT count(*) FROM pg_listening_channels()",
    "locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
    "cursors": "SELECT count(*) FROM pg_cursors WHERE name <> ''",
    "temporary tables": "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
    "settings": "SELECT count(*) FROM pg_settings WHERE source = 'session'"
    " AND name IN ('lock_timeout', 'search_path', 'transaction_read_only', 'statement_timeout')",
}


def test_processes_and_a_keeper_share_two_sessions_of_a_pooler(node, tmp_path):
    """Four writers with leases of a second, and one that is kept by renewals."""
    with pooler(node, size=2) as address:
        url = f"{address}/postgres"
        kept, *keys = board_with(url, tasks=40)
        with opened_by(url, "keeper") as board, board.hold(kept, ttl="6s") as lease:
            with Writers(tmp_path, url, keys, sessions=4, ttl=1, ids=False) as writers:
                writers.go_on(20)
                until(lambda: board.show(kept).lease.renewals > 2, "renewals by the keeper")
                writers.finish()
            lease.check()
        print(f"{len(writers.judge(url))} operations")


def test_nothing_is_sent_after_the_end_of_a_transaction(node, monkeypatch):
    """A pooler would give the client a session for it, and never get that session back."""
    sent, batches = [], postgres_proxy.batches

    def recorded(end):
        for raw, messages in batches(end):
            if end.family == socket.AF_INET:
                sent.extend(message.kind.decode() for message in messages)
            yield raw, messages

    monkeypatch.setattr(postgres_proxy, "batches", recorded)
    database = name_of(Server(node.url(), node).new_database())
    [key] = board_with(node.url(database), tasks=1)
    with Proxy(node.socket) as proxy, opened_by(proxy.url(database), "codex") as board:
        for act in (board.claim, board.renew, board.show, board.complete):
            act(key)
        with pytest.raises(Refused):
            board.claim(key)
        assert sent[-1] == SYNC
        assert SYNC + FLUSH not in "".join(sent)


def test_nothing_is_left_in_a_session_that_others_share(node, tmp_path):
    """With one session for all, whatever one leaves there would be found by the next."""
    database = name_of(Server(node.url(), node).new_database())
    with pooler(node, size=1) as address:
        url = f"{address}/{database}"
        repo = Repo.create(tmp_path / "repo", url)
        repo.ok("init")
        key = repo.add()
        with opened_by(url, "codex") as codex, opened_by(url, "claude") as claude:
            with ThreadPoolExecutor() as pool:
                claims = [pool.submit(codex.claim, key), pool.submit(codex.show, key)]
                claims += [pool.submit(claude.note, key, "hello") for _ in range(5)]
                for claim in claims:
                    claim.result(60)
            codex.release(key)
            with codex.hold(key, ttl="4s") as lease:
                until(lambda: claude.show(key).lease.renewals > 1, "renewals by the keeper")
                lease.complete()
        assert repo.ok("log", "--verify").code == 0
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as shared:
            left = {
                what: shared.execute(query).fetchone()[0] for what, query in LEFT_BEHIND.items()
            }
        assert left == dict.fromkeys(LEFT_BEHIND, 0)
        assert "there is one" in repo.run("doctor").out
