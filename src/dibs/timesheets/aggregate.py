"""Aggregates stints in one streaming pass. `sheet` defines the terms.

Stints come sorted by actor, then by start. An actor's time in one row and one span (a day or week with one
label) is a cell. Within a cell starts never decrease, so its union needs only the end reached so far. Spans
are contiguous, so the unions of spans add up. At the next actor, the cells are added to the sums of their
rows and discarded.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from dibs.domain.stints import (
    ACTUAL,
    ADDED,
    AMENDED,
    CERTAINTIES,
    CLAIM,
    DIMENSIONS,
    ESTIMATED,
    OPEN,
    UNKNOWN,
    outside,
    pieces,
    share,
    spans,
)
from dibs.domain.values import Duration, Instant
from dibs.timesheets import rounding
from dibs.timesheets.query import ACTOR, EFFORT, FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from dibs.domain.model import ActorId
    from dibs.domain.stints import LocalDay, Span
    from dibs.timesheets.query import SheetQuery, Stint

    Key = tuple[Any, tuple[str, ...]]
    """The key of a row: what its stints share (actor, task, ...), and its labels in time."""

ASIDE = ("source", "tokens", "cost", "spending")
IN_ONE = "aside"
"""A field that combines all of these in one text, or is `None` if they have the default values."""
PLAIN = (CLAIM, None, None, "")
"""The values that most stints have in these fields."""


class Plan:
    """The aggregation plan of a query: spans, row keys and rounding."""

    def __init__(self, query: SheetQuery, days: Iterable[LocalDay], fields: Sequence[str]) -> None:
        rule = query.rule
        self.since, self.until = query.since, query.until
        self.by, self.rule = query.by, rule
        self.by_effort = query.bill_by == EFFORT
        self.per_day = rule.rounds and rule.per == rounding.DAY
        self.per_entry = rule.rounds and rule.per == rounding.ENTRY
        self.in_time = [name for name in query.by if name in DIMENSIONS]
        self.in_parts = [name for name in query.by if name not in DIMENSIONS]
        self.spans: tuple[Span, ...] = spans(days, self.in_time, daily=self.per_day)
        self.ends = [span.end for span in self.spans]
        self.part_of = _getter(fields, [FIELDS[name] for name in self.in_parts]) or _nothing
        self.aside = _getter(fields, ASIDE) if {*ASIDE} <= {*fields} else None
        self.plain: Any = PLAIN
        self.read_aside: Callable[[Any], Sequence[Any]] = tuple
        if IN_ONE in fields:
            self.aside, self.plain, self.read_aside = _getter(fields, [IN_ONE]), None, _parted
        self.crowded = any(name != ACTOR for name in self.in_parts)
        """Whether an instant of an actor may be in two rows; then the unions of rows do not add up."""

    def amount_of(self, sums: Cell | RowTotals) -> int:
        """The billable amount before rounding."""
        return sums.effort if self.by_effort else sums.working


def _getter(fields: Sequence[str], names: Sequence[str]) -> Callable[[Stint], Any] | None:
    return itemgetter(*[fields.index(name) for name in names]) if names else None


def _nothing(_stint: Stint) -> None:
    return None


def _parted(text: str) -> Sequence[Any]:
    """Parses the combined field, as the store returns it: `claim,1200,350000,actual`."""
    source, tokens, cost, spending = text.split(",")
    return source, int(tokens) if tokens else None, int(cost) if cost else None, spending


class Cell:
    """One actor's time in one row and one span."""

    __slots__ = ("effort", "entries", "reach", "since", "stints", "working")

    def __init__(self) -> None:
        self.stints = self.effort = self.working = 0
        self.reach = self.since = -1  # before every instant
        """The end of the union so far, and the start of its current unbroken stretch."""
        self.entries = 0
        """The rounded sum of the billed entries so far, without the current stretch."""

    def put(self, start: Instant, end: Instant) -> None:
        length, reach = end - start, self.reach
        self.effort += length
        if start >= reach:
            self.working += length
            self.reach = end
        elif end > reach:
            self.working += end - reach
            self.reach = end


