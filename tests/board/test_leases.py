"""Leases: how they begin, run, expire, end, and what a holder may do meanwhile."""

from __future__ import annotations

import pytest

from dibs.board.queries import show, who
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.model import Lease, Place, TaskKey, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND
from dibs.storage import queries

K = TaskKey("T-1")


@pytest.fixture
def codex(bench):
    bench.add()
    return bench.agent("codex", "s1", worktree="/w/one", branch="topic")


@pytest.fixture
def claude(bench):
    return bench.agent("claude", "s9")


@pytest.fixture
def ana(bench):
    return bench.person("ana")


# Beginning.


def test_claim_of_a_free_task_is_two_events_in_one_transaction(bench, codex):
    outcome = codex.claim()
    assert [entry.verb for entry in outcome.entries] == ["claimed", "started"]
    assert len({entry.at for entry in outcome.entries}) == 1
    task = bench.task()
    assert (task.state, task.token, task.attempts) == ("in_progress", Token(1, 1), 1)


def test_a_reserved_task_is_held_and_not_started(bench, codex):
    codex.claim(reserve=True)
    assert (bench.task().state, bench.task().attempts) == ("open", 0)
    codex.do(c.Start(K))
    assert (bench.task().state, bench.task().attempts, bench.task().token) == (
        "in_progress",
        1,
        Token(1, 1),
    )


def test_an_agent_holds_for_two_hours_and_a_person_for_seven_days(bench, codex, ana):
    bench.add()
    assert codex.claim("T-1").task.lease.ttl == 2 * HOUR
    assert ana.claim("T-2").task.lease.ttl == 7 * DAY


def test_defaults_come_from_the_settings(tmp_path, bench):
    bench.board.settings = Settings(ttl_agent=10 * MINUTE, ttl_human=DAY)
    bench.add()
    bench.add()
    assert bench.agent().claim("T-1").task.lease.ttl == 10 * MINUTE
    assert bench.person().claim("T-2").task.lease.ttl == DAY


