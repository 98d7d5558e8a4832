"""Real PostgreSQL servers for tests: brought by a wheel, started in a second, never left behind.

`server()` is the server of this test process; a `Node` is one with a folder, a port and settings of
its own; `pooler()` stands in front of one.

`DIBS_TEST_PG_URL` names a server to use in place of the shared one, and `DIBS_TEST_PG_BIN` a folder
of programs to use in place of those of the wheel.
"""

from __future__ import annotations

import ctypes
import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from kit.postgres_ground import (
    at_end,
    free_port,
    ground,
    is_zombie,
    programs,
    quickest_place,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import psutil  # type: ignore[import-untyped]
    import psycopg

PASSWORD = "correct horse"
"""The superuser's, where one is asked for."""

QUICK = {"autovacuum": "off", "commit_delay": "0"}
"""In memory a sync costs nothing: what a server promises is as in earnest."""

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}

COMMON = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",  # in the folder: a kill leaves nothing in /dev/shm
    "jit": "off",
    "timezone": "UTC",
    "wal_retrieve_retry_interval": "100ms",
}

TRUST = "local all,replication all trust\nhost all,replication all all trust\n"

PASSWORDS = "local all all trust\nhost all all all scram-sha-256\n"
"""Nobody is asked on the socket; everybody is asked on TCP."""


# One server.