class RowTotals:
    """The running totals of a row."""

    __slots__ = (
        "billed", "certainty", "corrected", "cost", "effort", "running", "stints", "tokens",
        "working",
    )  # fmt: skip

    def __init__(self) -> None:
        self.stints = self.effort = self.working = self.billed = 0
        self.corrected = self.running = 0
        self.tokens: int | None = None
        self.cost: int | None = None
        self.certainty = ""

    def mark(self, source: str) -> None:
        self.corrected += source in {ADDED, AMENDED}
        self.running += source == OPEN

    def spend(self, tokens: int | None, cost: int | None, certainty: str) -> None:
        if tokens is not None:
            self.tokens = (self.tokens or 0) + tokens
        if cost is not None:
            self.cost = (self.cost or 0) + cost
        self.certainty = max(self.certainty, certainty, key=("", *CERTAINTIES).index)


def aggregate_stints(stints: Iterable[Stint], plan: Plan) -> Book:  # noqa: C901 - a call costs a third of it
    """The totals of all rows. The inner loop runs once per stint, so it does little and calls less."""
    book = Book(plan)
    since, until, ends, part_of, aside = plan.since, plan.until, plan.ends, plan.part_of, plan.aside
    crowded, cells, put, plain = plan.crowded, book.cells, book.put, plan.plain
    actor, at, count = None, 0, 0
    begin = finish = latest = since
    for stint in stints:
        start, end = stint[1], stint[2]
        if stint[0] != actor:
            actor = stint[0]
            book.turn_to(actor)
        elif start < latest:
            raise ValueError("the stints of an actor do not come in the order of their starts")
        latest = start
        if end < start:
            raise ValueError("a stint ends before it starts")
        if start < since or end >= until:  # an empty one at the end is outside
            if outside(start, end, since, until):
                continue
            start, end = max(start, since), min(end, until)
        if not begin <= start < finish:
            at = bisect_right(ends, start)
            begin, finish = plan.spans[at].start, ends[at]
        part = part_of(stint)
        if end > finish:
            book.put_in_pieces(part, start, end, at)
        else:
            cell = cells.get((at, part)) or book.new_cell(at, part)
            cell.stints += 1
            put(cell, start, end)
            if crowded:
                put(book.together(at), start, end)
        count += 1
        if aside is not None and (aside_values := aside(stint)) != plain:
            book.note(
                stint, plan.read_aside(aside_values), part, tuple(pieces(start, end, at, ends))
            )
    book.close()
    book.total.stints = count
    return book