def test_a_new_lease_is_new_in_every_field(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(1000)
    codex.do(c.Renew(K))
    codex.do(c.Release(K))
    bench.advance(5000)
    lease = claude.claim(ttl=MINUTE).task.lease
    now = bench.now()
    assert (lease.acquired, lease.renewed, lease.stint, lease.renewals, lease.ttl) == (
        now,
        now,
        now,
        0,
        MINUTE,
    )


def test_nothing_is_measured_from_when_a_task_was_made_or_changed(bench, codex, claude):
    bench.advance(40 * DAY / SECOND)
    codex.claim(ttl=HOUR)
    bench.person("founder").do(c.Note(K, note="hello"))
    assert claude.refused(c.Claim(K)) == "held"


def test_a_claim_that_waited_has_its_full_ttl(bench, codex):
    """`now` is read after the lock is won: the transaction's instant starts the lease."""
    with bench.store.write("first") as tx:
        before = tx.now
    bench.advance(30)
    lease = codex.claim(ttl=MINUTE).task.lease
    assert lease.expires == before + 30 * SECOND + MINUTE


# The same session, another session, a subagent.


def test_claim_by_the_session_that_holds_it_is_a_renewal_with_the_same_token(bench, codex):
    codex.claim()
    bench.advance(60)
    outcome = codex.claim()
    assert (outcome.task.token, outcome.entries, outcome.task.lease.renewals) == (
        Token(1, 1),
        (),
        1,
    )
    assert outcome.task.lease.renewed == bench.now()
    assert bench.task().attempts == 1


def test_the_same_agent_in_two_terminals_is_two_holders(bench, codex):
    codex.claim()
    assert bench.agent("codex", "s2").refused(c.Claim(K)) == "held"
    assert bench.agent("codex", "s2").refused(c.Complete(K)) == "held"


def test_two_agents_with_one_name_of_a_session_are_two_holders(bench, codex):
    codex.claim()
    namesake = bench.agent("claude", "s1")
    assert namesake.refused(c.Claim(K)) == "held"
    assert namesake.refused(c.Complete(K)) == "held"


def test_a_subagent_acts_under_its_parents_lease(bench, codex):
    child = bench.agent("codex", "s1/a2")
    outcome = child.claim()
    assert outcome.task.lease.session == "s1"
    assert outcome.entries[0].session == "s1/a2"
    for command in (
        c.Renew(K),
        c.Note(K, note="x"),
        c.Edit(K, title="y"),
        c.Scope(K, add=("a",)),
        c.Start(K),
    ):
        child.do(command)
    for command in (
        c.Stop(K), c.Block(K, reason="r"), c.Submit(K), c.Complete(K), c.Fail(K, reason="r"), c.Release(K),
        c.Handoff(K, to="founder"), c.Drop(K),
    ):  # fmt: skip
        assert child.refused(command) == "parent_only", command.verb
    codex.do(c.Complete(K))


# Expiry.


@pytest.mark.parametrize(("past", "expected"), [(0, "held"), (0.000001, None)])
def test_a_lease_is_live_at_exactly_its_expiry_and_expired_a_microsecond_later(
    bench, codex, claude, past, expected
):
    codex.claim(ttl=HOUR)
    bench.advance(3600 + past)
    if expected:
        assert claude.refused(c.Claim(K)) == expected
    else:
        assert claude.claim().entries[0].verb == "taken_over"


def test_expiry_is_computed_on_every_read(bench, codex):
    codex.claim(ttl=HOUR)
    bench.advance(3601)
    assert not bench.task().lease.live(bench.now())
    assert who(bench.board, K).expired


def test_after_expiry_the_owner_may_come_back(bench, codex):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    outcome = codex.claim()
    assert outcome.task.token == Token(1, 1)
    assert [entry.verb for entry in outcome.entries] == ["renewed"]
    assert outcome.entries[0].event.lapsed == outcome.entries[0].at - HOUR


def test_after_expiry_others_may_take_over_and_release_by_the_former_is_a_success(
    bench, codex, claude
):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    assert claude.claim().task.token == Token(1, 2)
    assert codex.do(c.Release(K)).entries[0].verb == "acknowledged"
    assert codex.do(c.Release(K)).entries == ()
    assert bench.task().lease.actor == claude.do(c.Renew(K)).task.lease.actor


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (c.Complete(K), "complete"),
        (c.Submit(K), "review"),
        (c.Fail(K, reason="r"), "failed"),
        (c.Release(K), "open"),
        (c.Block(K, reason="r"), "blocked"),
        (c.Drop(K), "dropped"),
    ],
)
def test_a_late_end_is_accepted_and_marked_late(bench, codex, command, state):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    ending = codex.do(command).entries[-1].event.ending
    assert bench.task().state == state
    assert ending.late
    assert ending.stint.ended == ending.renewed
    assert bench.faults() == ()


@pytest.mark.parametrize(
    "command",
    [
        c.Renew(K), c.Claim(K), c.Start(K), c.Stop(K), c.Block(K, reason="r", keep=True), c.Edit(K, title="x"),
        c.Scope(K, add=("a",)), c.Note(K, note="x"),
    ],
    ids=lambda command: command.verb,
)  # fmt: skip
def test_a_late_verb_after_which_the_lease_runs_renews_it_with_an_event(bench, codex, command):
    codex.claim(ttl=HOUR)
    began = bench.now()
    bench.advance(7200)
    outcome = codex.do(command)
    renewed = outcome.entries[0]
    assert (renewed.verb, renewed.event.lapsed) == ("renewed", began + HOUR)
    assert (renewed.event.stint.started, renewed.event.stint.ended) == (began, began)
    assert outcome.task.lease.live(bench.now())
    assert bench.faults() == ()


