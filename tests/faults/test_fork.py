"""Fork: what a child inherits it cannot use, and cannot spoil."""

from __future__ import annotations

import os
import signal

import pytest

from dibs.board.execute import Board
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from dibs.storage.sqlite.store import SqliteStore
from kit.boards import Bench


@pytest.fixture
def kind():
    """What is tested here is the file."""
    return "sqlite"


def in_child(what) -> int:
    """Runs in a forked process, ends it as a program ends, and says how."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = what() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused_as_forked(call) -> int:
    try:
        call()
    except Refused as problem:
        return 0 if problem.code == "forked" else 2
    return 3


def test_a_child_forked_inside_a_transaction_can_neither_end_it_nor_free_its_lock(bench: Bench):
    bench.add()
    other = SqliteStore(bench.store.folder, machine=bench.machine, wait=0.05)

    def child() -> int:
        bad = refused_as_forked(lambda: bench.store.read().__enter__())
        bench.store.close()
        return bad

    with bench.store.write("parent") as tx:
        tx.give_out_key(77)
        assert in_child(child) == 0
        with pytest.raises(Refused) as problem:
            other.write("sneak").__enter__()
        assert problem.value.code == "busy"
        tx.finish()
    assert bench.store.board_and_anchor()[0].keys == 77
    with other.write("next"):
        pass
    other.close()


def test_a_child_that_is_killed_spoils_nothing_of_its_parents(bench: Bench):
    bench.add()
    with bench.store.write("parent") as tx:
        tx.give_out_key(78)
        assert in_child(lambda: os.kill(os.getpid(), signal.SIGKILL)) == -signal.SIGKILL
        tx.finish()
    bench.agent().claim()
    assert bench.store.board_and_anchor()[0].keys == 78


def test_parent_and_child_each_with_a_board_of_its_own_are_two_like_any_others(bench: Bench):
    """The child opens the board again after the fork; its lease is its own."""
    bench.add()
    bench.add()

    def child() -> int:
        store = SqliteStore(bench.store.folder, machine=bench.machine)
        board = Board(store, Settings())
        board.execute(bench.agent("child", "c1").identity, c.Claim("T-2"))
        try:
            board.execute(bench.agent("child", "c1").identity, c.Claim("T-1"))
        except Refused as problem:
            store.close()
            return 0 if problem.code == "held" else 2
        return 3

    bench.agent("parent", "p1").claim("T-1")
    assert in_child(child) == 0
    assert bench.agent("parent", "p1").refused(c.Claim("T-2")) == "held"
    bench.agent("parent", "p1").do(c.Complete("T-1"))
    assert bench.faults() == ()


def test_a_command_cannot_be_given_with_a_board_from_before_the_fork(bench: Bench):
    bench.add()
    bench.agent().claim()
    identity = bench.agent().identity
    for command in (c.Renew("T-1"), c.Complete("T-1"), c.Claim("T-1")):
        call = lambda command=command: bench.board.execute(identity, command)
        assert in_child(lambda call=call: refused_as_forked(call)) == 0
    assert bench.task().state == "in_progress" and bench.faults() == ()
