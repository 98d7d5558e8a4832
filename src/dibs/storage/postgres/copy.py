"""Copies a whole board out of a PostgreSQL database, or into one."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
from psycopg import sql

from dibs.domain.values import Instant
from dibs.storage import errors
from dibs.storage.copy import KEYS, REPLACED_SUFFIX, TABLES, RowDigest, contents_of, id_of
from dibs.storage.dialect import SCHEMA
from dibs.storage.postgres.store import PostgresStore
from dibs.storage.postgres.transaction import active_board, board_and_clock, replicated_commit
from dibs.storage.queries import ARRIVING, is_elsewhere, move_token_hash
from dibs.storage.transaction import ReadTransaction, WriteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.storage.copy import Contents, Finish, Progress, Snapshot

    Connection = psycopg.Connection[Any]


IDLE = "15min"
"""Idle timeout of the transaction that locks the source: meanwhile the copy is verified."""

PAGE = 2_000
"""Rows per fetch."""


class PlainLink:
    """Runs queries and changes one by one, without a pipeline, on its own connection."""

    def __init__(self, store: PostgresStore, connection: Connection, number: int) -> None:
        self._store, self._connection, self._number = store, connection, number

    def ask(self, query: str, **params: Any) -> list[Any]:
        params["board"] = self._number
        return self._connection.execute(self._store.queries[query], params).fetchall()

    def stream(self, query: str, **params: Any) -> Iterator[Any]:
        return iter(self.ask(query, **params))

    def change(self, query: str, params: dict[str, Any]) -> None:
        params["board"] = self._number
        self._connection.execute(self._store.queries[query], params)


class Rows:
    """The rows of a board in a database, inside a transaction."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number = connection, number

    def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        columns = columns_of(self._connection, table)
        statement = sql.SQL(
            "DECLARE {} NO SCROLL CURSOR FOR SELECT {} FROM {} WHERE board = {} ORDER BY {}"
        ).format(
            sql.Identifier(f"rows of {table}"),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier(SCHEMA, table),
            sql.Literal(self._number),
            sql.SQL(KEYS[table]),
        )
        self._connection.execute(statement)
        return columns, self._fetched(sql.Identifier(f"rows of {table}"))

    def _fetched(self, cursor: sql.Identifier) -> Iterator[tuple[Any, ...]]:
        """Page by page: a reader that stops early leaves nothing open that would block a rollback."""
        fetch = sql.SQL("FETCH {} FROM {}").format(sql.Literal(PAGE), cursor)
        while page := self._connection.execute(fetch).fetchall():
            yield from page
        self._connection.execute(sql.SQL("CLOSE {}").format(cursor))

    def count(self) -> int:
        statement = sql.SQL("SELECT count(*) FROM {} WHERE board = %s")
        tables = (statement.format(sql.Identifier(SCHEMA, table)) for table in TABLES)
        return sum(
            self._connection.execute(each, (self._number,)).fetchall()[0][0] for each in tables
        )


class ServerSnapshot(Rows):
    """A board in a database at one instant; a replaced board as it was before its replacement."""

    def __init__(
        self,
        store: PostgresStore,
        connection: Connection,
        number: int,
        *,
        changes: bool = False,
    ) -> None:
        super().__init__(connection, number)
        link = PlainLink(store, connection, number)
        [row] = link.ask("look_at_board")
        self.read_at = store.machine.boottime()
        """When `now` was read, on this machine's clock."""
        board, stamp = board_and_clock(store, row)
        self.board = active_board(store, board, changes=changes)
        self.now = Instant(max(store.instant(stamp), self.board.floor))
        [(self.settings,)] = link.ask("settings")

    def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        columns, rows = super().rows(table)
        if table != "board":
            return columns, rows
        [row] = rows
        known = {**dict(zip(columns, row, strict=True)), **self.board.named()}
        return columns, iter([tuple(known[column] for column in columns)])


