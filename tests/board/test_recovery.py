"""Recovery: sweep, retry, reset, and which holders count as dead."""

from __future__ import annotations

import pytest

from dibs.board.explain import status, why
from dibs.domain import commands as c
from dibs.domain.model import Process, TaskKey, Terms, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import MINUTE, SECOND
from dibs.machine import OWN_BOOT, UNKNOWN
from dibs.workers.next import next_task
from dibs.workers.sweep import sweep

A, B, D, E = (TaskKey(f"T-{n}") for n in range(1, 5))
TTL = 60 * SECOND


@pytest.fixture
def ana(bench):
    return bench.person("ana")


def add(bench, after=(), **terms):
    command = c.Add(Terms("work", **terms), after=tuple(map(TaskKey, after)))
    return bench.person("founder").do(command).task.key


def worker(bench, pid=100, name="codex", session=""):
    """An agent whose session is tied to a process."""
    process = Process(bench.machine.boot_id, bench.machine.space, pid, 7)
    return bench.agent(
        name, session or f"s{pid}", process=process, worktree="/gone", branch="topic"
    )


def swept(bench, actor, **options):
    """Key and cause of each lease that one sweep ended."""
    outcome = sweep(bench.board, actor.identity, **options)
    if outcome is None:
        return []
    return [(outcome.keys[entry.task], entry.cause) for entry in outcome.entries]


# Sweep: expiry.


def test_a_sweep_first_suspects_and_ends_a_grace_later(bench, ana):
    add(bench)
    bench.agent().claim(A, ttl=TTL)
    assert swept(bench, ana) == []
    bench.advance(61)
    assert swept(bench, ana) == []
    assert bench.task(A).lease.suspect == bench.now()
    bench.advance(29)
    assert swept(bench, ana) == []
    assert ana.do(c.Sweep()).entries == (), "it is the rule that waits, not only the look before it"
    bench.advance(1)
    assert swept(bench, ana) == [(A, "expired")]
    assert (bench.task(A).state, bench.task(A).lease) == ("open", None)
    assert swept(bench, ana) == []
    assert bench.faults() == ()


def test_who_renews_after_the_first_look_is_not_ended(bench, ana):
    """A laptop's wake-up empties no board."""
    add(bench)
    codex = bench.agent()
    codex.claim(A, ttl=TTL)
    bench.advance(61)
    swept(bench, ana)
    codex.do(c.Renew(A))
    assert bench.task(A).lease.suspect is None
    bench.advance(61)
    assert swept(bench, ana) == []
    bench.advance(31)
    assert swept(bench, ana) == [(A, "expired")]


def test_exactly_at_its_end_a_lease_is_not_suspected(bench, ana):
    add(bench)
    bench.agent().claim(A, ttl=TTL)
    bench.advance(60)
    swept(bench, ana)
    assert bench.task(A).lease.suspect is None


def test_where_everybody_lives_nothing_is_written(bench, ana):
    add(bench)
    worker(bench).claim(A, ttl=TTL)
    before = bench.snapshot()
    assert sweep(bench.board, ana.identity) is None
    bench.advance(61)
    swept(bench, ana)
    marked = bench.snapshot()
    assert marked != before
    assert sweep(bench.board, ana.identity) is None
    assert bench.snapshot() == marked


def test_a_process_that_lives_is_given_one_more_ttl(bench, ana):
    """Silence is not death while the process lives."""
    add(bench)
    worker(bench).claim(A, ttl=TTL)
    bench.advance(61)
    swept(bench, ana)
    bench.advance(30 + 59)
    assert swept(bench, ana) == []
    bench.advance(1)
    assert swept(bench, ana) == [(A, "expired")]


def test_a_sweep_is_bounded(bench, ana):
    for _ in range(5):
        add(bench)
        worker(bench, 100).claim(f"T-{bench.board.store and _ + 1}")
    bench.machine.dead.add(100)
    assert len(swept(bench, ana, limit=2)) == 2
    assert len(swept(bench, ana, limit=2)) == 2
    assert len(swept(bench, ana, limit=2)) == 1
    assert swept(bench, ana) == []


