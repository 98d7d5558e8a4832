"""A person has one open stint: starting another task closes it."""

from __future__ import annotations

import pytest

from dibs.board.stints import worked
from dibs.domain import commands as c
from dibs.domain.values import HOUR, SECOND
from kit.boards import START

LATER = START + 10**15


@pytest.fixture
def two(bench):
    """Two tasks; ana has worked on the first for a minute."""
    bench.add()
    bench.add()
    bench.person("ana").claim("T-1")
    bench.advance(60)
    return bench


def periods(bench):
    return [
        (one.key, (one.start - START) // SECOND, (one.end - START) // SECOND, one.source)
        for one in worked(bench.board, 0, LATER, "ana").stints
    ]


BEGUN = {
    "claim": c.Claim("T-2"),
    "start": c.Start("T-2"),
    "takeover": c.Takeover("T-2"),
    "force": c.Force("T-2", reason="urgent"),
    "next": c.Next(),
}


@pytest.mark.parametrize("verb", BEGUN)
def test_whoever_begins_with_another_task_stops_the_first(two, verb):
    outcome = two.person("ana").do(BEGUN[verb])
    assert outcome.task.key == "T-2"
    assert outcome.stopped == ("T-1",)
    assert two.task("T-1").lease.stint is None
    two.advance(30)
    assert periods(two) == [("T-1", 0, 60, "claim"), ("T-2", 60, 90, "open")]
    assert two.faults() == ()


def test_the_lease_of_the_first_is_kept_as_it_was(two):
    before = two.task("T-1")
    two.person("ana").claim("T-2")
    after = two.task("T-1")
    assert (after.token, after.lease) == (before.token, before.lease.but(stint=None))
    assert after.state == "in_progress"


def test_going_on_with_what_was_stopped_stops_the_other(two):
    ana = two.person("ana")
    ana.claim("T-2")
    two.advance(60)
    assert ana.do(c.Start("T-1")).stopped == ("T-2",)
    two.advance(60)
    assert periods(two) == [
        ("T-1", 0, 60, "claim"),
        ("T-2", 60, 120, "claim"),
        ("T-1", 120, 180, "open"),
    ]


def test_taking_up_what_is_in_progress_stops_the_other_though_it_only_reserves(two):
    two.agent("codex", "s1").claim("T-2")
    two.agent("codex", "s1").do(c.Handoff("T-2", to="ana"))
    assert two.task("T-1").lease.stint is not None
    assert two.person("ana").claim("T-2", reserve=True).stopped == ("T-1",)


def test_a_reservation_stops_nothing(two):
    assert two.person("ana").claim("T-2", reserve=True).stopped == ()
    assert two.task("T-1").lease.stint is not None


def test_claiming_again_what_one_works_on_stops_nothing(two):
    assert two.person("ana").claim("T-1").stopped == ()
    assert periods(two) == [("T-1", 0, 60, "open")]


def test_what_expired_long_ago_ends_at_its_last_sign_of_life(bench):
    bench.add()
    bench.add()
    ana = bench.person("ana")
    ana.claim("T-1", ttl=HOUR)
    bench.advance(600)
    ana.do(c.Renew("T-1"))
    bench.advance(90_000)
    assert ana.claim("T-2").stopped == ("T-1",)
    bench.advance(60)
    assert periods(bench) == [("T-1", 0, 600, "claim"), ("T-2", 90_600, 90_660, "open")]
    bench.agent("codex", "s1").do(c.Takeover("T-1"))
    assert periods(bench)[0] == ("T-1", 0, 600, "claim")
    assert bench.faults() == ()


def test_another_terminal_of_the_same_person_is_the_same_person(two):
    assert two.person("ana", "laptop").claim("T-2").stopped == ("T-1",)


def test_somebody_elses_stint_is_left_alone(two):
    two.person("bob").claim("T-2")
    assert two.task("T-1").lease.stint is not None


def test_agents_may_work_on_two_tasks_and_are_asked_nothing_more(two):
    codex = two.agent("codex", "s1")
    two.add()
    codex.claim("T-2")
    assert codex.claim("T-3").stopped == ()
    assert two.task("T-2").lease.stint is not None


def test_a_refused_claim_stops_nothing(two):
    two.agent("codex", "s1").claim("T-2")
    assert two.person("ana").refused(c.Claim("T-2")) == "held"
    assert two.task("T-1").lease.stint is not None


def test_the_same_request_gives_the_same_answer(two):
    ana = two.person("ana")
    first = ana.do(c.Claim("T-2"), "r1")
    again = ana.do(c.Claim("T-2"), "r1")
    assert again.replayed
    assert again.stopped == first.stopped == ("T-1",)


def test_the_answer_says_so(repo):
    repo.ok("add", "one", "--as", "ana")
    repo.ok("add", "two", "--as", "ana")
    repo.ok("claim", "T-1", "--as", "ana")
    answer = repo.json("claim", "T-2", "--as", "ana")
    assert answer["stopped"] == ["T-1"]
    assert answer["task"]["key"] == "T-2"
    ran = repo.ok("start", "T-1", "--as", "ana")
    assert "T-1 is in progress again" in ran.out
    assert "T-2" not in ran.out
    assert "T-2 is stopped" in ran.err
