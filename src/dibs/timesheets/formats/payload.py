"""A timesheet as a JSON payload: durations are exact, in whole microseconds."""

from __future__ import annotations

from dibs.domain.values import iso
from dibs.timesheets.rounding import hours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.timesheets.sheet import Row, Sheet


def sheet_payload(sheet: Sheet) -> dict[str, Any]:
    query = sheet.query
    return {
        "from": iso(query.since),
        "to": iso(query.until),
        "first_day": sheet.first_day,
        "last_day": sheet.last_day,
        "zone": query.zone,
        "by": list(query.by),
        "bill_by": query.bill_by,
        "rounding": query.rule.name,
        "only": list(sheet.only),
        "rows": [{**dict(zip(query.by, row.labels)), **_amounts(sheet, row)} for row in sheet.rows],
        "total": _amounts(sheet, sheet.total),
        "footer": sheet.footer,
    }


def _amounts(sheet: Sheet, row: Row) -> dict[str, Any]:
    spent = row.spent
    return {
        "stints": row.stints,
        "effort_us": row.effort,
        "working_us": row.working,
        "overlap_us": row.overlap,
        "billed_us": row.billed,
        "billed_hours": hours(row.billed) if sheet.query.rule.rounds else None,
        "corrected": row.corrected,
        "running": row.running,
        "tokens": spent.tokens if spent else None,
        "cost_millionths": spent.cost if spent else None,
        "known": spent.certainty if spent else None,
    }