def test_a_former_holders_result_is_refused_and_kept_for_a_person(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    claude.claim()
    assert codex.refused(c.Complete(K, note="it was the cache")) == "lease_lost"
    assert bench.task().state == "in_progress"
    last = bench.events()[-1]
    assert (last.verb, last.event.late, last.session) == ("noted", "complete", "s1")
    with bench.store.read() as tx:
        assert [note.text for note in tx.notes(1)] == ["it was the cache"]
    assert bench.faults() == ()


@pytest.mark.parametrize("verb", ["block", "handoff", "release"])
@pytest.mark.parametrize("stated", [None, Token(1, 1)])
def test_the_text_of_whoever_lost_the_task_is_kept_with_every_verb_that_ends_a_lease(
    bench, codex, claude, verb, stated
):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    claude.claim()
    command = {
        "block": c.Block(K, token=stated, reason="the cache is gone"),
        "handoff": c.Handoff(K, token=stated, to="claude", note="the cache is gone"),
        "release": c.Release(K, token=stated, note="the cache is gone"),
    }[verb]
    try:
        codex.do(command)
    except Refused as problem:
        assert (problem.code, problem.refusal.facts["late_note"]) == ("lease_lost", True)
        assert "your text was saved as a late note" in str(problem)
    else:
        assert (verb, stated) == ("release", None)
        assert bench.verbs()[-2] == "acknowledged"
    last = bench.events()[-1]
    assert (last.verb, last.event.late, last.session) == ("noted", verb, "s1")
    assert [note.text for note in show(bench.board, K).notes] == ["the cache is gone"]
    assert bench.faults() == ()


def test_a_release_that_gives_nothing_back_keeps_its_text_as_a_note(bench, codex, claude):
    codex.claim()
    codex.do(c.Release(K))
    codex.do(c.Release(K, note="the cache"))
    claude.do(c.Release(K, note="the disk"))
    claude.do(c.Release(K))
    assert [entry.event.late for entry in bench.events()[-2:]] == ["", ""]
    assert [note.text for note in show(bench.board, K).notes] == ["the cache", "the disk"]
    assert bench.faults() == ()


def test_a_late_note_without_text_leaves_nothing(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    claude.claim()
    before = bench.snapshot()
    assert codex.refused(c.Complete(K)) == "lease_lost"
    assert bench.snapshot() == before


def test_a_late_note_is_kept_once_for_one_request(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    claude.claim()
    for _ in range(3):
        assert codex.refused(c.Complete(K, note="the cache"), "r1") == "lease_lost"
    assert bench.verbs().count("noted") == 1


def test_note_never_exits_5(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(7200)
    claude.claim()
    codex.do(c.Note(K, note="I was here"))
    assert bench.task().lease.renewals == 0


# Renewal.


def test_every_accepted_write_of_the_holder_renews(bench, codex):
    codex.claim(ttl=HOUR)
    for command in (
        c.Note(K, note="x"),
        c.Edit(K, title="y"),
        c.Stop(K),
        c.Start(K),
        c.Scope(K, add=("a",)),
    ):
        bench.advance(60)
        codex.do(command)
        assert bench.task().lease.renewed == bench.now(), command.verb


def test_a_write_of_somebody_else_does_not_renew(bench, codex, ana):
    codex.claim(ttl=HOUR)
    renewed = bench.task().lease.renewed
    bench.advance(60)
    ana.do(c.Note(K, note="how is it going"))
    ana.do(c.Edit(K, title="new title"))
    assert bench.task().lease.renewed == renewed


def test_a_renewal_in_time_is_no_event_and_changes_nothing_but_the_lease(bench, codex):
    codex.claim(ttl=HOUR)
    before = bench.task()
    bench.advance(60)
    assert codex.do(c.Renew(K)).entries == ()
    after = bench.task()
    changed = {f for f, b, a in zip(before.fields, before, after) if b != a}
    assert changed == {"lease", "version"}
    assert after.lease == before.lease.but(renewed=bench.now(), renewals=1)


def test_renew_keeps_the_ttl_and_a_change_of_it_is_an_event(bench, codex):
    codex.claim(ttl=HOUR)
    assert codex.do(c.Renew(K)).task.lease.ttl == HOUR
    outcome = codex.do(c.Renew(K, ttl=MINUTE))
    assert (outcome.task.lease.ttl, [e.verb for e in outcome.entries]) == (MINUTE, ["renewed"])
    assert bench.faults() == ()


def test_renew_never_revives_an_ended_lease(bench, codex, claude):
    codex.claim()
    codex.do(c.Complete(K))
    before = bench.snapshot()
    assert codex.refused(c.Renew(K)) == "lease_lost"
    assert claude.refused(c.Renew(K)) == "final"
    assert bench.snapshot() == before


def test_renewals_are_shown_and_are_in_the_event_that_ends_the_lease(bench, codex):
    codex.claim(ttl=HOUR)
    for _ in range(3):
        bench.advance(60)
        codex.do(c.Renew(K))
    ending = codex.do(c.Complete(K)).entries[-1].event.ending
    assert (ending.renewals, ending.expires - ending.renewed) == (3, HOUR)


# Tokens.


def test_every_lease_of_a_task_has_a_higher_token_than_all_before(bench, codex, claude, ana):
    seen = [codex.claim().task.token]
    codex.do(c.Release(K))
    seen.append(claude.claim(ttl=HOUR).task.token)
    bench.advance(3601)
    seen.append(codex.do(c.Takeover(K)).task.token)
    seen.append(ana.do(c.Force(K, reason="urgent")).task.token)
    seen.append(ana.do(c.Handoff(K, to="claude")).task.token)
    claude.claim()
    claude.do(c.Release(K))
    seen.append(ana.do(c.Assign(K, to="codex")).task.token)
    assert [token.number for token in seen] == [1, 2, 3, 4, 5, 6]


def test_a_token_from_before_is_refused_even_if_the_same_session_holds_it_again(
    bench, codex, claude
):
    old = codex.claim(ttl=HOUR).task.token
    bench.advance(3601)
    claude.claim(ttl=HOUR)
    bench.advance(3601)
    codex.claim()
    assert codex.refused(c.Complete(K, token=old)) == "lease_lost"
    codex.do(c.Complete(K, token=Token(1, 3)))


def test_after_release_the_token_is_void_also_if_nobody_came_since(bench, codex):
    token = codex.claim().task.token
    codex.do(c.Release(K))
    for command in (
        c.Renew(K, token=token),
        c.Block(K, token=token, reason="waits"),
        c.Complete(K, token=token),
    ):
        assert codex.refused(command) == "lease_lost"
    codex.claim()


def test_a_token_above_the_boards_own_is_reported_as_a_loss(bench, codex):
    codex.claim()
    assert codex.refused(c.Complete(K, token=Token(1, 9))) == "token_ahead"
    assert codex.refused(c.Complete(K, token=Token(7, 0))) == "token_ahead"


def test_the_token_of_another_session_does_not_help(bench, codex, claude):
    token = codex.claim().task.token
    assert claude.refused(c.Complete(K, token=token)) == "held"


def test_tokens_are_ordered_as_two_integers(bench, codex):
    for _ in range(10):
        codex.claim()
        codex.do(c.Release(K))
    assert codex.claim().task.token == Token(1, 11)
    assert codex.refused(c.Complete(K, token=Token(1, 9))) == "lease_lost"


# Takeover and force.


def test_a_takeover_before_expiry_is_refused_and_after_it_names_the_former_holder(
    bench, codex, claude
):
    codex.claim(ttl=HOUR)
    assert claude.refused(c.Takeover(K)) == "held"
    bench.advance(3601)
    event = claude.do(c.Takeover(K, reason="no answer")).entries[0].event
    assert (event.ending.session, event.ending.worktree, event.ending.branch) == (
        "s1",
        "/w/one",
        "topic",
    )
    assert (event.reason, bench.task().attempts) == ("no answer", 2)


def test_a_takeover_of_a_free_task_is_a_claim(bench, codex):
    assert [entry.verb for entry in codex.do(c.Takeover(K)).entries] == ["claimed", "started"]


def test_force_names_the_person_the_reason_and_the_former_holder(bench, codex, ana):
    codex.claim()
    entry = ana.do(c.Force(K, reason="production is down")).entries[0]
    assert (entry.verb, entry.cause, entry.event.reason) == (
        "forced",
        "force",
        "production is down",
    )
    assert (entry.event.ending.session, entry.event.ending.late) == ("s1", False)
    assert codex.refused(c.Complete(K)) == "lease_lost"


def test_an_agent_cannot_force_and_neither_can_a_person_inside_a_harness(bench, codex, claude):
    codex.claim()
    assert claude.refused(c.Force(K, reason="mine")) == "people_only"
    inside = bench.agent("claude", "s9", harness="CLAUDECODE")
    assert inside.refused(c.Force(K, reason="mine")) == "people_only"


def test_force_also_passes_an_assignment_but_not_the_kind_the_tier_or_parking(bench, ana):
    bench.add(audience="agent")
    bench.add(tier=5)
    bench.add()
    bench.add()
    ana.do(c.Park(TaskKey("T-3")))
    bench.person("bob").do(c.Note(TaskKey("T-4"), note="hi"))
    ana.do(c.Assign(TaskKey("T-4"), to="bob"))
    assert ana.refused(c.Force(TaskKey("T-1"), reason="r")) == "wrong_kind"
    assert ana.refused(c.Force(TaskKey("T-2"), reason="r")) == "tier_too_low"
    assert ana.refused(c.Force(TaskKey("T-3"), reason="r")) == "parked"
    ana.do(c.Force(TaskKey("T-4"), reason="r"))


def test_a_zombie_is_refused_and_the_log_names_who_called(bench, codex, claude):
    codex.claim(ttl=HOUR)
    bench.advance(3601)
    claude.claim()
    assert codex.refused(c.Complete(K, note="mine")) == "lease_lost"
    assert [(e.verb, e.session) for e in bench.events()[-3:]] == [
        ("started", "s1"),
        ("taken_over", "s9"),
        ("noted", "s1"),
    ]


def test_a_release_by_somebody_else_is_refused(bench, codex, claude, ana):
    codex.claim()
    assert claude.refused(c.Release(K)) == "held"
    assert ana.refused(c.Release(K)) == "held"
    bench.advance(3 * 3600)
    assert claude.refused(c.Release(K)) == "held"


# Handoff and assignment.


def test_a_handoff_names_the_next_holder_without_a_gap(bench, codex, claude):
    claude.do(c.Note(K, note="hello"))
    codex.claim()
    outcome = codex.do(c.Handoff(K, to="claude", reason="needs rust"))
    assert (outcome.task.state, outcome.task.lease.session, outcome.task.attempts) == (
        "in_progress",
        None,
        1,
    )
    assert outcome.task.lease.stint is None
    assert codex.refused(c.Complete(K)) == "lease_lost"
    assert bench.agent("third", "s3").refused(c.Claim(K)) == "held"
    bound = claude.do(c.Start(K))
    assert (bound.task.token, bound.task.lease.session, bound.task.attempts) == (
        Token(1, 2),
        "s9",
        1,
    )
    assert bound.task.lease.stint == bench.now()
    assert bench.faults() == ()


def test_an_assignment_is_unbound_until_a_session_of_the_assignee_takes_it_up(
    bench, codex, claude, ana
):
    codex.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="codex"))
    assert (bench.task().state, bench.task().lease.session) == ("open", None)
    assert claude.refused(c.Claim(K)) == "held"
    assert codex.refused(c.Complete(K)) == "not_bound"
    assert codex.refused(c.Renew(K)) == "not_bound"
    outcome = bench.agent("codex", "s7").claim()
    assert [entry.verb for entry in outcome.entries] == ["bound", "started"]
    assert outcome.task.token == Token(1, 1)
    assert codex.refused(c.Claim(K)) == "held"


def test_an_assignee_takes_it_up_also_after_expiry_and_it_is_late(bench, codex, ana):
    codex.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="codex", ttl=HOUR))
    bench.advance(7200)
    assert [entry.verb for entry in codex.claim().entries] == ["renewed", "bound", "started"]
    assert bench.faults() == ()


