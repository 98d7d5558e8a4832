"""The query of a timesheet, and the filter of its stints."""

from __future__ import annotations

from dibs.domain.refusals import bad_argument
from dibs.domain.stints import DIMENSIONS
from dibs.domain.values import Instant, Value
from dibs.timesheets.rounding import NONE, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from dibs.domain.model import ActorId

    Stint = Sequence[Any]
    """A `Worked`, or a plain tuple that begins with the same actor, start and end."""
    S = TypeVar("S", bound=Stint)

ACTOR, TASK, AREA, CHARGE_CODE = "actor", "task", "area", "charge_code"
FIELDS = {ACTOR: "actor", TASK: "key", AREA: "area", CHARGE_CODE: "charge_code"}
"""The field of a stint for each word of `by` that is not a time dimension."""
BY = (*FIELDS, *DIMENSIONS)

EFFORT, WORKING = "effort", "working"

FILTERS = ("actor", "charge_code", "billable")


class SheetQuery(Value):
    """The parameters of a timesheet. A filter that is `None` matches everything."""

    since: Instant
    until: Instant
    zone: str
    by: tuple[str, ...] = (ACTOR,)
    bill_by: str = EFFORT
    rule: Rule = NONE
    actor: ActorId | None = None
    charge_code: str | None = None
    billable: bool | None = None


def check_query(query: SheetQuery) -> None:
    if query.until <= query.since:
        raise bad_argument("the timesheet ends before it begins")
    if not query.by or len({*query.by}) < len(query.by) or not {*query.by} <= {*BY}:
        raise bad_argument(f"a timesheet is by some of {', '.join(BY)}, each once")
    if query.bill_by not in {EFFORT, WORKING}:
        raise bad_argument("bill_by is effort or working")


def needed(query: SheetQuery) -> tuple[str, ...]:
    """The fields of a stint that this timesheet needs, in order."""
    of_rows = [FIELDS[name] for name in query.by if name in FIELDS]
    of_filters = [name for name in FILTERS if getattr(query, name) is not None]
    return tuple(dict.fromkeys(["actor", "start", "end", *of_rows, *of_filters]))


def chosen(stints: Iterable[S], query: SheetQuery, fields: Sequence[str]) -> Iterable[S]:
    """The stints that pass the filters."""
    for name in FILTERS:
        wanted = getattr(query, name)
        if wanted is not None:
            stints = _having(stints, fields.index(name), wanted)
    return stints


def _having(stints: Iterable[S], place: int, wanted: object) -> Iterator[S]:
    return (stint for stint in stints if stint[place] == wanted)
