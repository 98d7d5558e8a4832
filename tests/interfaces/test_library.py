"""The library: the same verbs, the same refusals, and a lease that is kept while work is done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

import dibs
from dibs import LeaseLost, Refused, open_board
from dibs.core import commands as c
from dibs.core.instants import HOUR, SECOND
from dibs.core.model import TaskKey
from dibs.interfaces.cli import verbs
from dibs.workers.keeper import Keeper
from kit.repositories import clean_environment

PATIENCE = 60
"""Seconds after which a test gives up waiting for something that must happen."""


@pytest.fixture
def place(repo):
    return str(repo.folder)


@pytest.fixture
def board(place):
    with open_board(place, agent="codex", session="s1", environment={}) as board:
        board.add("Fix login", scope=["src/auth/**"], priority=1)
        yield board


@pytest.fixture
def ana(place):
    with open_board(place, person="ana", environment={}) as board:
        yield board


# The public door.


def test_the_public_names_are_few_and_each_is_there():
    assert set(dibs.__all__) == {
        "Board",
        "Lease",
        "LeaseLost",
        "Refusal",
        "Refused",
        "Task",
        "open_board",
    }
    for name in dibs.__all__:
        assert getattr(dibs, name)
    with pytest.raises(AttributeError):
        dibs.nothing  # noqa: B018


def test_the_package_tells_type_checkers_that_it_is_typed():
    assert os.path.exists(os.path.join(os.path.dirname(dibs.__file__), "py.typed"))


def test_there_is_a_method_for_every_verb():
    named = {"who": "who_owned"}
    for group in ("tasks", "own", "move", "look"):
        for verb in verbs.GROUPS[group]:
            assert callable(getattr(dibs.Board, named.get(verb, verb))), verb


def test_a_refusal_is_raised_with_the_code_that_the_command_line_has(board, ana):
    board.claim("T-1")
    with pytest.raises(Refused) as problem:
        ana.complete("T-1")
    assert problem.value.code == "held"
    with pytest.raises(Refused) as problem:
        board.claim("T-9")
    assert problem.value.code == "unknown_task"


def test_answers_are_typed_records(board):
    answer = board.claim("T-1", ttl=timedelta(minutes=30))
    assert (answer.token, answer.late, answer.taken_over_from, answer.replayed) == (
        "1.1",
        False,
        None,
        False,
    )
    assert answer.task.state == "in_progress"
    assert answer.lease.holder.name == "codex"
    assert answer.lease.ttl == timedelta(minutes=30)
    assert answer.lease.expires_at - answer.lease.renewed_at == timedelta(minutes=30)
    assert abs(answer.lease.acquired_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_every_verb_does_what_it_says(board, ana):
    board.edit("T-1", title="Fix the login", tier=1)
    board.scope("T-1", add=["docs/**"], remove=["src/auth/**"])
    board.claim("T-1", reserve=True)
    board.start("T-1")
    board.stop("T-1")
    board.start("T-1")
    board.renew("T-1", ttl="1h")
    board.note("T-1", "half way")
    board.block("T-1", "no keys", keep=True)
    board.unblock("T-1")
    ana.note("T-1", "hello")
    board.handoff("T-1", "ana", reason="yours")
    ana.start("T-1")
    ana.submit("T-1", note="please look")
    board.reject("T-1", "no tests")
    ana.assign("T-1", "codex")
    ana.unassign("T-1", reason="changed my mind")
    ana.park("T-1", reason="later")
    ana.unpark("T-1")
    board.claim("T-1")
    taken = ana.takeover("T-1", force=True, reason="urgent")
    assert taken.taken_over_from.holder.name == "codex"
    ana.submit("T-1")
    board.accept("T-1", note="good")
    other = board.add("other").task.key
    board.claim(other)
    board.fail(other, "no luck")
    board.drop(other)
    board.claim(board.add("third").task.key)
    board.release("T-3", note="not today")
    board.claim("T-3")
    board.complete("T-3", note="done")
    shown = board.show("T-1")
    assert (shown.state, shown.title, shown.scope) == ("complete", "Fix the login", ("docs/**",))
    assert {note.text for note in shown.notes} >= {"half way", "please look", "good", "no tests"}
    assert board.verify() == ()


def test_looking_needs_nobody_and_changing_needs_somebody(place, board):
    with open_board(place, environment={}) as stranger:
        assert [task.key for task in stranger.list(free=True)] == ["T-1"]
        assert stranger.status().counts == {"open": 1}
        assert stranger.log("T-1")[0].verb == "added"
        assert stranger.who_owned("T-1").holder is None
        with pytest.raises(Refused) as problem:
            stranger.claim("T-1")
        assert problem.value.code == "no_identity"


def test_who_owned_a_task_then(board):
    begun = board.claim("T-1").lease.acquired_at
    board.complete("T-1")
    owned = board.who_owned("T-1", begun)
    assert (owned.holder.name, owned.holder.session, owned.token) == ("codex", "s1", "1.1")


def test_one_origin_is_one_task(board):
    first = board.intake("mail", "<1@example.org>", "Please fix")
    again = board.intake("Mail", "<1@example.org>", "Please fix it")
    assert (first.task.key, bool(first.events)) == (again.task.key, True)
    assert again.events == ()


def test_a_request_id_makes_asking_again_safe(board):
    first = board.add("once", request_id="r1")
    again = board.add("once", request_id="r1")
    assert (again.task, again.replayed) == (first.task, True)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b: b.claim("no key"),
        lambda b: b.claim("T-1", ttl="99d"),
        lambda b: b.claim("T-1", ttl=timedelta(0)),
        lambda b: b.renew("T-1", token="x"),
        lambda b: b.add(""),
        lambda b: b.add("t", colour="red"),
        lambda b: b.add("t", tier=99),
        lambda b: b.add("t", scope=["../x"]),
        lambda b: b.note("T-1", " "),
        lambda b: b.note("T-1", "x", request_id=""),
        lambda b: b.hold("T-1", then="explode"),
        lambda b: b.hold("T-1", if_failed="explode"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(board, wrong):
    with pytest.raises(Refused) as problem:
        wrong(board)
    assert problem.value.code == "bad_argument"


def test_threads_take_turns(board):
    """One board, eight threads: every change is there."""
    threads = [
        threading.Thread(target=lambda: [board.note("T-1", "x") for _ in range(10)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(board.show("T-1").notes) == 80
    assert board.verify() == ()


# Holding.


def test_a_held_task_is_claimed_and_then_released(board):
    with board.hold("T-1") as lease:
        lease.check()
        shown = board.show("T-1")
        assert (shown.state, shown.token, shown.lease.ttl) == (
            "in_progress",
            lease.token,
            timedelta(minutes=5),
        )
    assert (board.show("T-1").state, board.show("T-1").lease) == ("open", None)


@pytest.mark.parametrize(
    ("then", "state"), [("complete", "complete"), ("submit", "review"), ("release", "open")]
)
def test_what_follows_a_held_task_can_be_said(board, then, state):
    with board.hold("T-1", then=then):
        pass
    assert board.show("T-1").state == state


@pytest.mark.parametrize(("if_failed", "state"), [("release", "open"), ("fail", "failed")])
def test_a_block_that_raises_gives_the_task_back_or_fails_it(board, if_failed, state):
    with pytest.raises(ZeroDivisionError), board.hold("T-1", then="complete", if_failed=if_failed):
        raise ZeroDivisionError("of all things")
    assert board.show("T-1").state == state
    if state == "failed":
        assert board.show("T-1").notes[-1].text == "ZeroDivisionError: of all things"


def test_work_may_end_its_own_lease(board):
    with board.hold("T-1") as lease:
        lease.note("almost")
        lease.complete("it was the cache")
    assert board.show("T-1").state == "complete"


def test_a_task_that_another_holds_cannot_be_held(board, ana):
    ana.claim("T-1")
    with pytest.raises(Refused) as problem, board.hold("T-1"):
        raise AssertionError("not reached")
    assert problem.value.code == "held"


def test_the_keeper_renews_while_the_block_runs(board):
    """E11, E12: the lease lives longer than its ttl, and the keeper ends with the block."""
    with board.hold("T-1", ttl="1s") as lease:
        before = board.show("T-1").lease.expires_at
        while (seen := board.show("T-1").lease).renewals < 6:
            assert not seen.expired
            lease.check()
        assert seen.expires_at > before
        [keeper] = [thread for thread in threading.enumerate() if thread.name == "dibs T-1"]
        assert keeper.daemon
    assert not keeper.is_alive()


def test_a_lost_lease_is_told_by_callback_event_and_check(board, ana):
    told = threading.Event()
    reasons = []

    def on_lost(refusal):
        reasons.append(refusal.code)
        told.set()

    with (
        pytest.raises(LeaseLost) as problem,
        board.hold("T-1", ttl="1s", then="complete", on_lost=on_lost) as lease,
    ):
        ana.takeover("T-1", force=True, reason="urgent")
        assert told.wait(PATIENCE)
        assert lease.lost.is_set()
        lease.check()
    assert (problem.value.code, reasons) == ("lease_lost", ["lease_lost"])
    assert board.show("T-1").lease.holder.name == "ana"


def test_a_result_that_comes_too_late_is_refused_and_kept(board, ana):
    with pytest.raises(LeaseLost), board.hold("T-1") as lease:
        ana.takeover("T-1", force=True, reason="urgent")
        lease.complete("my result")
    assert [(note.kind, note.text) for note in board.show("T-1").notes] == [("late", "my result")]


def test_a_held_lease_does_not_cross_a_fork(board):
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def in_child(lease) -> None:
        try:
            lease.check()
        except LeaseLost as lost:
            answers.put(lost.code)

    with board.hold("T-1") as lease:
        child = context.Process(target=in_child, args=(lease,))
        child.start()
        assert answers.get(timeout=PATIENCE) == "forked"
        child.join(PATIENCE)
        lease.check()


def test_E12_a_killed_process_renews_no_more(place, board):
    script = (
        "import sys, time; from dibs import open_board\n"
        "board = open_board(sys.argv[1], agent='worker', session='w1')\n"
        "with board.hold('T-1', ttl='1s'):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, place],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout.readline() == "held\n"
    while board.show("T-1").lease.renewals < 2:
        pass
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    while not board.show("T-1").lease.expired:
        pass
    assert board.claim("T-1").taken_over_from.holder.name == "worker"


# The keeper's own belief, at instants that only the test moves.


@pytest.fixture
def kept(bench):
    """A keeper that is not running by itself, and the machine that it looks at."""
    bench.add()
    codex = bench.agent("codex", "s1")
    since = bench.machine.boottime()
    token = codex.claim(ttl=HOUR).task.token
    keeper = Keeper(bench.board, codex.identity, TaskKey("T-1"), token, HOUR, since)
    yield bench, keeper
    keeper._board.store.close()


def test_21_the_holders_belief_ends_a_tenth_before_the_lease(kept):
    bench, keeper = kept
    bench.advance(3240)
    assert keeper.check() is None
    assert bench.task().lease.renewals == 0
    bench.advance(1)
    assert keeper.check() is None
    assert bench.task().lease.renewals == 1


def test_14_after_sleep_the_keeper_renews_before_anything_else(kept):
    bench, keeper = kept
    bench.machine.boottime_us += 5 * HOUR
    assert keeper.check() is None
    assert bench.verbs()[-1] == "renewed"
    assert bench.task().lease.live(bench.now())


def test_14_after_sleep_a_lease_that_was_taken_over_is_lost(kept):
    bench, keeper = kept
    bench.machine.boottime_us += 5 * HOUR
    bench.agent("claude", "s9").claim()
    assert keeper.check().code == "lease_lost"
    assert keeper.lost.is_set()


def test_a_store_that_cannot_be_asked_is_asked_again_until_the_deadline(kept):
    bench, keeper = kept
    keeper._board.store.wait = 0.05
    with bench.store.write("a long transaction"):
        keeper._renew()
        assert keeper.check() is None
        bench.advance(3500)
        assert keeper.check().code == "busy"
    bench.advance(10 * SECOND)
    assert keeper.check().code == "busy"


def test_the_keeper_renews_only_its_own_lease(kept):
    bench, keeper = kept
    bench.agent("codex", "s1").do(c.Release(TaskKey("T-1")))
    bench.agent("codex", "s1").claim()
    keeper._renew()
    assert keeper.check().code == "lease_lost"