def test_the_grace_can_be_set(bench, ana):
    add(bench)
    bench.agent().claim(A, ttl=TTL)
    bench.advance(61)
    swept(bench, ana, grace=0)
    assert swept(bench, ana, grace=0) == [(A, "expired")]


def test_a_reserved_task_of_a_dead_holder_is_swept_too(bench, ana):
    """A claim on an open task was ignored by a sweep that looked only at in progress."""
    add(bench)
    worker(bench).claim(A, reserve=True)
    bench.machine.dead.add(100)
    assert swept(bench, ana) == [(A, "process gone")]
    assert bench.agent("other", "s2").do(c.Next()).task.key == A


def test_blocked_stays_blocked(bench, ana):
    add(bench)
    codex = worker(bench)
    codex.claim(A)
    codex.do(c.Block(A, reason="waits", keep=True))
    bench.machine.dead.add(100)
    assert swept(bench, ana) == [(A, "process gone")]
    assert (bench.task(A).state, bench.task(A).lease) == ("blocked", None)


def test_attempts_used_up_make_a_swept_task_failed(bench, ana):
    add(bench, max_attempts=1)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    swept(bench, ana)
    assert bench.task(A).state == "failed"
    assert bench.faults() == ()


def test_what_was_only_reserved_has_not_been_tried_once_more(bench, ana):
    """Attempts are used up by tries: a lease on an open task that ends is not one."""
    add(bench, max_attempts=1)
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Release(A))
    worker(bench).claim(A, reserve=True)
    bench.machine.dead.add(100)
    assert swept(bench, ana) == [(A, "process gone")]
    assert bench.task(A).state == "open"


# Who is dead.


def test_a_dead_process_needs_no_second_look(bench, ana):
    add(bench)
    worker(bench).claim(A)
    bench.advance(10)
    bench.machine.dead.add(100)
    assert swept(bench, ana) == [(A, "process gone")]
    [entry] = [entry for entry in bench.events(A) if entry.verb == "lease_ended"]
    stint = entry.event.ending.stint
    assert stint.ended - stint.started == 0, "it worked until its last sign of life"


def test_what_is_left_of_the_dead_is_ended_before_their_lease(bench, ana):
    """By the mark of its run; whoever takes the task up then works alone."""
    add(bench)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    found = []
    bench.machine.carrying = lambda mark: found.append((mark, bench.task(A).lease is None)) or []
    assert swept(bench, ana) == [(A, "process gone")]
    assert set(found) == {("100.7", False)}


def test_what_is_stopped_too_long_loses_its_command_before_its_lease(bench, ana):
    """Its process lives and does nothing: neither does it look after its command."""
    add(bench)
    worker(bench).claim(A, ttl=TTL)
    found = []
    bench.machine.carrying = lambda mark: found.append((mark, bench.task(A).lease is None)) or []
    bench.advance(61)
    swept(bench, ana)
    bench.advance(30 + 59)
    swept(bench, ana)
    assert found == []
    bench.advance(1)
    assert swept(bench, ana) == [(A, "expired")]
    assert set(found) == {("100.7", False)}


def test_who_dies_after_the_look_is_looked_after_by_the_next(bench, ana):
    """One is dead at the look, the other only when the sweep is carried out."""
    add(bench), add(bench)
    worker(bench, 100).claim(A)
    worker(bench, 200).claim(B)
    bench.machine.dead.add(100)
    found = []
    bench.machine.carrying = lambda mark: bench.machine.dead.add(200) or found.append(mark) or []
    assert swept(bench, ana) == [(A, "process gone")]
    assert set(found) == {"100.7"}
    assert swept(bench, ana) == [(B, "process gone")]
    assert set(found) == {"100.7", "200.7"}


TAKES_FROM_THE_DEAD = {"claim": c.Claim(A), "takeover": c.Takeover(A), "retry": c.Retry(A)}


@pytest.mark.parametrize("command", TAKES_FROM_THE_DEAD.values(), ids=TAKES_FROM_THE_DEAD)
def test_whoever_takes_from_the_dead_ends_what_is_left_of_them_first(bench, command):
    add(bench)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    found = []
    bench.machine.carrying = lambda mark: found.append((mark, bench.task(A).token.number)) or []
    bench.agent("other", "s2").do(command)
    assert set(found) == {("100.7", 1)}


