"""The library: the same verbs, the same refusals, and a lease that is kept while work is done."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

import dibs
from dibs import LeaseLost, Refused, open_board
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.model import TaskKey
from dibs.domain.values import HOUR, SECOND
from dibs.domain.verbs import typed_verbs
from dibs.library.lease import notify_leases
from dibs.workers.keeper import Keeper
from kit.repositories import clean_environment
from kit.running import until

NOW = datetime.now(UTC)
WEST = timezone(timedelta(hours=-5))
PATIENCE = 60
"""Seconds after which a test gives up waiting for something that must happen."""


@pytest.fixture
def door(repo):
    """Opens the board of the repository, wherever it is kept."""
    return partial(open_board, str(repo.folder), environment=repo.around)


@pytest.fixture
def board(door):
    with door(agent="codex", session="s1") as board:
        board.add("Fix login", scope=["src/auth/**"], priority=1)
        yield board


@pytest.fixture
def another(door):
    """A second board of the same session."""
    with door(agent="codex", session="s1") as board:
        yield board


@pytest.fixture
def claude(door):
    with door(agent="claude", session="s9") as board:
        yield board


@pytest.fixture
def ana(door):
    with door(person="ana") as board:
        yield board


# The public door.


def test_the_public_names_are_few_and_each_is_there():
    assert set(dibs.__all__) == {
        "Answer",
        "Board",
        "Changed",
        "Event",
        "Lease",
        "LeaseLost",
        "LeaseRecord",
        "Owned",
        "Refusal",
        "Refused",
        "Status",
        "Stint",
        "Task",
        "open_board",
    }
    assert set(dir(dibs)) == {*dibs.__all__, "__version__"}
    for name in dibs.__all__:
        assert getattr(dibs, name)
    with pytest.raises(AttributeError):
        dibs.nothing  # noqa: B018


def test_the_package_shows_type_checkers_that_it_is_typed():
    assert os.path.exists(os.path.join(os.path.dirname(dibs.__file__), "py.typed"))


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-from-python.md"
WRONG = """
board.add("x", bogus=1)
board.hold("T-1", then="oops")
board.hold("T-1", if_failed="oops")
board.list(states="open")
board.list(states=["opne"])
open_board(3)
"""


def test_the_examples_of_the_page_are_typed(tmp_path):
    """They pass `mypy --strict`, and what is wrong is found before it runs."""
    pytest.importorskip("mypy")
    page = PAGE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    shown = re.findall(r"^> (.*\n)(?<!END\n)", page, re.MULTILINE)
    (tmp_path / "blocks.py").write_text("".join(blocks))
    (tmp_path / "shown.py").write_text("".join(shown))
    (tmp_path / "wrong.py").write_text("".join(blocks) + WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "blocks.py", "shown.py", "wrong.py"],
        cwd=tmp_path,
        env=clean_environment() | {"MYPYPATH": str(Path(dibs.__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert {line.partition(":")[0] for line in found} == {"wrong.py"}, done.stdout + done.stderr
    first = len("".join(blocks).splitlines()) + 2
    lines = {int(line.split(":")[1]) for line in found}
    assert lines == set(range(first, first + 6)), done.stdout


def test_there_is_a_method_for_every_verb():
    named = {"who": "who_owned"}
    for spec in typed_verbs():
        if spec.group in ("tasks", "own", "move", "look"):
            assert callable(getattr(dibs.Board, named.get(spec.name, spec.name))), spec.name


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


def test_looking_needs_nobody_and_changing_needs_somebody(door, board):
    with door() as stranger:
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
    assert (first.created, again.created) == (True, False)
    assert len(again.events) == 1, "its receipt"


def test_a_request_id_makes_asking_again_safe(board):
    first = board.add("once", request_id="r1")
    again = board.add("once", request_id="r1")
    assert (again.task, again.replayed) == (first.task, True)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b: b.claim("no key"),
        lambda b: b.claim(None),
        lambda b: b.claim(["T-1"]),
        lambda b: b.show(b"T-1"),
        lambda b: b.claim("T-1", ttl="99d"),
        lambda b: b.claim("T-1", ttl=timedelta(0)),
        lambda b: b.claim("T-1", ttl=timedelta.max),
        lambda b: b.claim("T-1", ttl=300),
        lambda b: b.claim("T-1", ttl=float("nan")),
        lambda b: b.renew("T-1", token="x"),
        lambda b: b.renew("T-1", token=1.1),
        lambda b: b.add(""),
        lambda b: b.add(None),
        lambda b: b.add("t", key=3),
        lambda b: b.add("t", tier=99),
        lambda b: b.add("t", tier=True),
        lambda b: b.add("t", priority=1.5),
        lambda b: b.add("t", priority=10**5000),
        lambda b: b.add("t", audience=["human"]),
        lambda b: b.add("t", capabilities=7),
        lambda b: b.add("t", constraints="fly"),
        lambda b: b.add("t", scope=["../x"]),
        lambda b: b.add("t", scope=3),
        lambda b: b.add("t", scope=[3]),
        lambda b: b.add("t", scope=[["src"]]),
        lambda b: b.scope("T-1", remove=3),
        lambda b: b.intake("mail", 7),
        lambda b: b.note("T-1", " "),
        lambda b: b.note("T-1", None),
        lambda b: b.note("T-1", "x", request_id=""),
        lambda b: b.note("T-1", "x", request_id=3),
        lambda b: b.fail("T-1", None),
        lambda b: b.assign("T-1", None),
        lambda b: b.list(states="open"),
        lambda b: b.list(states=["opne"]),
        lambda b: b.list(states=3),
        lambda b: b.list(limit=0),
        lambda b: b.list(limit="x"),
        lambda b: b.list(limit=None),
        lambda b: b.list(limit=10**30),
        lambda b: b.log(limit=-1),
        lambda b: b.who_owned("T-1", "now"),
        lambda b: b.who_owned("T-1", NOW.date()),
        lambda b: b.who_owned("T-1", datetime.min),
        lambda b: b.who_owned("T-1", datetime.max.replace(tzinfo=WEST)),
        lambda b: b.watch("no key"),
        lambda b: b.watch(since=-1),
        lambda b: b.watch(since="x"),
        lambda b: b.watch(timeout=5),
        lambda b: b.wait("T-1", "rain"),
        lambda b: b.wait("T-1", timeout=timedelta(-1)),
        lambda b: b.wait("T-1", timeout="soon"),
        lambda b: b.hold("T-1", then="explode"),
        lambda b: b.hold("T-1", then=["complete"]),
        lambda b: b.hold("T-1", if_failed="explode"),
        lambda b: b.hold("T-1", on_lost=3),
        lambda b: b.hold("T-1", ttl=5),
        lambda b: b.hold("T-1").check(),
        lambda b: b.hold("T-1").release(),
        lambda b: open_board(3),
        lambda b: open_board(b"."),
        lambda b: open_board("a\0b"),
        lambda b: open_board(environment=3),
        lambda b: b.door(agent=3, session="s").add("x"),
        lambda b: b.door(agent="a", session=4).add("x"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(board, door, wrong):
    """Also those of the wrong type: never an error from somewhere inside."""
    board.door = door
    with pytest.raises(Refused) as problem:
        wrong(board)
    assert problem.value.code == "bad_argument"
    assert len(str(problem.value)) < 200


def test_a_ttl_is_written_or_a_timedelta(board):
    assert board.claim("T-1", ttl=timedelta(seconds=90.5)).lease.ttl == timedelta(seconds=90.5)
    for wrong, message in (
        (300, 'the ttl is 300; it is text like "5m", or a timedelta'),
        (timedelta(days=-1), "the ttl is -1 day, 0:00:00; it must be between 1 s and 30 d"),
    ):
        with pytest.raises(Refused) as problem:
            board.renew("T-1", ttl=wrong)
        assert str(problem.value) == message


def test_a_text_is_one_scope_and_not_its_letters(board):
    key = board.add("one", scope="docs/**", capabilities="rust", constraints="edit").task.key
    shown = board.show(key)
    assert (shown.scope, shown.capabilities, shown.constraints) == (
        ("docs/**",),
        ("rust",),
        ("edit",),
    )


def test_an_unknown_term_is_a_type_error(board):
    with pytest.raises(TypeError, match="colour"):
        board.add("t", colour="red")


def test_a_closed_board_refuses_use_and_closes_twice(board, door):
    with door(agent="claude", session="s9") as closed:
        closed.show("T-1")
    closed.close()
    for use in (
        lambda: closed.show("T-1"),
        lambda: closed.claim("T-1"),
        lambda: closed.hold("T-1").__enter__(),
        lambda: closed.who,
        lambda: closed.list(),
        lambda: closed.verify(),
        lambda: closed.__enter__(),
    ):
        with pytest.raises(Refused) as problem:
            use()
        assert problem.value.code == "closed"


def test_a_lease_can_be_given_back_after_its_board_was_closed(board, another):
    with another.hold("T-1"):
        another.close()
    assert board.show("T-1").lease is None


def test_a_board_of_a_path_is_opened_where_it_says(board, repo, monkeypatch):
    """A later change of the directory changes neither the board nor the work tree."""
    (repo.folder / "src").mkdir()
    monkeypatch.chdir(repo.folder / "src")
    with open_board(Path(), agent="claude", session="s9", environment=repo.around) as claude:
        monkeypatch.chdir("/")
        assert claude.who.place.worktree == str(repo.folder)
        claude.claim("T-1")


def test_a_directory_that_was_removed_has_no_board(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(Refused) as problem:
        open_board(environment={})
    assert problem.value.code == "no_board"


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
def test_what_follows_a_held_task_can_be_set(board, then, state):
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
    """The lease lives longer than its ttl, and the keeper ends with the block."""
    with board.hold("T-1", ttl="4s") as lease:
        before = board.show("T-1").lease.expires_at
        while (seen := board.show("T-1").lease).renewals < 3:
            assert not seen.expired
            lease.check()
            time.sleep(0.01)
        assert seen.expires_at > before
        [keeper] = [thread for thread in threading.enumerate() if thread.name == "dibs T-1 watch"]
        assert keeper.daemon
    assert not keeper.is_alive()


def test_a_lost_lease_is_reported_by_callback_event_and_check(board, ana):
    called = threading.Event()
    reasons = []

    def on_lost(refusal):
        reasons.append(refusal.code)
        called.set()

    with (
        pytest.raises(LeaseLost) as problem,
        board.hold("T-1", ttl="1s", then="complete", on_lost=on_lost) as lease,
    ):
        ana.takeover("T-1", force=True, reason="urgent")
        assert called.wait(PATIENCE)
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


def test_a_killed_process_renews_no_more(repo, board):
    script = (
        "import sys, time; from dibs import open_board\n"
        "board = open_board(sys.argv[1], agent='worker', session='w1')\n"
        "with board.hold('T-1', ttl='1s'):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(repo.folder)],
        env=repo.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout.readline() == "held\n"
    until(lambda: board.show("T-1").lease.renewals >= 2)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    until(lambda: board.show("T-1").lease.expired)
    assert board.claim("T-1").taken_over_from.holder.name == "worker"


# The end of a lease.


def is_lost(lease) -> bool:
    try:
        lease.check()
    except LeaseLost as lost:
        return lost.code == "lease_lost"
    return False


@pytest.mark.parametrize(
    "end",
    [
        lambda lease, board: lease.release(),
        lambda lease, board: lease.complete(),
        lambda lease, board: lease.fail("no luck"),
        lambda lease, board: board.release("T-1"),
        lambda lease, board: board.block("T-1", "no keys"),
        lambda lease, board: board.handoff("T-1", "codex"),
    ],
    ids=["release", "complete", "fail", "board.release", "board.block", "board.handoff"],
)
def test_a_lease_that_was_ended_is_not_believed_in(board, end):
    with board.hold("T-1") as lease:
        end(lease, board)
        assert is_lost(lease)
    assert is_lost(lease)


def test_a_lease_ends_with_its_block(board, claude):
    with board.hold("T-1") as lease:
        lease.check()
    claude.claim("T-1")
    assert is_lost(lease)
    lease.note("a note is allowed to everybody")
    with pytest.raises(LeaseLost):
        lease.complete("my result")
    assert [note.kind for note in board.show("T-1").notes] == ["noted", "late"]


def test_what_is_done_in_this_process_is_known_at_once(board, ana):
    called = threading.Event()
    with board.hold("T-1", on_lost=lambda _: called.set()) as lease:
        ana.takeover("T-1", force=True, reason="urgent")
        assert is_lost(lease)
        assert called.wait(PATIENCE)


def test_news_that_is_older_than_the_lease_does_not_end_it(board):
    old = board._do(c.Note, None, task="T-1", note="before")._outcome
    with board.hold("T-1") as lease:
        notify_leases(old)
        lease.check()


def test_check_asks_the_board_on_request(board, repo):
    """A takeover in another process is not known before the next renewal, or before one asks."""
    with board.hold("T-1") as lease:
        lease.check(ask=True)
        assert board.show("T-1").lease.renewals == 1
        repo.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
        lease.check()
        with pytest.raises(LeaseLost):
            lease.check(ask=True)
        assert lease.lost.is_set()


@pytest.mark.parametrize("end", ["leave the block", "release"])
def test_an_old_hold_does_not_end_a_newer_lease_of_its_session(board, ana, another, end):
    with board.hold("T-1") as old:
        ana.takeover("T-1", force=True, reason="urgent")
        ana.release("T-1")
        new = another.claim("T-1")
        if end == "release":
            assert old.release().events == ()
    assert (board.show("T-1").lease.token, new.token) == ("1.3", "1.3")


def test_who_lost_a_lease_and_leaves_says_that_it_knows(board, ana):
    with board.hold("T-1"):
        ana.takeover("T-1", force=True, reason="urgent")
    assert board.log("T-1")[-1].verb == "acknowledged"
    assert board.show("T-1").lease.holder.name == "ana"


# One session is one worker.


def test_a_second_hold_of_one_session_is_refused(board, another):
    with board.hold("T-1") as lease:
        for second in (board, another):
            with pytest.raises(Refused) as problem, second.hold("t-1"):
                raise AssertionError("not reached")
            assert problem.value.code == "held_here"
        lease.check()
        assert board.show("T-1").lease.token == lease.token
    with another.hold("T-1"):
        pass


def test_of_two_threads_of_one_session_one_gets_in(board):
    inside, most, refused = [], [], []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait(PATIENCE)
        try:
            with board.hold("T-1"):
                inside.append(1)
                most.append(len(inside))
                barrier.wait(PATIENCE)
                inside.pop()
        except Refused as problem:
            refused.append(problem.code)
            barrier.wait(PATIENCE)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert (most, refused) == ([1], ["held_here"] * 3)
    assert board.show("T-1").lease is None


def test_a_hold_that_was_lost_is_not_in_the_way(board, ana, another):
    with board.hold("T-1") as old:
        ana.takeover("T-1", force=True, reason="urgent")
        ana.release("T-1")
        with another.hold("T-1") as new:
            new.check()
            assert is_lost(old)
        assert board.show("T-1").lease is None


def test_a_lease_that_the_session_had_before_is_left_as_it_was(board):
    token = board.claim("T-1", ttl="2h").token
    with board.hold("T-1", ttl="1s") as lease:
        assert lease.token == token
    left = board.show("T-1").lease
    assert (left.token, left.ttl) == (token, timedelta(hours=2))
    assert is_lost(lease)
    with pytest.raises(ZeroDivisionError), board.hold("T-1"):
        raise ZeroDivisionError
    assert board.show("T-1").lease.token == token
    with board.hold("T-1", then="complete"):
        pass
    assert board.show("T-1").state == "complete"


def test_a_lease_is_entered_once(board):
    held = board.hold("T-1")
    with held:
        pass
    with pytest.raises(Refused) as problem, held:
        raise AssertionError("not reached")
    assert problem.value.code == "bad_argument"


def test_a_lease_has_the_key_that_the_board_writes(board):
    with board.hold("t-1") as lease:
        assert lease.key == "T-1"


# What the block raises, passes.


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Frozen(Exception):  # noqa: N818
    def __setattr__(self, name, value):
        raise AttributeError(name)


@pytest.mark.parametrize("if_failed", ["release", "fail"])
@pytest.mark.parametrize(
    "error", [ValueError("boom"), KeyboardInterrupt(), Frozen("boom")], ids=repr
)
def test_the_users_own_exception_passes_although_the_lease_is_lost(board, ana, if_failed, error):
    with pytest.raises(type(error)) as raised, board.hold("T-1", if_failed=if_failed):
        ana.takeover("T-1", force=True, reason="urgent")
        raise error
    assert raised.value is error
    if if_failed == "fail" and isinstance(error, ValueError):
        assert "has ended" in error.__notes__[0]
    assert board.show("T-1").lease.holder.name == "ana"


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (ValueError("a\0b"), "ValueError: a\\x00b"),
        (ValueError("a\ud800b"), "ValueError: a\\ud800b"),
        (ValueError(), "ValueError:"),
        (ValueError("x" * 30_000), "ValueError: " + "x" * 285 + "..."),
        (Unspeakable(), "Unspeakable: (no text: RuntimeError)"),
    ],
    ids=["nul", "surrogate", "empty", "long", "unspeakable"],
)
def test_any_exception_can_fail_a_task(board, error, noted):
    with pytest.raises(type(error)) as raised, board.hold("T-1", if_failed="fail"):
        raise error
    assert raised.value is error
    shown = board.show("T-1")
    assert (shown.state, shown.notes[-1].text) == ("failed", noted)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
)
def test_who_is_interrupted_has_not_failed(board, error):
    with pytest.raises(error), board.hold("T-1", if_failed="fail"):
        raise error
    assert (board.show("T-1").state, board.show("T-1").lease) == ("open", None)


@pytest.mark.parametrize("then", ["complete", "submit", "release"])
def test_what_was_released_in_the_block_is_released(board, then):
    with board.hold("T-1", then=then) as lease:
        lease.release("not today")
    assert board.show("T-1").state == "open"


def test_an_end_that_is_refused_is_raised_and_the_lease_is_let_go(board, ana):
    key = ana.add("careful", constraints=["edit"]).task.key
    with pytest.raises(Refused) as problem, board.hold(key, then="complete"):
        pass
    assert problem.value.code == "not_allowed"
    assert (board.show(key).state, board.show(key).lease) == ("open", None)


def test_an_end_that_is_refused_in_the_block_leaves_the_lease_alive(board, ana):
    key = ana.add("careful", constraints=["edit"]).task.key
    with board.hold(key, ttl="4s") as lease:
        with pytest.raises(Refused):
            lease.complete()
        before = board.show(key).lease.renewals
        while (seen := board.show(key).lease).renewals < before + 2:
            assert not seen.expired
            time.sleep(0.01)
        lease.submit()
    assert board.show(key).state == "review"


# An interrupt, at each place where it may come.


def interrupted(*_args, **_named):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place_of_it", ["__init__", "start"])
def test_an_interrupt_on_the_way_in_leaves_no_lease(board, monkeypatch, place_of_it):
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, place_of_it, interrupted)
        with pytest.raises(KeyboardInterrupt), board.hold("T-1"):
            raise AssertionError("not reached")
    assert board.show("T-1").lease is None
    with board.hold("T-1"):
        pass


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["claim", "release", "complete"])
def test_an_interrupt_around_a_change_leaves_no_lease(board, monkeypatch, verb, when):
    """The answer of a claim may be lost: the claim is valid all the same."""
    execute, once = board._rules.execute, [verb]

    def interrupt(who, command, request_id=None):
        if command.verb not in once:
            return execute(who, command, request_id)
        once.clear()
        if when == "after":
            execute(who, command, request_id)
        raise KeyboardInterrupt

    monkeypatch.setattr(board._rules, "execute", interrupt)
    then = "complete" if verb == "complete" else "release"
    with pytest.raises(KeyboardInterrupt), board.hold("T-1", then=then):
        assert verb != "claim"
    assert board.show("T-1").lease is None
    assert threading.active_count() == 1


def test_an_interrupt_on_the_way_out_leaves_no_lease(board, monkeypatch):
    with (
        monkeypatch.context() as patch,
        pytest.raises(KeyboardInterrupt),
        board.hold("T-1") as lease,
    ):
        patch.setattr(lease._keeper, "stop", interrupted)
    lease._keeper.stop()
    assert board.show("T-1").lease is None


def test_an_assignment_is_not_declined_by_an_interrupt(board, ana, monkeypatch):
    ana.assign("T-1", "codex")
    with monkeypatch.context() as patch:
        patch.setattr(board._rules, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt), board.hold("T-1"):
            raise AssertionError("not reached")
    assert board.show("T-1").lease.holder.name == "codex"


# When the loss is reported.


def test_on_lost_may_release_the_lease(board, ana):
    done = threading.Event()
    with board.hold("T-1", on_lost=lambda _: (lease.release(), done.set())) as lease:
        ana.takeover("T-1", force=True, reason="urgent")
        assert done.wait(PATIENCE)
        assert is_lost(lease)


def test_on_lost_may_release_a_lease_that_the_board_still_has(board):
    """It is lost for its holder if the board could not be asked in time."""
    done = threading.Event()
    with board.hold("T-1", on_lost=lambda _: (lease.release(), done.set())) as lease:
        lease._keeper.lose(refusals.refused("busy", "nobody answers").refusal)
        assert done.wait(PATIENCE)
    assert board.show("T-1").lease is None


def test_on_lost_runs_in_the_keepers_thread_whoever_finds_the_loss(board, repo):
    calls = []
    with board.hold(
        "T-1", on_lost=lambda _: calls.append(threading.current_thread().name)
    ) as lease:
        repo.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
        with pytest.raises(LeaseLost):
            lease.check(ask=True)
    assert calls == ["dibs T-1 watch"]


def test_an_error_in_on_lost_is_reported_and_does_not_hide_the_loss(board, ana, monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))
    with board.hold("T-1", on_lost=lambda _: 1 / 0) as lease:
        ana.takeover("T-1", force=True, reason="urgent")
        assert is_lost(lease)
    assert reported == [ZeroDivisionError]


def test_the_end_of_the_block_does_not_wait_for_ever_for_on_lost(board, ana):
    """A callback may wait for the very work that it stops."""
    begun, go = threading.Event(), threading.Event()

    def on_lost(_):
        begun.set()
        assert go.wait(PATIENCE)

    with board.hold("T-1", on_lost=on_lost):
        ana.takeover("T-1", force=True, reason="urgent")
        assert begun.wait(PATIENCE)
    [keeper] = [thread for thread in threading.enumerate() if thread.name == "dibs T-1 watch"]
    go.set()
    keeper.join(PATIENCE)


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


def test_the_holders_belief_ends_a_tenth_before_the_lease(kept):
    bench, keeper = kept
    bench.advance(3240)
    assert keeper.check() is None
    assert bench.task().lease.renewals == 0
    bench.advance(1)
    assert keeper.check() is None
    assert bench.task().lease.renewals == 1


def test_after_sleep_the_keeper_renews_before_anything_else(kept):
    bench, keeper = kept
    bench.machine.boottime_us += 5 * HOUR
    assert keeper.check() is None
    assert bench.verbs()[-1] == "renewed"
    assert bench.task().lease.live(bench.now())


def test_after_sleep_a_lease_that_was_taken_over_is_lost(kept):
    bench, keeper = kept
    bench.machine.boottime_us += 5 * HOUR
    bench.agent("claude", "s9").claim()
    assert keeper.check().code == "lease_lost"
    assert keeper.lost.is_set()


def test_a_store_that_cannot_be_asked_is_asked_again_until_the_deadline(kept):
    bench, keeper = kept
    keeper._patience = SECOND // 20
    with bench.store.write("a long transaction"):
        keeper._renew(lambda: True)
        assert keeper.check() is None
        bench.advance(3500)
        assert keeper.check().code == "busy"
    bench.advance(10 * SECOND)
    assert keeper.check().code == "busy"


def test_the_keeper_renews_only_its_own_lease(kept):
    bench, keeper = kept
    bench.agent("codex", "s1").do(c.Release(TaskKey("T-1")))
    bench.agent("codex", "s1").claim()
    keeper._renew(lambda: True)
    assert keeper.check().code == "lease_lost"


def test_who_waited_for_its_turn_looks_again_before_it_renews(kept):
    """Two threads find the deadline past: one renews; after a loss, none does."""
    bench, keeper = kept
    bench.advance(3300)
    checking = threading.Thread(target=keeper.check)
    with keeper._lock:
        checking.start()
        keeper._renewed = bench.machine.boottime()
    checking.join(PATIENCE)
    assert bench.task().lease.renewals == 0
    keeper.lose(refusals.refused("bug", "a loss").refusal)
    keeper._renew(lambda: True)
    assert bench.task().lease.renewals == 0


def test_a_renewal_waits_for_the_lock_no_longer_than_the_lease_is_believed_in(kept):
    bench, keeper = kept
    keeper._ttl = 2 * SECOND
    bench.advance(1.7)
    with bench.store.write("a long transaction"):
        began = time.monotonic()
        keeper._renew(lambda: True)
        assert time.monotonic() - began < keeper._patience / SECOND
    assert keeper._board.store.wait == pytest.approx(0.2)


def test_a_board_that_cannot_be_asked_now_is_not_a_loss(kept):
    bench, keeper = kept
    keeper._patience = SECOND // 20
    with bench.store.write("a long transaction"), pytest.raises(Refused) as problem:
        keeper.check(ask=True)
    assert (problem.value.code, keeper.why) == ("busy", None)


def test_a_keeper_that_fails_itself_says_so_and_is_not_believed(kept, monkeypatch):
    _, keeper = kept
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))
    monkeypatch.setattr(keeper._board, "execute", lambda *_: 1 / 0)
    keeper._renew(lambda: True)
    assert (keeper.check().code, reported) == ("bug", [ZeroDivisionError])
