"""Periods of work as they are kept: each by the event that ended it, proved by the ledger."""

from __future__ import annotations

import pytest

from dibs.board.execute import Board
from dibs.board.settings import Settings
from dibs.board.stints import moments, summed, worked
from dibs.board.transfer import export
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND
from dibs.timesheets.query import SheetQuery
from kit.boards import START, STORES, new_store, of_a_file

LATER = START + 10**15


@pytest.fixture
def spread(apart):
    """Stints of every kind: one that ended with its lease, one stopped, one before a late renewal,
    one blocked, one that runs.
    """
    bench = apart
    bench.add()
    bench.add()
    codex, ana = bench.agent("codex", "s1"), bench.person("ana")
    codex.claim("T-1", ttl=HOUR)
    bench.advance(60)
    codex.do(c.Complete("T-1"))
    codex.claim("T-2", ttl=HOUR)
    bench.advance(60)
    codex.do(c.Stop("T-2"))
    codex.do(c.Start("T-2"))
    bench.advance(3601)
    codex.do(c.Renew("T-2"))
    bench.advance(60)
    codex.do(c.Block("T-2", reason="keys", keep=True))
    ana.do(c.Unblock("T-2"))
    codex.do(c.Start("T-2"))
    bench.advance(60)
    assert bench.faults() == ()
    return bench


def periods(bench, since=0, until=LATER, actor=None):
    record = worked(bench.board, since, until, actor)
    return [
        (one.key, (one.start - START) // SECOND, (one.end - START) // SECOND, one.source)
        for one in record.stints
    ]


ALL = [
    ("T-1", 0, 60, "claim"),
    ("T-2", 60, 120, "claim"),
    ("T-2", 120, 120, "claim"),
    ("T-2", 3721, 3781, "claim"),
    ("T-2", 3781, 3841, "open"),
]


def test_every_stint_is_kept_once(spread):
    assert periods(spread) == ALL


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (0, 60, ALL[:1]),
        (60, 61, ALL[:2]),
        (61, 3721, ALL[1:3]),
        (61, 3722, ALL[1:4]),
        (3790, 3791, ALL[4:]),
        (3842, 9999, []),
    ],
)
def test_only_those_of_the_period_are_read(spread, since, until, found):
    assert periods(spread, START + since * SECOND, START + until * SECOND) == found


def test_only_those_of_the_actor_are_read(spread):
    assert periods(spread, actor="ana") == []
    assert periods(spread, actor="codex") == ALL


def test_each_is_known_by_the_event_that_ended_it(spread):
    numbers = [one.number for one in worked(spread.board, 0, LATER).stints]
    verbs = {entry.seq: entry.verb for key in ("T-1", "T-2") for entry in spread.events(key)}
    ended = [verbs.get(number) for number in numbers]
    assert ended == ["completed", "stopped", "renewed", "blocked", None]


