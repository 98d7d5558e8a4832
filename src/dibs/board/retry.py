"""An opened board, local or on a server: retries after a lost connection, and follows a board that moved."""

from __future__ import annotations

import time

from dibs.board.user_config import User
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND, Duration
from dibs.machine import Machine
from dibs.storage.errors import BoardMoved, Interrupted, cannot_follow_move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Protocol, TypeVar

    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.board.outcome import Outcome
    from dibs.board.settings import Settings
    from dibs.domain import commands as c
    from dibs.domain.facts import DeathEvidence
    from dibs.domain.model import ItemFile, Task, TaskId
    from dibs.storage.readiness import ReadinessQueries
    from dibs.storage.store import Store
    from dibs.storage.transaction import ReadTransaction

    Answered = TypeVar("Answered")

    class Backlog(Protocol):
        """The backlog's item files: read before a command that depends on them, written after its commit.

        `board` is a `Board`, whose module imports this one.

        `before` and `after` return warnings for the user. A file that cannot be
        written waits for the next sync.
        """

        def before(self, board: Any, who: Identity, command: c.Command) -> tuple[str, ...]: ...

        def after(self, board: Any, who: Identity, outcome: Outcome) -> tuple[str, ...]: ...

        def read(self, board: Any, who: Identity) -> str:
            """Imports every change in the files; returns one line that summarizes
            it, or "" without changes.
            """
            ...

        def paths(self, tx: ReadTransaction, tasks: Iterable[Task]) -> frozenset[str]:
            """The paths of these tasks' item files, relative to the repository."""
            ...

        def where(self, board: Any, task: Task | None) -> ItemFile | None:
            """The item file of a task, if it has one."""
            ...

        def deaths(self, board: Any) -> Mapping[TaskId, DeathEvidence]:
            """Leases whose sessions have ended, according to a list that the backlog itself maintains."""
            ...


