"""People add a forgotten period and correct a wrong one, with a reason: nobody types a total."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dibs.board.stints import days_with, worked
from dibs.domain import commands as c
from dibs.domain.model import EndedStint
from dibs.domain.refusals import Refused
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND
from kit import soak
from kit.boards import START, Bench

LATER = START + 10**15
WHY = {"reason": "forgot to stop", "yes": True, "backdated": True}


@pytest.fixture
def worked_on(bench):
    """Ana worked on T-1 for ten hours from the start on, and forgot to stop; codex for one on T-2."""
    return ten_hours(bench)


def ten_hours(bench):
    bench.add()
    bench.add()
    ana, codex = bench.person("ana"), bench.agent("codex", "s1")
    ana.claim("T-1")
    codex.claim("T-2", ttl=DAY)
    bench.advance(3600)
    codex.do(c.Complete("T-2"))
    bench.advance(9 * 3600)
    ana.do(c.Complete("T-1"))
    bench.advance(3600)
    return bench


def counted(bench):
    return [
        (one.key, (one.start - START) // SECOND, (one.end - START) // SECOND, one.source)
        for one in worked(bench.board, 0, LATER).stints
    ]


def number(bench, key="T-1"):
    return next(one.number for one in worked(bench.board, 0, LATER).stints if one.key == key)


def test_an_amendment_counts_in_the_place_of_the_stint(worked_on):
    first = number(worked_on)
    ana = worked_on.person("ana")
    outcome = ana.do(c.AmendStint(first, ended=START + 2 * HOUR, **WHY))
    assert counted(worked_on) == [("T-1", 0, 7200, "amended"), ("T-2", 0, 3600, "claim")]
    assert number(worked_on) == outcome.entries[0].seq != first
    assert worked_on.faults() == ()


def test_the_original_stays_in_the_ledger_and_in_its_row(worked_on):
    first = number(worked_on)
    worked_on.person("ana").do(c.AmendStint(first, ended=START + 2 * HOUR, **WHY))
    with worked_on.store.read() as tx:
        kept = tx.all_stints_of(tx.task("T-1").id)
    assert (kept[0].seq, kept[0].ended) == (first, START + 10 * HOUR)
    event = worked_on.events("T-1")[-1].event
    assert (event.amends, event.reason) == (first, "forgot to stop")


def test_what_was_amended_is_amended_again_by_its_new_number_only(worked_on):
    first, ana = number(worked_on), worked_on.person("ana")
    second = ana.do(c.AmendStint(first, ended=START + 2 * HOUR, **WHY)).entries[0].seq
    with pytest.raises(Refused) as problem:
        ana.do(c.AmendStint(first, ended=START + HOUR, **WHY))
    assert problem.value.code == "already_amended"
    assert problem.value.refusal.facts["replaced_by"] == second
    ana.do(c.AmendStint(second, started=START + HOUR, **WHY))
    assert ("T-1", 3600, 7200, "amended") in counted(worked_on)
    assert len(counted(worked_on)) == 2
    assert worked_on.faults() == ()


def test_an_amendment_may_be_empty_and_counts_nothing(worked_on):
    ana = worked_on.person("ana")
    ana.do(c.AmendStint(number(worked_on), ended=START, **WHY))
    assert {key for key, *_ in counted(worked_on)} == {"T-2"}
    ana.do(c.AddStint("T-1", START, START + HOUR, **WHY))
    assert ("T-1", 0, 3600, "added") in counted(worked_on)


def test_a_forgotten_period_is_added_for_oneself_or_for_another(worked_on):
    ana = worked_on.person("ana")
    ana.do(c.AddStint("T-2", START + 2 * HOUR, START + 3 * HOUR, **WHY))
    ana.do(c.AddStint("T-2", START + 2 * HOUR, START + 3 * HOUR, actor="codex", **WHY))
    record = worked(worked_on.board, 0, LATER)
    added = [record.actors[one.actor].name for one in record.stints if one.source == "added"]
    assert sorted(added) == ["ana", "codex"]
    assert worked_on.faults() == ()


def test_the_state_the_lease_and_the_token_of_the_task_stay(worked_on):
    before = worked_on.task("T-1")
    worked_on.person("ana").do(c.AmendStint(number(worked_on), ended=START + HOUR, **WHY))
    after = worked_on.task("T-1")
    same = ("state", "token", "lease", "terms", "attempts", "author", "assignee")
    assert [getattr(before, name) for name in same] == [getattr(after, name) for name in same]


H = HOUR
REFUSED = {
    "it ends in the future": (c.AddStint("T-1", START, START + 12 * H, **WHY), "bad_period"),
    "it ends before it starts": (c.AddStint("T-2", START + H, START, **WHY), "bad_period"),
    "it has no length": (c.AddStint("T-2", START, START, **WHY), "bad_period"),
    "it overlaps": (c.AddStint("T-1", START + 9 * H, START + 11 * H, **WHY), "stint_overlaps"),
    "it lies within another": (c.AddStint("T-1", START + H, START + 2 * H, **WHY), "stint_overlaps"),
    "it lies around another": (
        c.AddStint("T-2", START - H, START + 2 * H, actor="codex", **WHY),
        "stint_overlaps",
    ),
    "nobody is called that": (c.AddStint("T-1", START, START + H, "zoe", **WHY), "unknown_actor"),
    "there is no such task": (c.AddStint("T-9", START, START + H, **WHY), "unknown_task"),
    "there is no such stint": (c.AmendStint(10**6, ended=START, **WHY), "unknown_stint"),
    "an event is no stint": (c.AmendStint(1, ended=START, **WHY), "unknown_stint"),
    "it has no reason": (c.AddStint("T-2", START, START + H, yes=True), "reason_missing"),
    "it is not confirmed": (c.AddStint("T-2", START, START + H, reason="x"), "unconfirmed"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_nothing_is_written_if(worked_on, why):
    command, code = REFUSED[why]
    before = worked_on.snapshot()
    assert worked_on.person("ana").refused(command) == code
    assert worked_on.snapshot() == before


@pytest.mark.parametrize(
    "command",
    [c.AddStint("T-1", START, START + H, **WHY), c.AmendStint(1, ended=START, **WHY)],
)
def test_an_agent_corrects_nothing(worked_on, command):
    command = (
        command.but(number=number(worked_on)) if isinstance(command, c.AmendStint) else command
    )
    assert worked_on.agent("codex", "s1").refused(command) == "people_only"


def test_an_amendment_does_not_run_into_another_stint_nor_stays_as_it_was(worked_on):
    ana, first = worked_on.person("ana"), number(worked_on)
    ana.do(c.AddStint("T-1", START - 2 * H, START - H, **WHY))
    assert ana.refused(c.AmendStint(first, ended=START - 1, **WHY)) == "bad_period"
    assert ana.refused(c.AmendStint(first, ended=START + 12 * H, **WHY)) == "bad_period"
    for command, code in (
        (c.AmendStint(first, started=START - H - 1, **WHY), "stint_overlaps"),
        (c.AmendStint(first, started=START - H, **WHY), None),
        (c.AmendStint(first, **WHY), "already_amended"),
    ):
        if code:
            assert ana.refused(command) == code
        else:
            ana.do(command)
    assert ana.refused(c.AmendStint(number(worked_on), **WHY)) in (
        "bad_argument",
        "already_amended",
    )


def test_it_does_not_run_into_the_open_one_either(bench):
    bench.add()
    ana = bench.person("ana")
    bench.advance(3600)
    ana.claim("T-1")
    bench.advance(3600)
    assert ana.refused(c.AddStint("T-1", START, START + H + 1, **WHY)) == "stint_overlaps"
    ana.do(c.AddStint("T-1", START, START + H, **WHY))
    bench.person("bob").do(c.AddStint("T-1", START, START + 2 * H, **WHY))


def test_what_is_shown_before_is_what_comes_of_it(worked_on):
    """The totals of the task, of all who worked on it, and of the actor's days."""
    ana = worked_on.person("ana")
    ana.do(c.AddStint("T-1", START + H, START + 2 * H, actor="codex", **WHY))
    with pytest.raises(Refused) as problem:
        ana.do(c.AmendStint(number(worked_on), ended=START + 2 * H, reason="x"))
    facts = problem.value.refusal.facts
    assert (facts["total_before_seconds"], facts["total_after_seconds"]) == (11 * 3600, 3 * 3600)
    old = EndedStint(0, worked_on.actor_id("ana"), START, START + 10 * H, "claim")

    def days(since, until):
        return [("one", since, START + H), ("two", START + H, until)]

    preview = days_with(worked_on.board, days, old.but(ended=START + 2 * H), old)
    assert [(one.day, one.before, one.after) for one in preview.days] == [
        ("one", H, H),
        ("two", 9 * H, H),
    ]
    assert preview.more == 0


