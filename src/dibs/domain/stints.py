"""Stints as timesheets use them: one actor's period of work on one task, and operations on it."""

from __future__ import annotations

from bisect import bisect_right

from dibs.domain.periods import days_of, pieces
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.domain.model import ActorId, TaskKey
    from dibs.domain.periods import LocalDays
    from dibs.domain.values import Instant

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
