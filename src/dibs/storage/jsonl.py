"""A whole board as JSON lines: one per row, and a trailer that proves that none is missing.

{"format": "dibs", "schema": 1, "board": "0199...", "at": 1794700000000000, "rows": 812}
["task", {"id": 1, "key": "T-1", ...}]
{"counts": {"board": 1, ...}, "sha256": "..."}

Tables come in the order of `copy.TABLES`, rows in the order of their keys; the digest covers all bytes
before the last line. It detects truncation and corruption, not tampering: an attacker can compute it too.
So an import is verified like any other copy before it becomes a board.
"""

from __future__ import annotations

import json
from hashlib import sha256

from dibs.domain.checks import short
from dibs.domain.values import Instant
from dibs.storage import errors
from dibs.storage.copy import TABLES, RowDigest
from dibs.storage.queries import NEWEST, BoardRow, migrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    from dibs.storage.copy import Progress, Snapshot

FORMAT = "dibs"
LINE_MAX = 64 * 1024 * 1024
"""Limit in bytes: far more than any row has, and little enough to fit in memory."""
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class NotAnExport(Exception):  # noqa: N818 - the name says what it is about
    """The lines are not a complete board; the message says why."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(f"line {line}: {why}" if line else why)


# Writing.


def write(seen: Snapshot, file: IO[bytes], progress: Progress | None = None) -> int:
    """Writes the whole board, row by row; returns the number of rows."""
    digest = sha256()

    def put(value: object) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        digest.update(line)
        file.write(line)

    put(
        {
            "format": FORMAT,
            "schema": NEWEST,
            "board": seen.board.uid,
            "at": seen.now,
            "rows": seen.count(),
        }
    )
    counted = RowDigest(progress)
    for table in TABLES:
        columns, rows = seen.rows(table)
        for row in counted.watch(rows):
            put([table, dict(zip(columns, row))])
    counts = dict(zip(TABLES, counted.contents.counts))
    put({"counts": counts, "sha256": digest.hexdigest()})
    return counted.contents.rows


# Reading.


class Lines:
    """A `Snapshot` read from JSON lines, each line once and in order."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._number, self._digest = file, 0, sha256()
        self._counts = dict.fromkeys(TABLES, 0)
        self._columns = columns()
        head = self._head()
        self.now, self.settings = Instant(head["at"]), ""
        self._total: int = head["rows"]
        self._ahead = self._next()
        self.board = self._board(head["board"])

    def count(self) -> int:
        return self._total

    def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        return self._columns[table], self._rows(table)

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        while isinstance(self._ahead, list) and self._ahead[0] == table:
            self._counts[table] += 1
            yield self._row(table, self._ahead[1])
            self._ahead = self._next()
        if table == TABLES[-1]:
            self._finish()

    def _row(self, table: str, row: dict[str, Any]) -> tuple[Any, ...]:
        if tuple(row) != self._columns[table]:
            raise self._wrong(f"it does not have the columns of a {table}")
        for column, value in row.items():
            if not storable(value):
                raise self._wrong(f"its {column} cannot be stored")
        return tuple(row.values())

    def _head(self) -> dict[str, Any]:
        head = self._parsed(self._line())
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise NotAnExport("it does not begin like an export of dibs", 0)
        schema, known = head.get("schema"), NEWEST
        if type(schema) is int and schema > known:
            raise errors.newer_schema(getattr(self._file, "name", "it"), schema, known)
        if schema != known:
            raise self._wrong(f"its schema is {short(repr(schema), 40)}; this dibs reads {known}")
        numbers = all(type(head.get(name)) is int for name in ("at", "rows"))
        if not numbers or not isinstance(head.get("board"), str):
            raise self._wrong("it lacks the board, the time or the row count")
        return head

    def _board(self, uid: str) -> BoardRow:
        if not isinstance(self._ahead, list) or self._ahead[0] != "board":
            raise self._wrong("it is not the row of the board itself")
        row = dict(zip(self._columns["board"], self._row("board", self._ahead[1])))
        if row["uid"] != uid:
            raise self._wrong("it is the row of another board")
        return BoardRow(**row)

    def _next(self) -> Any:
        """The next row as `[table, columns]`, or the trailer."""
        before = self._digest.hexdigest()
        value = self._parsed(self._line())
        if isinstance(value, dict):
            return value | {"computed": before}
        if not is_row(value):
            raise self._wrong("it is not a row of a table")
        return value

    def _finish(self) -> None:
        last = self._ahead
        if isinstance(last, list):
            raise self._wrong(f"a row of {last[0]} is out of order")
        if last.get("sha256") != last["computed"]:
            raise self._wrong("the lines before it were changed: the digest differs")
        if last.get("counts") != self._counts or sum(self._counts.values()) != self._total:
            raise self._wrong("its row counts are wrong")
        if self._file.read(1):
            raise NotAnExport("there is more after its last line", self._number)

    def _line(self) -> bytes:
        line = self._file.readline(LINE_MAX + 1)
        self._number += 1
        if not line.endswith(b"\n"):
            cut = "it is too long" if len(line) > LINE_MAX else "it is truncated here"
            raise self._wrong(cut)
        self._digest.update(line)
        return line

    def _parsed(self, line: bytes) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            if self._number == 1:
                raise NotAnExport("it does not begin like an export of dibs", 0) from None
            raise self._wrong("it is not JSON") from None

    def _wrong(self, why: str) -> NotAnExport:
        return NotAnExport(why, self._number)


def is_row(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and value[0] in TABLES
        and isinstance(value[1], dict)
    )


def storable(value: object) -> bool:
    """Whether either database can store the value: null, an integer or text."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or (type(value) is int and LOWEST <= value <= HIGHEST)


def columns() -> dict[str, tuple[str, ...]]:
    """The columns of each table in the newest schema, without the first (the board's number)."""
    import apsw

    connection = apsw.Connection(":memory:")
    try:
        for texts in migrations("sqlite").values():
            connection.execute("\n".join(texts))
        return {
            table: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))[1:]
            for table in TABLES
        }
    finally:
        connection.close()
