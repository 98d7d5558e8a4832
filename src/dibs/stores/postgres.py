"""The board in PostgreSQL: many machines, many boards in one database, the same rules.

A transaction pooler may stand between, so nothing is kept in the server's session: no locks, no settings
but those of one transaction; statements are prepared only where the session is seen to be our own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager

import psycopg
from psycopg import errors, pq, sql

from dibs.core.instants import Duration
from dibs.core.refusals import Refused
from dibs.machine import Machine, this_machine
from dibs.stores import dialect, faults, queries
from dibs.stores import postgres_hints as hints
from dibs.stores.address import Address
from dibs.stores.postgres_line import NEVER, Line, Session
from dibs.stores.postgres_transaction import (
    Guarded,
    ReadContext,
    RenewalContext,
    WriteContext,
    at_home,
    board_in,
)
from dibs.stores.queries import FINGERPRINTS, NEWEST
from dibs.stores.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from psycopg_pool import ConnectionPool

    from dibs.core.model import TaskKey
    from dibs.stores.store import Question
    from dibs.stores.transaction import WriteTransaction

WAIT_SECONDS = 5.0
"""How long a writer waits for the board's lock, and a command for a server that is away."""

TO_LOOK = 0.5
"""Seconds of a deadline that are kept for the question who has the lock."""

SLICE = 0.5
"""Seconds between two looks of who waits: each is a question to the server, and many may wait."""

MIGRATION_LOCK = 0x64696273
"""An advisory lock of our own: two programs never migrate at once."""

TABLES = "{" + ",".join(dialect.TABLES) + "}"

# What the driver cannot tidy up behind an interrupt is no news for whoever interrupted it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_inherited: set[Session] = set()
"""Connections stay referenced until they are closed: after a fork, the child must not end them."""


