"""The board's clock: it only moves forward, and no step of a wall clock moves it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.board.verify import checkup
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.domain.values import DAY, HOUR, SECOND
from dibs.machine import OWN_BOOT, UNKNOWN
from dibs.storage.sqlite.store import read_clock
from kit.boards import START, FakeMachine

K = TaskKey("T-1")
YEAR_AND_A_BIT = 400 * DAY


@pytest.fixture
def kind():
    """What is tested here is the file."""
    return "sqlite"


def test_a_step_of_the_wall_clock_moves_nothing(bench):
    bench.add()
    codex = bench.agent()
    codex.claim(ttl=HOUR)
    before = bench.now()
    for step in (5 * DAY, -9 * DAY, YEAR_AND_A_BIT):
        bench.machine.wall_us += step
        assert bench.now() == before
    bench.advance(10)
    assert bench.now() == before + 10 * SECOND
    assert bench.agent("claude", "s9").refused(c.Claim(K)) == "held"


def test_sleep_counts(bench):
    """The clock since boot counts sleep: a laptop's lease runs out while it sleeps."""
    bench.add()
    bench.agent().claim(ttl=HOUR)
    bench.machine.boottime_us += 2 * HOUR
    assert not bench.task().lease.live(bench.now())


def test_after_a_reboot_the_wall_clock_is_believed_if_it_can_be(bench):
    bench.add()
    bench.machine.reboot(START + 3 * DAY)
    assert bench.now() == START + 3 * DAY
    bench.agent().claim()
    assert bench.task().lease.acquired == START + 3 * DAY


@pytest.mark.parametrize("wall", [START - DAY, START + YEAR_AND_A_BIT, 0])
def test_a_wall_clock_that_cannot_be_right_is_reported_and_not_believed(bench, wall):
    bench.add()
    floor = bench.now()
    bench.machine.reboot(wall)
    outcome = bench.agent().claim()
    assert (outcome.skewed, outcome.now) == (True, floor)
    bench.advance(60)
    with bench.store.read() as tx:
        assert (tx.now, tx.skewed) == (floor + 60 * SECOND, True)
    assert bench.faults() == ()


def test_after_a_reboot_with_a_dead_clock_time_goes_on_where_the_last_event_was(bench):
    bench.add()
    bench.advance(3600)
    bench.agent().claim()
    last = bench.now()
    bench.machine.reboot(0)
    assert bench.agent().do(c.Renew(K)).now == last


def test_readers_store_nothing(bench):
    bench.add()
    anchor = bench.store.board_and_anchor()[1]
    bench.machine.reboot(START + DAY)
    bench.now()
    with bench.store.read():
        assert bench.store.board_and_anchor()[1] == anchor
    bench.agent().claim()
    assert bench.store.board_and_anchor()[1] != anchor


def test_the_next_boot_with_a_right_clock_ends_the_skew_by_itself(bench):
    bench.add()
    bench.machine.reboot(0)
    bench.agent().claim()
    bench.machine.reboot(START + DAY)
    assert not bench.agent().do(c.Renew(K)).skewed


def test_a_person_sets_the_clock_and_what_is_left_of_a_lease_stays_the_same(bench):
    bench.add()
    codex, ana = bench.agent(), bench.person()
    codex.claim(ttl=HOUR)
    bench.machine.reboot(0)
    bench.advance(600)
    codex.do(c.Note(K, note="x"))
    bench.advance(600)
    left = bench.task().lease.expires - bench.now()
    bench.machine.wall_us = START + 500 * DAY
    outcome = bench.board.execute(ana.identity, c.SetClock(reason="battery changed"))
    assert not outcome.skewed
    assert bench.now() == START + 500 * DAY
    assert bench.task().lease.expires - bench.now() == left
    assert bench.task().lease.stint - bench.task().lease.acquired == 0
    assert bench.faults() == ()
    codex.do(c.Complete(K))
    assert bench.faults() == ()
    assert not checkup(bench.board).skewed


