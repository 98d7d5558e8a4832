"""Local days are those of the clock on the wall, whatever it does."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.domain.refusals import Refused
from dibs.domain.values import DAY, HOUR, LAST_INSTANT, MINUTE, SECOND, iso
from dibs.timesheets import zones

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WHERE = [
    "UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "America/St_Johns",
    "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kwajalein", "America/Nuuk",
    "Africa/Cairo", "Asia/Gaza", "Antarctica/Troll", "America/Scoresbysund",
]  # fmt: skip


def wall(name, instant):
    return (EPOCH + timedelta(microseconds=instant)).astimezone(ZoneInfo(name))


def lengths(name, text):
    """The hours of each local day of a period, where they are not 24."""
    since, until = zones.period(name, text)
    days = zones.local_days(name)(since, until)
    return {day: (end - start) / HOUR for day, start, end in days if end - start != DAY}


@pytest.mark.parametrize(
    ("name", "month", "expected"),
    [
        ("Europe/Berlin", "2026-03", {"2026-03-29": 23}),
        ("Europe/Berlin", "2026-10", {"2026-10-25": 25}),
        ("Australia/Lord_Howe", "2026-10", {"2026-10-04": 23.5}),
        ("Australia/Lord_Howe", "2026-04", {"2026-04-05": 24.5}),
        ("America/Sao_Paulo", "2017-10", {"2017-10-15": 23}),
        ("America/Sao_Paulo", "2018-02", {"2018-02-17": 25}),
        ("America/Havana", "2026-11", {"2026-11-01": 25}),
        ("UTC", "2026-10", {}),
    ],
)
def test_a_day_is_as_long_as_it_is(name, month, expected):
    assert lengths(name, month) == expected


def test_a_day_without_midnight_begins_when_the_clock_is_put_forward():
    since, until = zones.period("America/Sao_Paulo", "2017-10-15")
    assert zones.wall("America/Sao_Paulo")(since) == ("2017-10-15", "01:00:00")
    assert zones.wall("America/Sao_Paulo")(since - SECOND) == ("2017-10-14", "23:59:59")
    assert until - since == 23 * HOUR


def test_a_day_may_begin_in_the_middle_of_what_was_left_out():
    """In Toronto, in 1919, the clock was put forward from 23:30 to 00:30."""
    begin = zones.begin_of("America/Toronto", date(1919, 3, 31))
    shown = zones.wall("America/Toronto")
    assert (shown(begin), shown(begin - SECOND)) == (
        ("1919-03-31", "00:30:00"), ("1919-03-30", "23:29:59"),
    )  # fmt: skip


def test_a_clock_that_goes_back_over_midnight_brings_the_day_before_again():
    since, until = zones.period("America/St_Johns", "2006-10-28")
    days = zones.local_days("America/St_Johns")(since, until + 2 * HOUR)
    assert [(day, (end - start) / MINUTE) for day, start, end in days] == [
        ("2006-10-28", 24 * 60), ("2006-10-29", 1), ("2006-10-28", 59), ("2006-10-29", 60),
    ]  # fmt: skip


def test_a_period_may_end_in_the_bit_of_the_day_before():
    since, until = zones.period("America/St_Johns", "2006-10-28")
    days = zones.local_days("America/St_Johns")(since, until + 30 * MINUTE)
    assert [day for day, _, _ in days] == ["2006-10-28", "2006-10-29", "2006-10-28"]


def test_a_day_that_was_left_out_has_no_time():
    since, until = zones.period("Pacific/Apia", "2011-12")
    days = [day for day, _, _ in zones.local_days("Pacific/Apia")(since, until)]
    assert days[-2:] == ["2011-12-29", "2011-12-31"]
    with pytest.raises(Refused, match="out of range"):
        zones.period("Pacific/Apia", "2011-12-30")


@given(
    st.sampled_from(WHERE),
    st.integers(0, 60 * 365).map(DAY.__mul__),
    st.integers(0, 3 * DAY),
    st.integers(1, 40 * DAY),
    st.lists(st.integers(0, 40 * DAY), max_size=20),
)
def test_every_instant_is_in_the_day_that_the_wall_shows(name, day, more, length, looks):
    since = day + more
    until = since + length
    days = zones.local_days(name)(since, until)
    assert days[0][1] == since and days[-1][2] == until
    for (_, _, end), (_, start, _) in pairwise(days):
        assert end == start
    for label, start, end in days:
        assert start < end
        assert label == f"{wall(name, start).date()}" == f"{wall(name, end - 1).date()}"
    for look in looks:
        instant = since + look % length
        (label,) = [label for label, start, end in days if start <= instant < end]
        assert label == f"{wall(name, instant).date()}"


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026-11-15", "2026-11-14T23:00:00Z", "2026-11-15T23:00:00Z"),
        ("2026-W53", "2026-12-27T23:00:00Z", "2027-01-03T23:00:00Z"),
        ("2026-10", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"),
        ("2026-12", "2026-11-30T23:00:00Z", "2026-12-31T23:00:00Z"),
        ("2026", "2025-12-31T23:00:00Z", "2026-12-31T23:00:00Z"),
    ],
)
def test_a_period_is_typed_as_a_day_a_week_a_month_or_a_year(text, since, until):
    assert [iso(one) for one in zones.period("Europe/Berlin", text)] == [since, until]


@pytest.mark.parametrize(
    "text",
    ["", "26", "2026-", "2026-13", "2026-W54", "2027-W53", "2026-W1", "2026-11-31", "20261115",
     "2026-11-15T10:00", "2026-W53-1", "\uff12\uff10\uff12\uff16", "-001", "2026W53", "1950", "9999", "2026-1-15",
     "2026-+1"],
)  # fmt: skip
def test_what_is_no_period_is_refused(text):
    with pytest.raises(Refused) as refusal:
        zones.period("Europe/Berlin", text)
    assert refusal.value.code == "bad_argument"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Berlin",
        "Europe",
        "../../etc/passwd",
        "/etc/localtime",
        "a\0b",
        "x" * 5000,
        "leapseconds",
    ],
)
def test_a_zone_that_is_not_known_is_refused(name):
    with pytest.raises(Refused, match="not a time zone"):
        zones.zone(name)


def test_utc_needs_no_list_of_zones():
    """Small images have none: then UTC is there, and any other zone is a plain refusal."""
    src = Path(dibs.__file__).parent.parent
    program = """
