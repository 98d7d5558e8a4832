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

BOOT_ID = "/proc/sys/kernel/random/boot_id"

UNKNOWN = "unknown"
"""A boot or a pid namespace that cannot be told from here. It is the same as no other."""

OWN_BOOT = "container "
"""Before a boot id that is not the kernel's: a container's file lies over the kernel's."""

FIRST_PIDS, FIRST_TIME = "pid:[4026531836]", "time:[4026531834]"
"""The namespaces that a kernel starts with. Their numbers are part of its interface."""


def is_certain(boot: str) -> bool:
    """Whether it is the kernel's own id of this boot: then another one is another boot."""
    return boot != UNKNOWN and not boot.startswith(OWN_BOOT)


class Linux:
    """Linux: everything is read from `/proc`; `CLOCK_BOOTTIME` counts sleep."""

    def __init__(self) -> None:
        self._boot = ""
        self._shift: int | None = None

    def wall(self) -> Instant:
        return wall_clock()

    def boottime(self) -> int:
        """Microseconds since boot, sleep included; the same in every time namespace."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._time_shift()) // NANOSECONDS

    def knows_boottime(self) -> bool:
        """Whether `boottime` is the host's: a time namespace shows its offset in `/proc` alone."""
        return self._has_proc() and self._own_time() is not None

    def boot(self) -> str:
        """The same for as long as this process lives."""
        self._boot = self._boot or self._find_boot()
        return self._boot

    def _find_boot(self) -> str:
        found = _read(BOOT_ID).strip() if self.knows_boottime() else ""
        if not found:
            return UNKNOWN
        over = os.stat(BOOT_ID).st_dev != os.stat("/proc/self/stat").st_dev
        return f"{OWN_BOOT}{found}" if over else found

    def _has_proc(self) -> bool:
        """Whether `/proc` is there, and numbers processes as this one is numbered."""
        try:
            return os.readlink("/proc/self") == str(os.getpid())
        except OSError:
            return False

    def namespace(self) -> str:
        """The pid namespace: a pid of another one says nothing here."""
        return _link("/proc/self/ns/pid") if self._has_proc() else UNKNOWN

    def sees_host(self) -> bool:
        """Whether this is no container, no chroot, and no time namespace of its own."""
        mounts = (line.split(" ", 5) for line in _read("/proc/self/mountinfo").splitlines())
        return (
            self.namespace() == FIRST_PIDS
            and _link("/proc/self/ns/time") in (FIRST_TIME, UNKNOWN)
            and any(fields[4] == "/" for fields in mounts)
        )

    def _time_shift(self) -> int:
        """By how many nanoseconds `CLOCK_BOOTTIME` is ahead here of what it is on the host."""
        if self._shift is None:
            self._shift = self._own_time() or 0
        return self._shift

    def _own_time(self) -> int | None:
        """The same; nothing if it cannot be told. The kernel shows it for children alone."""
        own = _link("/proc/self/ns/time")
        if own in (FIRST_TIME, UNKNOWN):
            return 0
        if own != _link("/proc/self/ns/time_for_children"):
            return None
        for line in _read("/proc/self/timens_offsets").splitlines():
            clock, seconds, nanoseconds = line.split()
            if clock in ("boottime", "7"):
                return int(seconds) * 1_000_000_000 + int(nanoseconds)
        return None

    def process(self, pid: int) -> Process | None:
        stat = self._stat(pid)
        if stat is None or stat[0] in "ZX":
            return None
        return Process(self.boot(), self.namespace(), pid, self._started(stat))

    def started(self, pid: int) -> int | None:
        """When a process was started, also if it has ended and was not reaped yet."""
        stat = self._stat(pid)
        return None if stat is None else self._started(stat)

    def _started(self, stat: list[str]) -> int:
        """In ticks since boot, on the host's clock. The kernel shows it on the reader's."""
        ticks = os.sysconf("SC_CLK_TCK")
        return int(stat[19]) - round(self._time_shift() * ticks / 1_000_000_000)

    def own_process(self) -> Process:
        """This process; where `/proc` says nothing of it, a name that nobody else has."""
        found = self.process(os.getpid())
        return found or Process(UNKNOWN, UNKNOWN, os.getpid(), self.boottime())

    def lives(self, process: Process) -> bool | None:
        """Whether a process of this boot and namespace lives; nothing if that cannot be told."""
        if self._stat(process.pid) is None and _is_there(process.pid):
            return None  # somebody else's, and hidden
        found = self.process(process.pid)
        shifted = found is not None and abs(found.started - process.started) == 1
        return None if shifted and self._time_shift() else found == process

    def may_state(self, pid: int) -> Process | None:
        """A process that a lease may be tied to: alive, of this user, in this pid namespace."""
        found = self.process(pid)
        try:
            own = os.stat(f"/proc/{pid}").st_uid == os.geteuid()
        except OSError:
            return None
        same = found is not None and _link(f"/proc/{pid}/ns/pid") == found.namespace != UNKNOWN
        return found if own and same and found is not None and found.boot != UNKNOWN else None

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
        return self._alive(
            pid for pid in self._pids() if wanted in _read(f"/proc/{pid}/environ").split("\0")
        )

    def in_session(self, leader: int, started: int, forks: int) -> list[Process]:
        """The processes of the session that `leader` began, which was started at `started`.

        None, if the number may have been given to somebody else since: a number is free again when
        its last process is gone, and is given again when all others were. `forks` counted then.
        """
        known = self.started(leader)
        if known is None:
            reused = not forks or self.forks() - forks >= self._pid_max() * 3 // 4
        else:
            reused = known != started
        if not leader or reused:
            return []
        members = (pid for pid in self._pids() if self._session(pid) == leader)
        return [found for found in self._alive(members) if found.started >= started]

    def forks(self) -> int:
        """How many processes and threads this kernel has started; 0 if it does not say."""
        lines = (line.split() for line in _read("/proc/stat").splitlines())
        return next((int(words[1]) for words in lines if words[:1] == ["processes"]), 0)

    def _pid_max(self) -> int:
        return int(_read("/proc/sys/kernel/pid_max").strip() or 0)

    def _session(self, pid: int) -> int:
        stat = self._stat(pid)
        return int(stat[3]) if stat else 0

    def _pids(self) -> list[int]:
        if not self._has_proc():
            return []
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

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
        text = _read(f"/proc/{pid}/stat") if self._has_proc() else ""
        return text.rpartition(")")[2].split() if text else None


