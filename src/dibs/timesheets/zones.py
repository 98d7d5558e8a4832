"""Local time: the days of a time zone, and its wall clock.

An instant belongs to the day that the wall clock shows. So a day has 23, 25 or 24.5 hours where the clock
was put forward or back, may begin at 01:00, may be skipped (Samoa, 30 December 2011), and has two parts
where the clock went back over midnight.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from dibs.domain.checks import duration, quoted
from dibs.domain.refusals import bad_argument, refused
from dibs.domain.values import DAY as DAY_LENGTH
from dibs.domain.values import LAST_INSTANT, UNITS, Instant, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.domain.stints import LocalDay, LocalDays

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
DAYS_MAX = 40_000
"""More than a century: a longer period is a mistake, and would be slow."""


def zone(name: str) -> tzinfo:
    """A time zone by its IANA name, like `Europe/Berlin`. `UTC` works without a zone database."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        raise bad_argument(
            f"{quoted(name)} is not a time zone that is known here; one looks like Europe/Berlin"
        ) from None


def here() -> str:
    """The name of this machine's time zone: from TZ, else from /etc/localtime, else UTC.

    A TZ without a zone name (`CET-1CEST`), or with an unknown one, is refused instead of guessed.
    """
    import os

    given = os.environ.get("TZ", "").lstrip(":")
    name = given if given and not given.startswith("/") else _named_by(given or "/etc/localtime")
    try:
        return ZoneInfo(name).key
    except (ValueError, LookupError, OSError):
        if not given:
            return "UTC"
        raise bad_argument(
            f"TZ is {quoted(given)}, which is not the name of a time zone that is known here; "
            "use --tz Europe/Berlin"
        ) from None


def _named_by(path: str) -> str:
    """The name of a zone, from the path of its file."""
    from os.path import realpath

    return realpath(path).partition("/zoneinfo/")[2]


def local_days(name: str) -> LocalDays:
    """The function that gives a timesheet the local days of a period."""
    where = zone(name)

    def days(since: Instant, until: Instant) -> list[LocalDay]:
        if until - since > DAYS_MAX * DAY_LENGTH:
            raise bad_argument("the period is longer than a hundred years")
        cuts = [cut for cut in _cuts(where, since, until) if since < cut[0] < until]
        starts = [(since, f"{_wall(where, since):%Y-%m-%d}"), *cuts]
        ends = [*[start for start, _ in cuts], until]
        return [
            (day, start, end)
            for (start, day), end in zip(starts, ends)
            if start < end  # a skipped day has no time
        ]

    return days


def _cuts(where: tzinfo, since: Instant, until: Instant) -> list[tuple[Instant, str]]:
    """The instants at which the local date changes, in order, each with the new date."""
    day, last = _wall(where, since).date(), _wall(where, until).date()
    cuts = []
    # One day more: from there a clock may go back over midnight into the last day.
    while day <= last + DAY:
        cuts += _turns(where, day)
        day += DAY
    return cuts


def _turns(where: tzinfo, day: date) -> list[tuple[Instant, str]]:
    """The instants at which a day begins: one, or two with a piece of the day before between them."""
    first, second = _midnights(where, day)
    if first == second:
        return [(first, f"{day}")]
    changed = _change(where, min(first, second), max(first, second))
    if first > second:  # no such midnight: the day begins when the clock is put forward
        return [(changed, f"{day}")]
    if changed == second:  # the clock is put back to midnight, and not over it
        return [(first, f"{day}")]
    return [(first, f"{day}"), (changed, f"{day - DAY}"), (second, f"{day}")]


