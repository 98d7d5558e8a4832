"""A server that answers, and says no: what it said is told, and who can do nothing about it is told at once."""

from __future__ import annotations

import pytest

from dibs import Refused
from dibs.storage.address import parse
from dibs.storage.postgres.store import PostgresStore
from kit.postgres import pooler
from kit.writers import board_with, opened_by

SLOW = """
CREATE FUNCTION dibs.sleep() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
CREATE TRIGGER slow AFTER INSERT ON dibs.note EXECUTE FUNCTION dibs.sleep();
"""


@pytest.fixture(scope="module")
def node(node):
    board_with(node.url(), tasks=1)
    do(node, "UPDATE dibs.home SET settings = 'write_wait = \"1s\"'")
    return node


def do(node, statements: str) -> None:
    with node.connect() as connection:
        connection.execute(statements)


def refusal_of(url: str):
    store = PostgresStore(parse(url), wait=0.1)
    with pytest.raises(Refused) as problem:
        store.read().__enter__()
    store.close()
    return problem.value.refusal


def role(node, name: str, setting: str) -> str:
    do(node, f"CREATE ROLE {name} LOGIN SUPERUSER; ALTER ROLE {name} SET {setting}")
    return node.url().replace("postgres@", f"{name}@")


def test_a_server_that_takes_no_changes_is_said_to_take_none(node):
    """A standby says the same. It may be promoted in a moment, so it is tried again."""
    refusal = refusal_of(role(node, "reader", "default_transaction_read_only = on"))
    assert refusal.code == "unreachable"
    assert "the server is read-only: " in refusal.message
    assert "session is read-only" in refusal.message


def test_a_server_that_wants_no_more_clients_is_said_to_say_so(node):
    do(node, "CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    refusal = refusal_of(node.url().replace("postgres@", "crowd@"))
    assert refusal.code == "unreachable"
    assert "the server rejected the request: " in refusal.message
    assert "too many connections" in refusal.message


def test_a_pooler_for_statements_is_said_to_be_one(node):
    """It never works, so nobody is told to try again."""
    with pooler(node, mode="statement") as address:
        refusal = refusal_of(f"{address}/postgres")
    assert refusal.code == "statement_pooler"


def test_a_server_without_encryption_is_told_at_once_to_who_wants_it(node):
    refusal = refusal_of(f"{node.url(tcp=True)}?sslmode=require")
    assert refusal.code == "not_let_in"
    assert "server does not support SSL" in refusal.message


def test_a_change_that_took_too_long_was_not_done(node):
    """Its answer comes with the commit's. The server has said so: there is nothing to ask again for."""
    with opened_by(role(node, "hasty", "statement_timeout = '300ms'"), "ben") as ben:
        ben.claim("T-1")
        do(node, SLOW)
        with pytest.raises(Refused) as problem:
            ben.note("T-1", "a note")
        assert ben.show("T-1").notes == ()
    refusal = problem.value.refusal
    assert (refusal.code, refusal.facts["unknown"]) == ("unreachable", False)
    assert "statement timeout" in refusal.message
    assert "request id" not in refusal.message
