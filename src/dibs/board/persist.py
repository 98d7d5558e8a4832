"""A board that was opened, near or far: what was cut off is tried again, and one that moved is followed."""

from __future__ import annotations

import time

from dibs.board.user import User
from dibs.core.instants import SECOND, Duration
from dibs.core.refusals import Refused
from dibs.machine import Machine
from dibs.stores.faults import Interrupted, Moved, lost_on_the_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import TypeVar

    from dibs.board.execute import Backlog, Board
    from dibs.board.locate import Repository
    from dibs.board.settings import Settings
    from dibs.stores.offers import Offers
    from dibs.stores.store import Store
    from dibs.stores.transaction import ReadTransaction

    Answered = TypeVar("Answered")

HOPS = 5
"""A board may have moved so often."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0


class Patience:
    """How long one thing is tried: pauses that grow, each shortened by chance, up to a deadline."""

    def __init__(self, machine: Machine, wait: Duration) -> None:
        self._machine = machine
        self._deadline = machine.boottime() + wait
        self._pause = FIRST_PAUSE
        self._hops = 0

    def lasts(self) -> bool:
        """Waits a moment, if there is time left for another try."""
        left = (self._deadline - self._machine.boottime()) / SECOND
        if left <= 0:
            return False
        from random import uniform

        time.sleep(min(left, uniform(self._pause / 2, self._pause)))  # noqa: S311 - no secret
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
        return True

    def follows(self) -> bool:
        self._hops += 1
        return self._hops <= HOPS


class Asked:
    """One request, however often it is tried."""

    def __init__(self, request_id: str | None, *, own: bool) -> None:
        """`own`: we made the id, and nobody else can know it."""
        self.id = request_id
        self.own = own
        self.since: int | None = None
        """The last event that was there before anything was done under it."""

    @property
    def before(self) -> str | None:
        """The id, if something may have been done under it."""
        return None if self.own and self.since is None else self.id

    def begins(self, last: int) -> None:
        """A try, which sees that event as the last one."""
        self.since = last if self.since is None else min(last, self.since)


def persist(board: Opened, act: Callable[[], Answered], wait: Duration | None = None) -> Answered:
    """What `act` answers; it begins anew when it was cut off, and where the board has gone.

    `wait`: how long it is tried, if not for as long as the settings say.
    """
    wait = board.settings.write_wait if wait is None else wait
    left = board.store.deadline - time.monotonic()
    patience = Patience(board.store.machine, Duration(int(min(wait, max(0, left * SECOND)))))
    doubt: Interrupted | None = None
    while True:
        try:
            return act()
        except Interrupted as cut:
            doubt = cut if cut.refusal.facts.get("unknown") else doubt
            if not patience.lasts():
                problem = doubt or cut
                problem.in_vain = True
                raise problem from None
        except Moved as moved:
            if not patience.follows():
                raise
            follow(board, moved)


def was_cut_off(problem: Refused) -> bool:
    """In the middle of something that may begin anew: it was not tried for long already."""
    return isinstance(problem, Interrupted) and not problem.in_vain


def follow(board: Opened, moved: Moved) -> None:
    """To where the board is now. Whoever comes first says that it has arrived, if it is sure that it left."""
    from dibs.board.places import settings_in, store_of_record

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


def check_is_there(source: Store, store: Store, moved: Moved) -> None:
    """Another machine has other folders, and another board may be at the place by now."""
    from dibs.board.places import copier
    from dibs.stores.copying import id_of

    uid = str(moved.refusal.facts["board"])
    try:
        if copier(store).expects(store, uid, moved.word):
            copier(source).confirm(source)
            copier(store).arrive(store, uid, moved.word)
        there = uid_at(store)
    except Refused as problem:
        if problem.code != "no_board":
            raise
        raise lost_on_the_way(moved, "which has no board as seen from this machine") from None
    if id_of(there) != id_of(uid):
        raise lost_on_the_way(moved, f"but another board is in {store.where} now: {there}")


def uid_at(store: Store) -> str:
    """Of the board at a place, though it may have gone on."""
    try:
        with store.read() as tx:
            return tx.board.uid
    except Moved as on:
        return str(on.refusal.facts["board"])


class Reading:
    """`with board.read() as tx`: begun again until it holds; what is cut off later is refused."""

    def __init__(self, board: Opened) -> None:
        self._board = board
        self._inner: AbstractContextManager[ReadTransaction] | None = None

    def __enter__(self) -> ReadTransaction:
        return persist(self._board, self._begin)

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


class Glancing(Reading):
    """`with board.glance() as tx`: the same, where a store has a shorter way to say who holds what."""

    def __enter__(self) -> Offers:  # type: ignore[override]
        return super().__enter__()

    def _begin(self) -> ReadTransaction:
        store = self._board.store
        if store.remote:
            return super()._begin()
        from dibs.stores.glance import Look

        self._inner = Look(store)  # type: ignore[arg-type]  # what is near is a file
        return self._inner.__enter__()


class Opened:
    """A store, the settings that hold for it, and the item files beside it: all that a look needs.

    `Board` adds what can be changed.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        backlog: Backlog | None = None,
        user: User = User(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self.store = store
        self.settings = settings
        self.backlog = backlog
        """Item files that are kept in step with the board, if the repository has any."""
        self.user = user
        """Who says which servers may be contacted."""
        self.repository: Repository | None = None
        """The one that the caller is in."""

    def read(self) -> Reading:
        """A consistent look at the board, wherever it is."""
        return Reading(self)

    def glance(self) -> Glancing:
        """The same for who asks only who holds what: a file has a shorter way for that."""
        return Glancing(self)

    def whole(self) -> Board:
        """The board with all that can be done with it."""
        from dibs.board.execute import Board

        if isinstance(self, Board):
            return self
        board = Board(self.store, self.settings, self.backlog, self.user)
        board.repository = self.repository
        return board