def test_what_is_approved_is_corrected_after_it_was_opened_again(worked_on):
    ana, bob, first = worked_on.person("ana"), worked_on.person("bob"), number(worked_on)
    week = {"since": START, "until": START + 3 * H}
    bob.do(c.Note("T-1", note="here"))
    bob.do(c.Approve("ana", **week, zone="UTC", label="a week"))
    before = worked_on.snapshot()
    assert ana.refused(c.AmendStint(first, ended=START + 2 * H, **WHY)) == "approved"
    assert ana.refused(c.AddStint("T-2", START + H, START + 2 * H, **WHY)) == "approved"
    assert worked_on.snapshot() == before
    ana.do(c.AddStint("T-2", START + H, START + 2 * H, actor="codex", **WHY))
    second = ana.do(c.AmendStint(first, ended=START + 4 * H, **WHY)).entries[0].seq
    bob.do(c.Reopen("ana", **week, label="a week", reason="ana forgot to stop"))
    ana.do(c.AmendStint(second, ended=START + 2 * H, **WHY))
    assert worked_on.faults() == ()


# What agents used.


def test_usage_is_recorded_by_whose_stint_it_is_or_by_a_person_and_can_be_corrected(worked_on):
    one = number(worked_on, "T-2")
    worked_on.agent("codex", "s7").do(c.ReportUsage(one, 1000, 2_500_000, "estimated"))
    worked_on.person("ana").do(c.ReportUsage(one, 900, None, "actual"))
    [stint] = [each for each in worked(worked_on.board, 0, LATER).stints if each.key == "T-2"]
    assert (stint.tokens, stint.cost, stint.spending) == (900, None, "actual")
    assert worked_on.agent("x", "s1").refused(c.ReportUsage(one, 1)) == "not_your_stint"
    assert worked_on.faults() == ()


