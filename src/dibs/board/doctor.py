"""What `dibs doctor` finds: how the board is kept, whether the ledger holds, and the clock."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.upkeep import checkup
from dibs.core.instants import MINUTE, about, iso
from dibs.stores.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.refusals import Refusal

CLOCK_TOLERANCE = 5 * MINUTE

OUT_OF_REACH = {
    "unreachable": "look whether it runs, and whether this machine reaches it",
    "not_let_in": "look at the role, its password and the database in the address",
    "unaccepted_server": "a person accepts it: dibs config --adopt",
    "moved_to_unaccepted": "a person accepts it: dibs config url ADDRESS",
    "not_granted": "ask who owns the database: dibs board grant ROLE",
}
"""Why a server cannot be asked, and where to look."""


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
            f"{iso(seen.now)}; this machine's is {about(seen.off)} "
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
    """That settings were found where they do not count."""
    return Finding("settings", ignored, "note")


def of_server(refusal: Refusal) -> Finding | None:
    """That the server cannot be asked, if it is for that."""
    look = OUT_OF_REACH.get(refusal.code)
    return None if look is None else check("server", f"{refusal.message}; {look}", fine=False)
