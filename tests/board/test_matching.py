"""What could be started, and for whom; and that a look for it writes nothing."""

from __future__ import annotations

import subprocess
import time

import pytest

from dibs.board.identity import Identity
from dibs.board.matching import Matches, matches
from dibs.board.settings import Agent, Settings
from dibs.domain import commands as c
from dibs.domain.refusals import Refusal, Refused
from dibs.domain.values import SECOND
from dibs.workers import dispatch, notify
from dibs.workers import pool as crews
from dibs.workers.dispatch import Dispatcher, Options
from dibs.workers.notify import Notifier
from dibs.workers.pool import Worker, WorkerPool

CODEX = Agent("codex", ("true",), max=2)
CLAUDE = Agent("claude", ("true",), max=2)
ANA = Identity("ana", person=True, session="")


def started(bench, agents=(CODEX, CLAUDE), most=10, **options) -> list[tuple[str, str]]:
    found = matches(bench.board, agents, most, **options)
    return [(agent.name, key) for agent, key in found.starts]


def test_each_task_is_matched_once_within_all_limits(bench):
    keys = [bench.add() for _ in range(6)]
    assert started(bench) == list(zip(("codex", "codex", "claude", "claude"), keys))
    assert started(bench, most=3) == list(zip(("codex", "codex", "claude"), keys))
    bench.agent("codex", "s1").do(c.Claim(keys[0]))
    assert started(bench, most=3) == [("codex", keys[1]), ("claude", keys[2])]


def test_who_was_started_and_has_not_claimed_yet_counts(bench):
    keys = [bench.add() for _ in range(3)]
    assert started(bench, coming={"codex": 1}) == [("codex", keys[1]), ("claude", keys[2])]
    assert started(bench, coming={"codex": 2}) == [("claude", keys[0]), ("claude", keys[1])]
    assert started(bench, most=2, coming={"codex": 2}) == []


def test_nothing_is_offered_to_an_agent_in_backoff(bench):
    [key] = [bench.add()]
    assert started(bench, resting={"codex"}) == [("claude", key)]


def test_two_tasks_of_overlapping_scopes_are_not_started_at_once(bench):
    first, _, third = (bench.add(scope=(glob,)) for glob in ("src/**", "src/a.py", "docs/**"))
    assert started(bench) == [("codex", first), ("codex", third)]


def test_a_paused_board_offers_nothing_and_says_who_paused_it(bench):
    bench.add()
    bench.person("ana").do(c.Pause(reason="release"))
    assert matches(bench.board, (CODEX,), 10) == matches(bench.board, (CODEX,), 10).but(starts=())
    assert matches(bench.board, (CODEX,), 10).paused == 'ana: "release"'


def test_what_is_assigned_and_not_taken_up_counts_against_no_limit(bench):
    [first, second] = [bench.add(), bench.add()]
    codex = bench.agent("codex", "s1")
    codex.do(c.Note(second, "hello"))
    bench.person("ana").do(c.Assign(first, to="codex"))
    assert started(bench, (CODEX.but(max=1),)) == [("codex", first)]
    assert codex.do(c.Next(most=1)).task.key == first
    assert codex.refused(c.Next(most=1)) == "at_limit"


def test_an_agent_is_registered_as_the_settings_say_and_a_person_is_not(bench):
    agent = CODEX.but(tier=3, capabilities=("rust",))
    bench.board.settings = Settings(agents=(agent,))
    key = bench.add(tier=3, capabilities=("rust",))
    claimed = bench.agent("Codex", "s1").do(c.Claim(key))
    assert (claimed.caller.actor.tier, claimed.caller.actor.capabilities) == (3, ("rust",))
    bench.board.settings = Settings(agents=(agent.but(name="bo"),))
    assert bench.person("bo").do(c.Note(key, "hello")).caller.actor.tier == 1
    assert bench.faults() == ()


# A dispatcher without processes.


@pytest.fixture
def dispatcher(bench, tmp_path):
    events = []
    bench.board.settings = Settings(agents=(CODEX,), dispatch_log_dir=str(tmp_path / "logs"))
    made = Dispatcher(bench.board, ANA, events.append, str, Options())
    made.events = events
    yield made
    made.notifier.stop()


def test_a_tick_without_a_change_writes_nothing(bench, dispatcher, monkeypatch):
    bench.agent("codex", "s1").do(c.Claim(bench.add()))
    bench.agent("codex", "s2").do(c.Claim(bench.add()))
    for _ in range(300):
        bench.add()
    monkeypatch.setattr(bench.store, "write", lambda *_: pytest.fail("it writes"))
    dispatcher._tick(1)
    assert dispatcher.events == []


