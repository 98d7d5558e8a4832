"""What a role that was granted the use of boards can do by SQL of its own, and what finds it out."""

from __future__ import annotations

import psycopg
import pytest

from dibs.board import views
from dibs.board.known import fresh_uid
from dibs.core import commands as c
from dibs.core.model import TaskKey
from dibs.core.refusals import Refused
from dibs.stores import postgres_copy
from dibs.stores.address import Address
from dibs.stores.postgres import PostgresStore
from dibs.stores.transaction import ticket_of
from kit.boards import Bench
from kit.postgres import server

NO_LEASE = """state = 'open', holder = NULL, session = NULL, acquired = NULL, renewed = NULL, ttl = NULL,
    expires = NULL, renewals = NULL, reason = NULL, stint = NULL, suspect = NULL"""
ANOTHER_LEASE = """holder = 2, session = 's2', acquired = 1, renewed = 1, ttl = 1000000, expires = 1000001,
    renewals = 0, reason = ''"""


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path, kind="postgres", apart=True)
    bench.add()
    bench.agent().claim()
    bench.agent().do(c.Release(TaskKey("T-1")))
    bench.agent().claim()
    yield bench
    bench.close()


@pytest.fixture
def granted(bench):
    """The board, as a role sees it that may use it."""
    name = server().new_role(f"r{fresh_uid()[:13]}")
    bench.store.grant(name)
    url = bench.store.address.url.replace("postgres@", f"{name}@")
    store = PostgresStore(Address(url, bench.store.address.board))
    yield store
    store.close()


@pytest.fixture
def role(granted):
    with granted.connect() as connection:
        yield connection


def test_who_may_use_a_board_and_not_make_one_is_told_that_it_is_there(granted):
    assert granted.create(fresh_uid()) is False


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.board SET epoch = 5; UPDATE dibs.board SET epoch = 4",
        "UPDATE dibs.task SET token_number = token_number - 1",
        "UPDATE dibs.task SET session = 's2'",
        f"UPDATE dibs.task SET {NO_LEASE}; UPDATE dibs.task SET {ANOTHER_LEASE}",
        "UPDATE dibs.task SET key = 'X-1'",
    ],
)
def test_a_role_cannot_let_a_token_fall_or_give_one_twice(role, statement):
    with pytest.raises(psycopg.errors.CheckViolation, match=r"never|a new holder has a new token"):
        role.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.task SET title = 'x'",
        "UPDATE dibs.task SET expires = expires + 1, ttl = ttl + 1",
        "UPDATE dibs.task SET author = 1",
        "UPDATE dibs.board SET seq = seq + 1",
        "DELETE FROM dibs.actor_name",
    ],
)
def test_what_a_role_changes_behind_the_back_of_the_ledger_is_found(bench, role, statement):
    assert bench.faults() == ()
    role.execute(statement)
    assert bench.faults() != ()


@pytest.mark.parametrize("statement", ["SET arriving = 2", "SET arriving = 1", "SET ticket = ''"])
def test_a_role_cannot_say_where_a_board_is(role, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        role.execute(f"UPDATE dibs.board {statement}")


def test_a_role_says_that_a_copy_has_arrived_only_with_the_word_of_its_move(bench, granted):
    uid = views.uid(bench.board)
    with bench.store.connect() as owner:
        place = "SET moved_to = '/from', arriving = 1, ticket = %s"
        owner.execute(f"UPDATE dibs.board {place}", (ticket_of("the word"),))
    for word, expected in (("another", False), (ticket_of("the word"), False), ("the word", True)):
        assert postgres_copy.expects(granted, uid, word) is expected
        postgres_copy.arrive(granted, uid, word)
        with bench.store.connect() as owner:
            [(arriving,)] = owner.execute("SELECT arriving FROM dibs.board")
        assert arriving == (2 if expected else 1)


def test_everybody_is_no_role(bench):
    with pytest.raises(Refused, match="there is no role public"):
        bench.store.grant("public")