def test_a_plan_ends_nobody(bench, ana):
    add(bench)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    found = []
    bench.machine.carrying = lambda mark: found.append(mark) or []
    [change] = bench.board.plan(ana.identity, c.Sweep()).decision.others
    assert (change.task.key, found) == (A, [])


def test_a_reused_pid_is_not_the_same_process(bench, ana):
    add(bench)
    process = Process(bench.machine.boot_id, bench.machine.space, 100, 6)
    bench.agent("codex", "s1", process=process).claim(A)
    assert swept(bench, ana) == [(A, "process gone")]


def test_another_pid_namespace_is_another_host(bench, ana):
    """Seen from the host, a container's processes look dead."""
    add(bench)
    process = Process(bench.machine.boot_id, "pid:[2]", 100, 7)
    bench.agent("codex", "s1", process=process).claim(A)
    bench.machine.dead.add(100)
    assert swept(bench, ana) == []
    assert bench.agent("other", "s2").refused(c.Claim(A)) == "held"


def test_another_boot_is_death_where_there_is_one_kernel_only(bench, ana):
    add(bench)
    worker(bench).claim(A)
    bench.machine.boot_id = "boot-2"
    expected = [(A, "host rebooted")] if bench.kind == "sqlite" else []
    assert swept(bench, ana) == expected


@pytest.mark.parametrize(
    ("before", "after", "confined"),
    [
        ("boot-1", "boot-2", True),
        ("boot-1", UNKNOWN, False),
        (UNKNOWN, "boot-2", False),
        (UNKNOWN, UNKNOWN, False),
        ("boot-1", f"{OWN_BOOT}2", False),
        (f"{OWN_BOOT}1", "boot-2", False),
    ],
)
def test_when_in_doubt_another_boot_is_no_death(bench, ana, before, after, confined):
    """A container, a chroot, an id that was not read or is not the kernel's: only expiry counts."""
    bench.add()
    bench.machine.boot_id = before
    worker(bench, 100).claim(A)
    bench.machine.boot_id, bench.machine.confined = after, confined
    bench.machine.dead.add(100)
    assert swept(bench, ana) == []


def test_people_have_no_process(bench, ana):
    add(bench)
    process = Process(bench.machine.boot_id, bench.machine.space, 100, 7)
    dora = bench.person("dora")
    dora.identity = dora.identity.but(place=dora.identity.place.but(process=process))
    dora.claim(A)
    bench.machine.dead.add(100)
    assert swept(bench, ana) == []
    assert bench.board.execute(ana.identity, c.Sweep()).entries == ()
    assert [held.wrong for held in status(bench.board).held] == [""]
    assert ana.refused(c.Retry(A)) == "held"
    assert bench.agent("other", "s2").refused(c.Claim(A)) == "held"


def test_a_claim_that_meets_the_dead_takes_over_at_once(bench):
    add(bench)
    worker(bench).claim(A)
    bench.advance(5)
    other = bench.agent("other", "s2")
    assert other.refused(c.Claim(A)) == "held"
    bench.machine.dead.add(100)
    outcome = other.claim(A)
    assert outcome.task.token == Token(outcome.task.token.epoch, 2)
    assert outcome.taken.session == "s100"
    assert outcome.task.lease.reason == "process gone"
    assert bench.verbs(A)[-1] == "taken_over"
    assert bench.faults() == ()


def test_a_claim_whose_scope_the_dead_hold_ends_their_lease_and_is_granted(bench):
    """Who is dead bars nobody. What lives, and what has only expired, is left as it is."""
    bench.add(scope=("src",)), bench.add(scope=("src/x",)), bench.add(), bench.add()
    worker(bench).claim(A)
    worker(bench, 200, "living").claim("T-3")
    bench.agent("late", "s3").claim("T-4", ttl=TTL)
    bench.advance(61)
    other = bench.agent("other", "s2")
    assert other.refused(c.Claim(TaskKey("T-2"))) == "scope_held"
    bench.machine.dead.add(100)
    assert other.claim("T-2").task.lease.session == "s2"
    last = bench.events(A)[-1]
    assert (last.verb, last.event.why, bench.task(A).state) == (
        "lease_ended",
        "process gone",
        "open",
    )
    assert [bench.task(f"T-{n}").lease.suspect for n in (3, 4)] == [None, None]
    assert bench.agent("third", "s4").refused(c.Claim(A)) == "scope_held"
    assert bench.faults() == ()