class Clock:
    """Stands still until the test moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_where_nothing_fits_a_look_is_repeated_after_a_while_or_a_change(dispatcher, monkeypatch):
    clock, looks = Clock(), []

    def look(*_: object) -> Matches:
        looks.append(1)
        clock.now += 2
        return Matches()

    monkeypatch.setattr(dispatch, "time", clock)
    monkeypatch.setattr(dispatch, "matches", look)
    dispatcher._tick(1)
    clock.now += 2 * dispatch.PATIENCE - 1
    dispatcher._tick(1)
    assert len(looks) == 1
    dispatcher._tick(2)
    assert len(looks) == 2
    clock.now += 2 * dispatch.PATIENCE
    dispatcher._tick(2)
    assert len(looks) == 3


def test_a_board_that_cannot_be_used_is_reported_once_and_tried_again(
    bench, dispatcher, monkeypatch
):
    real = bench.store.pulse
    problem = Refused(Refusal("busy", "it is busy", {}))
    monkeypatch.setattr(bench.store, "pulse", lambda: (_ for _ in ()).throw(problem))
    assert [dispatcher._try(), dispatcher._try()] == [None, None]
    monkeypatch.setattr(bench.store, "pulse", real)
    assert dispatcher._try() is not None
    assert [happened.what for happened in dispatcher.events] == ["trouble", "well"]


def test_an_agent_whose_workers_cannot_begin_backs_off_ever_longer(bench, tmp_path, monkeypatch):
    events = []
    crew = WorkerPool(bench.board, str(tmp_path), events.append)
    monkeypatch.setattr(crews, "command_of", lambda *_: ["false"])
    for _ in range(3):
        crew.start(CODEX)
        while not crew.somebody_ended():
            time.sleep(0.01)
        crew.look()
    assert [happened.facts["seconds"] for happened in events] == [1, 2, 4]
    assert "codex ended with 1 before it had a task; next attempt of codex in 1 s" in events[0].line
    assert (crew.backing_off(), crew.workers) == ({"codex"}, {})


def test_a_worker_that_sweeps_has_not_started_what_it_swept(bench, tmp_path):
    events = []
    crew = WorkerPool(bench.board, str(tmp_path), events.append)
    crew.workers["s1"] = Worker(CODEX, "s1", subprocess.Popen(["sleep", "600"]), "")
    [left, own] = [bench.add(), bench.add()]
    bench.agent("old", "s0").do(c.Claim(left, ttl=SECOND))
    bench.advance(2)
    codex = bench.agent("codex", "s1")
    codex.do(c.Sweep(grace=0))
    codex.do(c.Sweep(grace=0))
    crew.look()
    assert bench.verbs(left)[-1] == "lease_ended"
    assert (crew.starting(), events) == ({"codex": 1}, [])
    codex.do(c.Claim(own))
    crew.look()
    assert [happened.line for happened in events] == [f"started {own} with codex (session s1)"]
    crew.workers["s1"].process.kill()
    crew.workers["s1"].process.wait()


def test_a_command_that_hangs_is_ended_and_the_others_are_notified(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(notify, "SECONDS", 3)  # enough for the other one on a busy machine
    events, received = [], tmp_path / "received"
    script = f'test "$DIBS_TASK" = T-1 && sleep 600; echo "$DIBS_TASK" >> {received}'
    told_by = Notifier(
        bench.board, ("sh", "-c", script), str(tmp_path), lambda line: line.key, events.append
    )
    for _ in range(2):
        bench.person("ana").do(c.Block(bench.add(), reason="no key"))
    assert told_by.catch_up()
    assert received.read_text() == "T-2\n"
    assert "notify (blocked T-1): timed out" in events[0].line


def test_only_one_notifies_at_a_time_and_nothing_is_sent_twice(bench, tmp_path):
    received = tmp_path / "received"
    command = ("sh", "-c", f"cat >> {received}")
    one, other = (
        Notifier(bench.board, command, str(tmp_path), lambda line: line.key, print) for _ in "12"
    )
    bench.person("ana").do(c.Block(bench.add(), reason="no key"))
    with one._locked_cursor() as file:
        assert file is not None
        assert not other.catch_up()
    assert other.catch_up() and one.catch_up()
    assert received.read_text() == "T-1\n"
