"""A board on the real store with a machine whose clocks the test moves."""

from __future__ import annotations

from dibs.board.execute import Board, Outcome
from dibs.board.identity import Identity
from dibs.board.settings import Settings
from dibs.board.upkeep import verify
from dibs.core import commands as c
from dibs.core.instants import SECOND
from dibs.core.model import Process, Session, Task, TaskKey, Terms
from dibs.core.refusals import Refused
from dibs.stores.sqlite import SqliteStore

START = 1_794_700_000_000_000


class FakeMachine:
    """A machine whose clocks stand still until the test moves them."""

    def __init__(self) -> None:
        self.wall_us = START
        self.boottime_us = 1_000_000_000
        self.boot_id = "boot-1"
        self.kind = "ext4"
        self.stopped = False

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
        return "pid:[1]"

    def process(self, pid):
        return Process(self.boot_id, "pid:[1]", pid, 7)

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


class Bench:
    """A board, its machine, and a quick way to act on it."""

    def __init__(self, folder, settings: Settings | None = None, uid: str = "board-1") -> None:
        self.machine = FakeMachine()
        self.store = SqliteStore(str(folder), machine=self.machine)
        self.store.create(uid)
        self.board = Board(self.store, settings or Settings())

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
        connection = self.store.connection
        tables = (
            "board",
            "actor",
            "actor_name",
            "session",
            "task",
            "ended_lease",
            "event",
            "note",
            "request",
        )
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}

    def close(self) -> None:
        self.store.close()