@pytest.mark.parametrize("dead", [(100,), (200,), (100, 200)])
def test_a_scope_is_free_when_all_who_held_parts_of_it_are_dead(bench, dead):
    bench.add(scope=("src",)), bench.add(scope=("src/x",)), bench.add(scope=("src/y",))
    worker(bench, 100, "one").claim("T-2")
    worker(bench, 200, "two").claim("T-3")
    bench.machine.dead.update(dead)
    other = bench.agent("other", "s2")
    if len(dead) == 1:
        assert other.refused(c.Claim(A)) == "scope_held"
        bench.machine.dead.update((100, 200))
    other.claim(A)
    assert [bench.task(key).lease for key in ("T-2", "T-3")] == [None, None]
    assert bench.faults() == ()


def test_evidence_counts_only_for_the_lease_as_it_was_seen(bench, ana):
    """A renewal between the look and the sweep disproves it."""
    add(bench)
    codex = worker(bench)
    codex.claim(A)
    bench.machine.dead.add(100)
    evidence = bench.board._first_evidence(c.Sweep())
    bench.advance(1)
    codex.do(c.Renew(A))
    bench.board._first_evidence = lambda _command: evidence
    assert bench.board.execute(ana.identity, c.Sweep()).entries == ()
    assert bench.task(A).lease.suspect is None


def test_next_offers_what_a_killed_agent_had_without_any_daemon(bench):
    """The first claim after a sweep reports the former holder like a takeover."""
    add(bench)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    other = bench.agent("other", "s2")
    outcome = next_task(bench.board, other.identity, c.Next())
    assert (outcome.task.key, outcome.task.attempts) == (A, 2)
    assert (outcome.taken.session, outcome.taken.worktree) == ("s100", "/gone")
    assert bench.verbs(A) == ["added", "claimed", "started", "lease_ended", "claimed", "started"]
    assert outcome.task.lease.reason == "process gone"


def test_the_former_holder_is_refused_after_a_sweep(bench, ana):
    add(bench)
    codex = worker(bench)
    codex.claim(A)
    bench.machine.dead.add(100)
    swept(bench, ana)
    assert codex.refused(c.Complete(A)) == "lease_lost"
    assert codex.refused(c.Renew(A)) == "lease_lost"


def test_a_persons_assignment_bars_agents_after_a_sweep_an_agents_does_not(bench, ana):
    add(bench), add(bench)
    bench.agent("codex", "s1").do(c.Note(A, note="hello"))
    ana.do(c.Note(A, note="hello"))
    ana.do(c.Assign(A, to="ana", ttl=TTL))
    ana.do(c.Assign(B, to="codex", ttl=TTL))
    bench.advance(61)
    swept(bench, ana)
    bench.advance(31)
    assert swept(bench, ana) == [(A, "expired"), (B, "expired")]
    other = bench.agent("other", "s2")
    assert other.refused(c.Claim(A)) == "assigned_to_another"
    assert other.do(c.Next()).task.key == B
    assert ana.do(c.Next()).task.key == A


def test_status_names_stale_claims_as_a_cause(bench):
    add(bench), add(bench)
    worker(bench).claim(A)
    bench.agent("claude", "s9").claim(B, ttl=TTL)
    bench.machine.dead.add(100)
    bench.advance(61)
    wrong = {held.task.key: (held.wrong, held.helps) for held in status(bench.board).held}
    assert wrong[A] == ("stale: process gone", "dibs sweep")
    assert wrong[B] == ("stale: expired 1 s ago", "dibs takeover T-2")


# Retry.


def test_a_failed_task_is_tried_again(bench, ana):
    add(bench)
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Fail(A, reason="no luck"))
    assert ana.do(c.Retry(A)).task.state == "open"
    assert bench.task(A).attempts == 1
    assert codex.do(c.Next()).task.attempts == 2
    assert bench.faults() == ()


