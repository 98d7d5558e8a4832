"""One actor's day: stints, notes, claims and takeovers, in chronological order."""

from __future__ import annotations

from dibs.domain.stints import CLAIM, OPEN, in_order, outside
from dibs.domain.values import DAY as DAY_LENGTH
from dibs.domain.values import SECOND, Duration, Instant, Value, rough_duration, safe
from dibs.timesheets.formats import hms
from dibs.timesheets.query import SheetQuery
from dibs.timesheets.sheet import make_sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dibs.domain.model import TaskKey
    from dibs.domain.stints import WorkedStint
    from dibs.timesheets.sheet import Row


class Day(Value):
    """A local day of one actor."""

    actor: str
    label: str
    zone: str
    since: Instant
    until: Instant


class Moment(Value):
    """What happened at one instant: `claimed`, `took over from codex-2`, `note`."""

    at: Instant
    what: str
    key: TaskKey
    text: str = ""


def timeline(
    day: Day,
    stints: Iterable[WorkedStint],
    moments: Iterable[Moment],
    clock: Callable[[Instant], str],
    titles: Mapping[TaskKey, str],
) -> tuple[str, ...]:
    """The day as lines: a header, the entries, the total.

    Entries of other days are left out, or cut. At the same instant events come before stints, since a stint
    begins with its claim.
    """
    worked = in_it(day, stints)
    found = [
        (moment.at, 0, clock(moment.at), _moment(moment))
        for moment in moments
        if day.since <= moment.at < day.until
    ]
    for stint in worked:
        start, end = part(day, stint)
        when = f"{clock(start)} to {'now' if _runs(stint, day) else clock(end)}"
        found.append((start, 1, when, _stint(stint, Duration(end - start), day, titles)))
    found.sort(key=lambda one: one[:2])
    width = max([len(when) for _, _, when, _ in found], default=0)
    lines = [f"  {when:<{width}}  {words}" for _, _, when, words in found]
    return (_head(day), *lines, f"  {_total(day, worked)}")


def in_it(day: Day, stints: Iterable[WorkedStint]) -> list[WorkedStint]:
    """The stints that overlap the day, in order."""
    return [
        stint
        for stint in in_order(stints)
        if not outside(stint.start, stint.end, day.since, day.until)
    ]


def part(day: Day, stint: WorkedStint) -> tuple[Instant, Instant]:
    """Start and end of the stint's part within the day."""
    return max(stint.start, day.since), min(stint.end, day.until)


def total(day: Day, worked: Iterable[WorkedStint]) -> Row:
    """The total of the stints' parts within the day."""
    query = SheetQuery(day.since, day.until, day.zone)
    return make_sheet(worked, query, lambda start, end: [(day.label, start, end)], {}).total


def _head(day: Day) -> str:
    length = Duration(day.until - day.since)
    odd = f", a day of {rough_duration(length)}" if length != DAY_LENGTH else ""
    return f"{safe(day.actor)}, {day.label}, {safe(day.zone)}{odd}"


def _moment(moment: Moment) -> str:
    text = " ".join(moment.text.split())
    return safe(f"{moment.key}  {moment.what}" + (f": {text}" if text else ""))


def _runs(stint: WorkedStint, day: Day) -> bool:
    return stint.source == OPEN and stint.end < day.until


def _stint(stint: WorkedStint, length: Duration, day: Day, titles: Mapping[TaskKey, str]) -> str:
    marks = [
        "" if stint.source == CLAIM else stint.source,
        "since the day before" if stint.start < day.since else "",
        "into the next day" if stint.end > day.until else "",
    ]
    title = titles.get(stint.key, "")
    marked = "".join(f", {mark}" for mark in marks if mark)
    return safe(f"{stint.key}  worked {hms(length)}{marked}" + (f"  {title}" if title else ""))


def _total(day: Day, worked: list[WorkedStint]) -> str:
    all_ = total(day, worked)
    cut = ", cut to whole seconds" if (all_.effort % SECOND or all_.working % SECOND) else ""
    return (
        f"effort {hms(all_.effort)}, working {hms(all_.working)}, overlap {hms(all_.overlap)}{cut}"
    )
