"""Instants and durations are written as the calendar has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain import checks
from dibs.domain.refusals import Refused
from dibs.domain.values import (
    DAY,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    brief,
    exact,
    iso,
    rough_duration,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
instants = st.integers(0, LAST_INSTANT)


@given(instants)
def test_an_instant_is_written_as_datetime_writes_it(instant):
    expected = (EPOCH + timedelta(microseconds=instant)).isoformat().replace("+00:00", "Z")
    assert iso(instant) == expected


@given(instants, instants)
def test_people_see_the_date_only_if_it_is_another_day(instant, now):
    same_day = instant // DAY == now // DAY
    assert (len(brief(instant, now)) == len("14:30:00Z")) == same_day


@given(st.integers(1, 30 * DAY // SECOND).map(lambda seconds: seconds * SECOND))
def test_a_written_duration_can_be_typed_again(duration):
    assert checks.duration(exact(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (0, "0 s"),
        (59 * SECOND, "59 s"),
        (60 * SECOND, "1 min"),
        (200 * SECOND, "3 min 20 s"),
        (2 * HOUR + 5 * MINUTE, "2 h 5 min"),
        (47 * HOUR, "47 h"),
        (49 * HOUR, "2 d 1 h"),
        (-3 * SECOND, "3 s"),
    ],
)
def test_a_duration_in_words(duration, words):
    assert rough_duration(duration) == words


@pytest.mark.parametrize(
    "text", ["", "5", "m", "-5m", "1.5h", "5 m", "\uff15m", "5M", "9999999999s", "1h30m"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(Refused) as problem:
        checks.duration(text)
    assert problem.value.code == "bad_argument"
