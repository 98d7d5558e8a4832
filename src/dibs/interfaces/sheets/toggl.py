"""Stints as Toggl Track imports them: CSV with its columns, in local time.

An entry needs an e-mail address, which agents may not have: what stands in their place is given
from outside. Seconds are whole: both ends are cut to them, so that what met still meets.
"""

from __future__ import annotations

from dibs.core.instants import SECOND
from dibs.core.values import Value
from dibs.core.worked import CLAIM
from dibs.interfaces.sheets.csv import neutral, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dibs.core.instants import Instant
    from dibs.core.model import ActorId, TaskKey
    from dibs.core.worked import Worked

    Wall = Callable[[Instant], tuple[str, str]]

COLUMNS = (
    "User", "Email", "Client", "Project", "Task", "Description", "Billable", "Start date",
    "Start time", "Duration", "Tags",
)  # fmt: skip


class Person(Value):
    """Who it was, for Toggl."""

    name: str
    email: str = ""


def written(
    stints: Iterable[Worked],
    wall: Wall,
    people: Mapping[ActorId, Person],
    titles: Mapping[TaskKey, str],
) -> str:
    return "".join(lines(stints, wall, people, titles))


def lines(
    stints: Iterable[Worked],
    wall: Wall,
    people: Mapping[ActorId, Person],
    titles: Mapping[TaskKey, str],
) -> Iterator[str]:
    """One line for each stint, of which none should go over midnight (`worked.split`)."""
    entries = (_entry(stint, wall, people[stint.actor], titles) for stint in stints)
    return table(COLUMNS, entries)


def _entry(
    stint: Worked, wall: Wall, person: Person, titles: Mapping[TaskKey, str]
) -> Iterator[str]:
    date, time = wall(stint.start)
    seconds = stint.end // SECOND - stint.start // SECOND
    marks = (stint.area, stint.source if stint.source != CLAIM else "")
    return map(
        neutral,
        (
            person.name,
            person.email,
            "",
            stint.charge_code or stint.area,
            stint.key,
            titles.get(stint.key) or stint.key,
            "Yes" if stint.billable else "No",
            date,
            time,
            f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            ", ".join(mark for mark in marks if mark),
        ),
    )