def columns_of(connection: Connection, table: str) -> tuple[str, ...]:
    """All columns that are written, without the first (the board's number)."""
    statement = (
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 1 "
        "AND NOT attisdropped ORDER BY attnum"
    )
    return tuple(name for (name,) in connection.execute(statement, (f"{SCHEMA}.{table}",)))


@contextmanager
def snapshot(store: PostgresStore) -> Iterator[ServerSnapshot]:
    """A snapshot of the board; writers continue."""
    with snapshot_with_transaction(store) as (seen, _):
        yield seen


@contextmanager
def snapshot_with_transaction(
    store: PostgresStore,
) -> Iterator[tuple[ServerSnapshot, ReadTransaction]]:
    """A snapshot, and a transaction at the same instant for further queries."""
    number = store.find()
    with store.guarded(), store.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        store.begin_guarded(connection)
        seen = ServerSnapshot(store, connection, number)
        link = PlainLink(store, connection, number)
        yield seen, ReadTransaction(link, seen.board, seen.now, skewed=False)
        connection.execute("COMMIT")


@contextmanager
def locked_snapshot(store: PostgresStore) -> Iterator[tuple[ServerSnapshot, WriteTransaction]]:
    """A snapshot with all writes and renewals blocked; commits its transaction at the end."""
    number = store.find()
    guard = store.guarded()
    with guard, store.connect() as connection, replicated_commit(store, connection):
        connection.execute("BEGIN")
        link = PlainLink(store, connection, number)
        link.ask("lock_board", wait=store.patience(), idle=IDLE)
        seen = ServerSnapshot(store, connection, number, changes=True)
        place = ("moved_to", "arriving", "ticket")
        here = {name: getattr(seen.board, name) for name in place}
        # Check the right to write a forwarding record before moving.
        link.change("save_place", here)
        yield seen, WriteTransaction(link, seen.board, seen.now, skewed=False)
        guard.committing = True
        connection.execute("COMMIT")


def receive(
    store: PostgresStore,
    source: Snapshot,
    finish: Finish,
    progress: Progress | None = None,
    *,
    replace: bool = False,
) -> Contents:
    """Copies all rows and runs `finish` in one transaction. `replace`: an existing board may be replaced."""
    with (
        store.guarded(),
        store.connect() as connection,
        replicated_commit(store, connection),
        connection.transaction(),
    ):
        settings = _make_room(store, connection, source.board.uid, replace=replace)
        [(number,)] = connection.execute("SELECT coalesce(max(board), 0) + 1 FROM dibs.board")
        digest = RowDigest(progress)
        for table in TABLES:
            columns, rows = source.rows(table)
            into = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(SCHEMA, table),
                sql.SQL(", ").join(map(sql.Identifier, ("board", *columns))),
            )
            with connection.cursor().copy(into) as copy:
                for row in digest.watch(rows):
                    copy.write_row((number, *row))
        if contents_of(Rows(connection, number)) != digest.contents:
            raise errors.storage_failed(
                store.where, "the stored rows differ from the rows that were sent"
            )
        link = PlainLink(store, connection, number)
        home = {"uid": source.board.uid, "name": store.address.board}
        connection.execute(store.queries["add_home"], home)
        link.change("save_settings", {"settings": source.settings or settings})
        [row] = link.ask("look_at_board")
        board, stamp = board_and_clock(store, row)
        finish(WriteTransaction(link, board, Instant(store.instant(stamp)), skewed=False))
    store.close()
    store.number = 0
    return digest.contents


def _make_room(store: PostgresStore, connection: Connection, uid: str, *, replace: bool) -> str:
    """Creates the schema and clears the place; returns the settings of the board that was there."""
    # Shows warnings about unreachable standbys.
    connection.execute("SET LOCAL client_min_messages = 'warning'")
    store.migrate(connection)
    return _clear(store, connection, uid, replace=replace)


