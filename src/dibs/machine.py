"""This machine: its clocks, its boot, its processes. One adapter for each system.

Nothing here decides anything. Tests put another machine in its place.
"""

from __future__ import annotations

import os
import sys
import time

from dibs.core.instants import SECOND, Instant
from dibs.core.model import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NANOSECONDS = 1_000
"""In a microsecond."""


class Linux:
    """Linux: everything is read from `/proc`; `CLOCK_BOOTTIME` counts sleep."""

    def __init__(self) -> None:
        self._boot = ""

    def wall(self) -> Instant:
        return wall_clock()

    def boottime(self) -> int:
        """Microseconds since boot, sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // NANOSECONDS

    def boot(self) -> str:
        """The same for as long as this process lives."""
        self._boot = self._boot or _read("/proc/sys/kernel/random/boot_id").strip() or "unknown"
        return self._boot

    def namespace(self) -> str:
        """The pid namespace: a pid of another one says nothing here."""
        try:
            return os.readlink("/proc/self/ns/pid")
        except OSError:
            return "unknown"

    def process(self, pid: int) -> Process | None:
        stat = self._stat(pid)
        if stat is None or stat[0] in "ZX":
            return None
        return Process(self.boot(), self.namespace(), pid, int(stat[19]))

    def parent(self, pid: int) -> int:
        stat = self._stat(pid)
        return int(stat[1]) if stat else 0

    def words(self, pid: int) -> list[str]:
        """The command line of a process, as far as this user may look."""
        return _read(f"/proc/{pid}/cmdline").split("\0")[:-1]

    def is_stopped(self, pid: int) -> bool:
        stat = self._stat(pid)
        return stat is not None and stat[0] in "Tt"

    def carrying(self, mark: str) -> list[Process]:
        """The processes whose environment holds DIBS_RUN=mark, as far as this user may look."""
        wanted = f"DIBS_RUN={mark}"
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return self._alive(
            pid for pid in pids if wanted in _read(f"/proc/{pid}/environ").split("\0")
        )

    def _alive(self, pids: Iterable[int]) -> list[Process]:
        return [process for pid in pids if (process := self.process(pid)) is not None]

    def file_system(self, path: str) -> str:
        """The type of the file system that `path` is on, or "" if it cannot be told."""
        device = os.stat(path).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in _read("/proc/self/mountinfo").splitlines():
            mount, _, rest = line.partition(" - ")
            if mount.split(" ", 3)[2] == wanted:
                return rest.split(" ", 1)[0]
        return ""

    def host(self) -> str:
        return os.uname().nodename

    def _stat(self, pid: int) -> list[str] | None:
        """Fields of `/proc/PID/stat` from the state on; the name before may hold anything."""
        text = _read(f"/proc/{pid}/stat")
        return text.rpartition(")")[2].split() if text else None


class Darwin(Linux):
    """macOS: `CLOCK_MONOTONIC_RAW` counts sleep; the rest is asked of `sysctl` and `ps`."""

    def boottime(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // NANOSECONDS

    def boot(self) -> str:
        self._boot = self._boot or _run("sysctl", "-n", "kern.bootsessionuuid") or "unknown"
        return self._boot

    def namespace(self) -> str:
        return "darwin"

    def process(self, pid: int) -> Process | None:
        started = _run("ps", "-o", "lstart=", "-p", str(pid))
        if not started:
            return None
        seconds = int(time.mktime(time.strptime(started, "%a %b %d %H:%M:%S %Y")))
        return Process(self.boot(), self.namespace(), pid, seconds)

    def parent(self, pid: int) -> int:
        return int(_run("ps", "-o", "ppid=", "-p", str(pid)) or 0)

    def words(self, pid: int) -> list[str]:
        return _run("ps", "-ww", "-o", "command=", "-p", str(pid)).split()

    def is_stopped(self, pid: int) -> bool:
        return _run("ps", "-o", "state=", "-p", str(pid)).startswith("T")

    def carrying(self, mark: str) -> list[Process]:
        told = _run("ps", "-axww", "-E", "-o", "pid=,command=").splitlines()
        return self._alive(
            int(line.split()[0]) for line in told if f"DIBS_RUN={mark}" in line.split()
        )

    def file_system(self, path: str) -> str:  # noqa: ARG002
        return ""


def wall_clock() -> Instant:
    """Not by way of nanoseconds: after 2262 they do not fit into 64 bits, and Python gives up."""
    return Instant(int(time.clock_gettime(time.CLOCK_REALTIME) * SECOND))


Machine = Linux
"""What every system's adapter can do."""


def this_machine() -> Machine:
    return Darwin() if sys.platform == "darwin" else Linux()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _run(*command: str) -> str:
    import subprocess

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)
    return done.stdout.strip()
