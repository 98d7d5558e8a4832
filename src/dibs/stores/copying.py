"""A whole board, as it is carried from one place to another: for a move, a backup, a restore.

Both databases have the same tables with the same columns, so a row is carried as it is; only the
number that a board has in its database is its own there.
"""

from __future__ import annotations

from hashlib import sha256

from dibs.core.instants import Instant
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from dibs.stores.transaction import BoardRow, WriteTransaction

    Progress = Callable[[int], None]
    Finish = Callable[[WriteTransaction], None]

    class Carried(Protocol):
        """The rows of a board."""

        def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
            """The names of the columns but the first, which is the board's number; and the rows."""
            ...

        def count(self) -> int:
            """All rows."""
            ...

    class Snapshot(Carried, Protocol):
        """A board at one instant: nothing changes while it is looked at."""

        board: BoardRow
        now: Instant
        settings: str


TABLES = (
    "board", "actor", "actor_name", "session", "task", "dependency", "ended_lease", "lease_process", "event",
    "stint", "allowance", "approval", "note", "request", "refusal",
)  # fmt: skip
"""In an order in which no row refers to one that comes later."""

KEYS = {
    "board": "uid", "actor": "id", "actor_name": "folded", "session": "actor, name", "task": "id",
    "dependency": "task, on_task",
    "ended_lease": "task, token_epoch, token_number",
    "lease_process": "task, token_epoch, token_number", "event": "seq", "stint": "seq",
    "allowance": "seq", "approval": "seq", "note": "seq", "request": "actor, id", "refusal": "id",
}  # fmt: skip
"""The order of rows, the same everywhere."""

ASIDE = "-until-"
"""Between the id of a board and a number: what was replaced in a database keeps its rows, as another board."""

STEP = 500
"""Rows between two signs of progress."""


def id_of(uid: str) -> str:
    """Which board it is, or was before it was replaced."""
    known, aside, number = uid.rpartition(ASIDE)
    return known if aside and number.isdigit() else uid


class Contents(Value):
    """What a snapshot holds: how many rows of each table, and a digest of them."""

    counts: tuple[int, ...]
    digests: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(self.counts)


class Reckoning:
    """Counts and digests of rows while they pass."""

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


def contents_of(snapshot: Carried, progress: Progress | None = None) -> Contents:
    """Reads all of it."""
    reckoning = Reckoning(progress)
    for table in TABLES:
        for _ in reckoning.watch(snapshot.rows(table)[1]):
            pass
    return reckoning.contents
