"""The queue of writers: a lock file in front of the database.

SQLite's busy handler polls with ever longer sleeps, and starves. Here a writer tries once, then blocks in
the kernel, which wakes it when the lock is free, and gives up at a deadline.
"""

from __future__ import annotations

import _thread
import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

from dibs.machine import Machine
from dibs.storage import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOCK_TEXT_MAX = 100
"""Length of the lock file's text: who writes, and what."""

CREATION, RECEIPT = "init", "receive a board"
CREATIONS = (CREATION, RECEIPT)
"""What the lock file says while the file is created, when it is empty at first."""

CREATED = "created"
"""What it says afterwards: from then on an empty file is damage."""


class WriteLock:
    """The held write lock. Released by `end`, or when the process exits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def label(self, what: str) -> None:
        """Writes into the lock file who holds it, and for what."""
        text = f"{os.getpid()} {what}".ljust(LOCK_TEXT_MAX)[:LOCK_TEXT_MAX]
        os.pwrite(self._descriptor, text.encode(), 0)

    def is_at(self, path: str) -> bool:
        """Whether the locked file is the one at this path."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(path))
        except FileNotFoundError:
            return False

    def end(self) -> None:
        """Releases the lock. Errors are ignored: the commit is durable, whatever the lock file contains."""
        # Closing alone is not enough: a process forked meanwhile may share the descriptor.
        _try(self._unlock)
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


def acquire_write_lock(path: str, what: str, seconds: float, machine: Machine) -> WriteLock:
    """Blocks until the write lock is free; after `seconds`, refuses and names the blocker.

    The lock counts only if its file is still the one at the path: later processes lock that one.
    """
    while True:
        lock = _wait(path, what, seconds, machine)
        if lock.is_at(path):
            return lock
        lock.end()


def _wait(path: str, what: str, seconds: float, machine: Machine) -> WriteLock:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        if not _block(descriptor, seconds):
            raise errors.busy(path, _blocker(path, machine), seconds) from None
    except BaseException:
        os.close(descriptor)
        raise
    lock = WriteLock(descriptor)
    try:
        lock.label(what)
    except BaseException:
        lock.end()
        raise
    return lock


def _block(descriptor: int, seconds: float) -> bool:
    """Waits for the lock in a thread: a signal handler would interfere with the caller.

    A thread that acquires the lock after the timeout releases it at once.
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
    """True if the lock was acquired at the last moment (then, with a descriptor, releases it)."""
    with state:
        at_last = won.acquire(blocking=False)
        if not at_last:
            given_up.append(True)
        elif descriptor is not None:
            os.close(descriptor)
        return at_last


def _blocker(path: str, machine: Machine) -> str:
    """Who holds the lock, by the text of its file: whoever can write to the folder can write that."""
    from dibs.domain.values import quoted

    pid, _, what = _text(path).strip().partition(" ")
    if not (pid.isascii() and pid.isdigit()) or machine.process(int(pid)) is None:
        return ""
    stopped = ", stopped" if machine.is_stopped(int(pid)) else ""
    return f"process {pid} ({quoted(what)}{stopped})"


def last_holder(path: str) -> str:
    """What the last holder of the lock did with it, as its file says."""
    return _text(path).strip().partition(" ")[2]


def _text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(descriptor, LOCK_TEXT_MAX).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