from dibs.domain.refusals import Refused
from dibs.timesheets import zones
try:
    zones.zone("Europe/Berlin")
except Refused:
    print(zones.here(), zones.period("UTC", "1970-01-02"))
"""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONTZPATH": "", "PYTHONPATH": str(src)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == f"UTC ({DAY}, {2 * DAY})\n"


def test_the_clock_says_which_hour_it_is_when_it_comes_twice():
    since, until = zones.period("Europe/Berlin", "2026-10-25")
    clock = zones.clock("Europe/Berlin", since, until)
    assert [clock(since + n * HOUR) for n in (2, 3)] == ["02:00:00 CEST", "02:00:00 CET"]
    since, until = zones.period("Europe/Berlin", "2026-10-26")
    assert zones.clock("Europe/Berlin", since, until)(since) == "00:00:00"


def test_the_calendar_ends():
    with pytest.raises(Refused, match="9999"):
        zones.local_days("Pacific/Kiritimati")(LAST_INSTANT - HOUR, LAST_INSTANT)
    with pytest.raises(Refused, match="hundred years"):
        zones.local_days("UTC")(0, LAST_INSTANT)
    assert zones.begin_of("UTC", date(1970, 1, 2)) == DAY


# This machine's.


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("UTC", "UTC"),
    ],
)
def test_the_zone_of_this_machine_is_what_its_environment_says(monkeypatch, given, name):
    monkeypatch.setenv("TZ", given)
    assert zones.here() == name


@pytest.mark.parametrize(
    "given", ["CET-1CEST,M3.5.0,M10.5.0/3", "Mars/Phobos", "/etc/passwd", "../x"]
)
def test_a_zone_that_has_no_name_is_not_taken_for_another(monkeypatch, given):
    """Days would begin when they do not: whoever asks says the name."""
    monkeypatch.setenv("TZ", given)
    with pytest.raises(Refused, match=r"TZ is .*--tz Europe/Berlin"):
        zones.here()


def test_without_a_word_in_the_environment_it_is_what_the_machine_is_set_to(monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    assert zones.zone(zones.here())
