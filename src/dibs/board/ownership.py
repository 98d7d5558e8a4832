"""Ownership intervals of a task, computed from the events in which its leases began and ended.

When the board's clock is set, a running lease continues at the new time. An instant that the clock
showed twice means the second time; one that it skipped belongs to whoever had the task then.
"""

from __future__ import annotations

from dibs.domain.events import board
from dibs.domain.events import tasks as e
from dibs.domain.ledger import Entry, merged_by_seq
from dibs.domain.model import ActorId, Task, Token
from dibs.domain.values import LAST_INSTANT, Duration, Instant, Value, later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Lapse = tuple[Instant, Instant]


class OwnershipInterval(Value):
    """The ownership interval of one lease, or of a part of it between two settings of the clock.

    `since`, `bound`: when it began and was bound to a session, on this part's clock; `first`,
    `ended`: the instants that it covers; `lapses`: from when to when it was expired.
    """

    token: Token
    actor: ActorId
    since: Instant
    session: str | None
    bound: Instant | None
    first: Instant
    ended: Instant | None = None
    lapses: tuple[Lapse, ...] = ()
    goes_on: Duration | None = None
    """The next part is the same lease; its clock is ahead by this much."""

    def covers(self, instant: Instant) -> bool:
        return self.first <= instant and (self.ended is None or instant < self.ended)

    def session_at(self, instant: Instant) -> str | None:
        """The session that was bound to the lease by then."""
        return self.session if self.bound is not None and self.bound <= instant else None

    def expired_at(self, instant: Instant) -> bool:
        return any(start < instant < end for start, end in self.lapses)


def ownership_at(
    instant: Instant, entries: Iterable[Entry], clock: Iterable[Entry], task: Task
) -> OwnershipInterval | None:
    """The ownership interval of the task at an instant, if it had one."""
    found = reversed(ownership_intervals(entries, clock, task))
    return next((interval for interval in found if interval.covers(instant)), None)


def ownership_intervals(
    entries: Iterable[Entry], clock: Iterable[Entry], task: Task
) -> list[OwnershipInterval]:
    """The ownership intervals of a task, oldest first, with the instants of the ledger."""
    found: list[OwnershipInterval] = []
    for entry in merged_by_seq(entries, clock):
        event = entry.event
        if isinstance(event, board.ClockSet):
            found = reset(found, entry.at, event.by)
            continue
        ending: e.Ending | None = getattr(event, "ending", None)
        if ending is not None:
            lapse = ((ending.expires, entry.at),) if ending.late else ()
            found[-1] = found[-1].but(ended=entry.at, lapses=found[-1].lapses + lapse)
        if isinstance(event, e.LeaseBegun):
            bound = None if event.session is None else entry.at
            at = entry.at
            found.append(
                OwnershipInterval(event.token, event.actor, at, event.session, bound, first=at)
            )
        elif isinstance(event, e.Bound):
            found[-1] = found[-1].but(session=event.session, bound=entry.at)
        elif isinstance(event, e.Renewed) and event.lapsed is not None:
            found[-1] = found[-1].but(lapses=(*found[-1].lapses, (event.lapsed, entry.at)))
    if task.lease is not None:
        running = ((task.lease.expires, LAST_INSTANT),)
        found[-1] = found[-1].but(lapses=found[-1].lapses + running)
    return with_lapses_of_later_parts(found)


def reset(found: list[OwnershipInterval], now: Instant, by: Duration) -> list[OwnershipInterval]:
    """Splits intervals when the clock is set by `by` and then shows `now`: later
    instants start a new part.
    """
    cut = [
        interval.but(ended=now if interval.ended is None else min(interval.ended, now))
        for interval in found
    ]
    if not found or found[-1].ended is not None:
        return cut
    last = found[-1]
    part = last.but(
        since=later(last.since, by),
        bound=None if last.bound is None else later(last.bound, by),
        first=now,
        lapses=(),
    )
    return [*cut[:-1], cut[-1].but(goes_on=by), part]


def with_lapses_of_later_parts(found: list[OwnershipInterval]) -> list[OwnershipInterval]:
    """Copies lapses back to earlier parts: an expiry may be recorded only after the clock was set."""
    result: list[OwnershipInterval] = []
    for interval in reversed(found):
        by = interval.goes_on
        if by is not None:
            part = result[-1]
            after = tuple(
                (later(start, Duration(-by)), end)
                for start, end in part.lapses
                if start < part.first
            )
            interval = interval.but(lapses=interval.lapses + after)  # noqa: PLW2901
        result.append(interval)
    return result[::-1]
