"""The writers' queue: one lock file in front of the database.

SQLite's own waiting asks again after ever longer sleeps, and starves. Here a writer tries once,
then blocks in the kernel, which wakes it when its turn has come, and gives up at a deadline.
"""

from __future__ import annotations

import _thread
import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

from dibs.machine import Machine
from dibs.stores import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SAID = 100
"""Characters in the lock file: who writes, and what."""


class Turn:
    """The right to write. Given back by `end`, or with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def is_at(self, path: str) -> bool:
        """Whether the locked file is the one at this path."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(path))
        except FileNotFoundError:
            return False

    def end(self) -> None:
        """What was committed stands, whatever the lock file says afterwards."""
        _try(self._unlock)  # not only closed: a process forked meanwhile may share it
        _try(self._close)

    def _unlock(self) -> None:
        flock(self._descriptor, LOCK_UN)

    def _close(self) -> None:
        os.close(self._descriptor)


def _try(act: Callable[[], None]) -> None:
    try:
        act()
    except OSError:
        return


def wait_for_turn(path: str, what: str, seconds: float, machine: Machine) -> Turn:
    """Blocks until nobody else writes; after `seconds` a refusal that names the blocker.

    The lock counts only if its file is still the one at the path: who comes later locks that one.
    """
    while True:
        turn = _wait(path, what, seconds, machine)
        if turn.is_at(path):
            return turn
        turn.end()


def _wait(path: str, what: str, seconds: float, machine: Machine) -> Turn:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        if not _block(descriptor, seconds):
            raise faults.busy(path, _blocker(path, machine), seconds) from None
    except BaseException:
        os.close(descriptor)
        raise
    turn = Turn(descriptor)
    try:
        os.pwrite(descriptor, f"{os.getpid()} {what}".ljust(SAID)[:SAID].encode(), 0)
    except BaseException:
        turn.end()
        raise
    return turn


def _block(descriptor: int, seconds: float) -> bool:
    """Waits in the kernel, in a thread of its own: a signal handler would belong to the caller.

    A thread that comes too late gives the lock back at once.
    """
    state, won = _thread.allocate_lock(), _thread.allocate_lock()
    given_up: list[bool] = []
    won.acquire()

    def block() -> None:
        flock(descriptor, LOCK_EX)
        with state:
            if given_up:
                os.close(descriptor)
            else:
                won.release()

    _thread.start_new_thread(block, ())
    try:
        in_time = won.acquire(timeout=seconds)
    except BaseException:
        _give_up(state, won, given_up, descriptor)
        raise
    return in_time or _give_up(state, won, given_up, descriptor=None)


def _give_up(
    state: _thread.LockType, won: _thread.LockType, given_up: list[bool], descriptor: int | None
) -> bool:
    """True if the lock was won in the last moment (and, with a descriptor, gives it back)."""
    with state:
        at_last = won.acquire(blocking=False)
        if not at_last:
            given_up.append(True)
        elif descriptor is not None:
            os.close(descriptor)
        return at_last


def _blocker(path: str, machine: Machine) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        pid, _, what = file.read(SAID).strip().partition(" ")
    if not pid.isdigit() or machine.process(int(pid)) is None:
        return ""
    stopped = ", stopped" if machine.is_stopped(int(pid)) else ""
    return f"process {pid} ({what}{stopped})"
