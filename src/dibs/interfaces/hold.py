"""`with board.hold("T-1") as lease`: a lease that is kept while the block runs."""

from __future__ import annotations

from dibs.board.execute import Board as Rules
from dibs.core import checks, ledger
from dibs.core.instants import Duration, exact
from dibs.core.model import TaskKey
from dibs.core.refusals import Refusal, Refused
from dibs.interfaces.records import Answer, LeaseLost
from dibs.workers.keeper import Keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from dibs.interfaces.library import Board


class Lease:
    """A lease that is renewed in the background until the block ends, or until it is lost."""

    def __init__(
        self,
        board: Board,
        rules: Rules,
        key: TaskKey,
        ttl: Duration,
        then: str,
        if_failed: str,
        on_lost: Callable[[Refusal], None] | None,
    ) -> None:
        self.key = key
        self.token = ""
        self._board = board
        self._rules = rules
        self._ttl = ttl
        self._then = then
        self._if_failed = if_failed
        self._on_lost = on_lost
        self._keeper: Keeper | None = None
        self._ended = False

    def __enter__(self) -> Self:
        since = self._rules.store.machine.boottime()
        self.token = self._board.claim(self.key, ttl=exact(self._ttl)).token
        self._keeper = Keeper(
            self._rules,
            self._board.who,
            self.key,
            ledger.token(self.token),
            self._ttl,
            since,
            self._on_lost,
        )
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop()
        if self._ended:
            return
        if error is None:
            getattr(self, self._then)()
        elif self._if_failed == "fail" and not isinstance(error, LeaseLost):
            self.fail(checks.short(f"{kind.__name__ if kind else ''}: {error}"))
        else:
            self._board.release(self.key)

    @property
    def lost(self) -> threading.Event:
        """Set when the lease is lost."""
        return self._kept.lost

    @property
    def _kept(self) -> Keeper:
        assert self._keeper is not None, "a lease is held inside `with`"
        return self._keeper

    def check(self) -> None:
        """Raises `LeaseLost` if this session does not hold the task any more."""
        why = self._kept.check()
        if why is not None:
            raise LeaseLost(why)

    def note(self, text: str) -> Answer:
        return self._board.note(self.key, text)

    def release(self, note: str = "") -> Answer:
        """Give the task back. Of a lost lease it is a success: it says that one knows."""
        self._stop()
        return self._board.release(self.key, note=note)

    def complete(self, note: str = "") -> Answer:
        return self._end(lambda: self._board.complete(self.key, note=note, token=self.token))

    def submit(self, note: str = "") -> Answer:
        return self._end(lambda: self._board.submit(self.key, note=note, token=self.token))

    def fail(self, reason: str) -> Answer:
        return self._end(lambda: self._board.fail(self.key, reason, token=self.token))

    def _end(self, act: Callable[[], Answer]) -> Answer:
        self._stop()
        try:
            answer = act()
        except Refused as problem:
            if problem.code in ("lease_lost", "token_ahead"):
                raise LeaseLost(problem.refusal) from None
            raise
        self._ended = True
        return answer

    def _stop(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
