"""A whole board as a stream of rows: for a move, a backup, a restore.

Both databases have the same tables and columns, so rows are copied unchanged; only the board's number
differs between databases.
"""

from __future__ import annotations

from hashlib import sha256

from dibs.domain.values import Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from dibs.storage.queries import BoardRow
    from dibs.storage.transaction import WriteTransaction

    Progress = Callable[[int], None]
    Finish = Callable[[WriteTransaction], None]

    class BoardRows(Protocol):
        """The rows of a board, to be copied."""

        def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
            """The column names and the rows of a table, without the first column (the board's number)."""
            ...

        def count(self) -> int:
            """The number of rows in all tables."""
            ...

    class Snapshot(BoardRows, Protocol):
        """A board at one instant: nothing changes while it is read."""

        board: BoardRow
        now: Instant
        settings: str


TABLES = (
    "board", "actor", "actor_name", "session", "task", "dependency", "ended_lease", "lease_process", "event",
    "stint", "allowance", "approval", "note", "request", "refusal",
)  # fmt: skip
"""In an order in which no row references a later one."""

KEYS = {
    "board": "uid", "actor": "id", "actor_name": "folded", "session": "actor, name", "task": "id",
    "dependency": "task, on_task",
    "ended_lease": "task, token_epoch, token_number",
    "lease_process": "task, token_epoch, token_number", "event": "seq", "stint": "seq",
    "allowance": "seq", "approval": "seq", "note": "seq", "request": "actor, id", "refusal": "id",
}  # fmt: skip
"""The sort order of each table's rows, the same in both databases."""

REPLACED_SUFFIX = "-until-"
"""Between a board's id and a number: a board that was replaced in a database keeps its rows under this id.
"""

STEP = 500
"""Rows between two progress reports."""


def id_of(uid: str) -> str:
    """The board's id, without the suffix of a replaced board."""
    known, aside, number = uid.rpartition(REPLACED_SUFFIX)
    return known if aside and number.isdigit() else uid


class Contents(Value):
    """Row count of each table in a snapshot, and a digest of all rows."""

    counts: tuple[int, ...]
    digests: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(self.counts)


class RowDigest:
    """Counts and hashes rows as they stream through."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._passed = 0
        self._counts: list[int] = []
        self._digests: list[str] = []

    def watch(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        digest, count = sha256(), 0
        for row in rows:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
            count += 1
            self._passed += 1
            if self._progress is not None and self._passed % STEP == 0:
                self._progress(self._passed)
            yield row
        self._counts.append(count)
        self._digests.append(digest.hexdigest())

    @property
    def contents(self) -> Contents:
        return Contents(tuple(self._counts), tuple(self._digests))


def contents_of(snapshot: BoardRows, progress: Progress | None = None) -> Contents:
    """Reads the whole snapshot to count and hash it."""
    digest = RowDigest(progress)
    for table in TABLES:
        for _ in digest.watch(snapshot.rows(table)[1]):
            pass
    return digest.contents
