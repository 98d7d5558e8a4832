"""A timesheet as a Markdown table."""

from __future__ import annotations

from dibs.domain.values import safe
from dibs.timesheets.formats import cells, columns, foot, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.timesheets.sheet import Sheet

MEANT = frozenset("\\`*_[]<>|#~&$")
"""The characters with a meaning in Markdown."""


def plain(text: str) -> str:
    """Text escaped for Markdown, also in a table cell."""
    return "".join(f"\\{one}" if one in MEANT else one for one in safe(text))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def render(sheet: Sheet) -> str:
    names, labels = columns(sheet), len(sheet.query.by)
    lines = [
        *[f"{plain(line)}  " for line in head(sheet)],
        "",
        _line(map(plain, names)),
        _line([":--" if place < labels else "--:" for place in range(len(names))]),
        *[_line(map(plain, cells(sheet, row))) for row in sheet.rows],
        _line([f"**{plain(cell)}**" if cell else "" for cell in cells(sheet, sheet.total)]),
        "",
        *[f"{plain(line)}  " for line in foot(sheet)],
    ]
    return "".join(f"{line}\n" for line in lines)
