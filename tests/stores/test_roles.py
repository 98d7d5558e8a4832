"""What a role that was granted the use of boards can do by SQL of its own, and what finds it out."""

from __future__ import annotations

import psycopg
import pytest

from dibs.board.known import fresh_uid
from dibs.core import commands as c
from dibs.core.model import TaskKey
from dibs.stores.address import Address
from dibs.stores.postgres import PostgresStore
from kit.boards import Bench
from kit.postgres import server


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
        "UPDATE dibs.task SET key = 'X-1'",
    ],
)
def test_a_role_cannot_let_a_token_fall_or_give_one_twice(role, statement):
    with pytest.raises(psycopg.errors.CheckViolation):
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
