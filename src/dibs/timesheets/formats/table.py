"""A timesheet as columns of text, for a terminal."""

from __future__ import annotations

from dibs.domain.values import safe
from dibs.timesheets.formats import cells, columns, foot, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.timesheets.sheet import Sheet


def lines(sheet: Sheet) -> tuple[str, ...]:
    """The lines of the table: labels are left-aligned, numbers right-aligned."""
    names = columns(sheet)
    rows = [tuple(name.upper() for name in names)]
    rows += [cells(sheet, row) for row in (*sheet.rows, sheet.total)]
    rows = [tuple(map(safe, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    labels = len(sheet.query.by)
    shown = []
    for row in rows:
        padded = [
            cell.ljust(width) if place < labels else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        ]
        shown.append("  ".join(padded).rstrip())
    return (*map(safe, head(sheet)), "", *shown, "", *foot(sheet))


def render(sheet: Sheet) -> str:
    return "".join(f"{line}\n" for line in lines(sheet))
