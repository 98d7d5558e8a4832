"""The shortest transactions of a file: a guard's look, and the renewal of what a session holds.

They come before every edit, so they load nothing that they do not use: no events, no ledger.
"""

from __future__ import annotations

from dibs.core.evolve import renew
from dibs.stores import faults, rows
from dibs.stores.clock import read_clock
from dibs.stores.offers import Offers
from dibs.stores.sqlite import ReadContext, SqliteStore, WriteContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.instants import Instant
    from dibs.core.model import Task


class Glance(Offers):
    """One consistent look at who holds what."""

    def __init__(self, store: SqliteStore, now: Instant, seq: int) -> None:
        self._ask = store.ask
        self._put = store.change
        self._actors = {}
        self._seq = seq
        self.now = now

    def renew(self, task: Task) -> None:
        """The lease runs on from now; nothing else of the task changes. In a `Renewal` only."""
        self._put("save_task", rows.work_columns(renew(task, self.now)))

    def finish(self) -> None:
        """The floor of the board's clock rises, as with every change."""
        self._put("save_seq", {"floor": self.now, "seq": self._seq})


class Look(ReadContext):
    """`with Look(store) as tx`: as `store.read()`, for a guard."""

    def _begin(self) -> Glance:  # type: ignore[override]
        store = self._store
        self._open(store.connection, "BEGIN")
        return glance(store)


class Renewal(WriteContext):
    """`with Renewal(store, ...) as tx`: as `store.write()`, for what is renewed and nothing else.

    It is not waited for until it is on the disk: the next claim syncs it too. What a loss of power takes
    from it is some time of a lease whose session the same loss has ended.
    """

    def __enter__(self) -> Glance:  # type: ignore[override]
        return ReadContext.__enter__(self)  # type: ignore[return-value]

    def _begin(self) -> Glance:  # type: ignore[override]
        self._store.connection.execute("PRAGMA synchronous = NORMAL")
        self._take_turn()
        return glance(self._store, writes=True)

    def _end(self, *, commit: bool) -> None:
        try:
            super()._end(commit=commit)
        finally:
            if self._store.opened is not None:
                self._store.opened.execute("PRAGMA synchronous = FULL")


def glance(store: SqliteStore, *, writes: bool = False) -> Glance:
    """Inside a transaction that has begun. One that writes keeps the anchor of a new boot."""
    row, stored = store.row_and_anchor()
    _uid, _created, _epoch, floor, seq, *_counted, moved_to, _arriving, _by, _why, _ticket = row
    if moved_to:
        from dibs.stores.transaction import BoardRow

        faults.moved_away(BoardRow(*row), store.where)
    reading = read_clock(store.machine, stored, floor)
    if writes and reading.anchor != stored:
        store.save_anchor(reading.anchor)
    store.skewed = reading.anchor.skewed
    return Glance(store, reading.now, seq)
