"""Stints in the CSV format that Toggl Track imports, in local time.

An entry needs an e-mail address, which agents may not have: the caller supplies one for them. Both ends are
truncated to whole seconds, so that adjacent stints stay adjacent.
"""

from __future__ import annotations

from dibs.domain.stints import CLAIM
from dibs.domain.values import SECOND, Value
from dibs.timesheets.formats.csv import neutral, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dibs.domain.model import ActorId, TaskKey
    from dibs.domain.stints import WorkedStint
    from dibs.domain.values import Instant

    Wall = Callable[[Instant], tuple[str, str]]

COLUMNS = (
    "User", "Email", "Client", "Project", "Task", "Description", "Billable", "Start date",
    "Start time", "Duration", "Tags",
)  # fmt: skip


class Person(Value):
    """The user of a Toggl entry."""

    name: str
    email: str = ""


def render(
    stints: Iterable[WorkedStint],
    wall: Wall,
    people: Mapping[ActorId, Person],
    titles: Mapping[TaskKey, str],
) -> str:
    return "".join(lines(stints, wall, people, titles))


def lines(
    stints: Iterable[WorkedStint],
    wall: Wall,
    people: Mapping[ActorId, Person],
    titles: Mapping[TaskKey, str],
) -> Iterator[str]:
    """One line per stint. None should cross midnight (see `domain.stints.split`)."""
    entries = (_entry(stint, wall, people[stint.actor], titles) for stint in stints)
    return table(COLUMNS, entries)


def _entry(
    stint: WorkedStint, wall: Wall, person: Person, titles: Mapping[TaskKey, str]
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
