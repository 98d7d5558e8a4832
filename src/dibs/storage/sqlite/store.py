"""A board in one SQLite file: no server, many processes.

`apsw` bundles a current SQLite; the system's version may lose acknowledged changes in WAL mode with many
processes. WAL and `synchronous=FULL`: a granted claim survives a power failure.
"""

from __future__ import annotations

import os
import stat
import time
from errno import ENOSPC, EROFS
from os.path import join

import apsw

from dibs import safe_files
from dibs.domain.refusals import Refused, unreadable
from dibs.domain.values import MINUTE, YEAR, Duration, Instant, Value, later
from dibs.machine import Machine, is_certain, this_machine
from dibs.storage import errors, queries
from dibs.storage.queries import FINGERPRINTS, NEWEST, BoardRow, migrations
from dibs.storage.sqlite.write_lock import (
    CREATED,
    CREATION,
    CREATIONS,
    WriteLock,
    acquire_write_lock,
    last_holder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.domain.model import TaskKey
    from dibs.storage.store import Finding, Question
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    Files = tuple[tuple[int, int] | None, ...]

FILE = "board.db"
LOCK = "write.lock"
PAGE = 4096
"""File systems with smaller blocks need special care: see `small_blocks`."""

BOARD = 1
"""A SQLite file holds one board."""

WAIT_SECONDS = 5.0
"""How long a writer waits for the write lock."""

SLICE = 0.1
"""Poll interval in seconds: a poll costs microseconds, and a person sees this as "at once"."""

UNSAFE_FILE_SYSTEMS = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "drvfs", "vboxsf", "prl_fs", "afs",
    "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.vmhgfs-fuse",
)  # fmt: skip

_inherited: set[apsw.Connection] = set()
"""Keeps connections referenced until they are closed: after a fork, the child must not close them."""