def test_usage_of_a_stint_that_was_stopped_is_kept_with_it(bench):
    bench.add()
    codex = bench.agent("codex", "s1")
    codex.claim("T-1")
    bench.advance(60)
    one = codex.do(c.Stop("T-1")).entries[-1].seq
    codex.do(c.ReportUsage(one, 5, 7, "actual"))
    assert [s.tokens for s in worked(bench.board, 0, LATER).stints] == [5]
    assert bench.faults() == ()


def test_an_amendment_keeps_what_was_used_and_the_old_one_takes_no_more(worked_on):
    ana, first = worked_on.person("ana"), number(worked_on)
    ana.do(c.ReportUsage(first, 10, 20, "actual"))
    ana.do(c.AmendStint(first, ended=START + HOUR, **WHY))
    [stint] = [each for each in worked(worked_on.board, 0, LATER).stints if each.key == "T-1"]
    assert (stint.tokens, stint.cost, stint.spending) == (10, 20, "actual")
    assert ana.refused(c.ReportUsage(first, 1)) == "already_amended"
    assert worked_on.faults() == ()


def test_the_same_request_is_one_correction(worked_on):
    ana = worked_on.person("ana")
    command = c.AddStint("T-2", START + 2 * H, START + 3 * H, **WHY)
    first = ana.do(command, "r1")
    assert ana.do(command, "r1").entries == first.entries
    assert sum(one.source == "added" for one in worked(worked_on.board, 0, LATER).stints) == 1


