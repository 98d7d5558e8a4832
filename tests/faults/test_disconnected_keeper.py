"""A keeper that cannot reach the server: it waits as long as the lease runs, and no longer."""

from __future__ import annotations

import time

import pytest

from kit.postgres_ground import until
from kit.writers import board_with, opened_by

SHORT = "UPDATE dibs.home SET settings = 'write_wait = \"1s\"'"
SILENCE = "SELECT (clock_timestamp() - to_timestamp(renewed / 1e6)) FROM dibs.task WHERE key = '{}'"


@pytest.fixture(scope="module")
def node(node):
    board_with(node.url(), tasks=2)
    with node.connect() as connection:
        connection.execute(SHORT)
    return node


def test_a_keeper_outlives_a_server_that_is_away_for_longer_than_a_command_waits(node, proxy):
    """A renewal is due after two seconds and gives up after three: the lease runs for eight."""
    with (
        opened_by(proxy.url(), "far") as board,
        opened_by(node.url(), "near") as near,
        board.hold("T-1", ttl="8s") as lease,
    ):
        proxy.refuse()
        until(lambda: silence(node, "T-1") > 3.5 or lease.lost.is_set(), "a renewal that failed")
        before = near.show("T-1").lease.renewals
        proxy.accept()
        until(lambda: near.show("T-1").lease.renewals > before or lease.lost.is_set(), "a renewal")
        lease.check()


def test_a_keeper_that_gets_no_answer_stops_the_work_before_the_lease_runs_out(node, proxy):
    """Nothing says that the server is gone: the renewal that was sent waits for its answer."""
    with opened_by(proxy.url(), "far") as board, opened_by(node.url(), "near") as near:
        with board.hold("T-2", ttl="8s") as lease:
            until(lambda: near.show("T-2").lease.renewals > 0, "a renewal")
            proxy.freeze()
            try:
                until(lease.lost.is_set, "the end of its belief", seconds=16)
                early = 8 - silence(node, "T-2")
                began = time.monotonic()
                assert lease._keeper.check().code == "unreachable"
                assert time.monotonic() - began < 3, "who asks is told at once"
            finally:
                proxy.thaw()
        print(f"it stopped {early:.2f} s before its lease ran out")
        assert early > 0


def silence(node, key) -> float:
    """For so many seconds the board has not heard of the holder."""
    return node.query(SILENCE.format(key)).total_seconds()
