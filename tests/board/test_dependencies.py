"""Dependencies: what waits for what, what is offered, and who gets it."""

from __future__ import annotations

import pytest

from dibs.board.explain import status, why
from dibs.board.queries import ready
from dibs.domain import commands as c
from dibs.domain.model import TaskKey, Terms
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR
from dibs.workers.next import next_task

A, B, D = TaskKey("T-1"), TaskKey("T-2"), TaskKey("T-3")


@pytest.fixture
def codex(bench):
    return bench.agent("codex", "s1")


@pytest.fixture
def ana(bench):
    return bench.person("ana")


def add(bench, title="work", after=(), scope=(), **terms):
    command = c.Add(Terms(title, **terms), tuple(scope), after=tuple(map(TaskKey, after)))
    return bench.person("founder").do(command).task.key


def done(actor, key):
    actor.claim(key)
    return actor.do(c.Complete(TaskKey(key)))


def offered(bench):
    return [task.key for task in ready(bench.board, 100).tasks]


# What waits for what.


def test_a_task_waits_until_all_that_it_depends_on_is_complete(bench, codex):
    add(bench), add(bench), add(bench, after=("t-1", "T-2"))
    assert bench.task(D).waits_on == 2
    assert codex.refused(c.Claim(D)) == "waits"
    done(codex, A)
    assert codex.refused(c.Claim(D)) == "waits"
    assert offered(bench) == [B]
    done(codex, B)
    assert bench.task(D).waits_on == 0
    assert codex.claim(D).task.state == "in_progress"
    assert bench.faults() == ()


def test_success_is_not_a_state_failed_and_dropped_are_not_complete(bench, codex, ana):
    add(bench), add(bench, after=(A,)), add(bench), add(bench, after=(D,))
    codex.claim(A)
    codex.do(c.Fail(A, reason="no luck"))
    dropped = ana.do(c.Drop(D, reason="not wanted"))
    assert dropped.events[-1].waiting == ("T-4",)
    assert codex.refused(c.Claim(B)) == codex.refused(c.Claim(TaskKey("T-4"))) == "waits"


def test_an_accepted_review_is_complete_for_what_waits_for_it(bench, codex, ana):
    add(bench), add(bench, after=(A,))
    codex.claim(A)
    codex.do(c.Submit(A))
    assert codex.refused(c.Claim(B)) == "waits"
    ana.do(c.Accept(A))
    assert codex.claim(B).task.state == "in_progress"


def test_dependencies_can_be_added_and_taken_away(bench, codex, ana):
    add(bench), add(bench)
    ana.do(c.Depend(B, on=(TaskKey("t-1"),)))
    assert codex.refused(c.Claim(B)) == "waits"
    assert ana.do(c.Depend(B, on=(A,))).entries == ()
    outcome = ana.do(c.Depend(B, not_on=(A,)))
    assert outcome.task.waits_on == 0
    codex.claim(B)
    assert bench.verbs(B) == ["added", "depended", "depended", "claimed", "started"]
    assert bench.faults() == ()


def test_a_cycle_is_refused_and_shown(bench, ana):
    add(bench), add(bench, after=(A,)), add(bench, after=(B,))
    with pytest.raises(Refused, match="T-1 waits for T-3 waits for T-2 waits for T-1") as refused:
        ana.do(c.Depend(A, on=(D,)))
    assert refused.value.refusal.facts["cycle"] == ["T-1", "T-3", "T-2", "T-1"]
    assert ana.refused(c.Depend(A, on=(A,))) == "cycle"
    assert ana.refused(c.Depend(A, on=(TaskKey("T-99"),))) == "unknown_task"
    assert bench.faults() == ()


def test_a_cycle_that_is_there_all_the_same_ends_every_walk(apart):
    """An imported graph may hold one."""
    ana = apart.person("ana")
    add(apart), add(apart, after=(A,)), add(apart, after=(B,))
    apart.change("INSERT INTO dependency (board, task, on_task) VALUES (1, 1, 3)")
    apart.change("UPDATE task SET waits_on = 1 WHERE id = 1")
    steps, _ = why(apart.board, A)
    assert [step.task.key for step in steps] == ["T-1", "T-3", "T-2"]
    assert ana.refused(c.Depend(A, on=(B,))) == "cycle"
    assert ana.do(c.Reset((A,), yes=True)).task.state == "open"
    assert [fault for fault in apart.faults() if "dependencies" in fault] == [
        "T-1: its dependencies are not those of the ledger"
    ]


def test_what_depends_on_what_is_proved_by_the_ledger(apart):
    add(apart), add(apart, after=(A,))
    apart.tamper("DELETE FROM dependency")
    assert apart.faults() == (
        "T-2: its dependencies are not those of the ledger",
        "T-2: its open dependencies are miscounted",
    )


def test_a_holder_does_not_start_before_its_time(bench, codex):
    """Reserved first, then a dependency: it is held, and neither started nor completed."""
    add(bench), add(bench)
    codex.claim(B, reserve=True)
    codex.do(c.Depend(B, on=(A,)))
    for command in (c.Claim(B), c.Start(B), c.Complete(B), c.Submit(B)):
        assert codex.refused(command) == "waits"
    assert codex.claim(B, reserve=True).task.state == "open"
    done(codex, A)
    assert codex.do(c.Complete(B)).task.state == "complete"