class Book:
    """The totals of all rows, and the cells of the current actor."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sums: dict[Key, RowTotals] = {}
        self.total = RowTotals()
        self.seen: set[ActorId] = set()
        self.cells: dict[tuple[int, Any], Cell] = {}
        self.togethers: dict[tuple[int, Any], Cell] = {}
        self.put: Callable[[Cell, Instant, Instant], None] = Cell.put
        if plan.per_entry:
            self.put = self.put_entry if plan.by_effort else self.put_stretch

    def turn_to(self, actor: ActorId) -> None:
        """Starts the next actor. The stints of an actor must be consecutive."""
        self.close()
        if actor in self.seen:
            raise ValueError("the stints of an actor do not come one after the other")
        self.seen.add(actor)

    def new_cell(self, at: int, part: Any) -> Cell:
        cell = self.cells[at, part] = Cell()
        return cell

    def together(self, at: int) -> Cell:
        """The actor's cell over all rows."""
        cell = self.togethers.get((at, None))
        if cell is None:
            cell = self.togethers[at, None] = Cell()
        return cell

    def put_in_pieces(self, part: Any, start: Instant, end: Instant, first: int) -> None:
        """Adds a stint that crosses the end of a span. Within one row it counts once, however it is cut."""
        counted: set[tuple[str, ...]] = set()
        for at, begin, finish in pieces(start, end, first, self.plan.ends):
            cell = self.cells.get((at, part)) or self.new_cell(at, part)
            labels = self.plan.spans[at].labels
            cell.stints += labels not in counted
            counted.add(labels)
            self.put(cell, begin, finish)
            if self.plan.crowded:
                self.put(self.together(at), begin, finish)

    def put_entry(self, cell: Cell, start: Instant, end: Instant) -> None:
        """Like `put`, if each stint is rounded."""
        cell.entries += self.plan.rule.rounded(Duration(end - start))
        cell.put(start, end)

    def put_stretch(self, cell: Cell, start: Instant, end: Instant) -> None:
        """Like `put`, if each unbroken stretch is rounded."""
        if start > cell.reach:
            cell.entries += self.last_stretch(cell)
            cell.since = start
        cell.put(start, end)

    def last_stretch(self, cell: Cell) -> Duration:
        return self.plan.rule.rounded(Duration(cell.reach - cell.since))

    def of(self, key: Key) -> RowTotals:
        sums = self.sums.get(key)
        if sums is None:
            sums = self.sums[key] = RowTotals()
        return sums

    def close(self) -> None:
        """Adds the totals of the finished actor to the rows."""
        spans, total = self.plan.spans, self.total
        for (at, part), cell in self.cells.items():
            sums = self.of((part, spans[at].labels))
            sums.stints += cell.stints
            sums.effort += cell.effort
            sums.working += cell.working
            total.effort += cell.effort
        for cell in self.of_total().values():
            total.working += cell.working
        if self.plan.rule.rounds:
            self.bill()
        self.cells.clear()
        self.togethers.clear()

    def of_total(self) -> Mapping[tuple[int, Any], Cell]:
        """The cells whose unions add up to the total."""
        return self.togethers if self.plan.crowded else self.cells

    def bill(self) -> None:
        """Bills the actor. Rows add up to the total, unless unions are billed and time may be in two rows.

        Then the total is that of the same sheet by actor (and day, week, month) alone.
        """
        rows = self.billed(self.cells)
        for key, amount in rows.items():
            self.of(key).billed += amount
        if self.plan.crowded and not self.plan.by_effort:
            rows = self.billed(self.togethers)
        self.total.billed += sum(rows.values())

    def billed(self, cells: Mapping[tuple[int, Any], Cell]) -> dict[Key, int]:
        """The billed amount of an actor, by row."""
        plan = self.plan
        amounts: dict[tuple[Any, tuple[str, ...], str], int] = {}
        for (at, part), cell in cells.items():
            span = plan.spans[at]
            amount = plan.amount_of(cell)
            if plan.per_entry:
                amount = cell.entries if plan.by_effort else cell.entries + self.last_stretch(cell)
            # A day has two spans where the clock went back over midnight; it is rounded as one day.
            one = (part, span.labels, span.day if plan.per_day else "")
            amounts[one] = amounts.get(one, 0) + amount
        rows: dict[Key, int] = {}
        for (part, labels, _), amount in amounts.items():
            rounded = plan.rule.rounded(Duration(amount))
            rows[part, labels] = rows.get((part, labels), 0) + rounded
        return rows

    def note(
        self, stint: Stint, aside_values: Sequence[Any], part: Any, cut: Sequence[Any]
    ) -> None:
        """Adds a stint's source and usage to the rows of its pieces."""
        source, tokens, cost, spending = aside_values
        marked: set[tuple[str, ...]] = set()
        self.total.mark(source)
        for at, begin, finish in cut:
            labels = self.plan.spans[at].labels
            sums = self.of((part, labels))
            if labels not in marked:
                sums.mark(source)
            marked.add(labels)
            if tokens is not None or cost is not None or spending:
                whole = (begin, finish) == (stint[1], stint[2])
                known = spending or UNKNOWN
                if known == ACTUAL and not whole:
                    known = ESTIMATED
                span = (stint[1], stint[2], begin, finish)
                of_tokens = None if tokens is None else share(tokens, *span)
                of_cost = None if cost is None else share(cost, *span)
                sums.spend(of_tokens, of_cost, known)
                self.total.spend(of_tokens, of_cost, known)