class Darwin(Linux):
    """macOS: `CLOCK_MONOTONIC_RAW` counts sleep; the rest is asked of `sysctl` and `ps`."""

    def boottime(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // NANOSECONDS

    def boot(self) -> str:
        self._boot = self._boot or _run("sysctl", "-n", "kern.bootsessionuuid") or UNKNOWN
        return self._boot

    def namespace(self) -> str:
        return "darwin"

    def sees_host(self) -> bool:
        return True

    def knows_boottime(self) -> bool:
        return True

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

    def started(self, pid: int) -> int | None:
        found = self.process(pid)
        return None if found is None else found.started

    def lives(self, process: Process) -> bool | None:
        return self.process(process.pid) == process

    def may_state(self, pid: int) -> Process | None:
        own = _run("ps", "-o", "uid=", "-p", str(pid)).strip() == str(os.geteuid())
        return self.process(pid) if own else None

    def in_session(self, leader: int, started: int, forks: int) -> list[Process]:  # noqa: ARG002
        """Those of the command's process group, while its leader is there to prove that it is."""
        found = self.process(leader) if leader else None
        if found is None or found.started != started:
            return []
        lines = (line.split() for line in _run("ps", "-axo", "pid=,pgid=").splitlines())
        return self._alive(int(pid) for pid, group in lines if int(group) == leader)

    def forks(self) -> int:
        return 0

    def file_system(self, path: str) -> str:  # noqa: ARG002
        return ""


def wall_clock() -> Instant:
    """Not by way of nanoseconds: after 2262 they do not fit into 64 bits, and Python gives up."""
    return Instant(int(time.clock_gettime(time.CLOCK_REALTIME) * SECOND))


Machine = Linux
"""What every system's adapter can do."""


def this_machine() -> Machine:
    return Darwin() if sys.platform == "darwin" else Linux()


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return UNKNOWN


def _is_there(pid: int) -> bool:
    """Whether a process has this number, although nothing more can be seen of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


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
