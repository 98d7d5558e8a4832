"""A whole board out of a SQLite file, and into one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from os.path import join

import apsw

from dibs.core.checks import short
from dibs.core.instants import Instant
from dibs.core.refusals import Refused
from dibs.stores import faults
from dibs.stores.clock import anchor_here, read_clock
from dibs.stores.copying import KEYS, TABLES, Reckoning, contents_of
from dibs.stores.queue import wait_for_turn
from dibs.stores.sqlite import BOARD, UNSAFE_FILE_SYSTEMS, Guarded, SqliteStore
from dibs.stores.transaction import (
    BoardRow,
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

SETTINGS = "settings.toml"


class FileSnapshot:
    """A file's board inside a transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        board: BoardRow,
        now: Instant,
        settings: str,
        read_at: int = 0,
    ) -> None:
        """`read_at`: when `now` was read, by this machine's clock."""
        self._connection = connection
        self.board, self.now, self.settings = board, now, settings
        self.read_at = read_at

    def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        found = self._connection.execute(f"PRAGMA table_info({table})")
        columns = tuple(row[1] for row in found)[1:]
        asked = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {KEYS[table]}"  # noqa: S608
        return columns, iter(self._connection.execute(asked))

    def count(self) -> int:
        one = (f"SELECT count(*) FROM {table}" for table in TABLES)  # noqa: S608
        return sum(int(self._connection.execute(asked).get) for asked in one)


@contextmanager
def snapshot(store: SqliteStore) -> Iterator[FileSnapshot]:
    """As the board is now; writers go on."""
    with looking(store) as (seen, _):
        yield seen


@contextmanager
def looking(store: SqliteStore) -> Iterator[tuple[FileSnapshot, ReadTransaction]]:
    """The same, and a transaction of that very instant to ask more of."""
    with store.read() as tx:
        yield FileSnapshot(store.connection, tx.board, tx.now, settings_of(store.folder)), tx


@contextmanager
def fenced(store: SqliteStore) -> Iterator[tuple[FileSnapshot, WriteTransaction]]:
    """Nobody writes meanwhile; the transaction is committed at the end."""
    with store.write("move") as tx:
        read_at = store.machine.boottime()
        settings = settings_of(store.folder)
        yield FileSnapshot(store.connection, tx.board, tx.now, settings, read_at), tx


def settings_of(folder: str) -> str:
    try:
        with open(join(folder, SETTINGS), encoding="utf-8") as file:
            lines = file.readlines()
    except OSError:
        return ""
    return "".join(line for line in lines if not line.lstrip().startswith("url"))


def receive(
    store: SqliteStore,
    source: Snapshot,
    finish: Finish,
    progress: Progress | None = None,
    *,
    replace: bool = False,
) -> Contents:
    """All rows in one transaction, `finish` in the same. What was there must be ours to replace."""
    store._make_folder()  # noqa: SLF001 - the same house
    with Guarded(store):
        turn = wait_for_turn(store.lock, "receive a board", store.wait, store.machine)
        try:
            return _receive(store, source, finish, progress, replace=replace)
        finally:
            turn.end()


def _receive(
    store: SqliteStore,
    source: Snapshot,
    finish: Finish,
    progress: Progress | None,
    *,
    replace: bool,
) -> Contents:
    store.make_file()
    connection = store._connect()  # noqa: SLF001
    connection.pragma("journal_mode", "wal")
    connection.pragma("foreign_keys", False)  # the old tables go as a whole
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            contents = _fill(store, connection, source, finish, progress, replace=replace)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    finally:
        store.close()
    if not replace:
        keep_settings(store.folder, source.settings)
    return contents


def _fill(
    store: SqliteStore,
    connection: apsw.Connection,
    source: Snapshot,
    finish: Finish,
    progress: Progress | None,
    *,
    replace: bool,
) -> Contents:
    floor = _clear(store, connection, source.board.uid, replace=replace)
    store._migrate(connection)  # noqa: SLF001
    reckoning = Reckoning(progress)
    for table in TABLES:
        columns, rows = source.rows(table)
        marks = ", ".join("?" * (len(columns) + 1))
        into = f"INSERT INTO {table} (board, {', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        connection.executemany(into, ((BOARD, *row) for row in reckoning.watch(rows)))
    stored = FileSnapshot(connection, source.board, source.now, "")
    if contents_of(stored) != reckoning.contents:
        raise faults.storage_failed(store.where, "what was stored is not what was sent")
    anchor = anchor_here(store.machine)
    store.save_anchor(anchor)
    [row] = connection.execute(
        f"SELECT {', '.join(BoardRow.fields)} FROM board WHERE board = {BOARD}"  # noqa: S608
    )
    now = read_clock(store.machine, anchor, Instant(floor)).now
    finish(WriteTransaction(store, BoardRow(*row), now, skewed=False))
    return reckoning.contents