def _midnights(where: tzinfo, day: date) -> tuple[Instant, Instant]:
    """00:00 of a day by the offset before and by the offset after a change around that time."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=where)
    return _instant(midnight), _instant(midnight.replace(fold=1))


def _instant(local: datetime) -> Instant:
    offset = local.utcoffset()
    assert offset is not None
    return Instant((local.replace(tzinfo=UTC) - EPOCH - offset) // TICK)


def _wall(where: tzinfo, instant: Instant) -> datetime:
    try:
        return (EPOCH + instant * TICK).astimezone(where)
    except OverflowError:
        raise bad_argument("the calendar ends with the year 9999") from None


def _change(where: tzinfo, low: Instant, high: Instant) -> Instant:
    """The first instant in (`low`, `high`] with a different offset."""
    before = _wall(where, low).utcoffset()
    while high - low > 1:
        middle = Instant((low + high) // 2)
        if _wall(where, middle).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def begin_of(name: str, day: date) -> Instant:
    """The first instant of a local day; of the next one if the day was skipped."""
    return _turns(zone(name), day)[0][0]


LIKE = {"DAY": "2026-11-15", "--week": "2026-W47", "--month": "2026-11"}
"""Examples of a period, for options that accept only one kind."""


def period(name: str, text: str, what: str = "the period") -> tuple[Instant, Instant]:
    """A local day, ISO week, month or year: `2026-11-15`, `2026-W53`, `2026-11`, `2026`."""
    like = LIKE.get(what, "2026-11-15, 2026-W47, 2026-11 or 2026")
    try:
        if what in LIKE and _shape(text) != _shape(like):
            raise ValueError(text)
        first, after = _dates(text)
        since, until = begin_of(name, first), begin_of(name, after)
    except (ValueError, OverflowError):
        raise bad_argument(f"{what} is {quoted(text)}; write it like {like}") from None
    if not 0 <= since < until <= LAST_INSTANT:
        raise bad_argument(f"{what} is {quoted(text)}: out of range")
    return since, until


def week_of(name: str, now: Instant) -> tuple[Instant, Instant]:
    """The ISO week that contains an instant."""
    today = _wall(zone(name), now).date()
    monday = today - today.weekday() * DAY
    return begin_of(name, monday), begin_of(name, monday + 7 * DAY)


def day_of(name: str, now: Instant) -> tuple[Instant, Instant]:
    today = _wall(zone(name), now).date()
    return begin_of(name, today), begin_of(name, today + DAY)


def is_like_a_day(text: str) -> bool:
    return _shape(text) == _shape(LIKE["DAY"])


def _shape(text: str) -> str:
    return "".join("9" if one in "0123456789" else one for one in text)


def _dates(text: str) -> tuple[date, date]:
    """The first day of a period, and the first day after it."""
    shape = _shape(text)
    if shape == "9999":
        return date(int(text), 1, 1), date(int(text) + 1, 1, 1)
    if shape == "9999-W99":
        monday = date.fromisocalendar(int(text[:4]), int(text[6:]), 1)
        return monday, monday + 7 * DAY
    if shape == "9999-99":
        first = date(int(text[:4]), int(text[5:]), 1)
        return first, (first + 31 * DAY).replace(day=1)
    if shape == "9999-99-99":
        day = date.fromisoformat(text)
        return day, day + DAY
    raise ValueError(text)


def moment(name: str, text: str, what: str, now: Instant, day_of: Instant | None = None) -> Instant:
    """Parses a local time `2026-11-15 09:00` or `09:00` (today, or on the day of `day_of`), a time with its
    own zone `2026-11-15T08:00:00Z`, or `2h` (ago). Refuses local times that occur twice or never.
    """
    where = zone(name)
    if text[-1:] in UNITS and text[:-1].isdigit():
        return Instant(max(0, now - duration(text, what)))
    try:
        today = _wall(where, now if day_of is None else day_of)
        dated = f"{today:%Y-%m-%d} {text}" if ":" in text[:3] else text
        typed = datetime.fromisoformat(dated)
        first = _instant(typed if typed.tzinfo else typed.replace(tzinfo=where))
        second = _instant(typed if typed.tzinfo else typed.replace(tzinfo=where, fold=1))
    except (ValueError, OverflowError):
        first = second = Instant(-1)
    if ":" not in text or not 0 <= min(first, second) <= LAST_INSTANT:
        raise bad_argument(
            f"{what} is {quoted(text)}; write it like 2026-11-15 09:00, 09:00, "
            "2026-11-15T08:00:00Z, or 2h for two hours ago"
        )
    if first == second:
        return first
    comes = "comes twice" if first < second else "never comes"
    raise refused(
        "ambiguous_time",
        f"{what} is {quoted(text)}, which {comes} in {name}: the clock changes then",
        first=iso(first), second=iso(second), zone=name,
    )  # fmt: skip


def both(name: str, instant: Instant) -> str:
    """An instant in local time and in UTC."""
    return f"{_wall(zone(name), instant):%Y-%m-%d %H:%M:%S %Z} ({iso(instant)})"


def wall(name: str) -> Callable[[Instant], tuple[str, str]]:
    """A function that formats local date and time: `2026-11-15`, `14:30:00`."""
    where = zone(name)

    def shown(instant: Instant) -> tuple[str, str]:
        date_there, _, time_there = _wall(where, instant).isoformat(" ", "seconds").partition(" ")
        return date_there, time_there[:8]

    return shown


def clock(name: str, since: Instant, until: Instant) -> Callable[[Instant], str]:
    """A function that formats the time of day: `14:30:00`, or `02:30:00 CEST` if the offset changes."""
    where = zone(name)
    changes = _wall(where, since).utcoffset() != _wall(where, until).utcoffset()
    pattern = "%H:%M:%S %Z" if changes else "%H:%M:%S"

    def shown(instant: Instant) -> str:
        return _wall(where, instant).strftime(pattern)

    return shown
