"""Instants and durations: integers of microseconds, and their text forms.

This module formats UTC only; local time belongs to the interfaces. It computes the calendar itself:
importing `datetime` costs a short command more than this whole module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NewType

    Instant = NewType("Instant", int)
    Duration = NewType("Duration", int)
else:
    Instant = Duration = int

MICROSECOND = Duration(1)
SECOND = Duration(1_000_000)
MINUTE = Duration(60 * SECOND)
HOUR = Duration(60 * MINUTE)
DAY = Duration(24 * HOUR)
YEAR = Duration(366 * DAY)

UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

LAST_INSTANT = Instant(253_402_300_799_999_999)
"""9999-12-31T23:59:59.999999Z, the latest instant, so that every instant can be formatted."""


def later(instant: Instant, duration: Duration) -> Instant:
    return Instant(instant + duration)


def between(start: Instant, end: Instant) -> Duration:
    return Duration(end - start)


def date_of(instant: Instant) -> tuple[int, int, int]:
    """Year, month, day in UTC (Gregorian, counted in eras of 400 years from 1 March)."""
    days = instant // DAY + 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def clock_of(instant: Instant) -> str:
    """Time of day in UTC, whole seconds: `14:30:00Z`."""
    seconds = instant % DAY // SECOND
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def iso(instant: Instant) -> str:
    """RFC 3339 in UTC, exact: with six decimals unless the second is whole."""
    year, month, day = date_of(instant)
    clock, fraction = clock_of(instant), instant % SECOND
    if fraction:
        clock = f"{clock[:-1]}.{fraction:06}Z"
    return f"{year:04}-{month:02}-{day:02}T{clock}"


def brief(instant: Instant, now: Instant) -> str:
    """For people: only the time if it is today (UTC), else with the date."""
    if instant // DAY == now // DAY:
        return clock_of(instant)
    year, month, day = date_of(instant)
    return f"{year:04}-{month:02}-{day:02} {clock_of(instant)}"


def exact(duration: Duration) -> str:
    """A duration as people type it: `90s`, `30m`, `2h`, `7d`; in the largest unit that is exact."""
    for unit, size in reversed(UNITS.items()):
        if duration and duration % size == 0:
            return f"{duration // size}{unit}"
    return f"{duration / SECOND:.6f}".rstrip("0").rstrip(".") + "s"


def rough_duration(duration: Duration) -> str:
    """A duration for people, in its two largest units: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = abs(duration) // SECOND
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
