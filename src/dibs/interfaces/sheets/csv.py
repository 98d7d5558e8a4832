"""A timesheet as CSV (RFC 4180): every line says by which rules it was made.

Seconds are exact, with six places; `billed_hours` is there where a rule rounds. The column `line`
tells the total from the rows, so that a program that adds up does not count everything twice.
"""

from __future__ import annotations

import csv

from dibs.core.display import safe
from dibs.core.instants import SECOND, Duration, iso
from dibs.core.rounding import hours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.core.timesheet import Row, Sheet

FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - some spreadsheets take these for the same
"""With one of these a spreadsheet takes a cell for a formula."""

AMOUNTS = ("stints", "effort_s", "working_s", "overlap_s", "billed_s", "billed_hours", "corrected",
           "running", "tokens", "cost", "known")  # fmt: skip
RULES = ("from", "to", "zone", "bill_by", "rounding", "only")


def neutral(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and no terminal for an order."""
    shown = safe(text)
    return f"'{shown}" if text[:1] in FORMULA or shown[:1] in FORMULA else shown


def seconds(duration: Duration) -> str:
    """Exactly: `37035.123456`."""
    return f"{duration // SECOND}.{duration % SECOND:06}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a CSV file, each as it is to be written, with its end."""
    writer = csv.writer(_Echo())
    yield writer.writerow(head)
    for row in rows:
        yield writer.writerow(row)


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def written(sheet: Sheet) -> str:
    head = ["line", *sheet.asked.by, *AMOUNTS, *RULES]
    rows = [_cells(sheet, row) for row in (*sheet.rows, sheet.total)]
    return "".join(table(head, rows))


def _cells(sheet: Sheet, row: Row) -> list[str]:
    asked, spent = sheet.asked, row.spent
    total = row is sheet.total
    labels = row.labels or ("",) * len(asked.by)
    return [
        "total" if total else "row",
        *map(neutral, labels),
        str(row.stints),
        *map(seconds, (row.effort, row.working, row.overlap, row.billed)),
        hours(row.billed) if asked.rule.rounds else "",
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
        *map(neutral, (iso(asked.since), iso(asked.until), asked.zone, asked.bill_by)),
        *map(neutral, (asked.rule.name, ", ".join(sheet.only))),
    ]


def _money(millionths: int) -> str:
    return f"{millionths // 1_000_000}.{millionths % 1_000_000:06}"