def test_an_assignee_may_decline(bench, codex, claude, ana):
    codex.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="codex"))
    codex.do(c.Release(K))
    assert (bench.task().lease, bench.task().assignee) == (None, None)
    claude.claim()


def test_an_agents_assignment_bars_others_only_while_its_lease_is_live(bench, codex, claude, ana):
    codex.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="codex", ttl=HOUR))
    bench.advance(7200)
    assert claude.claim().entries[0].verb == "taken_over"


def test_a_persons_assignment_bars_agents_also_after_expiry_but_not_other_people(bench, codex, ana):
    bob = bench.person("bob")
    bob.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="bob", ttl=HOUR))
    assert codex.refused(c.Claim(K)) == "held"
    bench.advance(7200)
    assert codex.refused(c.Claim(K)) == "assigned_to_another"
    assert bench.task().assignee is not None
    ana.claim()
    assert bench.task().assignee is None


def test_unassign_ends_an_unbound_lease_and_is_refused_for_a_bound_one(bench, codex, claude, ana):
    codex.do(c.Note(K, note="x"))
    ana.do(c.Assign(K, to="codex"))
    assert claude.refused(c.Unassign(K)) == "people_only"
    assert ana.refused(c.Unassign(K)) == "reason_missing"
    ana.do(c.Unassign(K, reason="changed my mind"))
    assert bench.task().lease is None
    ana.do(c.Assign(K, to="codex"))
    codex.claim()
    assert ana.refused(c.Unassign(K, reason="x")) == "bound"


