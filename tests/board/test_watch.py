"""Who waits sees every event once and in order, and wakes when the task is as it was wanted."""

from __future__ import annotations

import threading
import time

import pytest

from dibs.board import watch
from dibs.board.execute import Board
from dibs.board.queries import LogFilter
from dibs.domain import commands as c
from dibs.domain.model import Process, TaskKey
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND

KEY = TaskKey("T-1")


@pytest.fixture
def other(bench):
    """The same board through another connection."""
    store = bench.store.another()
    yield Board(store, bench.board.settings)
    store.close()


def refusal_of(act) -> Refused:
    with pytest.raises(Refused) as problem:
        act()
    return problem.value


# The pulse.


def test_the_change_counter_stays_while_nothing_happens(bench, other):
    bench.add()
    counter = watch.change_counter(other)
    watch.last_event(other)
    assert watch.change_counter(other) == counter


def test_the_change_counter_changes_with_what_others_do_and_with_ones_own(bench, other):
    for board in (other, bench.board):
        counter = watch.change_counter(board)
        bench.add()
        assert watch.change_counter(board) != counter


def test_a_wait_ends_with_a_change_or_with_its_time(bench, other):
    counter = watch.change_counter(other)
    assert watch.wait_for_change(other, counter, 0) == counter
    bench.add()
    assert watch.wait_for_change(other, counter, 0) != counter


