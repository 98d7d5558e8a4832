"""Sessions that are known before they hold anything, and what one hands to the next: on both stores."""

from __future__ import annotations

import pytest

from dibs.board.sessions import (
    end_session,
    end_sibling_sessions,
    had_background_work,
    hand_over_session,
    predecessor,
    record_background_work,
    register_session,
)
from dibs.domain import commands as c
from dibs.domain.model import Process, TaskKey
from dibs.domain.refusals import Refused

PROCESS = Process("boot-1", "pid:[1]", 4242, 100)


def session(bench, name: str, process: Process | None = PROCESS, agent: str = "claude"):
    actor = bench.agent(agent, name, process=process)
    register_session(bench.board, actor.identity)
    return actor


def session_of(bench, name: str):
    with bench.store.read() as tx:
        return tx.session(tx.actor_named("claude").id, name)


def test_a_session_is_met_once_and_its_actor_is_registered_with_an_event(bench):
    for _ in range(2):
        session(bench, "c1")
    with bench.store.read() as tx:
        assert tx.actor_named("claude").kind == "agent"
        assert [entry.verb for entry in tx.events_backwards()] == ["actor_registered"]
    assert session_of(bench, "c1").process == PROCESS
    assert bench.faults() == ()


def test_a_subagent_is_met_as_its_parent(bench):
    session(bench, "c1/a2")
    assert session_of(bench, "c1").process == PROCESS
    assert session_of(bench, "c1/a2") is None


def test_a_persons_name_is_not_met_as_an_agent(bench):
    bench.person("claude").do(c.Add(bench.terms()))
    with pytest.raises(Refused) as problem:
        session(bench, "c1")
    assert problem.value.code == "wrong_kind_of_name"


def test_what_is_held_goes_to_the_next_session_in_one_step(bench):
    """Same ttl, higher token, one handoff that the giver made, taken up by the heir; the stint goes on."""
    bench.add(scope=("src/**",))
    former = session(bench, "c1")
    former.claim(ttl=3_600_000_000)
    heir = session(bench, "c2")
    assert predecessor(bench.board, heir.identity) == "c1"
    assert hand_over_session(bench.board, "c1", heir.identity, "cleared").handed == ("T-1",)
    task = bench.task()
    assert (task.state, str(task.token), task.attempts) == ("in_progress", "1.2", 1)
    assert (task.lease.session, task.lease.ttl, task.lease.reason) == (
        "c2",
        3_600_000_000,
        "cleared",
    )
    assert task.lease.stint is not None
    handed, bound = bench.events()[-2:]
    assert (handed.verb, handed.session, bound.verb, bound.session) == (
        "handed_off", "c1", "bound", "c2",
    )  # fmt: skip
    assert former.refused(c.Renew(TaskKey("T-1"))) == "lease_lost"
    assert heir.do(c.Complete(TaskKey("T-1"))).task.state == "complete"
    assert bench.faults() == ()


def test_what_the_rules_do_not_let_it_have_stays_where_it_is(bench):
    bench.add()
    bench.add()
    former = session(bench, "c1")
    former.claim("T-1")
    former.claim("T-2")
    bench.person().do(c.Park(TaskKey("T-1")))
    heir = session(bench, "c2")
    assert hand_over_session(bench.board, "c1", heir.identity, "cleared").handed == ("T-2",)
    assert bench.task("T-1").lease.session == "c1"


@pytest.mark.parametrize(
    "other",
    [
        PROCESS.but(started=101),
        PROCESS.but(pid=4243),
        PROCESS.but(boot="boot-2"),
        PROCESS.but(namespace="pid:[2]"),
        None,
    ],
)
def test_another_process_has_no_predecessor(bench, other):
    """A reused pid, another boot, another namespace; or none that is known."""
    bench.add()
    session(bench, "c1").claim()
    assert predecessor(bench.board, session(bench, "c2", other).identity) == ""


def test_two_sessions_that_hold_something_are_no_answer(bench):
    for name in ("c1", "c2"):
        session(bench, name).claim(bench.add())
    assert predecessor(bench.board, session(bench, "c3").identity) == ""


def test_another_actor_of_the_same_process_is_no_predecessor(bench):
    bench.add()
    session(bench, "c1", agent="codex").claim()
    assert predecessor(bench.board, session(bench, "c2").identity) == ""


def test_a_session_that_is_over_is_not_judged_by_its_process(bench):
    bench.add()
    claude = session(bench, "c1")
    claude.claim()
    end_session(bench.board, claude.identity)
    assert session_of(bench, "c1").process is None
    bench.machine.dead.add(4242)
    assert bench.agent("codex", "s1").refused(c.Claim(TaskKey("T-1"))) == "held"


def test_after_a_succession_only_the_last_session_is_the_processs(bench):
    bench.add()
    session(bench, "idle")
    session(bench, "busy").claim()
    heir = session(bench, "c3")
    end_sibling_sessions(bench.board, heir.identity)
    assert session_of(bench, "idle").process is None
    assert session_of(bench, "busy").process == session_of(bench, "c3").process == PROCESS
    assert bench.faults() == ()


def test_the_end_of_an_unknown_actors_session_registers_nobody(bench):
    """Neither does its background work: an unknown actor holds nothing."""
    nobody = bench.agent("claude", "c1", process=PROCESS).identity
    before = bench.snapshot()
    end_session(bench.board, nobody)
    end_sibling_sessions(bench.board, nobody)
    record_background_work(bench.board, nobody, running=True)
    assert bench.snapshot() == before
    with bench.store.read() as tx:
        assert tx.actor_named("claude") is None


def test_background_work_is_recorded_for_a_session_that_no_hook_announced(bench):
    bench.add()
    claude = bench.agent("claude", "c1")
    claude.do(c.Note(TaskKey("T-1"), note="here"))
    for running in (True, False):
        record_background_work(bench.board, claude.identity, running=running)
        assert had_background_work(bench.board, claude.identity) is running
    assert bench.faults() == ()


def test_an_end_keeps_background_work_and_place(bench):
    claude = session(bench, "c1")
    record_background_work(bench.board, claude.identity, running=True)
    met = session_of(bench, "c1")
    end_session(bench.board, claude.identity)
    assert session_of(bench, "c1") == met.but(process=None)
    assert met.background


def test_the_registry_needs_no_request_ids(bench):
    """To register or end a session twice changes nothing: no answer is kept for a retry."""
    end_session(bench.board, session(bench, "c1").identity)
    assert bench.rows("request") == []
