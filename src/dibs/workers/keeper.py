"""The keeper: renews a lease while its process lives (heartbeat), and reports its loss.

It considers the lease lost early: the deadline runs on a clock that includes sleep, from before the request
was sent, less a tenth. After the deadline the keeper must renew before anything else, or the work stops. It
renews in a thread of its own process, so it cannot outlive it; a second thread watches the deadline, since a
server may never respond, and calls `on_lost`.
"""

from __future__ import annotations

import os
import threading

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.domain import commands as c
from dibs.domain.model import TaskKey, Token
from dibs.domain.refusals import Refusal, Refused, refused
from dibs.domain.values import SECOND, Duration
from dibs.opening import second_connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dibs.board.outcome import Outcome

MARGIN = 10
"""A tenth of the ttl: the holder considers the lease lost this much earlier than the board does."""

RENEWALS = 4
"""Renewals per ttl."""

SLICE = 1.0
"""Seconds between two clock checks: a wait does not include sleep, the clock does."""

CALLBACK_SECONDS = 1.0
"""How long `stop` waits for `on_lost`, which may itself wait for the work."""

LOCK_POLL_SECONDS = 0.05
"""Seconds between two checks for a lost lease, while another thread holds the lock."""

CHECKS_PER_TTL = 40
"""Checks per ttl for an overdue response; also the delay with which one is detected."""

SERVER_CHECK_INTERVAL = 5 * SECOND
"""Between two checks that the lease is still ours; a file is checked at every wake-up."""

TRY_AGAIN = frozenset(
    ("busy", "unreachable", "not_let_in", "not_granted", "disk_full", "read_only", "storage_failed")
)
"""Refusals that say nothing about the lease: retry."""


