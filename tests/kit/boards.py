"""A board on the real store with a machine whose clocks the test moves."""

from __future__ import annotations

import functools
import itertools
import os
import time

import pytest

from dibs.board.execute import Board
from dibs.board.facts.task import fresh_uid
from dibs.board.identity import Identity
from dibs.board.outcome import Outcome
from dibs.board.settings import Settings
from dibs.board.user_config import User, folder_in
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import Process, Session, Task, TaskKey, Terms
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND
from dibs.storage.address import Address
from dibs.storage.postgres.store import SLICE, PostgresStore
from dibs.storage.sqlite.store import SqliteStore
from kit.postgres import server

START = 1_794_700_000_000_000
BOOTED = 1_000_000_000


class FakeMachine:
    """A machine whose clocks are stopped until the test moves them."""

    def __init__(self) -> None:
        self.wall_us = START
        self.boottime_us = BOOTED
        self.boot_id = "boot-1"
        self.kind = "ext4"
        self.stopped = False
        self.dead: set[int] = set()
        self.space = "pid:[1]"
        self.confined = False

    def advance(self, seconds: float) -> None:
        self.wall_us += round(seconds * SECOND)
        self.boottime_us += round(seconds * SECOND)

    def reboot(self, wall_us: int | None = None) -> None:
        self.boot_id += "'"
        self.boottime_us = 5_000_000
        self.wall_us = self.wall_us if wall_us is None else wall_us

    def wall(self):
        return self.wall_us

    def boottime(self):
        return self.boottime_us

    def boot(self):
        return self.boot_id

    def namespace(self):
        return self.space

    def process(self, pid):
        return None if pid in self.dead else Process(self.boot_id, self.space, pid, 7)

    def words(self, pid):
        return []

    def lives(self, process):
        return self.process(process.pid) == process

    def may_state(self, pid):
        return self.process(pid)

    def own_process(self):
        return self.process(os.getpid())

    def knows_boottime(self):
        return not self.confined

    def sees_host(self):
        return not self.confined

    def carrying(self, mark):
        return []

    def in_session(self, leader, started, forks):
        return []

    def parent(self, pid):
        return 0

    def is_stopped(self, pid):
        return self.stopped

    def file_system(self, path):
        return self.kind

    def host(self):
        return "testhost"


class Actor:
    """Somebody who acts on a bench: `bench.agent("codex", "s1").claim("T-1")`."""

    def __init__(self, bench: Bench, identity: Identity) -> None:
        self.bench = bench
        self.identity = identity

    def do(self, command: c.Command, request_id: str | None = None) -> Outcome:
        return self.bench.board.execute(self.identity, command, request_id)

    def refused(self, command: c.Command, request_id: str | None = None) -> str:
        """The code with which the command is refused; it must be refused."""
        try:
            outcome = self.do(command, request_id)
        except Refused as problem:
            return problem.code
        raise AssertionError(f"not refused: {command} led to {outcome}")

    def claim(self, key: str = "T-1", **options) -> Outcome:
        return self.do(c.Claim(TaskKey(key), **options))


class StillServer(PostgresStore):
    """A real server whose clock the test moves: no step of a machine's wall clock does."""

    def instant(self, stamp: int) -> int:
        return START + self.machine.boottime() - BOOTED

    def listen(self, seconds: float) -> None:
        """A notification comes on the real clock: here only polling counts."""
        time.sleep(min(seconds, SLICE))

    def another(self) -> StillServer:
        return StillServer(self.address, machine=self.machine, wait=self.wait)


USER = User(folder_in(os.environ))
"""The user's own configuration, for all that runs in a test process."""

STORES = ("sqlite", "postgres")
NAMES = itertools.count(1)
of_a_file = pytest.mark.parametrize("kind", ["sqlite"])
"""A test of what only a file has."""


@functools.cache
def database() -> str:
    """One database for all boards of a test process."""
    return server().new_database()


def database_apart() -> str:
    """A database of one's own, with the schema in it."""
    return server().new_database(server().template("schema", make_schema))


def make_schema(url: str) -> None:
    store = PostgresStore(Address(url, "template"))
    with store.connect() as connection:
        store.migrate(connection)


def new_store(kind: str, folder, machine, *, apart: bool = False) -> SqliteStore | StillServer:
    """A store without a board in it yet; a server gives it a name that nobody else has."""
    if kind == "sqlite":
        return SqliteStore(str(folder), machine=machine)
    url = database_apart() if apart else database()
    return StillServer(Address(url, f"b{next(NAMES)}"), machine=machine)


def new_address(kind: str) -> str:
    """Where a new board on a server would be; nothing for a file."""
    return "" if kind == "sqlite" else f"{database()}#b{next(NAMES)}"


