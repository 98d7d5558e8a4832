"""Who was let in before and is not for a while, as when a password is changed: it says nothing about a lease."""

from __future__ import annotations

import threading

import pytest

from dibs import Refused
from dibs.storage.address import parse
from dibs.storage.postgres.store import PostgresStore
from kit.postgres import PASSWORD, PASSWORDS, QUICK, Node
from kit.postgres_ground import until
from kit.writers import board_with, opened_by

SILENCE = "SELECT (clock_timestamp() - to_timestamp(renewed / 1e6)) FROM dibs.task WHERE key = '{}'"


@pytest.fixture(scope="module")
def node():
    node = Node(QUICK, PASSWORDS).init().start()
    do(node, f"CREATE ROLE agents LOGIN PASSWORD '{PASSWORD}'")
    board_with(node.url(), tasks=4)
    owner = PostgresStore(parse(node.url()))
    owner.grant("agents")
    yield node
    node.remove()


@pytest.fixture
def address(node):
    yield node.url(tcp=True).replace("//postgres:", "//agents:")
    let_in(node)


def do(node, statement: str) -> None:
    with node.connect() as connection:
        connection.execute(statement)


def lock_out(node) -> None:
    do(node, "ALTER ROLE agents PASSWORD 'another one'")
    hang_up(node)


def let_in(node) -> None:
    do(node, f"ALTER ROLE agents PASSWORD '{PASSWORD}'")
    do(node, "GRANT UPDATE ON dibs.task TO agents")


def take_rights(node) -> None:
    do(node, "REVOKE UPDATE ON dibs.task FROM agents")


def hang_up(node) -> None:
    node.query(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'agents'"
    )


def silence(node, key) -> float:
    """For so many seconds the board has not heard of the holder."""
    return node.query(SILENCE.format(key)).total_seconds()


@pytest.mark.parametrize(("key", "end"), [("T-1", lock_out), ("T-2", take_rights)])
def test_a_keeper_who_is_not_let_in_tries_as_long_as_its_lease_runs(node, address, key, end):
    """A renewal is due after two seconds; the lease runs for eight."""
    with (
        opened_by(address, "far") as board,
        opened_by(node.url(), "near") as near,
        board.hold(key, ttl="8s") as lease,
    ):
        end(node)
        until(lambda: silence(node, key) > 3.5 or lease.lost.is_set(), "a renewal that failed")
        before = near.show(key).lease.renewals
        let_in(node)
        until(lambda: near.show(key).lease.renewals > before or lease.lost.is_set(), "a renewal")
        lease.check()


def test_who_waits_and_is_not_let_in_for_a_moment_goes_on(node, address):
    with opened_by(address, "ben") as ben, opened_by(node.url(), "al") as al:
        events = ben.watch("T-3", since=0, timeout="60s")
        assert next(events).verb == "added"
        lock_out(node)
        again = threading.Timer(1.5, let_in, [node])
        again.start()
        al.claim("T-3")
        assert next(events).verb == "claimed"
        again.join()


def test_who_waits_and_stays_locked_out_is_told_why(node, address):
    with opened_by(address, "ben") as ben:
        events = ben.watch("T-4", since=0)
        assert next(events).verb == "added"
        lock_out(node)
        with pytest.raises(Refused) as problem:
            next(events)
        assert problem.value.code == "not_let_in"