class SqliteStore:
    """A board's file. One connection, opened on first use; one per process and thread."""

    def __init__(
        self, folder: str, *, machine: Machine | None = None, wait: float = WAIT_SECONDS
    ) -> None:
        self.folder = self.where = folder
        self.path = join(folder, FILE)
        self.lock = join(folder, LOCK)
        self.machine = machine or this_machine()
        self.wait = wait
        self._pid = os.getpid()
        self.queries = queries.load("sqlite")
        self._connection: apsw.Connection | None = None
        self._names = (self.path, f"{self.path}-wal", f"{self.path}-shm")
        self._files: Files = ()
        """Ids of the files behind the connection; empty until they are known."""
        self._uid = ""
        """Id of the board that was opened, so that another board at the same path is not mistaken for it."""
        self._actors: tuple[str, dict[Any, Any]] = ("", {})
        self.skewed = False
        self.remote = False
        self.deadline = float("inf")

    # Opening.

    @property
    def exists(self) -> bool:
        """Whether the file exists; a file that cannot be accessed does not count as absent."""
        try:
            os.stat(self.path)
        except FileNotFoundError:
            return False
        return True

    def create(self, uid: str) -> bool:
        """Creates the folder and the file if they are missing. Returns False if there was a board."""
        self._make_folder()
        with SqliteErrorMap(self):
            self._check_not_emptied()
            lock = acquire_write_lock(self.lock, CREATION, self.wait, self.machine)
            try:
                made = self._create(uid)
                lock.label(CREATED)
                return made
            finally:
                self.close()
                lock.end()

    def _create(self, uid: str) -> bool:
        self.make_file()
        connection = self._connect()
        connection.pragma("journal_mode", "wal")
        if self.version(connection):
            self._migrate(connection)
            return False
        anchor = wall_clock_anchor(self.machine)
        with connection:  # atomic: a half-created board is no board
            self._migrate(connection)
            self.change("add_board", {"uid": uid, "created": anchor.anchor})
            self.save_anchor(anchor)
        return True

    def _check_not_emptied(self) -> None:
        """Refuses an empty file, unless its creation was interrupted: then the lock file says so."""
        is_empty = self.exists and os.stat(self.path, follow_symlinks=False).st_size == 0
        if is_empty and last_holder(self.lock) not in ("", *CREATIONS):
            raise errors.corrupt(self.path, "it is empty")

    def make_file(self) -> None:
        """Creates the file with mode 0600; SQLite would not, and the WAL and its index inherit the mode.

        An existing file is not opened: closing it would drop the locks that this process holds on it.
        """
        try:
            new = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            return
        os.close(new)

    def _make_folder(self) -> None:
        self._check_name()
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise errors.storage_failed(self.folder, os.strerror(error.errno or 0)) from None
        self._check_folder()
        with SqliteErrorMap(self):  # a folder of ours that exists and is empty becomes private
            if os.stat(self.folder).st_uid == os.geteuid() and not os.listdir(self.folder):
                os.chmod(self.folder, 0o700)

    def _check_name(self) -> None:
        if any("\ud800" <= character <= "\udfff" for character in self.folder):
            raise errors.storage_failed(ascii(self.folder), "its path is not UTF-8")

    def _check_folder(self) -> None:
        """Refuses a folder with links, with files of another user, or on a network file system."""
        self._check_name()
        try:
            there = os.lstat(self.folder)
            if not stat.S_ISDIR(there.st_mode):
                raise safe_files.unsafe_storage(
                    self.folder, "is not a folder, or a symbolic link to one"
                )
            safe_files.check_owner(self.folder)
            safe_files.check_owner(self.path)
            for name in (FILE, LOCK, f"{FILE}-wal", f"{FILE}-shm"):
                if os.path.islink(join(self.folder, name)):
                    raise safe_files.unsafe_storage(join(self.folder, name), "is a symbolic link")
        except FileNotFoundError:
            raise errors.no_board(self.folder) from None
        kind = self.machine.file_system(self.folder)
        if kind in UNSAFE_FILE_SYSTEMS:
            raise errors.network_file_system(self.folder, kind)

    @property
    def connection(self) -> apsw.Connection:
        if self._pid != os.getpid():
            raise errors.forked(self._pid)
        opened = self._connection
        if opened is not None and not opened.in_transaction and not self.is_current():
            self.close()
        while self._connection is None:
            self._open()
        return self._connection

    def is_current(self) -> bool:
        """Whether the files at the path are those behind the connection.

        An open file keeps its inode, so no other file can have the same number meanwhile.
        """
        return self._files == self._files_at_path()

    def _is_surely_current(self) -> bool:
        try:
            return self.is_current()
        except OSError:
            return False

    def _files_at_path(self) -> Files:
        """Ids of the database, its WAL and its index: copying over the database keeps only the first."""
        return tuple(map(safe_files.file_id, self._names))

    def _open(self) -> None:
        """Connects to the file at the path; fails if it is replaced meanwhile."""
        self._check_folder()
        before = safe_files.file_id(self.path)
        if before is None:
            raise errors.no_board(self.folder)
        self._check_not_emptied()
        self._check_version(self._connect())
        self._make_sure_of_index()
        self._files = self._files_at_path()
        if self._files[0] != before:
            self.close()

    def check_room(self) -> None:
        """Checks for disk space for the WAL index, where running out would kill the process (SIGBUS)."""
        if os.statvfs(self.folder).f_frsize < PAGE:
            from dibs.storage.sqlite.small_blocks import check_room

            check_room(self.folder)

    def _make_sure_of_index(self) -> None:
        if os.statvfs(self.folder).f_frsize < PAGE:
            from dibs.storage.sqlite.small_blocks import allocate

            allocate(self._names[-1])

    def _connect(self) -> apsw.Connection:
        self.close()
        self.check_room()
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(os.path.realpath(self.folder) + os.sep + FILE, flags)
        connection.set_busy_timeout(int(self.wait * 1000))
        # Otherwise SQLite re-prepares a statement with an ORDER BY or a join for every bound value.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        # Trust nothing in the file's schema, and allow no direct writes to it.
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)  # a board has none
        connection.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        _inherited.add(connection)
        self._connection = connection
        return connection

    def _check_version(self, connection: apsw.Connection) -> None:
        try:
            found = self.version(connection)
        except Refused:
            self.close()
            raise
        if found == NEWEST:
            return
        if found == 0:
            self.close()
            raise errors.no_board(self.folder)
        lock = acquire_write_lock(self.lock, "migrate", self.wait, self.machine)
        try:
            self._migrate(connection)
        finally:
            lock.end()

    def version(self, connection: apsw.Connection) -> int:
        """The schema version of the file, refused if unsupported; 0 if it has no schema yet."""
        found, made = int(connection.pragma("user_version")), connection.pragma("application_id")
        queries.too_new(self.path, found)
        if found and made != FINGERPRINTS[found]:
            raise errors.other_schema(self.path, found, made, FINGERPRINTS[found])
        return found

    def check_schema(self, connection: apsw.Connection) -> None:
        """Runs in every transaction: a newer dibs may have migrated the file since it was opened."""
        if connection.pragma("application_id") != FINGERPRINTS[NEWEST]:
            self.version(connection)
            raise errors.no_board(self.folder)

    def _migrate(self, connection: apsw.Connection) -> None:
        """Migrates under the write lock: one transaction per step, which also sets the version."""
        for number, texts in migrations("sqlite").items():
            if number > self.version(connection):
                with connection:
                    connection.execute("\n".join(texts))
                    connection.pragma("user_version", number)
                    connection.pragma("application_id", FINGERPRINTS[number])

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None or self._pid != os.getpid():
            return
        if self._files and not self._is_surely_current():
            # Otherwise closing would checkpoint into the new file and remove the new board's WAL.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._files = ()
        _inherited.discard(connection)
        connection.close()

    # Transactions.

    def read(self) -> ReadContext:
        """A consistent snapshot; never waits for a writer."""
        return ReadContext(self)

    def write(self, what: str, ahead: tuple[Question, ...] = ()) -> WriteContext:  # noqa: ARG002
        """Acquires the write lock, reads the clock, begins. Waiting processes are shown `what`."""
        return WriteContext(self, what)

    def renewal(self, task: TaskKey) -> None:
        """None: a file has one writer at a time, so no transaction is cheaper than another."""

    def pulse(self) -> int:
        """Hash of the file ids and two rising counters: changes by others, and by this connection."""
        with SqliteErrorMap(self):
            connection = self.connection
            changes = int(connection.pragma("data_version")) + connection.total_changes()
        return hash((self._files, changes))

    def listen(self, seconds: float) -> None:
        """A file sends no notifications: sleeps until the next poll."""
        time.sleep(min(seconds, SLICE))

    def unlisten(self) -> None:
        """Nothing to do: a file has no subscriptions."""

    def stated_settings(self) -> None:
        """None: the settings are in a file beside the board."""

    def another(self) -> SqliteStore:
        same = SqliteStore(self.folder, machine=self.machine, wait=self.wait)
        same._uid = self._uid
        return same

    @property
    def opened(self) -> apsw.Connection | None:
        return self._connection

    def ask(self, query: str, **params: Any) -> list[Any]:
        assert self._connection is not None, "inside a transaction"
        params["board"] = BOARD
        return self._connection.execute(self.queries[query], params).fetchall()

    def stream(self, query: str, **params: Any) -> Iterator[Any]:
        assert self._connection is not None, "inside a transaction"
        params["board"] = BOARD
        return iter(self._connection.execute(self.queries[query], params))

    def change(self, query: str, params: dict[str, Any]) -> None:
        assert self._connection is not None, "inside a transaction"
        params["board"] = BOARD
        self._connection.execute(self.queries[query], params)

    def actors_at(self, head: str) -> dict[Any, Any]:
        """The cached actors. They change only with a board event, so the cache is valid for one head."""
        if self._actors[0] != head:
            self._actors = (head, {})
        return self._actors[1]

    def board_and_anchor(self) -> tuple[BoardRow, Anchor | None]:
        """The board's row and the clock anchor, which every transaction needs first, in one query."""
        row, known = self.row_and_anchor()
        board = BoardRow(*row)
        queries.refuse_moved(board, self.where)
        return board, known

    def row_and_anchor(self) -> tuple[list[Any], Anchor | None]:
        """As `board_and_anchor`, unchecked and not decoded."""
        found = self.ask("board_and_clock")
        if not found:
            raise unreadable("the row of the board itself")
        *row, boot, anchor, boottime, skewed = found[0]
        self._uid = self._uid or row[0]
        if row[0] != self._uid:
            raise errors.board_replaced(self.where, self._uid, row[0])
        return row, None if boot is None else Anchor(boot, anchor, boottime, bool(skewed))

    # The clock.

    def save_anchor(self, anchor: Anchor) -> None:
        self.change("save_anchor", anchor.but(skewed=int(anchor.skewed)).named())

    def set_clock(self, transaction: WriteTransaction, by: Duration) -> None:
        """Re-anchors the clock, which a person trusts from now on, and shifts running leases with it."""
        now = later(transaction.now, by)
        machine = self.machine
        transaction.shift_leases(by)
        self.save_anchor(Anchor(machine.boot(), now, machine.boottime(), skewed=False))
        transaction.now = now
        transaction.skewed = self.skewed = False

    # Health.

    def health(self) -> tuple[Finding, ...]:
        from dibs.storage.sqlite.health import examine

        with SqliteErrorMap(self):
            return examine(self.connection, self.machine, self.folder, self.path)