TAMPERING = {
    "an added stint is longer": "UPDATE stint SET ended = ended + 1 WHERE source = 'added'",
    "an added stint is from a claim": "UPDATE stint SET source = 'claim' WHERE source = 'added'",
    "an amendment amends another": "UPDATE stint SET amends = 1 WHERE source = 'amended'",
    "an amendment is taken away": "DELETE FROM stint WHERE source = 'amended'",
    "usage is changed": "UPDATE ended_lease SET tokens = 1 WHERE tokens IS NOT NULL",
    "usage is forgotten": "UPDATE ended_lease SET tokens = NULL, spending = ''",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_with_corrections_is_found(apart, how):
    bench = ten_hours(apart)
    ana = bench.person("ana")
    bench.agent("codex", "s1").do(c.ReportUsage(number(bench, "T-2"), 5, 5, "actual"))
    ana.do(c.AmendStint(number(bench), ended=START + HOUR, **WHY))
    ana.do(c.AddStint("T-1", START + 2 * HOUR, START + 3 * HOUR, **WHY))
    assert bench.faults() == ()
    before = bench.snapshot()
    bench.tamper(TAMPERING[how])
    assert bench.snapshot() != before
    assert bench.faults()


minutes = st.integers(-5, 70)


@settings(max_examples=soak.examples(40), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 5), minutes, minutes), max_size=12))
@example(steps=[(True, 0, 0, 1), (False, 0, 0, 0)])
def test_whatever_is_corrected_stints_of_one_actor_on_one_task_never_overlap(
    tmp_path_factory, steps
):
    """Against a model that holds the intervals themselves."""
    bench = Bench(tmp_path_factory.mktemp("b") / "dibs")
    bench.add()
    ana = bench.person("ana")
    bench.advance(3600)
    model: dict[int, tuple[int, int]] = {}
    for adds, which, since, until in steps:
        old = None if adds or not model else sorted(model)[which % len(model)]
        free = all(
            since == until or a == b or until <= a or since >= b
            for one, (a, b) in model.items()
            if one != old
        )
        fits = since <= until <= 60 and free and (old is not None or since < until)
        fits = fits and (old is None or model[old] != (since, until))
        at = {"started": START + since * MINUTE, "ended": START + until * MINUTE}
        command = c.AddStint("T-1", **at, **WHY) if old is None else c.AmendStint(old, **at, **WHY)
        if not fits:
            ana.refused(command)
            continue
        model[ana.do(command).entries[0].seq] = (since, until)
        if old is not None:
            del model[old]
    found = {
        one.number: ((one.start - START) // MINUTE, (one.end - START) // MINUTE)
        for one in worked(bench.board, 0, LATER).stints
    }
    assert found == {one: (a, b) for one, (a, b) in model.items() if a < b}, "what has a length"
    assert bench.faults() == ()
    bench.close()


# The command line.


@pytest.fixture
def done(repo):
    repo.ok("add", "work", "--as", "ana")
    repo.ok("claim", "T-1", "--as", "ana")
    repo.ok("complete", "T-1", "--as", "ana")
    return repo


def one(repo, source="claim"):
    listed = repo.json("stint", "list", "--from", "2026-01-01", "--to", "2090-01-01")["stints"]
    return next(each["number"] for each in listed if each["source"] == source)


BERLIN = ("--tz", "Europe/Berlin", "--reason", "forgotten", "--backdated", "--as", "ana")


def test_a_correction_is_shown_in_local_time_and_utc_and_written_after_yes(done):
    command = ("stint", "add", "T-1", "--from", "2026-03-02 09:00", "--to", "2026-03-02T11:30")
    refused = done.run(*command, *BERLIN)
    assert refused.code == 2
    assert "2026-03-02 09:00:00 CET (2026-03-02T08:00:00Z)" in refused.err
    assert "2026-03-02 2:30:00 (now 0:00:00)" in refused.err
    assert len(done.json("stint", "list", "--month", "2026-03")["stints"]) == 0
    reply = done.json(*command, *BERLIN, "--yes")
    assert reply["stint"]["started_at"] == "2026-03-02T08:00:00Z"
    [stint] = done.json("stint", "list", "--month", "2026-03")["stints"]
    assert (stint["number"], stint["source"]) == (reply["stint"]["number"], "added")
    assert done.ok("log", "--verify")


def test_what_was_amended_to_nothing_is_in_nobodys_way_and_can_be_put_right_again(done):
    period = ("--from", "2026-03-02 09:00", "--to", "2026-03-02 10:00")
    first = done.json("stint", "add", "T-1", *period, *BERLIN, "--yes")["stint"]["number"]
    gone = ("stint", "amend", str(first), "--to", "2026-03-02 09:00")
    empty = done.json(*gone, *BERLIN, "--yes")["stint"]["number"]
    shown = done.fails(2, "stint", "amend", str(empty), "--to", "2026-03-02 10:00", *BERLIN)
    assert "2026-03-02 1:00:00 (now 0:00:00)" in shown.err
    around = ("--from", "2026-03-02 08:00", "--to", "2026-03-02 11:00")
    done.ok("stint", "add", "T-1", *around, *BERLIN, "--yes")
    done.ok("log", "--verify")


@pytest.mark.parametrize(
    ("until", "shown", "listed", "more"),
    [
        ("2025-03-03 00:00", "2025-03-02 15:00:00 (now 0:00:00); write it with --yes", 1, 0),
        (
            "2025-03-06 00:00",
            "2025-03-04 24:00:00 (now 0:00:00), and 1 more day; write it with --yes",
            4,
            0,
        ),
        ("2025-04-02 00:00", ", and 28 more days; write it with --yes", 31, 0),
        ("2025-04-02 01:00", ", and 29 more days; write it with --yes", 31, 1),
        ("2025-06-10 12:00", ", and 98 more days; write it with --yes", 31, 70),
    ],
)
def test_a_correction_counts_every_day_that_it_touches(done, until, shown, listed, more):
    """Up to midnight is not the next day; beyond a month the days are counted, and not listed."""
    command = ("stint", "add", "T-1", "--from", "2025-03-02 09:00", "--to", until, *BERLIN)
    assert shown in done.run(*command).err
    facts = done.run(*command, "--json").error["facts"]
    assert (len(facts["days"]), facts["more_days"]) == (listed, more)


def test_without_a_zone_it_is_that_of_the_actor(done):
    done.ok("actor", "set", "ana", "--zone", "America/New_York", "--as", "ana")
    reply = done.json(
        "stint", "add", "T-1", "--from", "2026-07-01 09:00", "--to", "2026-07-01 10:00",
        "--reason", "x", "--yes", "--backdated", "--as", "ana",
    )  # fmt: skip
    assert reply["stint"]["started_at"] == "2026-07-01T13:00:00Z"


@pytest.mark.parametrize(
    ("typed", "became"),
    [
        (("--to", "18:00"), ("2026-03-02T23:30:00Z", "2026-03-03T17:00:00Z")),
        (("--from", "00:15"), ("2026-03-02T23:15:00Z", "2026-03-03T01:00:00Z")),
        (("--from", "2026-03-04 09:00", "--to", "10:00"), ("2026-03-04T08:00:00Z", "2026-03-04T09:00:00Z")),
    ],
)  # fmt: skip
def test_a_time_of_day_alone_is_of_the_day_on_which_the_stint_begins(done, typed, became):
    """Not of today: that would make a stint of months out of one of an hour. The day is a local one."""
    period = ("--from", "2026-03-03 00:30", "--to", "02:00")
    stint = done.json("stint", "add", "T-1", *period, *BERLIN, "--yes")["stint"]
    assert (stint["started_at"], stint["ended_at"]) == ("2026-03-02T23:30:00Z", "2026-03-03T01:00:00Z")  # fmt: skip
    stint = done.json("stint", "amend", str(stint["number"]), *typed, *BERLIN, "--yes")["stint"]
    assert (stint["started_at"], stint["ended_at"]) == became


@pytest.mark.parametrize(
    ("local", "first", "second"),
    [
        ("2025-10-26 02:30", "2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"),
        ("2026-03-29 02:30", "2026-03-29T01:30:00Z", "2026-03-29T00:30:00Z"),
    ],
)
def test_a_local_time_that_comes_twice_or_never_is_asked_back(done, local, first, second):
    command = ("stint", "add", "T-1", "--to", "2026-04-01 09:00", *BERLIN, "--yes")
    refused = done.run(*command, "--from", local)
    assert refused.code == 2
    assert f"write {first} or {second}" in refused.err
    assert done.json(*command, "--from", second)["stint"]["started_at"] == second


def test_an_amendment_shows_both_and_the_timesheet_says_corrected(done):
    number = one(done)
    shown = done.run("stint", "amend", str(number), "--from", "2h", *BERLIN)
    assert shown.code == 2
    assert "becomes" in shown.err
    output = done.ok("stint", "amend", str(number), "--from", "2h", *BERLIN, "--yes").out
    assert f"replaces stint {number}" in output
    sheet = done.json("timesheet", "--from", "2026-01-01", "--to", "2090-01-01")["timesheet"]
    assert sheet["total"]["corrected"] == 1
    assert sheet["total"]["effort_us"] > 7_000 * SECOND


def test_usage_is_listed_and_adds_up(done):
    done.ok("stint", "usage", str(one(done)), "--tokens", "1200", "--cost", "0.35", "--source", "actual", "--as", "ana")  # fmt: skip
    [stint] = done.json("stint", "list")["stints"]
    assert (stint["tokens"], stint["cost"], stint["spending"]) == (1200, "0.35", "actual")
    assert "1200" in done.ok("timesheet").out
    assert "0.35" in done.ok("stint", "list").out


def test_the_library_lists_stints_and_takes_what_was_used(done):
    from datetime import UTC, datetime, timedelta

    import dibs

    now, day = datetime.now(UTC), timedelta(days=1)
    around = done.environment()
    with dibs.open_board(done.folder, agent="codex", session="s1", environment=around) as board:
        board.add("more")
        board.claim("T-2")
        board.complete("T-2")
        [stint] = board.stints(now - day, now + day, actor="codex")
        board.usage(stint.number, tokens=5, cost="0.25", source="actual")
        with pytest.raises(dibs.Refused):
            board.usage(one(done), tokens=1)
        assert len(board.stints(now - day, now + day)) == 2
        [stint] = board.stints(now - day, now + day, actor="codex")
        assert (stint.task, stint.tokens, stint.cost, stint.spending) == (
            "T-2",
            5,
            "0.25",
            "actual",
        )


def test_hours_before_the_task_existed_are_accepted_only_with_an_option(repo):
    """To the minute: whoever types 09:00 means a task that was added at 09:00:30."""
    repo.ok("add", "Fix login", "--as", "ana")
    created = repo.json("show", "T-1")["task"]["created_at"]
    early = ("--from", "2026-01-06T09:00Z", "--to", "2026-01-06T11:00Z")
    why = ("--reason", "forgotten", "--yes", "--as", "ana")
    refused = repo.fails(2, "stint", "add", "T-1", *early, *why, "--json").error
    assert (refused["code"], refused["facts"]["created_at"]) == ("bad_period", created)
    assert "before T-1 existed" in refused["message"]
    same_minute = ("--from", f"{created[:16]}Z", "--to", created)
    number = repo.json("stint", "add", "T-1", *same_minute, *why)["stint"]["number"]
    earlier = ("stint", "amend", str(number), "--from", "2026-01-06T09:00Z", *why)
    assert repo.fails(2, *earlier, "--json").error["code"] == "bad_period"
    repo.ok("stint", "add", "T-1", *early, "--backdated", *why)
