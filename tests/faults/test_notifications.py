"""A server notifies waiting clients of changes, which then poll at once. Nothing depends on a notification."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from dibs.board.identity import Identity
from dibs.board.locate import Place
from dibs.domain import commands as c
from dibs.domain.values import SECOND
from dibs.opening import open_at
from dibs.storage.address import Address
from dibs.storage.postgres import notifications
from dibs.storage.postgres import store as postgres
from dibs.storage.postgres.store import PostgresStore
from dibs.workers.next import next_task
from kit.postgres import Server
from kit.postgres_ground import until
from kit.postgres_proxy import BEFORE
from kit.writers import board_with, name_of, opened_by

KEY, OTHER = "T-1", "T-2"
NEVER = 600.0
HINT = "(?s).*pg_notify"
LISTENERS = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted"
)


@pytest.fixture
def url(node):
    """Of a board with two tasks."""
    url = node.url(name_of(Server(node.url(), node).new_database()))
    board_with(url, tasks=2)
    return url


@pytest.fixture
def listeners(url):
    """How many listen to a board of this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield lambda: connection.execute(LISTENERS).fetchone()[0]


@pytest.fixture
def waiting(url, listeners):
    """Somebody who waits until a task is complete, and has begun to listen."""
    with ThreadPoolExecutor() as pool, opened_by(url, "ben") as ben:

        def wait(key):
            waits = pool.submit(ben.wait, key, timeout="60s")
            until(listeners, "somebody who listens")
            return waits

        yield wait


def hints(proxy) -> int:
    return sum("pg_notify" in statement for statement in proxy.statements)


def test_who_waits_looks_as_soon_as_the_board_changed(url, waiting, monkeypatch):
    monkeypatch.setattr(postgres, "SLICE", NEVER)  # by itself, nobody looks again
    with opened_by(url, "al") as al:
        waits = waiting(KEY)
        al.claim(KEY)
        time.sleep(notifications.APART)
        al.complete(KEY)
        assert waits.result(30).state == "complete"


def test_a_notification_follows_its_change_and_only_if_somebody_listens(
    url, proxy, waiting, listeners
):
    """Inside the change, it would make the commits of all boards of the server wait for each other."""
    with opened_by(proxy.url(name_of(url)), "al") as al:

        def trips_of_a_note() -> tuple[int, list[bool]]:
            proxy.reset()
            al.note(OTHER, "hello")
            return proxy.round_trips, ["pg_notify" in each for each in proxy.statements[-2:]]

        al.claim(KEY)
        trips_of_a_note()
        assert trips_of_a_note() == (2, [False, False])
        waits = waiting(KEY)
        assert trips_of_a_note() == (3, [False, True])
        assert proxy.statements[-2] == "COMMIT"
        al.complete(KEY)
        assert waits.result(30)
        until(lambda: not listeners(), "nobody who listens")
        assert trips_of_a_note() == (2, [False, False])


def test_a_notification_that_is_lost_delays_and_harms_nobody(url, proxy, waiting):
    """The change is done and acknowledged; who waits sees it at the next look."""
    waits = waiting(KEY)
    with opened_by(proxy.url(name_of(url)), "al") as al:
        proxy.cut_at(BEFORE, HINT)
        assert not al.claim(KEY).replayed
        assert proxy.sprung.wait(60)
        al.complete(KEY)
    assert waits.result(30).state == "complete"


def test_a_server_that_takes_no_notification_is_not_waited_for_long(
    url, proxy, waiting, monkeypatch
):
    """The change is done: whoever made it gets its success."""
    given = notifications.notify_listeners

    def give(store, session):
        proxy.freeze()
        given(store, session)

    waits = waiting(KEY)
    with opened_by(proxy.url(name_of(url)), "al") as al, ThreadPoolExecutor() as pool:
        monkeypatch.setattr(notifications, "notify_listeners", give)
        claim = pool.submit(al.claim, KEY)
        try:
            assert claim.result(15).task.state == "in_progress"
        finally:
            proxy.thaw()
        monkeypatch.setattr(notifications, "notify_listeners", given)
        al.complete(KEY)
    assert waits.result(30)


def test_many_changes_of_one_client_are_one_notification(url, proxy, waiting, monkeypatch):
    monkeypatch.setattr(notifications, "APART", NEVER)
    waits = waiting(KEY)
    with opened_by(proxy.url(name_of(url)), "al") as al:
        for number in range(5):
            al.note(OTHER, f"note {number}")
        assert hints(proxy) == 1
        al.claim(KEY)
        al.complete(KEY)
    assert waits.result(30)


def test_who_is_hinted_at_all_the_time_looks_now_and_then(url, proxy):
    over = threading.Event()

    def shout():
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set():
                connection.execute("SELECT pg_notify('dibs_1', '')")

    with ThreadPoolExecutor() as pool, opened_by(proxy.url(name_of(url)), "ben") as ben:
        shouts, began = pool.submit(shout), time.monotonic()
        waits = pool.submit(ben.wait, KEY, timeout="2s")
        assert waits.exception(30).code == "timed_out"
        over.set()
        shouts.result(30)
        looks = sum("floor" in statement for statement in proxy.statements)
        spent = time.monotonic() - began
    each = 1 / notifications.APART + 1 / postgres.SLICE
    assert 4 <= looks <= 3 * (spent * each + 4), "a wait looks at the pulse and at the task"


def test_who_has_found_work_listens_no_more(url, listeners):
    """The connection is used on, by work that may take hours."""
    board = open_at(Place("/nowhere", url=url))
    with ThreadPoolExecutor() as pool, opened_by(url, "al") as al:
        codex = Identity("codex", False, "codex")
        al.claim(KEY)
        al.claim(OTHER)
        found = pool.submit(next_task, board, codex, c.Next(), 60 * SECOND)
        until(listeners, "somebody who listens")
        al.add("work")
        assert found.result(30).task.key == "T-3"
        assert listeners() == 0
        with board.read() as tx:
            assert tx.board.tasks == 3
    board.store.close()


def test_who_meets_a_change_does_not_listen_by_half(url, listeners, node):
    """It looks again, and begins to listen when the change is done."""
    store = PostgresStore(Address(url))
    store.pulse()
    with psycopg.connect(url) as writer:
        writer.execute("SELECT pg_advisory_xact_lock(1684628072, 1)")  # as a change has it
        store.listen(0.01)
        assert (listeners(), channels(store)) == (0, [])
    store.listen(0.01)
    assert (listeners(), channels(store)) == (1, ["dibs_1"])
    store.unlisten()
    assert (listeners(), channels(store)) == (0, [])
    store.close()


def channels(store) -> list[str]:
    rows = store.borrow().execute("SELECT pg_listening_channels()").fetchall()
    return [name for (name,) in rows]