def test_why_is_a_chain_down_to_the_cause(bench, codex):
    add(bench), add(bench, after=(A,)), add(bench, after=(B,))
    codex.claim(A)
    codex.do(c.Block(A, reason="no key", on="founder"))
    steps, _ = why(bench.board, D)
    assert [(step.depth, step.task.key, step.why) for step in steps] == [
        (0, "T-3", "waits for T-2 (open)"),
        (1, "T-2", "waits for T-1 (blocked)"),
        (2, "T-1", "blocked on founder: no key"),
    ]
    assert steps[-1].helps == "dibs unblock T-1"


# What is offered.


def test_next_gives_by_priority_then_age(bench, codex):
    add(bench, priority=3), add(bench, priority=1), add(bench, priority=1)
    got = [codex.do(c.Next()).task.key for _ in range(3)]
    assert got == ["T-2", "T-3", "T-1"]
    assert codex.refused(c.Next()) == "nothing_ready"


NOT_FOR_CODEX = {
    "tier": {"tier": 2},
    "kind": {"audience": "human"},
    "capability": {"capabilities": ("rust",)},
}


@pytest.mark.parametrize("terms", NOT_FOR_CODEX.values(), ids=NOT_FOR_CODEX)
def test_next_does_not_offer_what_a_claim_would_refuse(bench, codex, terms):
    add(bench, priority=0, **terms), add(bench)
    assert codex.do(c.Next()).task.key == B


def test_next_offers_nothing_parked_assigned_waiting_or_before_its_time(bench, codex, ana):
    for _ in range(4):
        add(bench, priority=0)
    add(bench, after=(A,), priority=0)
    add(bench, priority=0, not_before=bench.now() + HOUR)
    add(bench)
    ana.do(c.Park(A))
    ana.do(c.Assign(B, to="ana"))
    bench.agent("other", "s2").claim(D)
    ana.claim("T-4")
    assert offered(bench) == ["T-7"]
    assert codex.do(c.Next()).task.key == "T-7"
    bench.advance(3600)
    assert codex.do(c.Next()).task.key == "T-6"


def test_next_offers_no_scope_that_somebody_holds(bench, codex):
    add(bench, scope=("src/auth/**",)), add(bench, scope=("src/**",), priority=0), add(bench)
    bench.agent("other", "s2").claim(A)
    assert codex.refused(c.Claim(B)) == "scope_held"
    assert codex.do(c.Next()).task.key == D
    assert codex.refused(c.Next()) == "nothing_ready"


def test_two_scopes_of_one_session_may_overlap(bench, codex):
    add(bench, scope=("src/**",)), add(bench, scope=("src/a.py",))
    codex.claim(A)
    assert codex.claim(B).task.state == "in_progress"


def test_a_late_renewal_is_refused_where_somebody_came_into_the_scope(bench, codex):
    """Two live scopes."""
    add(bench, scope=("src/**",)), add(bench, scope=("src/a.py",))
    codex.claim(A, ttl=60_000_000)
    bench.advance(61)
    bench.agent("other", "s2").claim(B)
    for command in (c.Renew(A), c.Claim(A), c.Stop(A), c.Block(A, reason="x", keep=True)):
        assert codex.refused(command) == "scope_held"
    for command in (c.Note(A, note="still here"), c.Park(A), c.Unpark(A)):
        codex.do(command)
    assert bench.task(A).lease.renewals == 0
    assert codex.do(c.Complete(A)).late


def test_a_holder_widens_its_scope_only_into_what_is_free(bench, codex):
    add(bench, scope=("src/**",)), add(bench, scope=("docs/**",))
    codex.claim(A)
    bench.agent("other", "s2").claim(B)
    assert codex.refused(c.Scope(A, add=("docs/index.md",))) == "scope_held"
    assert codex.do(c.Scope(A, add=("tests/**",))).task.scope == ("src/**", "tests/**")


def test_nobody_widens_the_scope_of_a_held_task_into_what_is_held(bench, codex, ana):
    """A person may change it; and still two live leases do not overlap."""
    add(bench, scope=("src/**",)), add(bench, scope=("docs/**",))
    bench.agent("other", "s2").claim(B)
    ana.do(c.Scope(A, add=("docs/a.md",)))
    ana.do(c.Scope(A, remove=("docs/a.md",)))
    codex.claim(A)
    assert ana.refused(c.Scope(A, add=("docs/a.md",))) == "scope_held"
    assert ana.do(c.Scope(A, add=("tests/**",))).task.scope == ("src/**", "tests/**")


def test_an_assignment_is_not_taken_up_beside_another_session_that_has_its_paths(bench, codex, ana):
    """Two sessions of one agent are two holders: next passes over it, and gives something else."""
    add(bench, scope=("src/**",)), add(bench, scope=("src/a.py",)), add(bench)
    codex.claim(A)
    ana.do(c.Assign(B, to="codex"))
    other = bench.agent("codex", "s2")
    assert other.refused(c.Claim(B)) == "scope_held"
    assert other.do(c.Next()).task.key == D
    assert codex.claim(B).task.lease.session == "s1"


