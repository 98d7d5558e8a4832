"""How a timesheet is written: each format is a function from values to text. Nothing prints.

Text from outside (titles, names, codes) is shown, never obeyed: by a terminal, by a spreadsheet,
by what reads Markdown. Here is what several formats share.
"""

from __future__ import annotations

from dibs.core.instants import SECOND, Duration, iso
from dibs.core.rounding import hours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.timesheet import Row, Sheet, Spent

CUT = "times are cut to whole seconds here; csv and json have the microseconds"
NO_LABEL = "(none)"


def hms(duration: Duration) -> str:
    """A duration in hours, cut to whole seconds: `20:35:00`, and `64:00:00` over a weekend."""
    seconds = duration // SECOND
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def money(millionths: int) -> str:
    """An amount, exactly: `0.25`, `1.004`."""
    whole, rest = divmod(millionths, 1_000_000)
    return f"{whole}.{f'{rest:06}'.rstrip('0'):<02}"


def head(sheet: Sheet) -> tuple[str, ...]:
    """What the sheet is about, and by which rules it was made."""
    asked = sheet.asked
    days = f"{sheet.first_day} to {sheet.last_day}, {asked.zone}"
    rules = f"bill_by = {asked.bill_by}; rounding = {asked.rule.name}"
    return (
        f"timesheet {days}, by {' and '.join(asked.by)}",
        f"from {iso(asked.since)} to {iso(asked.until)}; {rules}",
        *[f"only {one}" for one in sheet.only],
    )


def foot(sheet: Sheet) -> tuple[str, ...]:
    """What must be known to read the numbers."""
    total, said = sheet.total, [sheet.footer]
    if total.running:
        said.append(f"not over yet, and counted until now: {total.running} of the stints")
    if any(amount % SECOND for row in sheet.rows for amount in (row.effort, row.working)):
        said.append(CUT)
    return tuple(said)


def columns(sheet: Sheet) -> tuple[str, ...]:
    """The names of the columns that people see: what nothing is known of is left out."""
    names = [*sheet.asked.by, "stints", "effort", "working", "overlap"]
    if sheet.asked.rule.rounds:
        names.append("billed")
    if sheet.total.corrected:
        names.append("corrected")
    if sheet.total.spent is not None:
        names += ["tokens", "cost", "known"]
    return tuple(names)


def cells(sheet: Sheet, row: Row) -> tuple[str, ...]:
    """A row as people see it, one cell for each column."""
    labels = [label or NO_LABEL for label in row.labels]
    if row is sheet.total:
        labels = ["total", *[""] * (len(sheet.asked.by) - 1)]
    shown = [*labels, str(row.stints), hms(row.effort), hms(row.working), hms(row.overlap)]
    if sheet.asked.rule.rounds:
        shown.append(hours(row.billed))
    if sheet.total.corrected:
        shown.append(str(row.corrected or ""))
    if sheet.total.spent is not None:
        spent = row.spent
        shown += used(spent) if spent else ["", "", ""]
    return tuple(shown)


def used(spent: Spent) -> list[str]:
    """What nobody told is left empty: it is not nothing."""
    tokens = "" if spent.tokens is None else str(spent.tokens)
    return [tokens, "" if spent.cost is None else money(spent.cost), spent.certainty]
