"""Hours are approved by another person, closed by that, and proved afterwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.board import stints as approving
from dibs.domain import commands as c
from dibs.domain.decide.approval import closed, period_totals
from dibs.domain.model import Approval
from dibs.domain.stints import WorkedStint
from dibs.domain.values import DAY, HOUR, SECOND

A, B = "T-1", "T-2"


@pytest.fixture
def ana(bench):
    return bench.person("ana")


@pytest.fixture
def bo(bench):
    return bench.person("bo")


def approve(bench, actor: str, since: int, until: int) -> c.Approve:
    return c.Approve(actor, since, until, "UTC", "the period")


def worked(bench, who, key: str, seconds: float) -> None:
    who.claim(key)
    bench.advance(seconds)
    who.do(c.Complete(key))


@pytest.fixture
def day(bench, ana, bo):
    """Ana worked for an hour; a day from then on is over, and bo is there."""
    bench.add(), bench.add()
    bo.do(c.Note(A, note="hello"))
    since = bench.now()
    worked(bench, ana, A, 3600)
    bench.advance(86_400)
    return since, since + DAY


def test_another_person_approves_what_the_stints_come_to(bench, bo, day):
    [entry] = bo.do(approve(bench, "ana", *day)).entries
    event = entry.event
    assert (event.verb, event.stints) == ("approved", 1)
    assert (event.effort, event.working) == (HOUR, HOUR)
    [checked] = approving.check(bench.board)
    assert checked.holds
    assert (checked.actor.name, checked.by.name) == ("ana", "bo")
    assert bench.faults() == ()


REFUSED = {
    "oneself": (lambda b: b.person("ana"), {}, "own_timesheet"),
    "an agent": (lambda b: b.agent("codex", "s1"), {}, "people_only"),
    "nobody": (lambda b: b.person("bo"), {"actor": "zoe"}, "unknown_actor"),
    "too early": (lambda b: b.person("bo"), {"until": 2**62}, "period_not_over"),
}


@pytest.mark.parametrize(("who", "message", "code"), REFUSED.values(), ids=REFUSED)
def test_hours_are_not_approved_by_whoever_or_too_early(bench, day, who, message, code):
    assert who(bench).refused(approve(bench, "ana", *day).but(**message)) == code
    assert approving.check(bench.board) == []


def test_nothing_is_approved_while_a_stint_of_it_is_open(bench, ana, bo, day):
    since, _ = day
    ana.claim(B)
    later = approve(bench, "ana", since, bench.now())
    bench.advance(1)
    assert bo.refused(later.but(until=bench.now())) == "stint_open"
    ana.do(c.Stop(B))
    bench.advance(1)
    bo.do(later.but(until=bench.now()))


def test_a_period_is_approved_once_until_somebody_opens_it_again(bench, bo, day):
    since, until = day
    command = approve(bench, "ana", since, until)
    bo.do(command)
    assert bo.refused(command) == "approved"
    assert bo.refused(command.but(since=until - 1, until=until + 1)) == "approved"
    reopened = c.Reopen("ana", since, until, "the period")
    assert bo.refused(reopened) == "reason_missing"
    assert bo.refused(reopened.but(reason="a mistake", until=until - 1)) == "not_approved"
    assert bench.agent("codex", "s1").refused(reopened.but(reason="x")) == "people_only"
    bo.do(reopened.but(reason="a mistake"))
    assert approving.check(bench.board) == []
    assert bo.refused(reopened.but(reason="again")) == "not_approved"
    bo.do(command)
    assert len(approving.check(bench.board)) == 1
    assert bench.faults() == ()


def test_what_was_approved_is_compared_with_the_stints_as_they_are(apart):
    ana, bo = apart.person("ana"), apart.person("bo")
    apart.add()
    bo.do(c.Note(A, note="hello"))
    since = apart.now()
    worked(apart, ana, A, 3600)
    apart.advance(86_400)
    bo.do(approve(apart, "ana", since, since + DAY))
    assert apart.faults() == ()
    apart.tamper(f"UPDATE ended_lease SET stint_ended = stint_ended - {SECOND}")
    [checked] = approving.check(apart.board)
    assert not checked.holds
    assert checked.now.effort == HOUR - SECOND


@pytest.mark.parametrize("change", ["effort = effort + 1", "reopened = 99", "label = 'other'"])
def test_an_approval_that_was_changed_is_found(apart, change):
    ana, bo = apart.person("ana"), apart.person("bo")
    apart.add()
    bo.do(c.Note(A, note="hello"))
    since = apart.now()
    worked(apart, ana, A, 3600)
    apart.advance(86_400)
    bo.do(approve(apart, "ana", since, since + DAY))
    apart.tamper(f"UPDATE approval SET {change}")
    assert "the board: its approved periods are not those of the ledger" in apart.faults()


# Pure.

spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=8)


def stints(given) -> list[WorkedStint]:
    return [
        WorkedStint(1, start, start + length, f"T-{n}", number=n + 1)
        for n, (start, length) in enumerate(given)
    ]


@given(spans, st.integers(0, 40), st.integers(1, 40))
def test_sum_and_union_are_those_of_every_instant(given, since, length):
    until = since + length
    found = period_totals(stints(given), since, until)
    covered = [
        [since <= t < until and start <= t < start + span for t in range(80)]
        for start, span in given
    ]
    assert found.effort == sum(map(sum, covered))
    assert found.working == sum(map(any, zip(*covered, strict=True)))


@given(spans, spans, st.integers(0, 40), st.integers(1, 40))
def test_a_correction_touches_what_is_approved_if_a_part_of_it_changes_there(one, other, since, n):
    approval = Approval(1, 1, since, since + n, "UTC", "p", 0, 0, 0, "")
    old, new = stints(one), stints(other)
    inside = [
        [(s, e) for s, e in ((max(x.start, since), min(x.end, since + n)) for x in some) if s < e]
        for some in (old, new)
    ]
    assert (closed([approval], old, new) is not None) == (inside[0] != inside[1])
