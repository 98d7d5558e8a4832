"""Timesheets: the totals of stints. Nobody can type a total.

| word | means |
|---|---|
| effort | the sum of the stints |
| working | for each actor the union of the stints: an hour on two tasks at once is one hour |
| overlap | effort less working |
| billed | effort or working, depending on `bill_by`, rounded by the rule |

Everything is exact to the microsecond, except `billed` where a rule rounds it.
"""

from __future__ import annotations

from dibs.domain.stints import WorkedStint, days_of
from dibs.domain.values import Duration, Value
from dibs.timesheets.aggregate import Plan, aggregate_stints
from dibs.timesheets.query import ACTOR, SheetQuery, check_query, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dibs.domain.model import ActorId
    from dibs.domain.stints import LocalDays
    from dibs.timesheets.aggregate import Key, RowTotals
    from dibs.timesheets.query import Stint

    Names = Mapping[ActorId, str]

FOOTER = (
    "working is a union: time on two tasks at once counts once for its actor, "
    "so its rows need not add up to its total"
)


class Spent(Value):
    """The usage of agents: the sum of all reports, and the lowest certainty among them.

    `None`: nobody reported any.
    """

    tokens: int | None
    cost: int | None
    """In millionths of the board's currency."""
    certainty: str


class Row(Value):
    labels: tuple[str, ...]
    """One for each word of `by`, in that order; none in the total."""
    stints: int
    effort: Duration
    working: Duration
    billed: Duration
    corrected: int = 0
    """How many of the stints a person added or amended."""
    running: int = 0
    """How many of the stints are open."""
    spent: Spent | None = None

    @property
    def overlap(self) -> Duration:
        return Duration(self.effort - self.working)


class Sheet(Value):
    """A timesheet: its query, its rows, and their total."""

    query: SheetQuery
    first_day: str
    last_day: str
    only: tuple[str, ...]
    """The filters, as text."""
    rows: tuple[Row, ...]
    total: Row
    footer: str = FOOTER


def make_sheet(
    stints: Iterable[Stint],
    query: SheetQuery,
    local_days: LocalDays,
    names: Names,
    fields: Sequence[str] = WorkedStint.fields,
) -> Sheet:
    """The timesheet of stints that come sorted by actor, then by start.

    A stint may be a plain tuple with fewer fields: at least those that `needed(query)` names.
    """
    check_query(query)
    days = days_of(local_days, query.since, query.until)
    plan = Plan(query, days, fields)
    book = aggregate_stints(chosen(stints, query, fields), plan)
    labels = _labels_of(plan, names)
    rows = [_row(labels(key), sums, plan) for key, sums in book.sums.items()]
    rows.sort(key=lambda row: [natural(label) for label in row.labels])
    only = _only(query, names)
    return Sheet(query, days[0][0], days[-1][0], only, tuple(rows), _row((), book.total, plan))


def _row(labels: tuple[str, ...], sums: RowTotals, plan: Plan) -> Row:
    spent = Spent(sums.tokens, sums.cost, sums.certainty) if sums.certainty else None
    return Row(
        labels,
        sums.stints,
        Duration(sums.effort),
        Duration(sums.working),
        Duration(sums.billed if plan.rule.rounds else plan.amount_of(sums)),
        sums.corrected,
        sums.running,
        spent,
    )


def _labels_of(plan: Plan, names: Names) -> Callable[[Key], tuple[str, ...]]:
    """A function that returns the labels of a row in the order of `by`, with actors by name."""
    several = len(plan.in_parts) > 1
    has = [*plan.in_parts, *plan.in_time] if plan.in_parts else [ACTOR, *plan.in_time]
    places = [has.index(name) for name in plan.by]
    actor = has.index(ACTOR) if ACTOR in plan.by else None

    def labels(key: Key) -> tuple[str, ...]:
        part, in_time = key
        given = [*part, *in_time] if several else [part, *in_time]
        if actor is not None:
            given[actor] = names.get(given[actor]) or str(given[actor])
        return tuple([given[place] for place in places])

    return labels


def natural(label: str) -> tuple[str, int, str]:
    """The sort key of a label: T-2 comes before T-10."""
    stem = label.rstrip("0123456789")
    number = label[len(stem) :]
    return stem, int(number or 0), label


def _only(query: SheetQuery, names: Names) -> tuple[str, ...]:
    filters = []
    if query.actor is not None:
        filters.append(f"actor {names.get(query.actor, str(query.actor))}")
    if query.charge_code is not None:
        code = query.charge_code
        filters.append(f"charge code {code}" if code else "without charge code")
    if query.billable is not None:
        filters.append("billable" if query.billable else "not billable")
    return tuple(filters)