class SqliteErrorMap:
    """Maps errors of SQLite and the operating system to refusals."""

    def __init__(self, store: SqliteStore) -> None:
        self._path, self._wait = store.path, store.wait

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, apsw.Error | OSError | UnicodeDecodeError):
            raise refusal_of_error(error, self._path, self._wait) from error


class ReadContext(SqliteErrorMap):
    """`with store.read() as tx`: one snapshot, released at the end."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self._store = store
        self._begun = False

    def __enter__(self) -> ReadTransaction:  # type: ignore[override]
        try:
            return self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            with SqliteErrorMap(self._store):
                self._end(commit=error is None)
        finally:
            super().__exit__(kind, error, trace)

    def _begin(self) -> ReadTransaction:
        from dibs.storage.transaction import ReadTransaction  # not on the fast path

        store = self._store
        self._open(store.connection, "BEGIN")
        board, stored = store.board_and_anchor()
        reading = read_clock(store.machine, stored, board.floor)
        store.skewed = reading.anchor.skewed
        return ReadTransaction(store, board, reading.now, skewed=reading.anchor.skewed)

    def _open(self, connection: apsw.Connection, how: str) -> None:
        assert not connection.in_transaction, "one transaction at a time"
        connection.execute(how)
        self._begun = True
        self._store.check_schema(connection)

    def _end(self, *, commit: bool) -> None:
        connection = self._store.opened
        if self._begun and connection is not None and connection.in_transaction:
            connection.execute("COMMIT" if commit else "ROLLBACK")


class WriteContext(ReadContext):
    """`with store.write(...) as tx`: write lock, BEGIN IMMEDIATE, clock; then commit or roll back."""

    def __init__(self, store: SqliteStore, what: str) -> None:
        super().__init__(store)
        self._what = what
        self._lock: WriteLock | None = None
        self._transaction: WriteTransaction | None = None

    def __enter__(self) -> WriteTransaction:  # type: ignore[override]
        super().__enter__()
        assert self._transaction is not None, "begun just now"
        return self._transaction

    def _begin(self) -> WriteTransaction:
        from dibs.storage.transaction import WriteTransaction

        store = self._store
        self._lock_and_begin()
        board, stored = store.board_and_anchor()
        reading = read_clock(store.machine, stored, board.floor)
        if reading.anchor != stored:
            store.save_anchor(reading.anchor)
        store.skewed = reading.anchor.skewed
        self._transaction = WriteTransaction(
            store,
            board,
            reading.now,
            skewed=reading.anchor.skewed,
            actors=store.actors_at(board.head),
        )
        return self._transaction

    def _lock_and_begin(self) -> None:
        store = self._store
        connection = store.connection
        self._lock = acquire_write_lock(store.lock, self._what, store.wait, store.machine)
        while not store.is_current():  # replaced while we waited
            self._unlock()
            connection = store.connection
            self._lock = acquire_write_lock(store.lock, self._what, store.wait, store.machine)
        store.check_room()
        self._open(connection, "BEGIN IMMEDIATE")

    def _end(self, *, commit: bool) -> None:
        try:
            super()._end(commit=commit)
        except BaseException:
            super()._end(commit=False)
            raise
        finally:
            self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.end()


def refusal_of_error(
    error: apsw.Error | OSError | UnicodeDecodeError, path: str, wait: float
) -> Refused:
    """Maps an error of the database or the operating system to a refusal."""
    detail = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
    if isinstance(error, apsw.FullError) or _is(error, ENOSPC):
        return errors.disk_full(path)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return errors.busy(path, "a program that is not dibs", wait)
    if isinstance(error, apsw.ReadOnlyError | PermissionError) or _is(error, EROFS):
        return errors.read_only(path)
    damage = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, UnicodeDecodeError)
    if isinstance(error, damage):
        return errors.corrupt(path, detail)
    return errors.storage_failed(path, detail)


def _is(error: Exception, errno: int) -> bool:
    return isinstance(error, OSError) and error.errno == errno


# The board's clock on one kernel: an anchor per boot, plus the time since, including sleep.


class Anchor(Value):
    """The board's time was `anchor` when the time since the boot `boot` was `boottime`."""

    boot: str
    anchor: Instant
    boottime: int
    skewed: bool


