"""Events of the board itself: each is appended to the board's chain, together with the rows that it changes."""

from __future__ import annotations

from dibs.domain.events.board import (
    ActorChanged,
    ActorRegistered,
    Approved,
    ClockSet,
    Paused,
    Reopened,
    Unpaused,
)
from dibs.domain.model import Actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.events.base import Event
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Caller
    from dibs.storage.store import Store
    from dibs.storage.transaction import WriteTransaction


def append_board_event(
    tx: WriteTransaction, caller: Caller, event: Event, store: Store | None = None
) -> Entry:
    """`store`: only the board's own store can set its clock."""
    if isinstance(event, ActorRegistered):
        tx.register(Actor(event.id, event.name, event.kind, event.tier))
    elif isinstance(event, ActorChanged):
        fields = event.named()
        aliases = fields.pop("aliases")
        tx.change_actor(Actor(**fields), aliases)
    elif isinstance(event, Paused):
        tx.pause(caller.actor.id, event.reason)
    elif isinstance(event, Unpaused):
        tx.pause(None, "")
    elif isinstance(event, ClockSet):
        assert store is not None, "only a command sets the clock"
        store.set_clock(tx, event.by)
    entry = tx.append_to_board(event, caller)
    if isinstance(event, Approved):
        tx.add_approval(entry.seq, event)
    elif isinstance(event, Reopened):
        tx.reopen(event.approval, entry.seq)
    return entry