def test_attempts_used_up_are_raised_only_by_a_persons_force(bench, ana):
    add(bench, max_attempts=1)
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Fail(A, reason="no luck"))
    assert ana.refused(c.Retry(A)) == "used_up"
    assert codex.refused(c.Retry(A, force=True)) == "people_only"
    assert ana.refused(c.Retry(A, force=True)) == "reason_missing"
    outcome = ana.do(c.Retry(A, force=True, reason="once more"))
    assert (outcome.task.state, outcome.task.terms.max_attempts) == ("open", 2)
    assert bench.faults() == ()


def test_retry_frees_what_the_dead_hold_downstream_and_leaves_the_living(bench, ana):
    """Dependants were claimed by agents that had been dead for 14 hours."""
    add(bench)
    for _ in range(4):
        add(bench, after=(A,))
    codex = bench.agent("codex", "s1")
    done = codex.claim(A)
    codex.do(c.Complete(A))
    worker(bench, 100).claim(B)
    worker(bench, 200).claim(D)
    bench.agent("claude", "s9").claim(E, ttl=TTL)
    five = TaskKey("T-5")
    codex.claim(five)
    codex.do(c.Complete(five))
    bench.machine.dead.add(100)
    bench.advance(61)
    assert ana.refused(c.Retry(A)) == "final"
    ana.do(c.Reset((A,), only=True))
    codex.claim(A)
    codex.do(c.Fail(A, reason="worse"))
    outcome = ana.do(c.Retry(A))
    assert sorted(outcome.keys.values()) == [B, E]
    assert bench.task(B).lease is None
    assert bench.task(E).lease is None
    assert bench.task(D).state == "in_progress"
    assert bench.task(five).state == "complete"
    assert done.task.token < bench.task(A).token
    assert bench.faults() == ()


def test_a_retry_fails_nothing_downstream_whatever_was_tried(bench, ana):
    add(bench), add(bench, after=(A,), max_attempts=1)
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Complete(A))
    worker(bench).claim(B)
    bench.machine.dead.add(100)
    ana.do(c.Reset((A,), only=True))
    codex.claim(A)
    codex.do(c.Fail(A, reason="worse"))
    assert list(ana.do(c.Retry(A)).keys.values()) == [B]
    assert (bench.task(B).state, bench.task(B).attempts) == ("open", 1)


def test_a_forced_retry_raises_nothing_while_attempts_are_left(bench, ana):
    add(bench, max_attempts=2)
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Fail(A, reason="no luck"))
    assert ana.do(c.Retry(A, force=True, reason="once more")).task.terms.max_attempts == 2


def test_retry_of_a_dead_holders_task_and_not_of_a_live_one(bench, ana):
    add(bench)
    worker(bench).claim(A)
    assert ana.refused(c.Retry(A)) == "held"
    bench.machine.dead.add(100)
    assert ana.do(c.Retry(A)).task.state == "open"
    assert bench.events(A)[-1].cause == "retry"


# Reset.


def graph(bench):
    """T-1 <- T-2 <- T-3, and T-4 beside it."""
    add(bench), add(bench, after=(A,)), add(bench, after=(B,)), add(bench)


def test_reset_begins_anew_with_all_that_depends_on_it(bench, ana):
    """A reset clears claims, and the tasks start on the next tick."""
    graph(bench)
    codex = bench.agent("codex", "s1")
    for key in (A, B):
        codex.claim(key)
        codex.do(c.Complete(key))
    codex.claim(D)
    assert ana.refused(c.Reset((A,), redo=True)) == "reason_missing"
    with pytest.raises(Refused, match="reset T-1 changes 3 tasks: T-1, T-2, T-3"):
        ana.do(c.Reset((A,), redo=True, reason="wrong design"))
    outcome = ana.do(c.Reset((A,), redo=True, reason="wrong design", yes=True))
    assert sorted(outcome.keys.values()) == [A, B, D]
    for key, waits in ((A, 0), (B, 1), (D, 1)):
        task = bench.task(key)
        assert (task.state, task.lease, task.attempts, task.waits_on) == ("open", None, 0, waits)
    assert codex.refused(c.Complete(D)) == "lease_lost"
    assert bench.agent("other", "s2").do(c.Next()).task.key == A
    assert bench.faults() == ()