class PostgresStore:
    """A board in a database: a connection of its own, or one from a pool for each transaction."""

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
        """Seconds that a lock was last waited for."""
        self.number = 0
        """The board's own, in this database; 0 until it was looked up."""
        self.settings = ""
        self.hinted = NEVER
        """When we last told who waits that the board has changed."""
        self._pooled = pool
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Session] | None = None
        self._connection: Session | None = None
        self._pid = os.getpid()
        loaded = queries.load("postgres")
        self.queries = {name: dialect.query(text) for name, text in loaded.all().items()}
        self._actors: tuple[str, dict[Any, Any]] = ("", {})

    # Opening.

    def create(self, uid: str) -> bool:
        """Makes the schema, if it is not there, and the board. False if there was a board.

        Who may use a board need not be allowed to make one.
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
        """In the caller's transaction, one program at a time: all steps that are missing."""
        from dibs.stores.definitions import definition

        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise faults.wrong_encoding(self.where, str(encoding))
        self.begin_guarded(connection)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        self.check_owners(connection, changes=True)
        if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'dibs'").fetchall():
            connection.execute("CREATE SCHEMA dibs")  # fails if somebody else makes it meanwhile
        connection.execute(
            "CREATE TABLE IF NOT EXISTS dibs.migration"
            " (number BIGINT PRIMARY KEY, fingerprint BIGINT NOT NULL)"
        )
        known = self.check_contents(connection)
        if 0 < known < NEWEST:  # who writes now ends first, and who comes later sees the new number
            connection.execute("LOCK TABLE dibs.board")
        for number, (shared, own) in queries.migrations("postgres").items():
            if number > known:
                connection.execute(definition(shared, own).encode())
                connection.execute(
                    "INSERT INTO dibs.migration VALUES (%s, %s)", (number, FINGERPRINTS[number])
                )

    def check_schema(self, found: int, made: int) -> None:
        """Refuses a schema that this dibs does not know; 0 is none at all."""
        faults.too_new(self.where, found)
        if found and made != FINGERPRINTS[found]:
            raise faults.other_schema(self.where, found, made, FINGERPRINTS[found])

    # Whose code runs.

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A transaction on a connection of its own, in which nobody's code runs who is not trusted."""
        with self.guarded(), self.connect() as connection, connection.transaction():
            self.begin_guarded(connection)
            connection.execute(self.queries["check_tables"], {"tables": TABLES})
            yield connection

    def begin_guarded(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(self.queries["begin_reading"], {"wait": self.patience()})

    def check_owners(self, connection: psycopg.Connection[Any], *, changes: bool) -> None:
        """`changes`: the schema; else whoever may do that is as careful."""
        connection.execute(self.queries["check_owners"], {"changes": int(changes)})

    def check_contents(self, connection: psycopg.Connection[Any]) -> int:
        """The version of the schema; refuses one with something in it that is not dibs's own."""
        from dibs.stores.definitions import definition, made_by

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

    def connect(self) -> Session:
        session = Session.connect(self.address.url, **self._options())
        session.silence += self.wait
        session.deadline = self.deadline
        return session

    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "prepare_threshold": None,
            "target_session_attrs": "read-write",
            "client_encoding": "UTF8",  # as texts are here, whatever the role or the environment says
            **self.address.options(
                min(self.wait, self.left), f"dibs {os.getpid()}@{self.machine.host()}"[:63]
            ),
        }

    def borrow(self) -> Session:
        """A connection for one transaction, known to lead to the board."""
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
                self.give_back(connection)  # one that was cut off is not borrowed again
                raise
        return connection

    def give_back(self, connection: Session) -> None:
        if self._pool is not None:
            self._pool.putconn(connection)
        elif connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:  # nor is one closed
            self._drop()

    def _opened_pool(self) -> ConnectionPool[Session]:
        with self._opening:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self.address.url,
                    connection_class=Session,
                    kwargs=self._options(),
                    min_size=1,
                    max_size=self._pooled,
                    timeout=self.wait,
                    open=True,
                )
            return self._pool

    def _find(self, connection: Session) -> None:
        """The board's number and settings, once for each connection; refuses what cannot be used."""
        name = {"name": self.address.board, "pid": connection.info.backend_pid}
        line = Line(connection, self.wait)
        line.say(self.queries["begin_reading"], {"wait": self.patience()})
        line.say(self.queries["check_tables"], {"tables": TABLES})
        try:
            [found] = line.end(self.queries["find_board"], name)
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
        """The board's settings as they are written: every machine reads the same."""
        self.find()
        return self.settings

    def find(self) -> int:
        """The board's number in its database."""
        if not self.number:
            with self.guarded():
                self.give_back(self.borrow())
        return self.number

    def boards(self) -> list[Any]:
        """All of this database."""
        with self.transaction() as connection:
            return connection.execute(self.queries["boards"]).fetchall()

    def save_settings(self, text: str) -> None:
        number = self.find()
        with self.transaction() as connection:
            known = {"board": number, "settings": text}
            connection.execute(self.queries["save_settings"], known)

    def grant(self, role: str) -> None:
        """What a client needs: no right to change or to remove an event, nor to change the schema."""
        if role == "public":  # which the server takes for everybody
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
            if warned:  # who owns nothing may grant nothing, and the server calls that a success
                raise faults.not_granted(self.where, warned[0])

    def another(self, name: str | None = None) -> PostgresStore:
        """The same board, or another one of this database, by a connection of its own."""
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
        """How long a lock is waited for, in milliseconds. Before a deadline, time is left to see who has it."""
        self.lock_wait = max(0.1, min(self.wait, self.left - TO_LOOK))
        return str(int(self.lock_wait * 1000))

    def blocker(self) -> tuple[str, int, str, str, int | None] | None:
        """Who has a lock that others wait for: which lock, process, role, program, since when."""
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
        """The number of the last event: a question of its own, which leaves nothing behind."""
        with self.guarded():
            connection = self.borrow()
            try:
                line = Line(connection, self.wait)
                line.say(self.queries["begin_reading"], {"wait": self.patience()})
                [found] = line.end(self.queries["look_at_board"], {"board": self.number})
            finally:
                self.give_back(connection)
        return at_home(self, board_in(self, found)[0]).seq

    def listen(self, seconds: float) -> None:
        """Until the server hints at a change, where the session is our own; else until the next look."""
        session, rest = self._connection, min(seconds, SLICE)
        try:
            if session is not None and session.own:
                hints.wait(self, session, rest)
            else:
                time.sleep(rest)
        except psycopg.Error:
            self._drop()
            time.sleep(rest)  # the next look says what is wrong, if it still is

    def hush(self) -> None:
        session = self._connection
        if session is not None and session.listens:
            try:
                hints.end(self, session)
            except psycopg.Error:
                self._drop()

    def instant(self, stamp: int) -> int:
        """The server's clock. Tests put another in its place."""
        return stamp

    def actors_at(self, head: str) -> dict[Any, Any]:
        """Actors change only with an event of the board: while its head is the same, so are they."""
        if self._actors[0] != head:
            self._actors = (head, {})
        return self._actors[1]

    def set_clock(self, transaction: WriteTransaction) -> Duration:  # noqa: ARG002
        raise faults.servers_clock(self.where)

    def health(self) -> tuple[Finding, ...]:
        from dibs.stores.postgres_health import examine

        with self.guarded():
            connection = self.borrow()
            try:
                return examine(connection, self.machine)
            finally:
                self.give_back(connection)

    def guarded(self) -> Guarded:
        return Guarded(self)