def test_an_assignee_must_exist(bench, codex, ana):
    assert ana.refused(c.Assign(K, to="nobody-here")) == "unknown_actor"
    codex.claim()
    assert codex.refused(c.Handoff(K, to="nobody-here")) == "unknown_actor"


# Stints, blocking, review.


def test_stop_ends_the_stint_and_keeps_the_lease_and_start_opens_the_next(bench, codex):
    codex.claim()
    began = bench.now()
    bench.advance(600)
    stopped = codex.do(c.Stop(K)).entries[-1].event
    assert (stopped.stint.started, stopped.stint.ended) == (began, bench.now())
    assert bench.task().lease.stint is None
    assert codex.do(c.Stop(K)).entries == ()
    bench.advance(600)
    assert [entry.verb for entry in codex.do(c.Start(K)).entries] == ["resumed"]
    assert (bench.task().lease.stint, bench.task().attempts) == (bench.now(), 1)
    assert codex.do(c.Start(K)).entries == ()


def test_block_ends_the_lease_unless_it_is_kept(bench, codex, claude):
    codex.claim()
    assert codex.refused(c.Block(K, reason="waits", on="nobody-here")) == "bad_argument"
    codex.do(c.Block(K, reason="waits for keys", on="founder", keep=True))
    task = bench.task()
    assert (task.state, task.token, task.lease.stint, task.blocked_on) == (
        "blocked",
        Token(1, 1),
        None,
        "founder",
    )
    assert claude.refused(c.Unblock(K)) == "held"
    codex.do(c.Unblock(K))
    assert (bench.task().state, bench.task().token, bench.task().lease.session) == (
        "open",
        Token(1, 1),
        "s1",
    )
    codex.do(c.Block(K, reason="again"))
    assert bench.task().lease is None
    claude.do(c.Unblock(K))
    assert bench.faults() == ()