class Keeper:
    """Renews one lease in the background, through a separate connection."""

    def __init__(
        self,
        board: Board,
        who: Identity,
        key: TaskKey,
        token: Token,
        ttl: Duration,
        since: int,
        on_lost: Callable[[Refusal], object] | None = None,
    ) -> None:
        """`since`: the time since boot, read before the claim was sent."""
        self.lost = threading.Event()
        self.why: Refusal | None = None
        self._board = second_connection(board)
        self._patience = board.settings.write_wait
        self._machine = board.store.machine
        self._who = who
        self._command = c.Renew(key, token=token)
        self._ttl = ttl
        self._renewed = since
        self._sent: int | None = None
        """When the pending request was sent."""
        self._checked = 0
        self._counter: int | None = None
        """The board's change counter at the last check."""
        self._on_lost = on_lost
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stopped = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"dibs {key}", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name=f"dibs {key} watch", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._watcher.start()

    def stop(self) -> None:
        """Stops renewing. Waits a limited time for `on_lost`, which may still run."""
        self._stopped = True
        self._over.set()
        if self._pid != os.getpid():
            return
        if self._lock.acquire(timeout=CALLBACK_SECONDS):
            self._board.store.close()
            self._lock.release()
        for thread in (self._thread, self._watcher):
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(CALLBACK_SECONDS)

    def end(self, act: Callable[[], Outcome]) -> Outcome:
        """The result of `act`. Renewals are suspended meanwhile, and stop for good if it succeeds."""
        if self._pid != os.getpid():
            raise self._forked()
        if not self._lock.acquire(timeout=self._patience / SECOND):
            # A renewal still waits for an unreachable server.
            raise Refused(
                self.why
                or refused("unreachable", "a renewal is still waiting for the server").refusal
            )
        try:
            outcome = act()
            self._stopped = True
        finally:
            self._lock.release()
        return outcome

    def check(self, *, ask: bool = False) -> Refusal | None:
        """Why the lease is lost, or None. Past the deadline, or with `ask`, renews first."""
        if self._pid != os.getpid():
            return self._forked().refusal
        if ask or self._overdue():
            problem = self._renew(lambda: ask or self._overdue())
            if ask and problem is not None and self.why is None:
                raise problem
        return self.why

    def lose(self, why: Refusal) -> None:
        """Marks the lease as lost; the keeper's own thread calls `on_lost`, once."""
        if not self.lost.is_set():
            self.why = why
            self.lost.set()
            self._over.set()

    def _forked(self) -> Refused:
        return refused("forked", f"the lease belongs to process {self._pid}")

    def _overdue(self) -> bool:
        return self._left() < 0

    def _left(self) -> int:
        """Time until the deadline."""
        return self._ttl - self._ttl // MARGIN - self._age()

    def _age(self) -> int:
        return self._machine.boottime() - self._renewed

    def _keep(self) -> None:
        pause = min(SLICE, self._ttl / SECOND / RENEWALS / 2)
        while not self._over.wait(pause):
            if self._is_due():
                self._renew(self._is_due)
            elif self._is_gone():
                self._renew(lambda: True)  # the refusal says why

    def _is_gone(self) -> bool:
        """Checks periodically: somebody may have ended the lease long before the next renewal."""
        machine, look = self._machine, SERVER_CHECK_INTERVAL if self._board.store.remote else 0
        if machine.boottime() < self._checked + look or not self._lock.acquire(blocking=False):
            return False
        try:
            self._checked = self._sent = machine.boottime()
            counter = self._board.store.pulse()
            if self._stopped or self.lost.is_set() or counter == self._counter:
                return False
            self._counter = counter
            with self._board.store.read() as tx:
                task = tx.task(self._command.task)
        except Refused as problem:
            return problem.code not in TRY_AGAIN  # the next renewal reports the reason
        else:
            return task is None or task.lease is None or task.token != self._command.token
        finally:
            self._sent = None
            self._lock.release()

    def _watch(self) -> None:
        """Enforces the deadline locally: an unresponsive server must not keep the work going."""
        pause = min(SLICE, self._ttl / SECOND / CHECKS_PER_TTL)
        while not self._over.wait(pause):
            sent = self._sent
            waited = (
                sent is not None and self._machine.boottime() - sent > self._ttl // CHECKS_PER_TTL
            )
            if waited and self._overdue():
                self.lose(refused("unreachable", "the server timed out").refusal)
        if self.why is not None and self._on_lost is not None:
            self._on_lost(self.why)

    def _lock_unless_lost(self) -> bool:
        """Waits for the lock; False if the lease is lost while another thread waits for a response."""
        while not self._lock.acquire(timeout=LOCK_POLL_SECONDS):
            if self.lost.is_set():
                return False
        return True

    def _is_due(self) -> bool:
        return self._age() >= self._ttl // RENEWALS

    def _renew(self, wanted: Callable[[], bool]) -> Refused | None:
        """Renews once, unless another thread renewed or lost the lease while we waited for the lock.

        An unreachable store is retried until the deadline.
        """
        if not self._lock_unless_lost():
            return None
        try:
            if self._stopped or self.lost.is_set() or not wanted():
                return None
            return self._send_renewal()
        finally:
            self._sent = None
            self._lock.release()

    def _send_renewal(self) -> Refused | None:
        before = self._sent = self._machine.boottime()
        self._wait_at_most(Duration(max(self._left(), self._ttl // MARGIN)))
        try:
            self._board.execute(self._who, self._command)
        except Refused as problem:
            if problem.code not in TRY_AGAIN or self._overdue():
                self.lose(problem.refusal)
            return problem
        except Exception as error:  # noqa: BLE001 - reported; the lease counts as lost
            self.lose(refused("bug", f"the keeper failed: {error}").refusal)
            report(error, self._thread)
        else:
            self._renewed = before
        return None

    def _wait_at_most(self, duration: Duration) -> None:
        """Limits the board's timeouts: a wait past the deadline would detect a lost lease too late."""
        wait = min(self._patience, duration)
        self._board.settings = self._board.settings.but(write_wait=wait)
        store: Any = self._board.store
        store.wait = wait / SECOND


def report(error: Exception, thread: threading.Thread) -> None:
    """Reports an error as Python does for an uncaught exception in a thread."""
    threading.excepthook(
        threading.ExceptHookArgs((type(error), error, error.__traceback__, thread))
    )
