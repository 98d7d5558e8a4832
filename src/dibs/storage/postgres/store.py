"""A board in PostgreSQL: many machines, many boards in one database, the same rules.

There may be a transaction pooler in between, so nothing is kept in the server session: no locks, only
transaction-local settings; statements are prepared only where the session is known to be exclusive.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager

import psycopg
from psycopg import errors, pq, sql

from dibs.domain.refusals import Refused
from dibs.domain.values import Duration
from dibs.machine import Machine, this_machine
from dibs.storage import dialect, queries
from dibs.storage import errors as faults
from dibs.storage.address import Address
from dibs.storage.postgres import notifications
from dibs.storage.postgres.pipeline import NEVER, Pipeline, ServerConnection
from dibs.storage.postgres.transaction import (
    PostgresErrorMap,
    ReadContext,
    RenewalContext,
    WriteContext,
    active_board,
    board_and_clock,
)
from dibs.storage.queries import FINGERPRINTS, NEWEST
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from psycopg_pool import ConnectionPool

    from dibs.domain.model import TaskKey
    from dibs.storage.store import Question
    from dibs.storage.transaction import WriteTransaction

WAIT_SECONDS = 5.0
"""How long a writer waits for the board's lock, and a command for an unreachable server."""

TO_FIND_BLOCKER = 0.5
"""Seconds of a deadline reserved for finding out who holds the lock."""

SLICE = 0.5
"""Poll interval in seconds: each poll is a query to the server, and many clients may wait."""

MIGRATION_LOCK = 0x64696273
"""Our advisory lock: two processes never migrate at once."""

TABLES = "{" + ",".join(dialect.TABLES) + "}"

# After an interrupt, the driver logs what it cannot clean up; the user who interrupted need not see it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_inherited: set[ServerConnection] = set()
"""Keeps connections referenced until they are closed: after a fork, the child must not close them."""


