"""A whole board out of a PostgreSQL database, and into one."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
from psycopg import sql

from dibs.core.instants import Instant
from dibs.stores import faults
from dibs.stores.copying import ASIDE, KEYS, TABLES, Reckoning, contents_of, id_of
from dibs.stores.dialect import SCHEMA
from dibs.stores.postgres import PostgresStore
from dibs.stores.postgres_transaction import at_home, board_in, heard_by_standbys
from dibs.stores.transaction import (
    ARRIVING,
    ReadTransaction,
    WriteTransaction,
    is_elsewhere,
    ticket_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.stores.copying import Contents, Finish, Progress, Snapshot

    Connection = psycopg.Connection[Any]


IDLE = "15min"
"""How long the source's lock is kept while nothing is asked of it: what arrived is verified then."""

PAGE = 2_000
"""Rows that are fetched at a time."""


class PlainLink:
    """Questions and changes one by one, on a connection of its own."""

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
        asked = sql.SQL(
            "DECLARE {} NO SCROLL CURSOR FOR SELECT {} FROM {} WHERE board = {} ORDER BY {}"
        ).format(
            sql.Identifier(f"rows of {table}"),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier(SCHEMA, table),
            sql.Literal(self._number),
            sql.SQL(KEYS[table]),
        )
        self._connection.execute(asked)
        return columns, self._fetched(sql.Identifier(f"rows of {table}"))

    def _fetched(self, cursor: sql.Identifier) -> Iterator[tuple[Any, ...]]:
        """Page by page: who stops in the middle leaves nothing behind that a rollback waits for."""
        fetch = sql.SQL("FETCH {} FROM {}").format(sql.Literal(PAGE), cursor)
        while page := self._connection.execute(fetch).fetchall():
            yield from page
        self._connection.execute(sql.SQL("CLOSE {}").format(cursor))

    def count(self) -> int:
        asked = sql.SQL("SELECT count(*) FROM {} WHERE board = %s")
        tables = (asked.format(sql.Identifier(SCHEMA, table)) for table in TABLES)
        return sum(
            self._connection.execute(each, (self._number,)).fetchall()[0][0] for each in tables
        )


class ServerSnapshot(Rows):
    """A board in a database at one instant; what was replaced as it was before that."""

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
        """When `now` was read, by this machine's clock."""
        board, stamp = board_in(store, row)
        self.board = at_home(store, board, changes=changes)
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
    """All that are written, but the first, which is the board's number."""
    asked = (
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 1 "
        "AND NOT attisdropped ORDER BY attnum"
    )
    return tuple(name for (name,) in connection.execute(asked, (f"{SCHEMA}.{table}",)))


@contextmanager
def snapshot(store: PostgresStore) -> Iterator[ServerSnapshot]:
    """As the board is now; writers go on."""
    with looking(store) as (seen, _):
        yield seen


@contextmanager
def looking(store: PostgresStore) -> Iterator[tuple[ServerSnapshot, ReadTransaction]]:
    """The same, and a transaction of that very instant to ask more of."""
    number = store.find()
    with store.guarded(), store.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        store.begin_guarded(connection)
        seen = ServerSnapshot(store, connection, number)
        link = PlainLink(store, connection, number)
        yield seen, ReadTransaction(link, seen.board, seen.now, skewed=False)
        connection.execute("COMMIT")


@contextmanager
def fenced(store: PostgresStore) -> Iterator[tuple[ServerSnapshot, WriteTransaction]]:
    """Nobody writes meanwhile, nor renews; the transaction is committed at the end."""
    number = store.find()
    guard = store.guarded()
    with guard, store.connect() as connection, heard_by_standbys(store, connection):
        connection.execute("BEGIN")
        link = PlainLink(store, connection, number)
        link.ask("take_turn", wait=store.patience(), idle=IDLE)
        seen = ServerSnapshot(store, connection, number, changes=True)
        place = ("moved_to", "arriving", "ticket")
        here = {name: getattr(seen.board, name) for name in place}
        link.change("save_place", here)  # who may not say where it goes is refused before it goes
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
    """All rows in one transaction, `finish` in the same. What was there must be ours to replace."""
    with (
        store.guarded(),
        store.connect() as connection,
        heard_by_standbys(store, connection),
        connection.transaction(),
    ):
        settings = _make_room(store, connection, source.board.uid, replace=replace)
        [(number,)] = connection.execute("SELECT coalesce(max(board), 0) + 1 FROM dibs.board")
        reckoning = Reckoning(progress)
        for table in TABLES:
            columns, rows = source.rows(table)
            into = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(SCHEMA, table),
                sql.SQL(", ").join(map(sql.Identifier, ("board", *columns))),
            )
            with connection.cursor().copy(into) as copy:
                for row in reckoning.watch(rows):
                    copy.write_row((number, *row))
        if contents_of(Rows(connection, number)) != reckoning.contents:
            raise faults.storage_failed(store.where, "what was stored is not what was sent")
        link = PlainLink(store, connection, number)
        home = {"uid": source.board.uid, "name": store.address.board}
        connection.execute(store.queries["add_home"], home)
        link.change("save_settings", {"settings": source.settings or settings})
        [row] = link.ask("look_at_board")
        board, stamp = board_in(store, row)
        finish(WriteTransaction(link, board, Instant(store.instant(stamp)), skewed=False))
    store.close()
    store.number = 0
    return reckoning.contents


