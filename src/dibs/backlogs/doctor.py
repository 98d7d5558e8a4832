"""Checks of item files for `dibs doctor`: which exist, and whether they are in sync."""

from __future__ import annotations

from dibs.backlogs.backlog import Backlog
from dibs.backlogs.missing import GONE
from dibs.backlogs.report import Options
from dibs.backlogs.sync import SyncPass
from dibs.domain.refusals import Refused
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Board


def committed(wrong: list[str]) -> list[Finding]:
    """Ignored parts of `dibs.toml`: areas that it should define then match nothing."""
    return [Finding("dibs.toml", "; ".join(wrong), "wrong")] if wrong else []


def findings(board: Board) -> list[Finding]:
    """Empty if there is no backlog."""
    backlog = board.backlog
    if not isinstance(backlog, Backlog):
        return []
    channels = ", ".join(dialect.channel for dialect in backlog.dialects)
    found = [Finding("item files", f"{channels} in {backlog.root}")]
    try:
        report = SyncPass(backlog, board, None, Options(check=True, everything=True)).run()
    except Refused as problem:
        return [*found, Finding("item files", str(problem), "note")]
    behind = report.added + report.changed + report.written
    gone = [problem.what for problem in report.problems if problem.what.endswith(GONE)]
    state = f"{behind} are not in step: dibs sync" if behind else "in step with the board"
    if gone:
        state = f"{len(gone)} are missing: {gone[0]}"
    found.append(Finding("in step", state, "note" if behind or gone else "ok"))
    foreign = [problem for problem in report.problems if "names another board" in problem.what]
    if foreign:
        told = f"{len(foreign)} name another board, which is not followed: {foreign[0]}"
        found.append(Finding("foreign leases", told, "note"))
    return found
