"""The sweep: ends the leases of the dead, and whatever still runs of them, and offers their tasks again.

A look comes first, and costs no turn to write: where everybody lives, nothing is written.
"""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.liveness import look
from dibs.core import commands as c
from dibs.core.instants import Duration, later
from dibs.core.model import GRACE, SWEPT_AT_ONCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome


def sweep(
    board: Board, who: Identity, grace: Duration = GRACE, limit: int = SWEPT_AT_ONCE
) -> Outcome | None:
    """One bounded pass; nothing if there was nothing to do."""
    return board.execute(who, c.Sweep(grace, limit)) if is_due(board, grace, limit) else None


def is_due(board: Board, grace: Duration, limit: int) -> bool:
    """Somebody is dead; or a lease has expired, and is to be suspected or to end."""
    seen = look(board)
    if seen.deaths:
        return True
    with board.read() as tx:
        for task in tx.tasks_expired(limit):
            lease = task.lease
            if lease is None or lease.suspect is None:
                return True
            more = lease.ttl if task.id in seen.living else Duration(0)
            if tx.now >= later(later(lease.suspect, grace), more):
                return True
    return False