def test_a_person_may_unblock_a_kept_lease_and_it_stays(bench, codex, ana):
    codex.claim()
    codex.do(c.Block(K, reason="waits", keep=True))
    bench.advance(60)
    renewed = bench.task().lease.renewed
    ana.do(c.Unblock(K))
    assert (bench.task().lease.session, bench.task().lease.renewed) == ("s1", renewed)


def test_a_reviewer_is_not_the_author_unless_the_board_allows_it(bench, codex, claude):
    codex.claim()
    codex.do(c.Submit(K))
    assert bench.agent("codex", "s2").refused(c.Accept(K)) == "own_review"
    bench.board.settings = Settings(self_review=True)
    codex.do(c.Accept(K))
    assert bench.task().state == "complete"


def test_a_rejected_task_is_preferred_for_its_author_until_the_next_claim(bench, codex, claude):
    codex.claim()
    codex.do(c.Submit(K))
    claude.do(c.Reject(K, reason="no tests"))
    task = bench.task()
    assert (task.state, task.preferred, task.author) == ("open", bench.actor_id("codex"), None)
    claude.claim()
    assert bench.task().preferred is None


def test_complete_of_an_open_task_that_is_held_starts_it_first(bench, codex):
    codex.claim(reserve=True)
    assert [entry.verb for entry in codex.do(c.Complete(K)).entries] == ["started", "completed"]
    assert bench.task().attempts == 1