def test_a_wait_looks_a_few_times_a_second_and_no_more(bench, other, monkeypatch):
    """It sleeps in between: no processor is kept busy by somebody who waits."""
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        bench.advance(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    watch.wait_for_change(other, watch.change_counter(other), 5)
    assert sum(slept) == pytest.approx(5, abs=0.1)
    assert len(slept) == pytest.approx({"sqlite": 50, "postgres": 10}[bench.kind], abs=1)


def test_a_wait_pauses_before_it_looks_again_though_there_is_a_change(bench, other, monkeypatch):
    """On a busy board there always is one: who waits would do nothing but look."""
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    counter = watch.change_counter(other)
    bench.add()
    assert watch.wait_for_change(other, counter, 5) != counter
    assert len(slept) == 1


# Events.


def test_events_come_once_each_and_in_order(bench):
    for _ in range(5):
        bench.add()
    seen, reached = [], 0
    while True:
        page = watch.events_after(bench.board, reached, 2)
        seen += [line.entry.seq for line in page.lines]
        reached = page.reached
        if not page.more:
            break
    assert seen == list(range(1, watch.last_event(bench.board) + 1))
    assert watch.events_after(bench.board, reached).lines == ()


def test_only_what_is_wanted_is_reported(bench):
    bench.add()
    bench.add()
    bench.agent().claim("T-2")
    bench.person("ana").do(c.Note(TaskKey("T-2"), note="x"))

    def verbs(**wanted):
        page = watch.events_after(bench.board, 0, wanted=LogFilter(**wanted))
        assert page.reached == watch.last_event(bench.board)
        return [line.entry.verb for line in page.lines]

    assert verbs(task=TaskKey("T-2")) == ["added", "claimed", "started", "noted"]
    assert verbs(task=TaskKey("T-2"), actor="ana") == ["noted"]
    nobody = LogFilter(actor="nobody-here")
    refusal = refusal_of(lambda: watch.events_after(bench.board, 0, wanted=nobody))
    assert refusal.code == "unknown_actor"


def test_a_board_that_was_restored_is_watched_from_where_it_is(bench):
    bench.add()
    page = watch.events_after(bench.board, 10**6)
    assert (page.lines, page.reached) == ((), watch.last_event(bench.board))
    bench.add()
    assert [line.key for line in watch.events_after(bench.board, page.reached).lines] == ["T-2"]


def test_a_stream_gives_a_sign_of_life(bench, other, monkeypatch):
    monkeypatch.setattr(time, "sleep", bench.advance)
    bench.add()
    pages = list(watch.stream(other, 0, LogFilter(), 3))
    assert [len(page.lines) for page in pages[:2]] == [2, 0]
    assert 2 <= len(pages) <= 5


def test_what_happens_during_a_look_is_reported_after_it(bench, other, monkeypatch):
    bench.add()
    looked, read_after = [], watch.read_after

    def look(*arguments):
        page = read_after(*arguments)
        if not looked:
            looked.append(bench.add("meanwhile"))
        return page

    monkeypatch.setattr(watch, "read_after", look)
    monkeypatch.setattr(time, "sleep", bench.advance)
    lines = [line for page in watch.stream(other, 0, LogFilter(), 5) for line in page.lines]
    assert [line.key for line in lines if line.key] == ["T-1", "T-2"]


# Goals.


def test_a_task_is_free_when_its_lease_has_expired(bench, other, monkeypatch):
    """Nothing is stored when a lease expires: who waits for it wakes by itself."""
    bench.add()
    bench.agent().claim(ttl=60 * SECOND)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        bench.advance(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    seen = watch.wait_until(other, KEY, "free", 3600)
    assert not seen.task.lease.live(seen.now)
    assert sum(slept) == pytest.approx(60, abs=0.1)


def test_a_lease_that_is_renewed_meanwhile_is_waited_for_again(bench, other, monkeypatch):
    bench.add()
    codex = bench.agent()
    codex.claim(ttl=60 * SECOND)
    began, renewed = bench.now(), []

    def sleep(seconds: float) -> None:
        bench.advance(seconds)
        if not renewed and bench.now() > began + 30 * SECOND:
            renewed.append(codex.do(c.Renew(KEY)))

    monkeypatch.setattr(time, "sleep", sleep)
    seen = watch.wait_until(other, KEY, "free", 3600)
    assert seen.now - began == pytest.approx(90 * SECOND, abs=2 * SECOND)


def test_a_task_that_is_not_to_be_offered_yet_is_ready_when_its_time_has_come(
    bench, other, monkeypatch
):
    began = bench.now()
    bench.add(not_before=began + 20 * SECOND)
    monkeypatch.setattr(time, "sleep", bench.advance)
    seen = watch.wait_until(other, KEY, "ready", 3600)
    assert seen.now - began == pytest.approx(20 * SECOND, abs=SECOND)


@pytest.mark.parametrize(
    ("goal", "before", "after"),
    [
        ("complete", c.Claim(KEY), c.Complete(KEY)),
        ("free", c.Claim(KEY), c.Release(KEY)),
        ("free", c.Park(KEY), c.Unpark(KEY)),
        ("ready", c.Claim(KEY), c.Release(KEY)),
        ("ready", c.Park(KEY), c.Unpark(KEY)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.verb,
)
def test_a_wait_ends_when_another_does_what_it_waits_for(bench, other, goal, before, after):
    bench.add()
    codex = bench.agent()
    codex.do(before)
    found = []
    waiter = threading.Thread(target=lambda: found.append(watch.wait_until(other, KEY, goal)))
    waiter.start()
    codex.do(after)
    waiter.join(30)
    assert [seen.task.key for seen in found] == ["T-1"]


def test_a_task_is_free_as_soon_as_its_holder_is_dead(bench, other, monkeypatch):
    """Nothing is written when a process dies: who waits looks at it now and then."""
    bench.add()
    process = Process(bench.machine.boot_id, bench.machine.space, 100, 7)
    bench.agent("codex", "s1", process=process).claim(KEY)
    assert refusal_of(lambda: watch.wait_until(other, KEY, "free", 0)).code == "timed_out"
    began = bench.now()

    def sleep(seconds: float) -> None:
        bench.advance(seconds)
        if bench.now() > began + 30 * SECOND:
            bench.machine.dead.add(100)

    monkeypatch.setattr(time, "sleep", sleep)
    seen = watch.wait_until(other, KEY, "free", 3600)
    assert seen.now - began == pytest.approx(30 * SECOND, abs=3 * SECOND)
    assert seen.task.lease.session == "s1", "the lease ends when somebody claims the task"
    assert bench.agent("other", "s2").claim(KEY).taken.session == "s1"


def test_an_expired_lease_is_free_and_not_ready(bench):
    bench.add()
    bench.agent().claim(ttl=SECOND)
    bench.advance(2)
    assert watch.wait_until(bench.board, KEY, "free", 0).task.key == "T-1"
    assert refusal_of(lambda: watch.wait_until(bench.board, KEY, "ready", 0)).code == "timed_out"


def test_who_waited_until_the_timeout_learns_who_holds_it(bench):
    bench.add()
    bench.agent("codex", "s1").claim()
    refusal = refusal_of(lambda: watch.wait_until(bench.board, KEY, "free", 0))
    assert refusal.code == "timed_out"
    assert "held by codex (session s1) until" in str(refusal)
    assert refusal.refusal.facts["holder"] == "codex"


NEVER = [
    ("complete", c.Drop(KEY)),
    ("complete", c.Fail(KEY, reason="broken")),
    ("free", c.Complete(KEY)),
    ("free", c.Fail(KEY, reason="broken")),
    ("ready", c.Drop(KEY)),
]


@pytest.mark.parametrize(("goal", "last"), NEVER, ids=lambda v: v if isinstance(v, str) else v.verb)
def test_what_does_not_happen_by_itself_is_not_waited_for(bench, goal, last):
    bench.add()
    bench.agent().claim()
    bench.agent().do(last)
    assert refusal_of(lambda: watch.wait_until(bench.board, KEY, goal)).code == "never"


def test_work_under_review_may_still_come_to_an_end(bench):
    bench.add()
    bench.agent().claim()
    bench.agent().do(c.Submit(KEY))
    for goal in watch.GOALS:
        refusal = refusal_of(lambda goal=goal: watch.wait_until(bench.board, KEY, goal, 0))
        assert refusal.code == "timed_out"
        assert "review" in str(refusal)