HOPS = 5
"""How many moves of a board are followed in a row."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0


class Backoff:
    """Exponential backoff with jitter, up to a deadline."""

    def __init__(self, machine: Machine, wait: Duration) -> None:
        self._machine = machine
        self._deadline = machine.boottime() + wait
        self._pause = FIRST_PAUSE
        self._hops = 0

    def sleep_before_retry(self) -> bool:
        """Sleeps before the next attempt; False if the deadline has passed."""
        left = (self._deadline - self._machine.boottime()) / SECOND
        if left <= 0:
            return False
        from random import uniform

        time.sleep(min(left, uniform(self._pause / 2, self._pause)))  # noqa: S311 - no secret
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
        return True

    def may_follow_move(self) -> bool:
        self._hops += 1
        return self._hops <= HOPS


class PendingRequest:
    """One request across all its attempts."""

    def __init__(self, request_id: str | None, *, own: bool) -> None:
        """`own`: we generated the id, so nobody else can know it."""
        self.id = request_id
        self.own = own
        self.since: int | None = None
        """The last event in the ledger before the first attempt."""

    @property
    def before(self) -> str | None:
        """The id, if an earlier attempt may have committed something under it."""
        return None if self.own and self.since is None else self.id

    def record_attempt(self, last: int) -> None:
        """Records an attempt, which sees `last` as the newest event."""
        self.since = last if self.since is None else min(last, self.since)


def retry_on_disconnect(
    board: ReadableBoard, act: Callable[[], Answered], wait: Duration | None = None
) -> Answered:
    """Returns what `act` returns; retries after a lost connection, and at the new
    place if the board has moved.

    `wait`: how long to retry; by default as long as the settings allow.
    """
    wait = board.settings.write_wait if wait is None else wait
    left = board.store.deadline - time.monotonic()
    backoff = Backoff(board.store.machine, Duration(int(min(wait, max(0, left * SECOND)))))
    doubt: Interrupted | None = None
    while True:
        try:
            return act()
        except Interrupted as cut:
            doubt = cut if cut.refusal.facts.get("unknown") else doubt
            if not backoff.sleep_before_retry():
                problem = doubt or cut
                problem.retries_exhausted = True
                raise problem from None
        except BoardMoved as moved:
            if not backoff.may_follow_move():
                raise
            follow(board, moved)


def may_be_retried(problem: Refused) -> bool:
    """Whether the connection was lost in the middle of something that was not retried yet."""
    return isinstance(problem, Interrupted) and not problem.retries_exhausted


def follow(board: ReadableBoard, moved: BoardMoved) -> None:
    """Switches to the store where the board is now. The first client there confirms
    the arrival of the move, if it is certain that the board left its old place.
    """
    from dibs.board.locate import settings_in, store_of_record

    store = store_of_record(moved, board.store, board.settings, board.user)
    try:
        check_is_there(board.store, store, moved)
        settings = settings_in(store, board.settings, board.user)
    except BaseException:
        store.close()
        raise
    store.deadline = board.store.deadline
    board.store.close()
    board.store, board.settings = store, settings


def check_is_there(source: Store, store: Store, moved: BoardMoved) -> None:
    """Refuses a wrong target: another machine has other folders, and a different
    board may be there by now.
    """
    from dibs.board.locate import copier
    from dibs.storage.copy import id_of

    uid = str(moved.refusal.facts["board"])
    try:
        if copier(store).has_inactive_copy(store, uid, moved.word):
            copier(source).wait_until_durable(source)
            copier(store).activate_copy(store, uid, moved.word)
        there = uid_at(store)
    except Refused as problem:
        if problem.code != "no_board":
            raise
        raise cannot_follow_move(moved, "which has no board as seen from this machine") from None
    if id_of(there) != id_of(uid):
        raise cannot_follow_move(moved, f"but another board is in {store.where} now: {there}")


def uid_at(store: Store) -> str:
    """The id of the board at a store, even if that board has moved on."""
    try:
        with store.read() as tx:
            return tx.board.uid
    except BoardMoved as on:
        return str(on.refusal.facts["board"])


class RetryingRead:
    """`with board.read() as tx`: retried until the transaction has begun; a
    connection lost later is refused.
    """

    def __init__(self, board: ReadableBoard) -> None:
        self._board = board
        self._inner: AbstractContextManager[ReadTransaction] | None = None

    def __enter__(self) -> ReadTransaction:
        return retry_on_disconnect(self._board, self._begin)

    def _begin(self) -> ReadTransaction:
        self._inner = self._board.store.read()
        return self._inner.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._inner is not None, "entered before"
        self._inner.__exit__(kind, error, trace)


class RetryingFastRead(RetryingRead):
    """`with board.glance() as tx`: the same on the store's fast path for reading who holds what, if any."""

    def __enter__(self) -> ReadinessQueries:  # type: ignore[override]
        return super().__enter__()

    def _begin(self) -> ReadTransaction:
        store = self._board.store
        if store.remote:
            return super()._begin()
        from dibs.storage.sqlite.fast_path import FastReadContext

        self._inner = FastReadContext(store)  # type: ignore[arg-type]  # a local store is SQLite
        return self._inner.__enter__()


class ReadableBoard:
    """A store, its settings, and the item files beside it: all that reading needs.

    `Board` adds changes.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        backlog: Backlog | None = None,
        user: User = User(),  # noqa: B008 - it is immutable
    ) -> None:
        self.store = store
        self.settings = settings
        self.backlog = backlog
        """Item files that are synchronized with the board, if the repository has any."""
        self.user = user
        """The user's configuration: it decides which servers may be contacted."""
        self.repository: Repository | None = None
        """The repository that the caller is in."""

    def read(self) -> RetryingRead:
        """A consistent read transaction, wherever the board is."""
        return RetryingRead(self)

    def read_fast(self) -> RetryingFastRead:
        """A read transaction on the fast path, for callers that only need who holds what; SQLite has one."""
        return RetryingFastRead(self)