def test_constraints_say_what_the_holder_may_do(bench):
    bench.add(constraints=("edit", "commit"))
    codex = bench.agent()
    codex.claim()
    assert codex.refused(c.Complete(K)) == "not_allowed"
    assert codex.refused(c.Drop(K)) == "not_allowed"
    codex.do(c.Submit(K))


# Parking, editing.


def test_park_keeps_a_task_from_being_claimed_and_never_ends_a_lease(bench, codex, claude, ana):
    codex.claim()
    ana.do(c.Park(K, reason="not now"))
    codex.do(c.Renew(K))
    codex.do(c.Release(K))
    assert codex.refused(c.Claim(K)) == "parked"
    assert claude.refused(c.Unpark(K)) == "not_yours_to_unpark"
    ana.do(c.Unpark(K))
    codex.claim()


def test_park_and_unpark_twice_are_successes_that_do_nothing(bench, codex, ana):
    ana.do(c.Park(K))
    assert ana.do(c.Park(K)).entries == ()
    ana.do(c.Unpark(K))
    assert ana.do(c.Unpark(K)).entries == ()


def test_others_may_not_edit_what_somebody_holds_but_a_person_may(bench, codex, claude, ana):
    codex.claim()
    assert claude.refused(c.Edit(K, title="mine now")) == "held"
    ana.do(c.Edit(K, title="clearer", priority=0))
    assert (bench.task().terms.title, bench.task().terms.priority) == ("clearer", 0)


def test_an_agent_does_not_open_its_own_gates(bench, codex, ana):
    """Who may do a task is changed by a person, or by who added it."""
    ana.do(c.Edit(K, tier=1, audience="human", constraints=("edit",)))
    for wish in ({"audience": "any"}, {"tier": 0}, {"constraints": ()}, {"capabilities": ()}):
        assert codex.refused(c.Edit(K, **wish)) == "people_only", wish
    codex.do(c.Edit(K, title="clearer", priority=1))
    codex.do(c.Add(bench.terms("its own", tier=3)))
    codex.do(c.Edit(TaskKey("T-2"), tier=1))


def test_park_by_the_holder_renews(bench, codex):
    codex.claim()
    bench.advance(60)
    codex.do(c.Park(K))
    assert bench.task().lease.renewed == bench.now()


def test_an_edit_that_changes_nothing_is_no_event(bench, codex):
    assert codex.do(c.Edit(K, title="work")).entries == ()


def test_a_scope_is_stored_and_shown_and_goes_with_remove(bench, codex):
    codex.do(c.Scope(K, add=("src/**", "docs")))
    codex.do(c.Scope(K, add=("src/**",), remove=("docs",)))
    assert bench.task().scope == ("src/**",)


