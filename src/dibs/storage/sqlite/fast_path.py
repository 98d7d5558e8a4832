"""The fast path of a SQLite board: the read of a guard, and the renewal of a session's leases.

Both run before every edit, so they load only what they use: no events, no ledger.
"""

from __future__ import annotations

from dibs.domain.events.base import renew
from dibs.storage import queries
from dibs.storage.readiness import ReadinessQueries
from dibs.storage.sqlite.store import ReadContext, SqliteStore, WriteContext, read_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Task
    from dibs.domain.values import Instant


class FastTransaction(ReadinessQueries):
    """A consistent snapshot of who holds what."""

    def __init__(self, store: SqliteStore, now: Instant, seq: int) -> None:
        self._ask = store.ask
        self._put = store.change
        self._actors = {}
        self._seq = seq
        self.now = now

    def renew(self, task: Task) -> None:
        """Extends the lease from now and changes nothing else. Only valid inside a `FastRenewalContext`."""
        self._put("save_task", queries.work_columns(renew(task, self.now)))

    def finish(self) -> None:
        """Raises the floor of the board's clock, as every change does."""
        self._put("save_seq", {"floor": self.now, "seq": self._seq})


class FastReadContext(ReadContext):
    """`with FastReadContext(store) as tx`: the fast path of `store.read()`, for guards."""

    def _begin(self) -> FastTransaction:  # type: ignore[override]
        store = self._store
        self._open(store.connection, "BEGIN")
        return begin_fast(store)


class FastRenewalContext(WriteContext):
    """`with FastRenewalContext(store, ...) as tx`: the fast path of `store.write()`, for renewals only.

    Does not wait for fsync: the next claim syncs it too. A power failure can only lose some time of a lease
    whose session the same failure has ended.
    """

    def __enter__(self) -> FastTransaction:  # type: ignore[override]
        return ReadContext.__enter__(self)  # type: ignore[return-value]

    def _begin(self) -> FastTransaction:  # type: ignore[override]
        self._store.connection.execute("PRAGMA synchronous = NORMAL")
        self._lock_and_begin()
        return begin_fast(self._store, writes=True)

    def _end(self, *, commit: bool) -> None:
        try:
            super()._end(commit=commit)
        finally:
            if self._store.opened is not None:
                self._store.opened.execute("PRAGMA synchronous = FULL")


def begin_fast(store: SqliteStore, *, writes: bool = False) -> FastTransaction:
    """Reads the board inside a transaction that has begun. `writes`: also saves the anchor of a new boot."""
    row, stored = store.row_and_anchor()
    _uid, _created, _epoch, floor, seq, *_counted, moved_to, _arriving, _by, _why, _ticket = row
    if moved_to:
        queries.refuse_moved(queries.BoardRow(*row), store.where)
    reading = read_clock(store.machine, stored, floor)
    if writes and reading.anchor != stored:
        store.save_anchor(reading.anchor)
    store.skewed = reading.anchor.skewed
    return FastTransaction(store, reading.now, seq)