class Node:
    """One PostgreSQL server: its folder, its port, its settings."""

    host = "127.0.0.1"

    def __init__(
        self,
        settings: Mapping[str, str] = QUICK,
        access: str = TRUST,
        place: str | None = None,
    ) -> None:
        self.ground = ground(place or quickest_place())
        self.folder = self.ground.new_folder()
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self.access = access
        self.settings: dict[str, str] = {**COMMON, **settings}
        self.process: subprocess.Popen[Any] | None = None
        self.enter: tuple[str, ...] = ()
        """A command that runs another one elsewhere: in a network of its own."""

    def init(self) -> Node:
        """An empty server, with a system identifier of its own."""
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["-U", "postgres", "--auth=scram-sha-256", f"--pwfile={secret}"]
        options += ["--encoding=UTF8", "--locale=C", "--wal-segsize=1"]
        options += ["--no-sync", "--no-instructions"]
        self.ground.run([programs() / "initdb", "-D", self.data, *options])
        return self

    def start(self) -> Node:
        assert not self.running, "it runs already"
        self.write_settings()
        files = [f"config_file={self.folder}/conf", f"hba_file={self.folder}/hba"]
        command = [*self.enter, programs() / "postgres", "-D", self.data]
        command += [part for file in files for part in ("-c", file)]
        self.process = self.ground.spawn(command, self.log, drop=not self.enter)
        until(self.is_ready, f"a start: {self.log.read_text()[-2000:]}")
        return self

    def is_ready(self) -> bool:
        assert self.running, f"no start: {self.log.read_text()[-2000:]}"
        lines = self.lock_lines()
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def lock_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def write_settings(self) -> None:
        own = {"port": str(self.port), "unix_socket_directories": str(self.folder)}
        lines = [f"{name} = '{value}'\n" for name, value in {**self.settings, **own}.items()]
        (self.folder / "conf").write_text("".join(lines))
        (self.folder / "hba").write_text(self.access)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Changes settings that need no restart; they hold for everybody when this returns."""
        self.settings |= settings
        self.write_settings()
        if self.running:
            loaded = "SELECT pg_conf_load_time()"
            before = self.query(loaded)
            os.kill(self.pid, signal.SIGHUP)
            until(lambda: self.query(loaded) != before, "the new settings")

    def stop(self) -> None:
        """A clean end, which takes leave of every client and waits for none."""
        self.end_with(signal.SIGINT)

    def end_with(self, number: int) -> None:
        if self.process:
            self.ground.end_one(self.process, number)
        self.process = None

    def kill(self) -> None:
        """SIGKILL to the server and to all its children: as if the machine had gone."""
        import psutil

        segment = self.lock_lines()[6].split()[-1]
        server = psutil.Process(self.pid)
        server.suspend()  # it has no more children, and tells none that another has died
        family = [*server.children(recursive=True), server]
        for member in family:
            member.kill()
        self.end_with(signal.SIGKILL)
        until(lambda: not any(map(lives, family)), "the end of every child")
        ctypes.CDLL(None).shmctl(int(segment), 0, None)  # its shared memory goes with a machine too

    def remove(self) -> None:
        """Ends it, and leaves nothing of it."""
        self.end_with(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        if tcp:
            return f"postgresql://postgres:{quote(PASSWORD)}@{self.host}:{self.port}/{database}"
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    @property
    def socket(self) -> str:
        return f"{self.folder}/.s.PGSQL.{self.port}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection:
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True, **options)

    def query(self, statement: str, database: str = "postgres") -> Any:
        """The first column of the first row."""
        with self.connect(database) as connection:
            row = connection.execute(statement.encode()).fetchone()
            return row[0] if row else None


def lives(process: psutil.Process) -> bool:
    return process.is_running() and not is_zombie(process.pid)


# The server of this test process, and databases in it.


class Server:
    """A server in which tests make databases: one of ours, or one that was named to us."""

    def __init__(self, url: str, node: Node | None = None) -> None:
        self.url, self.node = url, node
        self.made: list[str] = []
        self.templates: dict[str, str] = {}

    def new_database(
        self, template: str = "template0", *, tcp: bool = False, encoding: str = "UTF8"
    ) -> str:
        """The URL of a database that nobody else knows; `tcp`: not by socket, with a password."""
        name = f"dibs_test_{secrets.token_hex(6)}"
        self.made.append(name)
        quick = "STRATEGY FILE_COPY" if self.node else ""
        self.execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING \'{encoding}\' {quick}'
        )
        return self.url_of(name, tcp=tcp)

    def template(self, purpose: str, prepare: Callable[[str], None]) -> str:
        """The name of a database that `prepare` filled, once, to make others from."""
        if purpose not in self.templates:
            prepare(self.new_database())
            self.templates[purpose] = self.made[-1]
        return self.templates[purpose]

    def new_role(self, name: str, options: str = "LOGIN") -> str:
        """A role that is asked for `PASSWORD` on TCP."""
        self.execute(f"CREATE ROLE \"{name}\" {options} PASSWORD '{PASSWORD}'")
        return name

    def url_of(self, database: str, *, tcp: bool = False) -> str:
        if tcp and self.node:
            return self.node.url(database, tcp=True)
        return urlsplit(self.url)._replace(path=f"/{database}").geturl()

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def drop_databases(self) -> None:
        for name in self.made:
            self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self.made.clear()


@functools.cache
def server() -> Server:
    """The server that the tests of this process share; each xdist worker has one."""
    if url := os.environ.get("DIBS_TEST_PG_URL"):
        named = Server(url)
        at_end(named.drop_databases)
        return named
    node = Node(QUICK, PASSWORDS).init().start()
    return Server(node.url(), node)


# A pooler in front of it.


@contextmanager
def pooler(
    node: Node,
    size: int = 2,
    users: tuple[str, ...] = ("postgres",),
    mode: str = "transaction",
) -> Iterator[str]:
    """The address of a pgbouncer: `size` sessions for any number of clients."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not program:
        import pytest

        pytest.skip("pgbouncer is not installed")
    folder, port = node.ground.new_folder(), free_port()
    (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users))
    (folder / "ini").write_text(
        f"[databases]\n* = host={node.folder} port={node.port}\n"
        f"[pgbouncer]\npool_mode = {mode}\ndefault_pool_size = {size}\n"
        f"auth_type = trust\nauth_file = {folder}/users\nunix_socket_dir =\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\n"
    )
    process = node.ground.spawn([program, folder / "ini"], folder / "log")
    try:
        until(lambda: listens(port) or process.poll(), "the pooler")
        assert process.poll() is None, (folder / "log").read_text()
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        node.ground.end_one(process, signal.SIGKILL)
        shutil.rmtree(folder)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