def _clear(store: SqliteStore, connection: apsw.Connection, uid: str, *, replace: bool) -> int:
    """Takes away what was there, if it may be; says how far its clock was."""
    if not store.version(connection):
        return 0
    _, floor, moved_to, arriving = _there(store, connection, uid, replace=replace)
    drop_all(connection)
    connection.pragma("user_version", 0)
    return 0 if is_elsewhere(moved_to, arriving) else floor


def drop_all(connection: apsw.Connection) -> None:
    """Every table and view, with its indexes and triggers, whoever made it."""
    found = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')"
    for kind, name in connection.execute(found).fetchall():
        connection.execute(f"DROP {kind} {apsw.format_sql_value(name)}")


def _there(
    store: SqliteStore, connection: apsw.Connection, uid: str, *, replace: bool
) -> tuple[str, int, str, int]:
    """The board that is there, if it may be replaced by a copy of the board `uid`."""
    [found] = connection.execute("SELECT uid, floor, moved_to, arriving FROM board")
    there, floor, moved_to, arriving = found
    if there != uid or not (is_elsewhere(moved_to, arriving) or replace):
        raise faults.board_exists(store.where, there)
    return there, floor, moved_to, arriving


def expects(store: SqliteStore, uid: str, word: str) -> bool:
    """Whether a copy of this board is here that is not the board before somebody says this word."""
    known = {"uid": uid, "ticket": ticket_of(word)}
    with Guarded(store):
        [(found,)] = store.connection.execute(store.queries["expected"], known)
    return bool(found)


def arrive(store: SqliteStore, uid: str, word: str) -> None:
    """That copy is the board from now on."""
    known = {"uid": uid, "ticket": ticket_of(word)}
    with Guarded(store):
        connection = store.connection
        turn = wait_for_turn(store.lock, "arrive", store.wait, store.machine)
        try:
            connection.execute(store.queries["arrive"], known)
        finally:
            turn.end()


def confirm(store: SqliteStore) -> None:
    """Whatever can be read in a file was synced, and outlives the machine as a change would."""


def check_backup(store: SqliteStore) -> None:
    """Refuses a file that has more in it than a board, or other tables: before anything of it is used."""
    from dibs.stores.sqlite_health import foreign_parts

    with Guarded(store):
        connection = store._connect()  # noqa: SLF001
        try:
            strangers = foreign_parts(connection) if store.version(connection) else []
        finally:
            store.close()
    if strangers:
        what = ", ".join(map(short, strangers[:3]))
        raise faults.unsafe_storage(store.path, f"has something in it that is not of dibs: {what}")


def check_free(store: SqliteStore, uid: str) -> None:
    """Refuses a place to which the board could not be moved."""
    _try_folder(store)
    try:
        with Guarded(store):
            _there(store, store.connection, uid, replace=False)
    except Refused as problem:
        if problem.code != "no_board":
            raise
    finally:
        store.close()


def _try_folder(store: SqliteStore) -> None:
    """Makes a folder where the board's would be, and takes it away again: no mode says all about it."""
    from tempfile import TemporaryDirectory

    place = store.folder
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if place == store.folder:
        store._check_folder()  # noqa: SLF001
    kind = store.machine.file_system(place)
    if kind in UNSAFE_FILE_SYSTEMS:
        raise faults.network_file_system(store.folder, kind)
    try:
        TemporaryDirectory(prefix=".dibs-", dir=place).cleanup()
    except OSError as error:
        raise faults.storage_failed(store.folder, os.strerror(error.errno or 0)) from None


def put_aside(store: SqliteStore) -> None:
    """A damaged file keeps its bytes, under another name."""
    store.close()
    with Guarded(store):
        turn = wait_for_turn(store.lock, "put aside a damaged board", store.wait, store.machine)
        try:
            aside = f"{store.path}.damaged-{store.machine.wall()}"
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(store.path + suffix):
                    os.rename(store.path + suffix, aside + suffix)
        finally:
            turn.end()


def scrub(store: SqliteStore) -> str:
    """No byte of what was removed is left in the file or in the log beside it; or why some may be.

    SQLite leaves copies of a row in parts of the file that it does not use: all of it is written anew.
    """
    try:
        with Guarded(store):
            turn = wait_for_turn(store.lock, "note --redact", store.wait, store.machine)
            try:
                store.connection.execute("VACUUM")
                busy, *_ = next(store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            finally:
                turn.end()
    except Refused as problem:
        return f"unused parts of {store.path} may have the text still: {problem}; run it again"
    files = f"{store.path} or {store.path}-wal"
    left = f"somebody reads an older state: {files} has the text still; run it again later"
    return left if busy else ""


def make_single(store: SqliteStore) -> None:
    """One file, without a log beside it."""
    with Guarded(store):
        store.connection.pragma("journal_mode", "delete")
        store.close()


def keep_settings(folder: str, settings: str) -> None:
    """The board's settings come with it; those that stood there before stay beside, unused."""
    path = join(folder, SETTINGS)
    if settings_of(folder) == settings:
        return
    if os.path.exists(path):
        os.replace(path, f"{path}.old")
    if settings:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(settings)
