"""This machine: its clocks, its boot, its processes. One adapter per operating system.

Nothing here makes decisions. Tests substitute another machine.
"""

from __future__ import annotations

import os
import sys
import time

from dibs.domain.model import Process
from dibs.domain.values import SECOND, Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NANOSECONDS = 1_000
"""Nanoseconds per microsecond."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"

UNKNOWN = "unknown"
"""A boot or pid namespace that cannot be determined. It equals no other."""

OWN_BOOT = "container "
"""Prefix of a boot id that is not the kernel's: a container has mounted a file over the kernel's."""

FIRST_PIDS, FIRST_TIME = "pid:[4026531836]", "time:[4026531834]"
"""The kernel's initial namespaces. Their numbers are part of its interface."""


def is_certain(boot: str) -> bool:
    """Whether it is the kernel's own boot id: then a different id means a different boot."""
    return boot != UNKNOWN and not boot.startswith(OWN_BOOT)


class Linux:
    """Linux: reads everything from `/proc`; `CLOCK_BOOTTIME` includes sleep."""

    def __init__(self) -> None:
        self._boot = ""
        self._shift: int | None = None

    def wall(self) -> Instant:
        return wall_clock()

    def boottime(self) -> int:
        """Microseconds since boot, including sleep; the same in every time namespace."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._time_shift()) // NANOSECONDS

    def knows_boottime(self) -> bool:
        """Whether `boottime` is the host's: only `/proc` shows the offset of a time namespace."""
        return self._has_proc() and self._own_time() is not None

    def boot(self) -> str:
        """The boot id; constant for the life of this process."""
        self._boot = self._boot or self._find_boot()
        return self._boot

    def _find_boot(self) -> str:
        found = _read(BOOT_ID).strip() if self.knows_boottime() else ""
        if not found:
            return UNKNOWN
        over = os.stat(BOOT_ID).st_dev != os.stat("/proc/self/stat").st_dev
        return f"{OWN_BOOT}{found}" if over else found

    def _has_proc(self) -> bool:
        """Whether `/proc` is mounted and belongs to this process's pid namespace."""
        try:
            return os.readlink("/proc/self") == str(os.getpid())
        except OSError:
            return False

    def namespace(self) -> str:
        """The pid namespace: pids of another one mean nothing here."""
        return _link("/proc/self/ns/pid") if self._has_proc() else UNKNOWN

    def sees_host(self) -> bool:
        """Whether this is neither a container nor a chroot, and has no time namespace of its own."""
        mounts = (line.split(" ", 5) for line in _read("/proc/self/mountinfo").splitlines())
        return (
            self.namespace() == FIRST_PIDS
            and _link("/proc/self/ns/time") in (FIRST_TIME, UNKNOWN)
            and any(fields[4] == "/" for fields in mounts)
        )

    def _time_shift(self) -> int:
        """Nanoseconds by which `CLOCK_BOOTTIME` is ahead of the host's here."""
        if self._shift is None:
            self._shift = self._own_time() or 0
        return self._shift

    def _own_time(self) -> int | None:
        """The same; None if unknown. The kernel shows it only for child processes."""
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
        """The start time of a process, also of a zombie."""
        stat = self._stat(pid)
        return None if stat is None else self._started(stat)

    def _started(self, stat: list[str]) -> int:
        """Ticks since boot on the host's clock. The kernel shows it on the reader's clock."""
        ticks = os.sysconf("SC_CLK_TCK")
        return int(stat[19]) - round(self._time_shift() * ticks / 1_000_000_000)

    def own_process(self) -> Process:
        """This process; where `/proc` does not show it, a unique name."""
        found = self.process(os.getpid())
        return found or Process(UNKNOWN, UNKNOWN, os.getpid(), self.boottime())

    def lives(self, process: Process) -> bool | None:
        """Whether a process of this boot and namespace is alive; None if unknown."""
        if self._stat(process.pid) is None and _is_there(process.pid):
            return None  # another user's, and hidden
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
        """The command line of a process, if this user may read it."""
        return _read(f"/proc/{pid}/cmdline").split("\0")[:-1]

    def has_variable(self, pid: int, name: str) -> bool:
        """Whether a process was started with this variable, if this user may read that."""
        variables = _read(f"/proc/{pid}/environ").split("\0")
        return any(one.startswith(f"{name}=") for one in variables)

    def is_stopped(self, pid: int) -> bool:
        stat = self._stat(pid)
        return stat is not None and stat[0] in "Tt"

    def carrying(self, mark: str) -> list[Process]:
        """Processes with DIBS_RUN=mark in their environment, as far as this user may read it."""
        wanted = f"DIBS_RUN={mark}"
        return self._alive(
            pid for pid in self._pids() if wanted in _read(f"/proc/{pid}/environ").split("\0")
        )

    def in_session(self, leader: int, started: int, forks: int) -> list[Process]:
        """The processes of the session led by `leader`, which was started at `started`.

        Empty if the session id may have been reused: an id is free once its last process is gone, and is reused
        when all other ids were. `forks` is the fork counter at that time.
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
        """How many processes and threads this kernel has started; 0 if unknown."""
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
        """The type of the file system of `path`, or "" if unknown."""
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
        """Fields of `/proc/PID/stat` from the state on; the name before it may contain anything."""
        text = _read(f"/proc/{pid}/stat") if self._has_proc() else ""
        return text.rpartition(")")[2].split() if text else None


class Darwin(Linux):
    """macOS: `CLOCK_MONOTONIC_RAW` includes sleep; the rest comes from `sysctl` and `ps`."""

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

    def has_variable(self, pid: int, name: str) -> bool:
        told = _run("ps", "-ww", "-E", "-o", "command=", "-p", str(pid)).split()
        return any(word.startswith(f"{name}=") for word in told)

    def is_stopped(self, pid: int) -> bool:
        return _run("ps", "-o", "state=", "-p", str(pid)).startswith("T")

    def carrying(self, mark: str) -> list[Process]:
        lines = _run("ps", "-axww", "-E", "-o", "pid=,command=").splitlines()
        return self._alive(
            int(line.split()[0]) for line in lines if f"DIBS_RUN={mark}" in line.split()
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
        """Processes of the command's process group, while its leader lives to prove that it is the same."""
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
    """Avoids nanoseconds: after 2262 they overflow 64 bits, and Python raises."""
    return Instant(int(time.clock_gettime(time.CLOCK_REALTIME) * SECOND))


Machine = Linux
"""The interface of every adapter."""


def this_machine() -> Machine:
    return Darwin() if sys.platform == "darwin" else Linux()


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return UNKNOWN


def _is_there(pid: int) -> bool:
    """Whether a process with this pid exists, even if nothing else about it is visible."""
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