INTO = (
    "INSERT INTO stint (board, seq, task, actor, started, ended, source, spending)"
    " SELECT board, 1, {task}, actor, started, ended, 'claim', '' FROM stint WHERE seq ="
    " (SELECT min(seq) FROM stint)"
)
TAMPERING = {
    "a stint is longer": "UPDATE stint SET ended = ended + 1000000",
    "a stint is another's": "UPDATE stint SET actor = 1",
    "a stint is deleted": "DELETE FROM stint WHERE seq = (SELECT max(seq) FROM stint)",
    "a stint is invented": INTO.format(task=2),
    "a stint of no task is invented": INTO.format(task=99),
    "a stint of another task is invented": INTO.format(task=1),
    "a stint is said to be amended": (
        "UPDATE stint SET source = 'amended', amends = 3 WHERE seq = (SELECT max(seq) FROM stint)"
    ),
    "a stint used something": "UPDATE stint SET tokens = 5, spending = 'actual'",
    "a stint that ended with its lease is longer": "UPDATE ended_lease SET stint_started = 1",
    "a stint that ended with its lease is gone": (
        "UPDATE ended_lease SET stint_started = NULL, stint_ended = NULL"
    ),
    "a stint that ended with its lease cost something": "UPDATE ended_lease SET cost = 1",
    "it ended with another event": "UPDATE ended_lease SET seq = seq - 1",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_with_stints_is_found(spread, how):
    before = spread.snapshot()
    spread.tamper(TAMPERING[how])
    assert spread.snapshot() != before
    assert spread.faults()


@pytest.mark.parametrize("to", STORES)
def test_stints_are_carried_with_their_board(spread, tmp_path, to):
    """Out of either store and into either; the open one ends at its holder's last sign of life."""
    codex = spread.agent("codex", "s1")
    codex.do(c.ReportUsage(worked(spread.board, 0, LATER).stints[0].number, 5, 7, "actual"))
    spread.person("ana").do(
        c.AddStint(
            "T-1", START - HOUR, START, actor="codex", yes=True, reason="forgotten", backdated=True
        )
    )
    before = worked(spread.board, 0, LATER).stints
    renewed = spread.task(before[-1].key).lease.renewed
    spread.advance(86_400)
    store = new_store(to, tmp_path / "target", spread.machine, apart=True)
    board = Board(store, Settings())
    export.export(spread.board, str(tmp_path / "lines"))
    export.import_board(board, str(tmp_path / "lines"), spread.person("ana").identity)
    after = worked(board, 0, LATER).stints
    assert after[:-1] == before[:-1]
    assert (after[-1].end, after[-1].source) == (renewed, "claim")
    assert verify(board).faults == ()
    store.close()


MANY = 5_000


def test_a_timesheet_of_many_stints_is_that_of_each(apart):
    """More than are fetched at once; added up as they come, by rows with and without their tasks."""
    apart.add()
    codex = apart.agent()
    codex.claim()
    codex.do(c.Release("T-1"))
    apart.change(
        "INSERT INTO ended_lease (board, task, token_epoch, token_number, actor, acquired, renewed,"
        " expires, renewals, ended, cause, lost, acknowledged, seq, stint_started, stint_ended, spending,"
        " host, worktree, branch)"
        " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        f" SELECT 1, 1, 9, i, 1 + i % 2, 0, 0, 0, 0, 0, 'c', 0, 0, 1000 + i, {START} + i,"
        f" {START} + 2 * i, '', '', '', '' FROM n"
    )

    def one_day(since, until):
        return [("2026-11-15", since, until)]

    query = SheetQuery(START, START + DAY, "UTC", ("actor",))
    by_actor = summed(apart.board, query, one_day)
    by_task = summed(apart.board, query.but(by=("actor", "task")), one_day)
    assert sorted(row.effort for row in by_actor.rows) == sorted(
        [sum(range(1, MANY + 1, 2)), sum(range(2, MANY + 1, 2))]
    )
    assert by_actor.total.effort == by_task.total.effort == MANY * (MANY + 1) // 2
    assert by_actor.total.working == by_task.total.working
    assert len(worked(apart.board, START, START + DAY).stints) == MANY + 1


# What happened in a period, without reading all that ever happened.


def test_a_day_is_found_in_a_long_ledger(bench):
    bench.add()
    ana = bench.person("ana")
    for _ in range(40):
        bench.advance(3600)
        ana.do(c.Note("T-1", note="hour"))
    noted = [entry.at for entry in bench.events() if entry.verb == "noted"]
    for first, last in ((0, 0), (0, 1), (3, 9), (38, 40), (0, 40), (39, 40)):
        until = noted[last] if last < 40 else noted[-1] + 1
        found = moments(bench.board, bench.actor_id("ana"), noted[first], until)
        assert [one.at for one in found] == noted[first:last]


def test_the_ledger_is_not_read_beyond_the_period(bench):
    bench.add()
    ana = bench.person("ana")
    for _ in range(64):
        bench.advance(3600)
        ana.do(c.Note("T-1", note="hour"))
    queries = []
    with bench.store.read() as tx:
        ask = tx._ask
        tx._ask = lambda query, **params: queries.append(query) or ask(query, **params)
        found = list(tx.events_between(START + 60 * HOUR, START + 61 * HOUR))
    assert [entry.verb for entry in found] == ["noted"]
    assert queries.count("instant_of_event") <= 8
    assert queries.count("events_after") == 1


@of_a_file
def test_what_happened_before_the_clock_was_set_back_is_found_too(bench):
    bench.add()
    ana = bench.person("ana")
    at = []
    for step in range(6):
        bench.advance(600)
        at.append(ana.do(c.Note("T-1", note=str(step))).now)
        if step == 2:
            bench.machine.wall_us -= 20 * MINUTE
            ana.do(c.SetClock(reason="it was wrong"))
    assert at != sorted(at), "it was set back"
    for since in at:
        for length in (SECOND, 10 * MINUTE, HOUR):
            found = moments(bench.board, bench.actor_id("ana"), since, since + length)
            noted = [one.at for one in found if one.what == "noted"]
            assert noted == [one for one in at if since <= one < since + length]


def test_each_stint_says_what_ended_it(bench):
    codex, ana = bench.agent("codex", "s1"), bench.person("ana")
    for _ in range(3):
        bench.add()
    codex.claim("T-1")
    bench.advance(60)
    codex.do(c.Complete("T-1"))
    ana.claim("T-2")
    bench.advance(60)
    ana.do(c.Stop("T-2"))
    codex.claim("T-3", ttl=60_000_000)
    bench.advance(61)
    bench.agent("claude", "s9").claim("T-3")
    bench.advance(60)
    found = {one.key: one.cause for one in worked(bench.board, 0, 2**62).stints if one.number}
    assert found == {"T-1": "complete", "T-2": "stopped", "T-3": "takeover"}


def test_an_amendment_to_nothing_is_counted_nowhere(bench):
    ana = bench.person("ana")
    bench.add()
    ana.claim("T-1")
    bench.advance(60)
    ana.do(c.Complete("T-1"))
    [stint] = worked(bench.board, 0, 2**62).stints
    ana.do(c.AmendStint(stint.number, ended=stint.start, yes=True, reason="was not me"))
    assert worked(bench.board, 0, 2**62).stints == ()
    assert bench.faults() == ()