class PostgresStore:
    """A board in a database: one connection, or a pooled one for each transaction."""

    def __init__(
        self,
        address: Address,
        *,
        machine: Machine | None = None,
        wait: float = WAIT_SECONDS,
        pool: int = 0,
    ) -> None:
        self.address = address
        self.where = str(address)
        self.machine = machine or this_machine()
        self.wait = wait
        self.skewed = False
        self.remote = True
        self.deadline = float("inf")
        self.lock_wait = wait
        """Timeout of the last wait for a lock, in seconds."""
        self.number = 0
        """The board's number in this database; 0 until it is looked up."""
        self.settings = ""
        self.last_notify = NEVER
        """When we last sent a notification."""
        self._pooled = pool
        self._opening = threading.Lock()
        self._pool: ConnectionPool[ServerConnection] | None = None
        self._connection: ServerConnection | None = None
        self._pid = os.getpid()
        loaded = queries.load("postgres")
        self.queries = {name: dialect.query(text) for name, text in loaded.all().items()}
        self._actors: tuple[str, dict[Any, Any]] = ("", {})

    # Opening.

    def create(self, uid: str) -> bool:
        """Creates the schema if it is missing, and the board. Returns False if there was a board.

        A role that may use a board need not have the right to create one.
        """
        with self.transaction() as connection:  # before anything in the schema is read
            self.check_owners(connection, changes=False)
        try:
            self.find()
        except Refused as problem:
            if problem.code != "no_board":
                raise
        else:
            return False
        with self.guarded(), self.connect() as connection, connection.transaction():
            self.migrate(connection)
            name = {"name": self.address.board, "pid": 0}
            [(_, _, number, _, _)] = connection.execute(self.queries["find_board"], name)
            if number is not None:
                return False
            [(stamp,)] = connection.execute(self.queries["clock"])
            created = self.instant(stamp)
            connection.execute(self.queries["add_board"], {"uid": uid, "created": created})
            connection.execute(self.queries["add_home"], {"uid": uid, **name})
        return True

    def migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Runs the missing migrations in the caller's transaction, one process at a time."""
        from dibs.storage.dialect import definition

        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise faults.wrong_encoding(self.where, str(encoding))
        self.begin_guarded(connection)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        self.check_owners(connection, changes=True)
        if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'dibs'").fetchall():
            # Fails if another process creates it meanwhile.
            connection.execute("CREATE SCHEMA dibs")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS dibs.migration"
            " (number BIGINT PRIMARY KEY, fingerprint BIGINT NOT NULL)"
        )
        known = self.check_contents(connection)
        if 0 < known < NEWEST:  # current writers finish first; later ones see the new version
            connection.execute("LOCK TABLE dibs.board")
        for number, (shared, own) in queries.migrations("postgres").items():
            if number > known:
                connection.execute(definition(shared, own).encode())
                connection.execute(
                    "INSERT INTO dibs.migration VALUES (%s, %s)", (number, FINGERPRINTS[number])
                )

    def check_schema(self, found: int, made: int) -> None:
        """Refuses an unknown schema; 0 means no schema."""
        queries.too_new(self.where, found)
        if found and made != FINGERPRINTS[found]:
            raise faults.other_schema(self.where, found, made, FINGERPRINTS[found])

    # Which code runs: only that of trusted owners.

    @contextmanager
    def transaction(self) -> Iterator[ServerConnection]:
        """A transaction on a separate connection that runs no code of untrusted owners."""
        with self.guarded(), self.connect() as connection, connection.transaction():
            self.begin_guarded(connection)
            connection.execute(self.queries["check_tables"], {"tables": TABLES})
            yield connection

    def begin_guarded(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(self.queries["begin_reading"], {"wait": self.patience()})

    def check_owners(self, connection: psycopg.Connection[Any], *, changes: bool) -> None:
        """`changes`: the schema will change; otherwise those with that right do the same check."""
        connection.execute(self.queries["check_owners"], {"changes": int(changes)})

    def check_contents(self, connection: psycopg.Connection[Any]) -> int:
        """The schema version; refuses a schema that contains objects not created by dibs."""
        from dibs.storage.dialect import definition, made_by

        [(known, made)] = connection.execute(self.queries["schema"])
        self.check_schema(known, made)
        expected = {("TABLE", "migration")}
        for number, texts in queries.migrations("postgres").items():
            if number <= known:
                expected |= made_by(definition(*texts))
        for kind, name, described in connection.execute(self.queries["objects_of_schema"]):
            if (kind, name) not in expected:
                raise faults.foreign_schema(self.where, f"{described} is not part of a board")
        return int(known)

    def connect(self) -> ServerConnection:
        session = ServerConnection.connect(self.address.url, **self._options())
        session.silence += self.wait
        session.deadline = self.deadline
        return session

    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "prepare_threshold": None,
            "target_session_attrs": "read-write",
            "client_encoding": "UTF8",  # fixed, whatever the role or the environment sets
            **self.address.options(
                min(self.wait, self.left), f"dibs {os.getpid()}@{self.machine.host()}"[:63]
            ),
        }

    def borrow(self) -> ServerConnection:
        """A connection for one transaction, checked to lead to the board."""
        if self._pid != os.getpid():
            raise faults.forked(self._pid)
        if self._pooled:
            connection = self._opened_pool().getconn()
        else:
            connection = self._connection or self.connect()
            self._connection = connection
            _inherited.add(connection)
        if connection.own is None:
            try:
                self._find(connection)
            except BaseException:
                self.give_back(connection)  # a lost connection is not reused
                raise
        return connection

    def give_back(self, connection: ServerConnection) -> None:
        if self._pool is not None:
            self._pool.putconn(connection)
        # A closed connection is not reused either.
        elif connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            self._drop()

    def _opened_pool(self) -> ConnectionPool[ServerConnection]:
        with self._opening:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self.address.url,
                    connection_class=ServerConnection,
                    kwargs=self._options(),
                    min_size=1,
                    max_size=self._pooled,
                    timeout=self.wait,
                    open=True,
                )
            return self._pool

    def _find(self, connection: ServerConnection) -> None:
        """Looks up the board's number and settings once per connection; refuses an unusable board."""
        name = {"name": self.address.board, "pid": connection.info.backend_pid}
        pipeline = Pipeline(connection, self.wait)
        pipeline.queue(self.queries["begin_reading"], {"wait": self.patience()})
        pipeline.queue(self.queries["check_tables"], {"tables": TABLES})
        try:
            [found] = pipeline.end(self.queries["find_board"], name)
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            raise faults.no_board(self.where) from None
        version, made, number, self.settings, own = found
        self.check_schema(version, made)
        if number is None:
            raise faults.no_board(self.where)
        if version < NEWEST:
            with connection.transaction():
                self.migrate(connection)
        self.number = number
        connection.own = own is not None

    def stated_settings(self) -> str:
        """The board's settings as stored: the same for every machine."""
        self.find()
        return self.settings

    def find(self) -> int:
        """The board's number in its database."""
        if not self.number:
            with self.guarded():
                self.give_back(self.borrow())
        return self.number

    def boards(self) -> list[Any]:
        """All boards of this database."""
        with self.transaction() as connection:
            return connection.execute(self.queries["boards"]).fetchall()

    def grant(self, role: str) -> None:
        """Grants a client's rights: neither changing or deleting events, nor changing the schema."""
        if role == "public":  # to the server this means everybody
            raise faults.unknown_role(self.where, role)
        name = sql.Identifier(role)
        warned: list[str] = []
        with self.transaction() as connection:
            self.check_owners(connection, changes=True)
            self.check_contents(connection)
            connection.add_notice_handler(lambda notice: warned.append(str(notice.message_primary)))
            try:
                for right in queries.grants():
                    connection.execute(sql.SQL(right).format(role=name))
            except errors.UndefinedObject:
                raise faults.unknown_role(self.where, role) from None
            if warned:  # without the right to grant, the server reports success with a warning
                raise faults.not_granted(self.where, warned[0])

    def another(self, name: str | None = None) -> PostgresStore:
        """The same board, or another one of this database, through a separate connection."""
        address = self.address if name is None else self.address.but(board=name)
        return PostgresStore(address, machine=self.machine, wait=self.wait)

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _inherited.discard(connection)
            connection.close()

    # Transactions.

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def patience(self) -> str:
        """The lock timeout in milliseconds; a deadline leaves time to find out who holds the lock."""
        self.lock_wait = max(0.1, min(self.wait, self.left - TO_FIND_BLOCKER))
        return str(int(self.lock_wait * 1000))

    def blocker(self) -> tuple[str, int, str, str, int | None] | None:
        """Who holds a lock that others wait for: lock, process, role, program, since when."""
        with self.connect() as connection, connection.transaction():
            self.begin_guarded(connection)
            return connection.execute(self.queries["blockers"], {"board": self.number}).fetchone()

    def read(self) -> ReadContext:
        return ReadContext(self)

    def write(self, what: str, ahead: tuple[Question, ...] = ()) -> WriteContext:  # noqa: ARG002
        return WriteContext(self, ahead)

    def renewal(self, task: TaskKey) -> RenewalContext:
        return RenewalContext(self, task)

    def pulse(self) -> int:
        """The number of the last event; leaves no state in the server session."""
        with self.guarded():
            connection = self.borrow()
            try:
                pipeline = Pipeline(connection, self.wait)
                pipeline.queue(self.queries["begin_reading"], {"wait": self.patience()})
                [found] = pipeline.end(self.queries["look_at_board"], {"board": self.number})
            finally:
                self.give_back(connection)
        return active_board(self, board_and_clock(self, found)[0]).seq

    def listen(self, seconds: float) -> None:
        """Waits for a notification if the session is exclusive; else sleeps until the next poll."""
        session, rest = self._connection, min(seconds, SLICE)
        try:
            if session is not None and session.own:
                notifications.wait(self, session, rest)
            else:
                time.sleep(rest)
        except psycopg.Error:
            self._drop()
            time.sleep(rest)  # the next poll reports the error, if it persists

    def unlisten(self) -> None:
        session = self._connection
        if session is not None and session.listens:
            try:
                notifications.end(self, session)
            except psycopg.Error:
                self._drop()

    def instant(self, stamp: int) -> int:
        """The server's clock; tests replace it."""
        return stamp

    def actors_at(self, head: str) -> dict[Any, Any]:
        """The cached actors. They change only with a board event, so the cache is valid for one head."""
        if self._actors[0] != head:
            self._actors = (head, {})
        return self._actors[1]

    def set_clock(self, transaction: WriteTransaction, by: Duration) -> None:  # noqa: ARG002
        raise faults.servers_clock(self.where)

    def health(self) -> tuple[Finding, ...]:
        from dibs.storage.postgres.health import examine

        with self.guarded():
            connection = self.borrow()
            try:
                return examine(connection, self.machine)
            finally:
                self.give_back(connection)

    def guarded(self) -> PostgresErrorMap:
        return PostgresErrorMap(self)
