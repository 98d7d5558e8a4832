"""Copies a whole board out of a SQLite file, or into one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from os.path import join

import apsw

from dibs.domain.checks import short
from dibs.domain.refusals import Refused
from dibs.domain.values import Instant
from dibs.safe_files import unsafe_storage
from dibs.storage import errors
from dibs.storage.copy import KEYS, TABLES, RowDigest, contents_of
from dibs.storage.queries import BoardRow, is_elsewhere, move_token_hash
from dibs.storage.sqlite.store import (
    BOARD,
    UNSAFE_FILE_SYSTEMS,
    SqliteErrorMap,
    SqliteStore,
    read_clock,
    wall_clock_anchor,
)
from dibs.storage.sqlite.write_lock import CREATED, RECEIPT, acquire_write_lock
from dibs.storage.transaction import ReadTransaction, WriteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.storage.copy import Contents, Finish, Progress, Snapshot

SETTINGS = "settings.toml"


class FileSnapshot:
    """The board of a file, inside a transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        board: BoardRow,
        now: Instant,
        settings: str,
        read_at: int = 0,
    ) -> None:
        """`read_at`: when `now` was read, on this machine's clock."""
        self._connection = connection
        self.board, self.now, self.settings = board, now, settings
        self.read_at = read_at

    def rows(self, table: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        found = self._connection.execute(f"PRAGMA table_info({table})")
        columns = tuple(row[1] for row in found)[1:]
        statement = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {KEYS[table]}"  # noqa: S608
        return columns, iter(self._connection.execute(statement))

    def count(self) -> int:
        one = (f"SELECT count(*) FROM {table}" for table in TABLES)  # noqa: S608
        return sum(int(self._connection.execute(statement).get) for statement in one)


@contextmanager
def snapshot(store: SqliteStore) -> Iterator[FileSnapshot]:
    """A snapshot of the board; writers continue."""
    with snapshot_with_transaction(store) as (seen, _):
        yield seen


@contextmanager
def snapshot_with_transaction(store: SqliteStore) -> Iterator[tuple[FileSnapshot, ReadTransaction]]:
    """A snapshot, and a transaction at the same instant for further queries."""
    with store.read() as tx:
        yield FileSnapshot(store.connection, tx.board, tx.now, settings_of(store.folder)), tx


@contextmanager
def locked_snapshot(store: SqliteStore) -> Iterator[tuple[FileSnapshot, WriteTransaction]]:
    """A snapshot with all writes blocked; commits its transaction at the end."""
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
    """Copies all rows and runs `finish` in one transaction. `replace`: an existing board may be replaced."""
    store._make_folder()  # noqa: SLF001 - the same package
    with SqliteErrorMap(store):
        lock = acquire_write_lock(store.lock, RECEIPT, store.wait, store.machine)
        try:
            contents = _receive(store, source, finish, progress, replace=replace)
            lock.label(CREATED)
            return contents
        finally:
            lock.end()


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
    connection.pragma("foreign_keys", False)  # the old tables are dropped as a whole
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
    digest = RowDigest(progress)
    for table in TABLES:
        columns, rows = source.rows(table)
        marks = ", ".join("?" * (len(columns) + 1))
        into = f"INSERT INTO {table} (board, {', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        connection.executemany(into, ((BOARD, *row) for row in digest.watch(rows)))
    stored = FileSnapshot(connection, source.board, source.now, "")
    if contents_of(stored) != digest.contents:
        raise errors.storage_failed(
            store.where, "the stored rows differ from the rows that were sent"
        )
    anchor = wall_clock_anchor(store.machine)
    store.save_anchor(anchor)
    [row] = connection.execute(
        f"SELECT {', '.join(BoardRow.fields)} FROM board WHERE board = {BOARD}"  # noqa: S608
    )
    now = read_clock(store.machine, anchor, Instant(floor)).now
    finish(WriteTransaction(store, BoardRow(*row), now, skewed=False))
    return digest.contents


def _clear(store: SqliteStore, connection: apsw.Connection, uid: str, *, replace: bool) -> int:
    """Removes what was there, if allowed; returns the floor of its clock."""
    if not store.version(connection):
        return 0
    _, floor, moved_to, arriving = _there(store, connection, uid, replace=replace)
    drop_all(connection)
    connection.pragma("user_version", 0)
    return 0 if is_elsewhere(moved_to, arriving) else floor


def drop_all(connection: apsw.Connection) -> None:
    """Drops every table and view with its indexes and triggers, whoever created it."""
    found = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')"
    for kind, name in connection.execute(found).fetchall():
        connection.execute(f"DROP {kind} {apsw.format_sql_value(name)}")


def _there(
    store: SqliteStore, connection: apsw.Connection, uid: str, *, replace: bool
) -> tuple[str, int, str, int]:
    """The existing board, refused if a copy of the board `uid` may not replace it."""
    [found] = connection.execute("SELECT uid, floor, moved_to, arriving FROM board")
    there, floor, moved_to, arriving = found
    if there != uid or not (is_elsewhere(moved_to, arriving) or replace):
        raise errors.board_exists(store.where, there)
    return there, floor, moved_to, arriving


def has_inactive_copy(store: SqliteStore, uid: str, word: str) -> bool:
    """Whether there is an inactive copy of this board that this move token activates."""
    known = {"uid": uid, "ticket": move_token_hash(word)}
    with SqliteErrorMap(store):
        [(found,)] = store.connection.execute(store.queries["expected"], known)
    return bool(found)


def activate_copy(store: SqliteStore, uid: str, word: str) -> None:
    """Activates the copy with its move token."""
    known = {"uid": uid, "ticket": move_token_hash(word)}
    with SqliteErrorMap(store):
        connection = store.connection
        lock = acquire_write_lock(store.lock, "arrive", store.wait, store.machine)
        try:
            connection.execute(store.queries["arrive"], known)
        finally:
            lock.end()


def wait_until_durable(store: SqliteStore) -> None:
    """Nothing to do: everything readable in a file is already synced to disk."""


def check_backup(store: SqliteStore) -> None:
    """Refuses a file with other tables or objects than a board's, before using anything in it."""
    from dibs.storage.sqlite.health import foreign_parts

    with SqliteErrorMap(store):
        connection = store._connect()  # noqa: SLF001
        try:
            strangers = foreign_parts(connection) if store.version(connection) else []
        finally:
            store.close()
    if strangers:
        what = ", ".join(map(short, strangers[:3]))
        raise unsafe_storage(store.path, f"contains something that is not of dibs: {what}")


def check_free(store: SqliteStore, uid: str) -> None:
    """Refuses an unusable target of a move."""
    _try_folder(store)
    try:
        with SqliteErrorMap(store):
            _there(store, store.connection, uid, replace=False)
    except Refused as problem:
        if problem.code != "no_board":
            raise
    finally:
        store.close()


def _try_folder(store: SqliteStore) -> None:
    """Creates and removes a trial folder: file modes alone do not tell whether it works."""
    from tempfile import TemporaryDirectory

    place = store.folder
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if place == store.folder:
        store._check_folder()  # noqa: SLF001
    kind = store.machine.file_system(place)
    if kind in UNSAFE_FILE_SYSTEMS:
        raise errors.network_file_system(store.folder, kind)
    try:
        TemporaryDirectory(prefix=".dibs-", dir=place).cleanup()
    except OSError as error:
        raise errors.storage_failed(store.folder, os.strerror(error.errno or 0)) from None


def put_aside(store: SqliteStore) -> None:
    """Keeps a damaged file, renamed."""
    store.close()
    with SqliteErrorMap(store):
        lock = acquire_write_lock(
            store.lock, "put aside a damaged board", store.wait, store.machine
        )
        try:
            aside = f"{store.path}.damaged-{store.machine.wall()}"
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(store.path + suffix):
                    os.rename(store.path + suffix, aside + suffix)
        finally:
            lock.end()


def scrub(store: SqliteStore) -> str:
    """Erases every byte of removed data from the file and its WAL; returns why some may remain, or "".

    SQLite leaves copies of rows in unused parts of the file, so the whole file is rewritten.
    """
    try:
        with SqliteErrorMap(store):
            lock = acquire_write_lock(store.lock, "note --redact", store.wait, store.machine)
            try:
                store.connection.execute("VACUUM")
                busy, *_ = next(store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            finally:
                lock.end()
    except Refused as problem:
        return f"unused parts of {store.path} may still contain the text: {problem}; run it again"
    files = f"{store.path} or {store.path}-wal"
    left = f"another process reads an older state, so {files} still contains the text; run it again later"
    return left if busy else ""


def make_single(store: SqliteStore) -> None:
    """Merges the WAL into the file, so that the file is complete by itself."""
    with SqliteErrorMap(store):
        store.connection.pragma("journal_mode", "delete")
        store.close()


def keep_settings(folder: str, settings: str) -> None:
    """Restores the board's settings; settings that were there are kept beside them, unused."""
    path = join(folder, SETTINGS)
    if settings_of(folder) == settings:
        return
    if os.path.exists(path):
        os.replace(path, f"{path}.old")
    if settings:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(settings)
