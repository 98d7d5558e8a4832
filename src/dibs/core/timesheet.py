"""Timesheets: what stints add up to. Nobody can type a total.

| word | means |
|---|---|
| effort | the sum of the stints |
| working | for each actor the union of the stints: an hour on two tasks at once is one hour |
| overlap | effort less working |
| billed | effort or working, as `bill_by` says, rounded by the rule |

Everything is exact to the microsecond, but for `billed`, and only where a rule rounds it.
"""

from __future__ import annotations

from dibs.core.adding_up import Plan, add_up
from dibs.core.asked import ACTOR, Asked, chosen, refuse_nonsense
from dibs.core.instants import Duration
from dibs.core.periods import days_of
from dibs.core.values import Value
from dibs.core.worked import Worked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dibs.core.adding_up import Key, Sums
    from dibs.core.asked import Stint
    from dibs.core.model import ActorId
    from dibs.core.periods import LocalDays

    Names = Mapping[ActorId, str]

FOOTER = (
    "working is a union: time on two tasks at once counts once for its actor, "
    "so its rows need not add up to its total"
)


class Spent(Value):
    """What agents used: the sum of what was told, and how well it is known at worst.

    `None`: nobody told any of it.
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
    """How many of the stints are not over."""
    spent: Spent | None = None

    @property
    def overlap(self) -> Duration:
        return Duration(self.effort - self.working)


class Sheet(Value):
    """A timesheet: how it was made, its rows, and their total."""

    asked: Asked
    first_day: str
    last_day: str
    only: tuple[str, ...]
    """What its stints were chosen by, in words."""
    rows: tuple[Row, ...]
    total: Row
    footer: str = FOOTER


def sheet(
    stints: Iterable[Stint],
    asked: Asked,
    local_days: LocalDays,
    names: Names,
    fields: Sequence[str] = Worked.fields,
) -> Sheet:
    """The timesheet of stints that come by actor, then by start.

    A stint may be a plain tuple of fewer fields: those that `needed(asked)` names, at least.
    """
    refuse_nonsense(asked)
    days = days_of(local_days, asked.since, asked.until)
    plan = Plan(asked, days, fields)
    book = add_up(chosen(stints, asked, fields), plan)
    labels = _labels_of(plan, names)
    rows = [_row(labels(key), sums, plan) for key, sums in book.sums.items()]
    rows.sort(key=lambda row: [natural(label) for label in row.labels])
    only = _only(asked, names)
    return Sheet(asked, days[0][0], days[-1][0], only, tuple(rows), _row((), book.total, plan))


def _row(labels: tuple[str, ...], sums: Sums, plan: Plan) -> Row:
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
    """What gives a row its labels, in the order of `by`, with actors by name."""
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
    """What labels are sorted by: T-2 comes before T-10."""
    stem = label.rstrip("0123456789")
    number = label[len(stem) :]
    return stem, int(number or 0), label


def _only(asked: Asked, names: Names) -> tuple[str, ...]:
    said = []
    if asked.actor is not None:
        said.append(f"actor {names.get(asked.actor, str(asked.actor))}")
    if asked.charge_code is not None:
        code = asked.charge_code
        said.append(f"charge code {code}" if code else "without charge code")
    if asked.billable is not None:
        said.append("billable" if asked.billable else "not billable")
    return tuple(said)
