"""Periods of work: the stints that a timesheet is made from, and what must be true of them."""

from __future__ import annotations

from bisect import bisect_right

from dibs.core.periods import days_of, pieces
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.core.instants import Instant
    from dibs.core.model import ActorId, TaskKey
    from dibs.core.periods import LocalDays

CLAIM, ADDED, AMENDED, OPEN = "claim", "added", "amended", "open"
SOURCES = (CLAIM, ADDED, AMENDED, OPEN)
"""`open`: not over yet; it is counted until the instant that is given as its end."""

ACTUAL, ESTIMATED, UNKNOWN = "actual", "estimated", "unknown"
CERTAINTIES = (ACTUAL, ESTIMATED, UNKNOWN)
"""How well it is known what an agent used, best first."""


class Worked(Value):
    """One period of one actor's work on one task: from `start`, and before `end`."""

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
    """How well tokens and cost are known: actual, estimated, unknown; nothing for people."""
    number: int | None = None
    """What the store calls it."""
    cause: str = ""
    """What ended it: `complete`, `takeover`, `stopped`, `process gone`; nothing while it is open."""

    @property
    def length(self) -> int:
        return self.end - self.start


def in_order(stints: Iterable[Worked]) -> list[Worked]:
    """As a timesheet reads them, and a store gives them: by actor, then by start."""
    return sorted(stints, key=lambda one: (one.actor, one.start, one.end))


def share(amount: int, start: Instant, end: Instant, since: Instant, until: Instant) -> int:
    """What part of an amount falls to a part of its time. Shares of all parts add up to it."""
    length = end - start
    if not length:
        return amount
    return amount * (until - start) // length - amount * (since - start) // length


def part(stint: Worked, start: Instant, end: Instant) -> Worked:
    """The stint between two instants within it, with its share of what was used."""
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
    """Whether nothing of it is in the period; an empty stint is where it started."""
    return start >= until or (start < since and end <= since)


def clipped(stints: Iterable[Worked], since: Instant, until: Instant) -> Iterator[Worked]:
    """What of the stints lies in the period."""
    for stint in stints:
        if not outside(stint.start, stint.end, since, until):
            yield part(stint, max(stint.start, since), min(stint.end, until))


def split(
    stints: Iterable[Worked], since: Instant, until: Instant, local_days: LocalDays
) -> Iterator[Worked]:
    """What of the stints lies in the period, cut at local midnights."""
    ends = [end for _, _, end in days_of(local_days, since, until)]
    for stint in stints:
        if outside(stint.start, stint.end, since, until):
            continue
        start, end = max(stint.start, since), min(stint.end, until)
        for _, begin, finish in pieces(start, end, bisect_right(ends, start), ends):
            yield part(stint, begin, finish)