class Reading(Value):
    """The current time, and the anchor it was computed from."""

    now: Instant
    anchor: Anchor


def read_clock(machine: Machine, anchor: Anchor | None, floor: Instant) -> Reading:
    """Reads the clock from the stored anchor; an anchor of another boot is replaced by a new one."""
    boot, boottime = machine.boot(), machine.boottime()
    if anchor is None or not is_of_this_boot(machine, anchor, floor):
        fresh = new_anchor(machine, boot, boottime, floor)
        if anchor is not None and is_certain(anchor.boot) and not is_certain(boot):
            return Reading(
                fresh.anchor, anchor
            )  # keep the stored one: other processes know more than we do
        anchor = fresh
    now = anchor.anchor + boottime - anchor.boottime
    return Reading(Instant(max(now, floor)), anchor)


def is_of_this_boot(machine: Machine, anchor: Anchor, floor: Instant) -> bool:
    """Whether the anchor is of this boot: by boot id or, where one id is not the kernel's, by plausibility.

    In its own boot an anchor never yields less than what was committed. Where the time since boot may be that
    of a time namespace, it must not be ahead of the wall clock either.
    """
    boot = machine.boot()
    if is_certain(boot) and is_certain(anchor.boot):
        return anchor.boot == boot
    shown = anchor.anchor + machine.boottime() - anchor.boottime
    return floor <= shown and (machine.knows_boottime() or shown <= machine.wall() + MINUTE)


def new_anchor(machine: Machine, boot: str, boottime: int, floor: Instant) -> Anchor:
    wall = machine.wall()
    believable = floor <= wall <= floor + YEAR
    return Anchor(boot, wall if believable else floor, boottime, skewed=not believable)


def wall_clock_anchor(machine: Machine) -> Anchor:
    """A new anchor at the wall clock, trusted because a person confirmed it."""
    return Anchor(machine.boot(), machine.wall(), machine.boottime(), skewed=False)