def test_a_task_that_is_older_than_what_it_waits_for_waits_again(bench, ana):
    """Its row is written before the row of that one, which changes it a second time."""
    add(bench), add(bench)
    ana.do(c.Depend(A, on=(B,)))
    codex = bench.agent()
    codex.claim(B)
    codex.do(c.Complete(B))
    codex.claim(A)
    ana.do(c.Reset((B,), redo=True, reason="wrong design", yes=True))
    task = bench.task(A)
    assert (task.state, task.lease, task.waits_on) == ("open", None, 1)


def test_complete_tasks_downstream_stay_without_redo_and_dropped_ones_always(bench, ana):
    graph(bench)
    add(bench, after=(A,))
    codex = bench.agent("codex", "s1")
    for key in (A, B):
        codex.claim(key)
        codex.do(c.Complete(key))
    ana.do(c.Drop(TaskKey("T-5"), reason="not wanted"))
    outcome = ana.do(c.Reset((A,)))
    assert list(outcome.keys.values()) == [A]
    assert (bench.task(A).state, bench.task(B).state) == ("open", "complete")
    ana.do(c.Reset((A,), redo=True, yes=True))
    assert bench.task(B).state == "open"
    assert bench.task(TaskKey("T-5")).state == "dropped"
    assert bench.faults() == ()


def test_only_the_named_tasks_with_an_option(bench, ana):
    graph(bench)
    codex = bench.agent("codex", "s1")
    codex.claim(A)
    codex.do(c.Complete(A))
    codex.claim(B)
    ana.do(c.Reset((A,), only=True))
    assert bench.task(A).state == "open"
    assert bench.task(B).state == "in_progress"


def test_an_agent_may_reset_what_nobody_else_holds(bench, ana):
    graph(bench)
    codex, other = bench.agent("codex", "s1"), bench.agent("other", "s2")
    codex.claim(A)
    assert other.refused(c.Reset((A,))) == "people_only"
    assert codex.do(c.Reset((A,))).task.state == "open"
    codex.claim(A, ttl=TTL)
    bench.advance(61)
    assert other.do(c.Reset((A,))).task.state == "open"
    assert ana.refused(c.Reset((TaskKey("T-99"),))) == "unknown_task"


def test_everyone_interrupted_is_named(bench, ana):
    graph(bench)
    bench.agent("codex", "s1").claim(A)
    outcome = ana.do(c.Reset((A,), reason="wrong design"))
    [event] = outcome.events
    assert (event.ending.session, event.takes, event.cause) == ("s1", True, "reset")
    assert outcome.actors[event.ending.actor].name == "codex"


KEPT = {
    "mine": (c.Reset((A,), mine=True), "held"),
    "assign": (c.Reset((A,), to="dora"), "held"),
    "park": (c.Reset((A,), park=True), "parked"),
}


@pytest.mark.parametrize(("command", "code"), KEPT.values(), ids=KEPT)
def test_a_person_who_resets_for_herself_is_not_overrun(bench, ana, command, code):
    """The dispatcher started an agent on it three minutes later, four times."""
    add(bench)
    bench.person("dora").do(c.Note(A, note="hello"))
    codex = bench.agent("codex", "s1")
    codex.claim(A)
    codex.do(c.Fail(A, reason="no luck"))
    outcome = ana.do(command)
    assert bench.task(A).state == "open"
    assert len({entry.at for entry in outcome.entries}) == 1
    with pytest.raises(Refused):
        next_task(bench.board, codex.identity, c.Next())
    assert codex.refused(c.Claim(A)) == code
    if code == "held":
        assert bench.task(A).token.number == 2
    assert bench.faults() == ()


def test_mine_is_held_and_not_started_whatever_it_waits_for(bench, ana):
    graph(bench)
    ana.do(c.Reset((B,), mine=True))
    task = bench.task(B)
    assert (task.state, task.lease.session, task.attempts, task.waits_on) == ("open", "", 0, 1)


@pytest.mark.parametrize("command", [row[0] for row in KEPT.values()], ids=KEPT)
def test_only_the_named_tasks_are_kept_from_others(bench, ana, command):
    add(bench), add(bench, after=(A,))
    bench.person("dora").do(c.Note(A, note="hello"))
    codex = bench.agent()
    codex.claim(A)
    codex.do(c.Complete(A))
    codex.claim(B)
    ana.do(command.but(yes=True, reason="wrong design"))
    below = bench.task(B)
    assert (below.state, below.lease, below.parked_by) == ("open", None, None)