def _make_room(store: PostgresStore, connection: Connection, uid: str, *, replace: bool) -> str:
    """The schema is there and the place is free; the settings that the board had there."""
    connection.execute("SET LOCAL client_min_messages = 'warning'")  # of a standby that is silent
    store.migrate(connection)
    return _clear(store, connection, uid, replace=replace)


def _clear(store: PostgresStore, connection: Connection, uid: str, *, replace: bool) -> str:
    """Takes away a copy that never arrived; what the board leaves behind leads to the new one.

    Says which settings the board had: a backup of a file knows of none.
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
        (str(store.address.to_keep()), uid + ASIDE),
    )
    return settings


def _there(
    store: PostgresStore, connection: Connection, uid: str, *, replace: bool
) -> list[tuple[int, str, int]]:
    """The boards of this name or this id, if they may be replaced by a copy of the board `uid`."""
    found = connection.execute(
        "SELECT board, name, uid, moved_to, arriving FROM dibs.board JOIN dibs.home USING (board) "
        "WHERE name = %s OR uid = %s ORDER BY board",
        (store.address.board, uid),
    ).fetchall()
    for _, name, there, moved_to, arriving in found:
        is_free = is_elsewhere(moved_to, arriving)
        if there == uid and name != store.address.board and not is_free:
            known_as = str(store.address.but(board=name))
            raise faults.in_this_database(store.where, known_as, uid)
        if id_of(there) != uid or not (is_free or replace):
            raise faults.board_exists(store.where, there)
    return [(number, name, arriving) for number, name, *_, arriving in found]


def expects(store: PostgresStore, uid: str, word: str) -> bool:
    """Whether a copy of this board is here that is not the board before somebody says this word."""
    known = {"uid": uid, "ticket": ticket_of(word)}
    with store.transaction() as connection:
        [(found,)] = connection.execute(store.queries["expected"], known)
    return bool(found)


def arrive(store: PostgresStore, uid: str, word: str) -> None:
    """That copy is the board from now on."""
    with store.transaction() as connection:
        connection.execute(store.queries["arrive"], {"uid": uid, "word": word})


def confirm(store: PostgresStore) -> None:
    """What can be read here may be unknown to a standby. After this it is known, or it is refused."""
    number = store.find()
    with (
        store.guarded(),
        store.connect() as connection,
        heard_by_standbys(store, connection),
        connection.transaction(),
    ):
        link = PlainLink(store, connection, number)
        link.ask("take_turn", wait=store.patience(), idle=IDLE)
        link.change("touch_board", {})


def check_free(store: PostgresStore, uid: str) -> None:
    """Refuses a place to which the board could not be moved: all is tried but rows, and taken back."""
    with store.guarded(), store.connect() as connection, connection.transaction() as trial:
        _make_room(store, connection, uid, replace=False)
        for table in (*TABLES, "home"):
            nothing = sql.SQL("INSERT INTO {0} SELECT * FROM {0} WHERE false")
            connection.execute(nothing.format(sql.Identifier(SCHEMA, table)))
        raise psycopg.Rollback(trial)


def _put_aside(
    store: PostgresStore, connection: Connection, number: int, name: str, uid: str
) -> None:
    """The board that was there stays, for whoever has it open or knows its name: they are sent on.

    Only the name that the new one needs is given to it, and another one to what had it.
    """
    PlainLink(store, connection, number).ask("take_turn", wait=store.patience(), idle=IDLE)
    aside = f"{ASIDE}{number}"
    connection.execute(
        "UPDATE dibs.board SET uid = %s, arriving = 0 WHERE board = %s", (uid + aside, number)
    )
    if name == store.address.board:
        renamed = (name + aside, number)
        connection.execute("UPDATE dibs.home SET name = %s WHERE board = %s", renamed)