class Bench:
    """A board, its machine, and a quick way to act on it."""

    def __init__(
        self,
        folder,
        settings: Settings | None = None,
        uid: str = "",
        kind: str = "sqlite",
        *,
        apart: bool = False,
    ) -> None:
        """`apart`: alone in its database, so that the test may do anything to it."""
        self.kind = kind
        self.machine = FakeMachine()
        self.store = new_store(kind, folder, self.machine, apart=apart)
        self.store.create(uid or fresh_uid())
        self.board = Board(self.store, settings or Settings(), user=USER)
        self._by_hand = None

    def agent(self, name: str = "codex", session: str = "s1", harness: str = "", **place) -> Actor:
        where = Session(0, "", "testhost", **place)
        return Actor(self, Identity(name, False, session, harness, where))

    def person(self, name: str = "ana", session: str = "") -> Actor:
        return Actor(self, Identity(name, True, session, "", Session(0, "", "testhost")))

    def add(self, title: str = "work", scope: tuple[str, ...] = (), **terms) -> str:
        command = c.Add(Terms(title, **terms), scope)
        return self.person("founder").do(command).task.key

    @staticmethod
    def terms(title: str = "work", **terms) -> Terms:
        return Terms(title, **terms)

    def task(self, key: str = "T-1") -> Task:
        with self.store.read() as tx:
            return tx.task(key)

    def actor_id(self, name: str):
        with self.store.read() as tx:
            return tx.actor_named(name).id

    def advance(self, seconds: float) -> None:
        self.machine.advance(seconds)

    def now(self):
        with self.store.read() as tx:
            return tx.now

    def verbs(self, key: str = "T-1") -> list[str]:
        """What the ledger says happened to a task."""
        with self.store.read() as tx:
            return [entry.verb for entry in tx.events_of(tx.task(key).id)]

    def events(self, key: str = "T-1"):
        with self.store.read() as tx:
            return list(tx.events_of(tx.task(key).id))

    def faults(self) -> tuple[str, ...]:
        return verify(self.board).faults

    def snapshot(self):
        """Everything that is stored but the log of refusals: what a refusal must not change."""
        tables = (
            "board",
            "actor",
            "actor_name",
            "session",
            "task",
            "ended_lease",
            "event",
            "stint",
            "note",
            "request",
        )
        return {name: sorted(self.rows(name), key=repr) for name in tables}

    def rows(self, table: str) -> list[tuple]:
        """All rows of a table of this board."""
        if self.kind == "sqlite":
            return self.store.connection.execute(f"SELECT * FROM {table}").fetchall()
        where = f"SELECT * FROM dibs.{table} WHERE board = {self.number}"
        return self.by_hand().execute(where).fetchall()

    def by_hand(self):
        """A connection to look and to change by hand; one for all, as each is a process of the server."""
        if self._by_hand is None or self._by_hand.closed:
            self._by_hand = self.store.connect()
        return self._by_hand

    @property
    def number(self) -> int:
        """The board's own number in its database."""
        if self.kind == "sqlite":
            return 1
        with self.store.read():
            return self.store.number

    def change(self, sql: str) -> None:
        """Changes rows by hand, under every rule of the schema. The board is alone in its database."""
        if self.kind == "sqlite":
            self.store.connection.execute(sql)
            return
        self.by_hand().execute("SET search_path = dibs")
        self.by_hand().execute(sql)

    def tamper(self, sql: str) -> None:
        """Changes rows past every rule, as somebody could who may do anything."""
        if self.kind == "sqlite":
            self._without_rules_in_a_file()
        else:
            self._without_rules_on_a_server()
        self.change(sql)

    def _without_rules_in_a_file(self) -> None:
        connection = self.store.connection
        connection.pragma("foreign_keys", False)
        connection.pragma("ignore_check_constraints", True)
        named = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        for (trigger,) in connection.execute(named).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")

    def _without_rules_on_a_server(self) -> None:
        rules = (
            "SELECT CASE WHEN conrelid = 0"
            " THEN format('ALTER DOMAIN %s DROP CONSTRAINT %I', contypid::regtype, conname)"
            " ELSE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname) END"
            " FROM pg_constraint WHERE connamespace = 'dibs'::regnamespace AND contype IN ('c', 'f')"
            " UNION ALL SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass)"
            " FROM pg_trigger WHERE NOT tgisinternal"
        )
        for (statement,) in self.by_hand().execute(rules).fetchall():
            self.by_hand().execute(statement)

    def close(self) -> None:
        self.store.close()
        if self._by_hand is not None:
            self._by_hand.close()
