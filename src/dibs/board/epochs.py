"""New epochs: after a failover or a restore, new tokens exceed any that may have been lost."""

from __future__ import annotations

from dibs.domain.events import board
from dibs.domain.events import tasks as e
from dibs.domain.events.base import ending_of
from dibs.domain.model import Caller
from dibs.domain.values import SECOND
from dibs.storage.transaction import WriteTransaction

RESTORE = "restore"
BATCH = 1_000_000
"""The limit of leases that are ended at once: all of them."""


def begin_epoch(
    tx: WriteTransaction, caller: Caller, why: str, known: int = 0, reason: str = ""
) -> int:
    """Begins the next epoch: above the highest known, and not below the clock. A restore ends every lease."""
    highest = max(tx.board.epoch, tx.highest().epoch, known)
    epoch = max(highest + 1, tx.now // SECOND)
    tx.append_to_board(board.EpochRaised(epoch=epoch, why=why, reason=reason), caller)
    tx.begin_epoch(epoch)
    if why == RESTORE:
        end_every_lease(tx, caller, "restored")
    return epoch


def end_every_lease(tx: WriteTransaction, caller: Caller, why: str) -> None:
    """Ends all leases. Nobody is known to have worked since the copy: stints end at the last sign of life."""
    for task in tx.tasks_held(BATCH):
        event = e.LeaseEnded(ending=ending_of(task, tx.now, silent=True), why=why)
        changed, _ = tx.append(task, event, caller)
        tx.save(changed)
