"""Timesheet formats: each is a function from values to text. Nothing prints.

Untrusted text (titles, names, codes) is escaped for its reader: a terminal, a spreadsheet or
a Markdown renderer. This module has what several formats share.
"""

from __future__ import annotations

from dibs.domain.values import SECOND, Duration, iso
from dibs.timesheets.rounding import hours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.timesheets.sheet import Row, Sheet, Spent

CUT = "times are cut to whole seconds here; csv and json have the microseconds"
NO_LABEL = "(none)"


def hms(duration: Duration) -> str:
    """A duration in hours, truncated to whole seconds: `20:35:00`, and `64:00:00` over a weekend."""
    seconds = duration // SECOND
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def money(millionths: int) -> str:
    """An exact amount: `0.25`, `1.004`."""
    whole, rest = divmod(millionths, 1_000_000)
    return f"{whole}.{f'{rest:06}'.rstrip('0'):<02}"


def head(sheet: Sheet) -> tuple[str, ...]:
    """The header lines: what the sheet covers, and the rules it was made by."""
    query = sheet.query
    days = f"{sheet.first_day} to {sheet.last_day}, {query.zone}"
    rules = f"bill_by = {query.bill_by}; rounding = {query.rule.name}"
    return (
        f"timesheet {days}, by {' and '.join(query.by)}",
        f"from {iso(query.since)} to {iso(query.until)}; {rules}",
        *[f"only {one}" for one in sheet.only],
    )


def foot(sheet: Sheet) -> tuple[str, ...]:
    """The notes needed to read the numbers."""
    total, lines = sheet.total, [sheet.footer]
    if total.running:
        lines.append(f"not over yet, and counted until now: {total.running} of the stints")
    if any(amount % SECOND for row in sheet.rows for amount in (row.effort, row.working)):
        lines.append(CUT)
    return tuple(lines)


def columns(sheet: Sheet) -> tuple[str, ...]:
    """The names of the visible columns. Columns without data are left out."""
    names = [*sheet.query.by, "stints", "effort", "working", "overlap"]
    if sheet.query.rule.rounds:
        names.append("billed")
    if sheet.total.corrected:
        names.append("corrected")
    if sheet.total.spent is not None:
        names += ["tokens", "cost", "known"]
    return tuple(names)


def cells(sheet: Sheet, row: Row) -> tuple[str, ...]:
    """A row as text, one cell per column."""
    labels = [label or NO_LABEL for label in row.labels]
    if row is sheet.total:
        labels = ["total", *[""] * (len(sheet.query.by) - 1)]
    shown = [*labels, str(row.stints), hms(row.effort), hms(row.working), hms(row.overlap)]
    if sheet.query.rule.rounds:
        shown.append(hours(row.billed))
    if sheet.total.corrected:
        shown.append(str(row.corrected or ""))
    if sheet.total.spent is not None:
        spent = row.spent
        shown += used(spent) if spent else ["", "", ""]
    return tuple(shown)


def used(spent: Spent) -> list[str]:
    """Usage cells. What nobody reported is empty, not zero."""
    tokens = "" if spent.tokens is None else str(spent.tokens)
    return [tokens, "" if spent.cost is None else money(spent.cost), spent.certainty]