def test_the_clock_may_be_set_back_by_a_person_and_instants_fall_only_there(bench):
    bench.add()
    bench.advance(40 * DAY / SECOND)
    bench.agent().claim()
    bench.machine.wall_us = START + DAY
    bench.board.execute(bench.person().identity, c.SetClock(reason="it was a day in the future"))
    assert bench.now() == START + DAY
    bench.agent().do(c.Complete(K))
    assert bench.faults() == ()


def test_setting_the_clock_is_for_people_with_a_reason(bench):
    bench.add()
    before = bench.snapshot()
    for identity, reason, code in (
        (bench.agent().identity, "x", "people_only"),
        (bench.person().identity, " ", "reason_missing"),
    ):
        with pytest.raises(Refused) as problem:
            bench.board.execute(identity, c.SetClock(reason=reason))
        assert problem.value.code == code
    assert bench.snapshot() == before


def test_a_time_in_the_future_is_reported_as_skew_and_not_as_an_endless_lease(bench):
    bench.add()
    bench.agent().claim(ttl=HOUR)
    future = bench.now() + 999 * DAY
    bench.store.connection.execute(
        "UPDATE task SET acquired = ?, renewed = ?, expires = ? + ttl, stint = ?", (future,) * 4
    )
    assert checkup(bench.board).future == ("T-1",)
    with pytest.raises(Refused) as problem:
        bench.agent("claude", "s9").do(c.Claim(K))
    assert "clock skew" in problem.value.refusal.message


# Where the boot id cannot be read, or is not the kernel's.


@pytest.fixture
def doubting(bench):
    """A board that the host has written to, and a caller who cannot read the boot id."""
    bench.add()
    bench.agent().claim(ttl=HOUR)
    bench.advance(60)
    bench.machine.boot_id = UNKNOWN
    return bench


@pytest.mark.parametrize("boot", [UNKNOWN, f"{OWN_BOOT}2"])
@pytest.mark.parametrize("step", [0, 5 * DAY, -9 * DAY])
def test_who_cannot_read_the_boot_id_goes_by_the_hosts_anchor(doubting, boot, step):
    bench = doubting
    bench.machine.boot_id, bench.machine.wall_us = boot, bench.machine.wall_us + step
    anchor = bench.store.board_and_anchor()[1]
    assert bench.now() == START + 60 * SECOND
    bench.agent().do(c.Note(K, note="x"))
    bench.advance(60)
    assert bench.now() == START + 120 * SECOND
    assert bench.store.board_and_anchor()[1] == anchor


def test_who_cannot_read_the_boot_id_notices_a_reboot_by_the_time_since_it(doubting):
    bench = doubting
    bench.agent().do(c.Note(K, note="x"))
    bench.machine.boottime_us, bench.machine.wall_us = 5_000_000, START + DAY
    assert bench.now() == START + DAY
    bench.agent().do(c.Note(K, note="x"))
    assert bench.store.board_and_anchor()[1].boot == "boot-1", "the host's is not replaced"


@pytest.mark.parametrize("ahead", [100_000, -100_000])
def test_a_clock_that_may_be_that_of_a_time_namespace_takes_no_lease(doubting, ahead):
    """Without /proc the offset is unknown."""
    bench = doubting
    bench.machine.confined = True
    bench.machine.boottime_us += ahead * SECOND
    assert bench.now() == START + 60 * SECOND
    assert bench.agent("claude", "s9").refused(c.Claim(K)) == "held"


@given(
    st.lists(
        st.tuples(st.sampled_from(["run", "step", "reboot"]), st.integers(-(10**15), 10**15)),
        max_size=20,
    )
)
def test_time_never_falls_under_any_steps_and_reboots(steps):
    machine = FakeMachine()
    anchor, floor, last = None, START, START
    for kind, amount in steps:
        if kind == "run":
            machine.boottime_us += abs(amount) % (10 * DAY)
        elif kind == "step":
            machine.wall_us = max(0, machine.wall_us + amount)
        else:
            machine.reboot()
        reading = read_clock(machine, anchor, floor)
        assert reading.now >= last
        anchor, floor, last = reading.anchor, reading.now, reading.now