def test_who_parked_a_task_first_stays_named(bench, ana):
    add(bench)
    bench.person("dora").do(c.Park(A))
    ana.do(c.Reset((A,), park=True))
    assert bench.task(A).parked_by == bench.actor_id("dora")


def test_reset_comes_into_nobodys_scope(bench, ana):
    command = c.Add(Terms("work"), ("src/**",))
    bench.person("founder").do(command), bench.person("founder").do(command)
    bench.agent("codex", "s1").claim(B)
    assert ana.refused(c.Reset((A,), mine=True)) == "scope_held"
    assert ana.do(c.Reset((A, B), mine=True, reason="mine now", yes=True)).task.lease


def test_the_same_request_resets_once(bench, ana):
    graph(bench)
    first = ana.do(c.Reset((A, B), yes=True), "r1")
    again = ana.do(c.Reset((A, B), yes=True), "r1")
    assert again.replayed
    assert [entry.seq for entry in again.entries] == [entry.seq for entry in first.entries]


def test_a_plan_changes_nothing(bench, ana):
    graph(bench)
    bench.agent("codex", "s1").claim(A)
    before = bench.snapshot()
    plan = bench.board.plan(ana.identity, c.Reset((A,), reason="why not"))
    assert [change.task.key for change in plan.decision.others] == [A]
    assert bench.snapshot() == before


def test_a_wide_graph_is_reset_in_one_transaction(bench, ana):
    add(bench)
    for _ in range(30):
        add(bench, after=(A,))
    codex = bench.agent("codex", "s1")
    codex.claim(A)
    codex.do(c.Complete(A))
    for number in range(2, 32):
        codex.claim(f"T-{number}")
    outcome = ana.do(c.Reset((A,), yes=True, reason="wrong design"))
    assert len(outcome.entries) == 31
    assert len({entry.at for entry in outcome.entries}) == 1
    assert all(bench.task(f"T-{n}").waits_on == 1 for n in range(2, 32))
    assert bench.faults() == ()


def test_the_clock_moves_suspicion_with_the_lease(bench, ana):
    if bench.kind != "sqlite":
        pytest.skip("a server's clock is not set by dibs")
    add(bench)
    bench.agent().claim(A, ttl=TTL)
    bench.advance(61)
    swept(bench, ana)
    bench.machine.wall_us += 10 * MINUTE
    ana.do(c.SetClock(reason="battery"))
    lease = bench.task(A).lease
    assert bench.now() - lease.suspect == 0


NOT_FOR_AN_AGENT = {
    "wrong_kind": {"audience": "human"},
    "tier_too_low": {"tier": 5},
    "capability_missing": {"capabilities": ("root",)},
}


@pytest.mark.parametrize("code", NOT_FOR_AN_AGENT)
@pytest.mark.parametrize("how", [{"mine": True}, {"to": "codex"}], ids=["mine", "assign"])
def test_a_reset_is_no_way_round_a_gate(bench, code, how):
    add(bench, **NOT_FOR_AN_AGENT[code])
    codex = bench.agent("codex", "s1")
    codex.do(c.Note(A, note="hello"))
    assert codex.refused(c.Claim(A)) == code
    assert codex.refused(c.Reset((A,), **how)) == code


def test_an_agent_does_not_reset_into_its_hands_what_a_person_parked(bench, ana):
    add(bench)
    codex = bench.agent("codex", "s1")
    ana.do(c.Park(A, reason="hands off"))
    assert codex.refused(c.Reset((A,), mine=True)) == "parked"
    codex.do(c.Reset((A,)))
    assert codex.refused(c.Claim(A)) == "parked"
    assert ana.do(c.Reset((A,), mine=True)).task.lease is not None


def test_why_names_a_dead_holder(bench):
    add(bench)
    worker(bench).claim(A)
    bench.machine.dead.add(100)
    [step], _ = why(bench.board, A)
    assert (step.why, step.helps) == (
        "held by codex (session s100), stale: process gone",
        "dibs sweep",
    )
