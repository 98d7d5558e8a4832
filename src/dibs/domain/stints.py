"""Stints as timesheets use them: one actor's period of work on one task, and operations on it."""

from __future__ import annotations

from bisect import bisect_right

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dibs.domain.model import ActorId, TaskKey
    from dibs.domain.values import Instant

    LocalDay = tuple[str, Instant, Instant]
    LocalDays = Callable[[Instant, Instant], Sequence[LocalDay]]

# Days, weeks and months of a time zone, as spans of instants. The caller passes the zone as a function:
# `local_days(since, until)` returns the local days of a period as contiguous `(label, start, end)`. A day has its
# actual length (23, 25, 24.5 hours), and a label may occur twice where the clock went back over midnight.


DAY, WEEK, MONTH = "day", "week", "month"
DIMENSIONS = (DAY, WEEK, MONTH)


def week_of(day: str) -> str:
    """The ISO week of a day: `2027-01-03` is in `2026-W53`."""
    year, month, date = int(day[:4]), int(day[5:7]), int(day[8:10])
    ordinal = _ordinal(year, month, date)
    thursday = ordinal - (ordinal - 1) % 7 + 3
    # A week belongs to the year of its Thursday.
    year += (thursday >= _ordinal(year + 1, 1, 1)) - (thursday < _ordinal(year, 1, 1))
    return f"{year:04}-W{(thursday - _ordinal(year, 1, 1)) // 7 + 1:02}"


def _ordinal(year: int, month: int, date: int) -> int:
    """Days since the end of the year 0 (proleptic Gregorian); day 1 is a Monday."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = 365 * year + year // 4 - year // 100 + year // 400
    return days + (153 * month + 2) // 5 + date - 307 + 1


def label_of(dimension: str, day: str) -> str:
    if dimension == DAY:
        return day
    return week_of(day) if dimension == WEEK else day[:7]


class Span(Value):
    """A span of time with one label per dimension."""

    labels: tuple[str, ...]
    day: str
    """The local day, or the first of several."""
    start: Instant
    end: Instant


def spans(days: Iterable[LocalDay], dimensions: Sequence[str], *, daily: bool) -> tuple[Span, ...]:
    """The fewest spans that separate the labels; one per local day if `daily`."""
    found: list[Span] = []
    for day, start, end in days:
        labels = tuple([label_of(dimension, day) for dimension in dimensions])
        if found and found[-1].labels == labels and not daily:
            found[-1] = found[-1].but(end=end)
        else:
            found.append(Span(labels, day, start, end))
    return tuple(found)


def days_of(local_days: LocalDays, since: Instant, until: Instant) -> Sequence[LocalDay]:
    """The local days of a period. Raises ValueError unless they are contiguous: a gap would lose time."""
    days = local_days(since, until)
    reached = since
    for label, start, end in days:
        if start != reached or end <= start:
            raise ValueError(f"the local day {label} does not begin where the one before ends")
        reached = end
    if reached != until:
        raise ValueError("the local days do not reach the end of the period")
    return days


def pieces(start: Instant, end: Instant, first: int, ends: Sequence[Instant]) -> Iterator[Piece]:
    """A period of work, cut at the ends of spans, beginning with the span at index `first`."""
    at = first
    while end > ends[at]:
        yield at, start, ends[at]
        start = ends[at]
        at += 1
    yield at, start, end


if TYPE_CHECKING:
    Piece = tuple[int, Instant, Instant]


CLAIM, ADDED, AMENDED, OPEN = "claim", "added", "amended", "open"
SOURCES = (CLAIM, ADDED, AMENDED, OPEN)
"""`open`: has not ended; counted up to the instant given as its end."""

ACTUAL, ESTIMATED, UNKNOWN = "actual", "estimated", "unknown"
CERTAINTIES = (ACTUAL, ESTIMATED, UNKNOWN)
"""How certain the usage of an agent is, best first."""


class WorkedStint(Value):
    """One period of one actor's work on one task: the half-open interval from `start` to `end`."""

    actor: ActorId
    start: Instant
    end: Instant
    key: TaskKey
    area: str = ""
    charge_code: str = ""
    billable: bool = False
    source: str = CLAIM
    tokens: int | None = None
    cost: int | None = None
    """In millionths of the board's currency."""
    spending: str = ""
    """How certain tokens and cost are: actual, estimated, unknown; empty for people."""
    number: int | None = None
    """The id of the stint in the store."""
    cause: str = ""
    """What ended it: `complete`, `takeover`, `stopped`, `process gone`; empty while it is open."""

    @property
    def length(self) -> int:
        return self.end - self.start


def in_order(stints: Iterable[WorkedStint]) -> list[WorkedStint]:
    """The order that timesheets need and stores return: by actor, then by start."""
    return sorted(stints, key=lambda one: (one.actor, one.start, one.end))


def share(amount: int, start: Instant, end: Instant, since: Instant, until: Instant) -> int:
    """The share of an amount that falls into a part of its time. The shares of all parts add up exactly."""
    length = end - start
    if not length:
        return amount
    return amount * (until - start) // length - amount * (since - start) // length


def part(stint: WorkedStint, start: Instant, end: Instant) -> WorkedStint:
    """The stint between two instants within it, with its share of the usage."""
    if (start, end) == (stint.start, stint.end):
        return stint
    whole = (stint.start, stint.end)
    return stint.but(
        start=start,
        end=end,
        tokens=None if stint.tokens is None else share(stint.tokens, *whole, start, end),
        cost=None if stint.cost is None else share(stint.cost, *whole, start, end),
        spending=ESTIMATED if stint.spending == ACTUAL else stint.spending,
    )


def outside(start: Instant, end: Instant, since: Instant, until: Instant) -> bool:
    """Whether it is entirely outside the period. An empty stint counts where it started."""
    return start >= until or (start < since and end <= since)


def clipped(stints: Iterable[WorkedStint], since: Instant, until: Instant) -> Iterator[WorkedStint]:
    """The parts of the stints inside the period."""
    for stint in stints:
        if not outside(stint.start, stint.end, since, until):
            yield part(stint, max(stint.start, since), min(stint.end, until))


def split(
    stints: Iterable[WorkedStint], since: Instant, until: Instant, local_days: LocalDays
) -> Iterator[WorkedStint]:
    """The parts of the stints inside the period, cut at local midnights."""
    ends = [end for _, _, end in days_of(local_days, since, until)]
    for stint in stints:
        if outside(stint.start, stint.end, since, until):
            continue
        start, end = max(stint.start, since), min(stint.end, until)
        for _, begin, finish in pieces(start, end, bisect_right(ends, start), ends):
            yield part(stint, begin, finish)
