"""The findings of `dibs doctor`: storage, ledger and clock."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.verify import checkup
from dibs.domain.instants import MINUTE, iso, rough_duration
from dibs.storage.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.refusals import Refusal

CLOCK_TOLERANCE = 5 * MINUTE

SERVER_HINTS = {
    "unreachable": "look whether it runs, and whether this machine reaches it",
    "not_let_in": "look at the role, its password and the database in the address",
    "unaccepted_server": "a person accepts it: dibs config --adopt",
    "moved_to_unaccepted": "a person accepts it: dibs config url ADDRESS",
    "not_granted": "ask who owns the database: dibs board grant ROLE",
}
"""Why a server cannot be reached or used, and where to look."""


def findings(board: Board) -> list[Finding]:
    seen = checkup(board)
    ledger = seen.ledger
    far = abs(seen.off) > CLOCK_TOLERANCE
    return [
        Finding("board", f"{seen.uid} in {seen.where}"),
        *seen.health,
        check(
            "ledger",
            "; ".join(ledger.faults[:10])
            or f"sound; events: {ledger.events}, tasks: {ledger.tasks}",
            fine=not ledger.faults,
        ),
        check("orphans", "; ".join(seen.orphans) or "none", fine=not seen.orphans),
        check(
            "clock",
            f"{iso(seen.now)}; this machine's is {rough_duration(seen.off)} "
            f"{'ahead' if seen.off >= 0 else 'behind'}"
            + ("; it is not believed" if seen.skewed else ""),
            fine=not seen.skewed and not far,
            level="wrong" if seen.skewed else "note",
        ),
        check(
            "leases",
            f"in the future: {', '.join(seen.future)}" if seen.future else "none is in the future",
            fine=not seen.future,
        ),
        Finding("backups", "dibs board backup FILE makes one", "note"),
    ]


def of_settings(ignored: str) -> Finding:
    """A finding that settings were found in a file where they have no effect."""
    return Finding("settings", ignored, "note")


def of_server(refusal: Refusal) -> Finding | None:
    """A finding that the server cannot be reached or used, if the refusal is about that."""
    look = SERVER_HINTS.get(refusal.code)
    return None if look is None else check("server", f"{refusal.message}; {look}", fine=False)