def test_constraints_and_capabilities_can_be_taken_back(bench):
    bench.add(constraints=("edit",), capabilities=("rust",))
    bench.person().do(c.Edit(K, constraints=(), capabilities=()))
    assert (bench.task().terms.constraints, bench.task().terms.capabilities) == ((), ())


# Final.


def test_a_claim_on_a_finished_task_has_its_own_refusal_and_never_reopens_it(
    bench, codex, claude, ana
):
    codex.claim()
    codex.do(c.Complete(K))
    for command in (c.Claim(K), c.Takeover(K), c.Start(K)):
        assert claude.refused(command) == "final"
    assert ana.refused(c.Force(K, reason="again")) == "final"
    assert bench.task().state == "complete"


def test_a_person_may_drop_what_another_holds_with_a_reason(bench, codex, claude, ana):
    codex.claim()
    assert claude.refused(c.Drop(K)) == "people_only"
    assert ana.refused(c.Drop(K)) == "reason_missing"
    entry = ana.do(c.Drop(K, reason="customer left")).entries[0]
    assert (entry.event.overruled, entry.cause) == (True, "drop")
    assert codex.refused(c.Complete(K, note="done")) == "lease_lost"
    with bench.store.read() as tx:
        assert [lease.lost for lease in tx.ended_leases(1)] == [True]


def test_the_ledger_has_exactly_one_event_for_each_change_of_ownership(bench, codex, claude, ana):
    codex.claim(ttl=HOUR)
    bench.advance(3601)
    claude.claim()
    ana.do(c.Force(K, reason="r"))
    ana.do(c.Handoff(K, to="codex"))
    codex.claim()
    codex.do(c.Release(K))
    with bench.store.read() as tx:
        ended = tx.ended_leases(1)
    assert [lease.cause for lease in ended] == ["takeover", "force", "handoff", "release"]
    assert [lease.token.number for lease in ended] == [1, 2, 3, 4]
    assert [lease.lost for lease in ended] == [True, True, False, False]
    assert bench.verbs().count("taken_over") == bench.verbs().count("forced") == 1
    assert bench.faults() == ()


def test_attempts_rise_when_work_begins_and_at_a_takeover_but_not_at_a_handoff(
    bench, codex, claude
):
    claude.do(c.Note(K, note="x"))
    codex.claim(ttl=HOUR)
    codex.do(c.Handoff(K, to="claude", ttl=HOUR))
    claude.claim()
    assert bench.task().attempts == 1
    bench.advance(3601)
    codex.claim()
    assert bench.task().attempts == 2
    codex.do(c.Block(K, reason="r"))
    codex.do(c.Unblock(K))
    codex.claim()
    assert bench.task().attempts == 3


def test_all_claim_fields_are_cleared_together_whatever_ends_the_lease(bench, codex, ana):
    """One list of them, in one place: after each end every one of its columns is null."""
    columns = [
        *("holder" if name == "actor" else name for name in Lease.fields if name != "place"),
        *("expires", *Place.fields),
    ]
    endings = (
        c.Release(K),
        c.Block(K, reason="r"),
        c.Unblock(K),
        c.Submit(K),
        c.Reject(K, reason="r"),
        c.Drop(K),
    )
    for command in endings:
        if command.verb in ("release", "block", "submit", "drop"):
            codex.claim()
        (ana if command.verb in ("reject", "unblock") else codex).do(command)
        task = bench.task()
        row = queries.task_columns(task)
        assert {row[column] for column in columns} == {None}, command.verb


def test_an_unreadable_record_counts_as_held_and_is_reported_as_corrupt(apart):
    apart.add()
    apart.change("UPDATE task SET scope = 'not json'")
    before = apart.snapshot()
    assert apart.agent().refused(c.Claim(K)) == "corrupt"
    assert apart.snapshot() == before