def test_what_came_back_to_its_author_is_not_given_before_its_time(bench, codex, ana):
    add(bench)
    codex.claim(A)
    codex.do(c.Submit(A))
    ana.do(c.Edit(A, not_before=bench.now() + HOUR))
    ana.do(c.Reject(A, reason="not yet"))
    assert codex.refused(c.Next()) == "nothing_ready"
    bench.advance(3600)
    assert codex.do(c.Next()).task.key == A


def test_next_gives_first_what_is_assigned_then_what_came_back_to_its_author(bench, codex, ana):
    for _ in range(3):
        add(bench, priority=2)
    codex.claim(B)
    codex.do(c.Submit(B))
    ana.do(c.Reject(B, reason="not yet"))
    ana.do(c.Assign(D, to="codex"))
    assert [codex.do(c.Next()).task.key for _ in range(3)] == [D, B, A]
    assert bench.task(D).lease.session == "s1"


def test_what_an_author_gets_first_bars_nobody(bench, codex, ana):
    add(bench)
    codex.claim(A)
    codex.do(c.Submit(A))
    ana.do(c.Reject(A, reason="not yet"))
    assert bench.agent("other", "s2").do(c.Next()).task.key == A


def test_next_does_not_exceed_the_most_that_an_actor_may_hold(bench, codex):
    for _ in range(3):
        add(bench)
    codex.do(c.Next(most=2))
    bench.agent("codex", "s2").do(c.Next(most=2))
    assert codex.refused(c.Next(most=2)) == "at_limit"
    assert codex.do(c.Next(most=3)).task.key == D


def test_paused_is_not_a_failure_and_a_claim_goes_on(bench, codex, ana):
    add(bench), add(bench)
    ana.do(c.Pause(reason="release day"))
    assert ana.do(c.Pause(reason="again")).entries == ()
    with pytest.raises(Refused, match='paused by ana: "release day"'):
        codex.do(c.Next())
    assert status(bench.board).paused == 'ana: "release day"'
    assert codex.claim(A).task.state == "in_progress"
    ana.do(c.Resume())
    assert codex.do(c.Next()).task.key == B
    assert bench.faults() == ()


def test_a_changed_pause_is_found(apart):
    apart.person("ana").do(c.Pause(reason="release day"))
    apart.tamper("UPDATE board SET paused_by = NULL")
    assert apart.faults() == ("the board: its pause is not that of the ledger",)


def test_nothing_ready_says_why(bench, codex):
    add(bench, tier=5)
    with pytest.raises(Refused, match="T-1 is ready, but not for you: dibs why T-1"):
        next_task(bench.board, codex.identity, c.Next())
    codex_steps, _ = why(bench.board, A)
    assert codex_steps[0].why == "nobody is registered for it: tier 5"


def test_the_backoff_after_an_attempt_keeps_a_task_from_being_offered_and_not_from_a_claim(
    bench, codex
):
    add(bench)
    codex.claim(A)
    codex.do(c.Release(A, note="exited with 1", rest=60_000_000))
    assert bench.task(A).rests_until == bench.now() + 60_000_000
    assert codex.refused(c.Next()) == "nothing_ready"
    bench.advance(60)
    assert codex.do(c.Next()).task.rests_until is None
    assert bench.faults() == ()


def test_attempts_used_up_by_tries_fail_the_task(bench, codex):
    """A visible end."""
    add(bench, max_attempts=2)
    for _ in range(2):
        codex.claim(A)
        last = codex.do(c.Release(A, note="exited with 1", rest=1_000_000))
    assert (last.task.state, last.task.attempts) == ("failed", 2)
    assert codex.refused(c.Next()) == "nothing_ready"
    assert bench.faults() == ()


def test_a_release_by_hand_is_no_try(bench, codex):
    add(bench, max_attempts=1)
    codex.claim(A)
    assert codex.do(c.Release(A)).task.state == "open"


def test_ready_is_one_predicate(bench, codex, ana):
    """What the list shows, what `next` gives, what `why` says and the predicate are the same."""
    for number in range(6):
        add(bench, after=(A,) if number == 5 else ())
    add(bench, not_before=bench.now() + HOUR), add(bench), add(bench)
    ana.do(c.Park(B))
    codex.claim(D)
    ana.do(c.Block(TaskKey("T-4"), reason="waits"))
    codex.claim("T-8")
    codex.do(c.Release(TaskKey("T-8"), rest=HOUR))
    ana.do(c.Assign(TaskKey("T-9"), to="ana", ttl=60_000_000))
    bench.advance(61)
    for _ in range(2):
        ana.do(c.Sweep(grace=0))
    with bench.board.read() as tx:
        keys = [*tx.task_keys()]
        output = [key for key in keys if tx.is_ready(tx.task(key).id)]
    assert output == offered(bench) == ["T-1", "T-5"]
    assert [key for key in keys if why(bench.board, key)[0][0].why == "ready"] == output
    assert [codex.do(c.Next()).task.key for _ in output] == output
