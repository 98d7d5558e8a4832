"""The keeper: renews a lease while its process lives, and says when it is lost.

Its belief ends early: the deadline is counted on a clock that includes sleep, from before the
request was sent, less a tenth. After the deadline the keeper renews before anything else, or the
work stops. It is a thread of its own process, so it cannot outlive it.
"""

from __future__ import annotations

import os
import threading

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.opening import another
from dibs.core import commands as c
from dibs.core.instants import SECOND, Duration
from dibs.core.model import TaskKey, Token
from dibs.core.refusals import Refusal, Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN = 10
"""A tenth of the ttl: the holder stops believing so much earlier than the board."""

RENEWALS = 4
"""In one ttl."""

SLICE = 1.0
"""Seconds between two looks at the clock: a wait does not count sleep, the clock does."""

GLANCES = 40
"""In one ttl: so often is looked whether an answer is still to come, and so late may it be seen."""

TRY_AGAIN = frozenset(("busy", "unreachable", "disk_full", "read_only", "storage_failed"))
"""Refusals that say nothing about the lease."""


class Keeper:
    """Renews one lease in the background, through a connection of its own."""

    def __init__(
        self,
        board: Board,
        who: Identity,
        key: TaskKey,
        token: Token,
        ttl: Duration,
        since: int,
        on_lost: Callable[[Refusal], None] | None = None,
    ) -> None:
        """`since` is the time since boot from before the claim was sent."""
        self.lost = threading.Event()
        self.why: Refusal | None = None
        self._board = another(board)
        self._machine = board.store.machine
        self._who = who
        self._command = c.Renew(key, token=token)
        self._ttl = ttl
        self._renewed = since
        self._asked: int | None = None
        """Since when a renewal waits for its answer."""
        self._on_lost = on_lost
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"dibs {key}", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name=f"dibs {key} watch", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._watcher.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._pid == os.getpid():
            self._thread.join()
            self._watcher.join()
            self._board.store.close()

    def check(self) -> Refusal | None:
        """Why the lease is lost, or nothing. Past the deadline it is renewed first."""
        if self._pid != os.getpid():
            return refused("forked", f"the lease belongs to process {self._pid}").refusal
        if not self.lost.is_set() and self._overdue():
            self._renew()
        return self.why

    def _overdue(self) -> bool:
        return self._age() > self._ttl - self._ttl // MARGIN

    def _age(self) -> int:
        return self._machine.boottime() - self._renewed

    def _keep(self) -> None:
        pause = min(SLICE, self._ttl / SECOND / RENEWALS / 2)
        while not self._stopped.wait(pause) and not self.lost.is_set():
            if self._age() >= self._ttl // RENEWALS:
                self._renew()

    def _watch(self) -> None:
        """A server that does not answer must not keep the work going: the deadline is our own."""
        pause = min(SLICE, self._ttl / SECOND / GLANCES)
        while not self._stopped.wait(pause) and not self.lost.is_set():
            asked = self._asked
            waited = asked is not None and self._machine.boottime() - asked > self._ttl // MARGIN
            if waited and self._overdue():
                self._lose(refused("unreachable", "the server has not answered in time").refusal)

    def _renew(self) -> None:
        """Once; a store that cannot be asked is asked again, until the deadline."""
        while not self._turn.acquire(timeout=SLICE):
            if self.lost.is_set():
                return
        try:
            self._ask()
        finally:
            self._asked = None
            self._turn.release()

    def _ask(self) -> None:
        before = self._asked = self._machine.boottime()
        try:
            self._board.execute(self._who, self._command)
        except Refused as problem:
            if problem.code not in TRY_AGAIN or self._overdue():
                self._lose(problem.refusal)
        except Exception as error:
            self._lose(refused("bug", f"the keeper failed: {error}").refusal)
            raise
        else:
            self._renewed = before

    def _lose(self, why: Refusal) -> None:
        if self.lost.is_set():
            return
        self.why = why
        self.lost.set()
        if self._on_lost is not None:
            self._on_lost(why)
