"""Silence closes a stint that a harness's hooks drive; the next call opens another."""

from __future__ import annotations

import pytest

from dibs.board.settings import Settings, from_text
from dibs.board.stints import worked
from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR, MINUTE, SECOND
from kit.boards import START

LATER = START + 10**15
QUARTER = 15 * 60


def periods(bench):
    return [
        (one.key, (one.start - START) // SECOND, (one.end - START) // SECOND, one.source)
        for one in worked(bench.board, 0, LATER).stints
    ]


def hooked(bench, name="codex", session="s1"):
    return bench.agent(name, session, watched=True)


@pytest.fixture
def at_work(bench):
    """A watched session has a task for two hours, and showed a sign of life after a minute."""
    bench.add()
    codex = hooked(bench)
    codex.claim("T-1", ttl=2 * HOUR)
    bench.advance(60)
    codex.do(c.Renew("T-1"))
    return bench


def test_a_quarter_of_an_hour_is_not_yet_idle(at_work):
    at_work.advance(QUARTER)
    assert periods(at_work) == [("T-1", 0, 60 + QUARTER, "open")]
    outcome = hooked(at_work).do(c.Renew("T-1"))
    assert outcome.entries == ()
    at_work.advance(60)
    assert periods(at_work) == [("T-1", 0, 120 + QUARTER, "open")]


def test_after_an_idle_time_it_is_counted_until_the_last_sign_of_life(at_work):
    at_work.advance(QUARTER + 1)
    assert periods(at_work) == [("T-1", 0, 60, "open")]


@pytest.mark.parametrize(
    "command",
    [
        c.Renew("T-1"),
        c.Note("T-1", note="x"),
        c.Claim("T-1"),
        c.Start("T-1"),
        c.Scope("T-1", add=("a",)),
    ],
)
def test_the_next_call_opens_the_next_stint(at_work, command):
    at_work.advance(3000)
    outcome = hooked(at_work).do(command)
    assert outcome.entries[0].verb == "renewed"
    assert not outcome.late
    assert outcome.task.token.number == 1
    at_work.advance(60)
    assert periods(at_work) == [("T-1", 0, 60, "claim"), ("T-1", 3060, 3120, "open")]
    assert at_work.faults() == ()


def test_with_the_end_of_the_work_it_ends_at_the_last_sign_of_life(at_work):
    at_work.advance(3000)
    hooked(at_work).do(c.Complete("T-1"))
    assert periods(at_work) == [("T-1", 0, 60, "claim")]
    assert at_work.faults() == ()


def test_whoever_ends_the_lease_the_stint_ended_before(at_work):
    at_work.advance(3000)
    at_work.person("ana").do(c.Force("T-1", reason="urgent"))
    assert periods(at_work)[0] == ("T-1", 0, 60, "claim")
    assert at_work.faults() == ()


def test_a_reset_ends_it_at_the_last_sign_of_life_too(at_work):
    at_work.advance(3000)
    at_work.person("ana").do(c.Reset(("T-1",), reason="anew", yes=True))
    assert periods(at_work) == [("T-1", 0, 60, "claim")]
    assert at_work.faults() == ()


def test_an_idle_session_that_nobody_watches_is_at_work(bench):
    bench.add()
    codex = bench.agent("codex", "s1")
    codex.claim("T-1", ttl=2 * HOUR)
    bench.advance(3600)
    assert periods(bench) == [("T-1", 0, 3600, "open")]
    assert codex.do(c.Renew("T-1")).entries == ()
    codex.do(c.Complete("T-1"))
    assert periods(bench) == [("T-1", 0, 3600, "claim")]


def test_who_was_watched_once_stays_so_whoever_calls_in_its_name(at_work):
    """The agent itself types a command between two calls of its hooks."""
    at_work.agent("codex", "s1", branch="fix").claim("T-1")
    at_work.advance(3000)
    assert periods(at_work) == [("T-1", 0, 60, "open")]


def test_a_session_becomes_watched_by_a_renewal(bench):
    bench.add()
    bench.agent("codex", "s1").claim("T-1", ttl=2 * HOUR)
    hooked(bench).do(c.Renew("T-1"))
    bench.advance(3000)
    assert periods(bench) == [("T-1", 0, 0, "open")]


def test_what_was_stopped_stays_stopped(at_work):
    hooked(at_work).do(c.Stop("T-1"))
    at_work.advance(3000)
    assert hooked(at_work).do(c.Renew("T-1")).entries == ()
    assert periods(at_work) == [("T-1", 0, 60, "claim")]


def test_after_expiry_it_is_late_and_nothing_else(at_work):
    at_work.advance(3 * 3600)
    outcome = hooked(at_work).do(c.Renew("T-1"))
    assert outcome.late
    assert periods(at_work)[0] == ("T-1", 0, 60, "claim")


def test_how_long_is_a_setting(at_work):
    at_work.board.settings = Settings(idle_after=HOUR)
    at_work.advance(3000)
    assert periods(at_work) == [("T-1", 0, 3060, "open")]
    assert hooked(at_work).do(c.Renew("T-1")).entries == ()


@pytest.mark.parametrize("typed", ["59s", "25h", "soon"])
def test_the_setting_has_limits(typed):
    with pytest.raises(Refused):
        from_text(f'idle_after = "{typed}"', "here")
    assert from_text('idle_after = "1m"', "here").idle_after == MINUTE


def test_the_session_is_looked_up_only_after_an_idle_time(at_work):
    """A renewal stays as light as it is."""
    lookups = []
    for silence in (60, QUARTER + 1):
        at_work.advance(silence)
        with at_work.store.read() as tx:
            ask = tx._ask
            tx._ask = lambda query, ask=ask, **params: lookups.append(query) or ask(query, **params)
            from dibs.board.execute import facts_for
            from dibs.domain.model import Caller

            caller = Caller(tx.actor_named("codex"), "s1")
            facts_for(tx, caller, c.Renew("T-1"), at_work.board.settings)
        assert ("session" in lookups) == (silence > QUARTER)
