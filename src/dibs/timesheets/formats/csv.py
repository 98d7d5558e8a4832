"""A timesheet as CSV (RFC 4180): every line includes the rules by which it was made.

Seconds are exact, with six decimals; `billed_hours` is set where a rule rounds. The column `line` separates
the total from the rows, so that a program that adds up does not count everything twice.
"""

from __future__ import annotations

import csv

from dibs.domain.values import SECOND, Duration, iso, safe
from dibs.timesheets.rounding import hours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.timesheets.sheet import Row, Sheet

FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - some spreadsheets take these for the same
"""A spreadsheet takes a cell that begins with one of these for a formula."""

AMOUNTS = ("stints", "effort_s", "working_s", "overlap_s", "billed_s", "billed_hours", "corrected",
           "running", "tokens", "cost", "known")  # fmt: skip
RULES = ("from", "to", "zone", "bill_by", "rounding", "only")


def neutral(text: str) -> str:
    """Text that no spreadsheet reads as a formula, and no terminal as a control sequence."""
    shown = safe(text)
    return f"'{shown}" if text[:1] in FORMULA or shown[:1] in FORMULA else shown


def seconds(duration: Duration) -> str:
    """Exact seconds: `37035.123456`."""
    return f"{duration // SECOND}.{duration % SECOND:06}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a CSV file, each with its line end."""
    writer = csv.writer(_Echo())
    yield writer.writerow(head)
    for row in rows:
        yield writer.writerow(row)


class _Echo:
    """A file whose `write` returns the text."""

    def write(self, text: str) -> str:
        return text


def render(sheet: Sheet) -> str:
    head = ["line", *sheet.query.by, *AMOUNTS, *RULES]
    rows = [_cells(sheet, row) for row in (*sheet.rows, sheet.total)]
    return "".join(table(head, rows))


def _cells(sheet: Sheet, row: Row) -> list[str]:
    query, spent = sheet.query, row.spent
    total = row is sheet.total
    labels = row.labels or ("",) * len(query.by)
    return [
        "total" if total else "row",
        *map(neutral, labels),
        str(row.stints),
        *map(seconds, (row.effort, row.working, row.overlap, row.billed)),
        hours(row.billed) if query.rule.rounds else "",
        str(row.corrected),
        str(row.running),
        *(
            [
                "" if spent.tokens is None else str(spent.tokens),
                "" if spent.cost is None else _money(spent.cost),
                spent.certainty,
            ]
            if spent
            else ["", "", ""]
        ),
        *map(neutral, (iso(query.since), iso(query.until), query.zone, query.bill_by)),
        *map(neutral, (query.rule.name, ", ".join(sheet.only))),
    ]


def _money(millionths: int) -> str:
    return f"{millionths // 1_000_000}.{millionths % 1_000_000:06}"