def _clear(store: PostgresStore, connection: Connection, uid: str, *, replace: bool) -> str:
    """Deletes copies that were never activated, and forwards replaced boards to the new one.

    Returns the settings of the replaced board: a backup of a SQLite file contains none.
    """
    settings = ""
    for number, name, arriving in _there(store, connection, uid, replace=replace):
        if arriving == ARRIVING:
            for table in ("home", *TABLES[:0:-1], "board"):
                gone = sql.SQL("DELETE FROM {} WHERE board = %s")
                connection.execute(gone.format(sql.Identifier(SCHEMA, table)), (number,))
        else:
            [(settings,)] = PlainLink(store, connection, number).ask("settings")
            _put_aside(store, connection, number, name, uid)
    connection.execute(
        "UPDATE dibs.board SET moved_to = %s WHERE starts_with(uid, %s)",
        (str(store.address.to_keep()), uid + REPLACED_SUFFIX),
    )
    return settings


def _there(
    store: PostgresStore, connection: Connection, uid: str, *, replace: bool
) -> list[tuple[int, str, int]]:
    """Boards with this name or id, refused if a copy of the board `uid` may not replace them."""
    found = connection.execute(
        "SELECT board, name, uid, moved_to, arriving FROM dibs.board JOIN dibs.home USING (board) "
        "WHERE name = %s OR uid = %s ORDER BY board",
        (store.address.board, uid),
    ).fetchall()
    for _, name, there, moved_to, arriving in found:
        is_free = is_elsewhere(moved_to, arriving)
        if there == uid and name != store.address.board and not is_free:
            known_as = str(store.address.but(board=name))
            raise errors.in_this_database(store.where, known_as, uid)
        if id_of(there) != uid or not (is_free or replace):
            raise errors.board_exists(store.where, there)
    return [(number, name, arriving) for number, name, *_, arriving in found]


def has_inactive_copy(store: PostgresStore, uid: str, word: str) -> bool:
    """Whether there is an inactive copy of this board that this move token activates."""
    known = {"uid": uid, "ticket": move_token_hash(word)}
    with store.transaction() as connection:
        [(found,)] = connection.execute(store.queries["expected"], known)
    return bool(found)


def activate_copy(store: PostgresStore, uid: str, word: str) -> None:
    """Activates the copy with its move token."""
    with store.transaction() as connection:
        connection.execute(store.queries["arrive"], {"uid": uid, "word": word})


def wait_until_durable(store: PostgresStore) -> None:
    """Refuses unless the readable state is replicated: a standby may not have received it yet."""
    number = store.find()
    with (
        store.guarded(),
        store.connect() as connection,
        replicated_commit(store, connection),
        connection.transaction(),
    ):
        link = PlainLink(store, connection, number)
        link.ask("lock_board", wait=store.patience(), idle=IDLE)
        link.change("touch_board", {})


def check_free(store: PostgresStore, uid: str) -> None:
    """Refuses an unusable target of a move: tries everything except copying rows, then rolls back."""
    with store.guarded(), store.connect() as connection, connection.transaction() as trial:
        _make_room(store, connection, uid, replace=False)
        for table in (*TABLES, "home"):
            nothing = sql.SQL("INSERT INTO {0} SELECT * FROM {0} WHERE false")
            connection.execute(nothing.format(sql.Identifier(SCHEMA, table)))
        raise psycopg.Rollback(trial)


def _put_aside(
    store: PostgresStore, connection: Connection, number: int, name: str, uid: str
) -> None:
    """Keeps the replaced board for clients that have it open or know its name, and forwards them.

    Renames it only if the new board needs its name.
    """
    PlainLink(store, connection, number).ask("lock_board", wait=store.patience(), idle=IDLE)
    aside = f"{REPLACED_SUFFIX}{number}"
    connection.execute(
        "UPDATE dibs.board SET uid = %s, arriving = 0 WHERE board = %s", (uid + aside, number)
    )
    if name == store.address.board:
        renamed = (name + aside, number)
        connection.execute("UPDATE dibs.home SET name = %s WHERE board = %s", renamed)
