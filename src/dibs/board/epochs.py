"""A new epoch: after a promotion or a restore, tokens begin higher than any that may be lost."""

from __future__ import annotations

from dibs.core import board_events
from dibs.core import events as e
from dibs.core.evolve import ending_of
from dibs.core.instants import SECOND
from dibs.core.model import Caller
from dibs.stores.transaction import WriteTransaction

RESTORE = "restore"
BATCH = 1_000_000
"""Leases that are ended in one go: all of them."""


def begin_epoch(
    tx: WriteTransaction, caller: Caller, why: str, known: int = 0, reason: str = ""
) -> int:
    """The next epoch, above the highest known and not below the clock. A restore ends every lease."""
    highest = max(tx.board.epoch, tx.highest().epoch, known)
    epoch = max(highest + 1, tx.now // SECOND)
    tx.append_to_board(board_events.EpochRaised(epoch=epoch, why=why, reason=reason), caller)
    tx.begin_epoch(epoch)
    if why == RESTORE:
        end_every_lease(tx, caller, "restored")
    return epoch


def end_every_lease(tx: WriteTransaction, caller: Caller, why: str) -> None:
    """Nobody is known to have worked since the copy was made: stints end at the last sign of life."""
    for task in tx.tasks_held(BATCH):
        event = e.LeaseEnded(ending=ending_of(task, tx.now, silent=True), why=why)
        changed, _ = tx.append(task, event, caller)
        tx.save(changed)
