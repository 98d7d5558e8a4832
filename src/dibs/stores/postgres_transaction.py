"""Transactions on PostgreSQL: which lock is taken, when the clock is read, what an error means.

Changes are not waited for one by one: the commit's answer is theirs too (`postgres_line`). Nor are they
said one by one: most of a transaction is one statement.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress

import psycopg

from dibs.core.instants import Instant, iso
from dibs.core.model import folded_key
from dibs.core.refusals import unreadable
from dibs.stores import faults
from dibs.stores import postgres_hints as hints
from dibs.stores.copying import ASIDE, id_of
from dibs.stores.postgres_line import NOT_PREPARED, STALE, Answer, Line
from dibs.stores.queries import FINGERPRINTS, NEWEST
from dibs.stores.transaction import BoardRow, ReadTransaction, WriteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

    from dibs.core.model import TaskKey
    from dibs.core.refusals import Refused
    from dibs.stores.postgres import PostgresStore
    from dibs.stores.postgres_line import Params, Session
    from dibs.stores.store import Question


PAGE = 2_000
"""Rows that are fetched at a time, where there may be very many."""

IDLE = "1min"
"""How long a writer may keep the others waiting without a word, such as one that was stopped."""

ADDS = ("add_event", "add_note", "add_ended_lease", "add_request")
"""Changes that leave every other row alone: they can be said in one statement with any others of these."""

SAVES = ("save_task", "save_seq", "settle_dependants")
"""Changes of rows: in the same statement a second one of the same row would be lost without a word."""

TOGETHER = 8
"""So many changes are one statement at most: the server keeps each combination that it was told."""


class Guarded:
    """Turns what the server and the network say into refusals with codes of their own."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self.committing = False

    def __enter__(self) -> Any:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        if isinstance(error, psycopg.Error):
            raise fault_of(error, self._store, self.committing) from error


class ReadContext(Guarded):
    """`with store.read() as tx`: one snapshot, let go at the end."""

    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    changes = False

    def __init__(self, store: PostgresStore, ahead: tuple[Question, ...] = ()) -> None:
        super().__init__(store)
        self._session: Session | None = None
        self._line: Line | None = None
        self._questions = ahead
        self._ahead: dict[str, tuple[Params, Answer]] = {}
        self._changes: list[tuple[str, Params]] = []
        """What was changed and not yet said."""
        self._unsure = False
        self._turn: Answer | None = None
        """What the server said when it gave us the turn to change the board."""

    def __enter__(self) -> ReadTransaction:
        try:
            self._session = self._store.borrow()
            self._session.add_notice_handler(self._notice)
            self._line = Line(self._session, self._store.wait)
            self._line.say(self.begin)
            return self._open()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end(error)
        except psycopg.Error as cut:
            super().__exit__(type(cut), cut, trace)
        super().__exit__(kind, error, trace)

    def _open(self) -> ReadTransaction:
        self._say("begin_reading", {"wait": self._store.patience()})
        board, now = self._board()
        return ReadTransaction(self, board, now, skewed=False)

    def _board(self) -> tuple[BoardRow, Instant]:
        """The row of the board, and its clock."""
        found = self.ask("look_at_board")
        if not found:
            raise unreadable("the row of the board itself")
        board, stamp = board_in(self._store, found[0])
        board = at_home(self._store, board, changes=self.changes)
        return board, Instant(max(self._store.instant(stamp), board.floor))

    def _say(self, query: str, params: Params) -> Answer:
        assert self._line is not None, "inside a transaction"
        return self._line.say(self._store.queries[query], params)

    def ask(self, query: str, **params: Any) -> list[Any]:
        assert self._line is not None, "inside a transaction"
        params["board"] = self._store.number
        asked, answer = self._ahead.pop(query, (None, None))
        if answer is None or asked != params:
            self._say_changes(self._line)
            answer = self._say(query, params)
        return self._line.hear(answer)

    def stream(self, query: str, **params: Any) -> Iterator[Any]:
        """By a cursor of the server: an answer as a whole would be kept here before it is read."""
        assert self._line is not None, "inside a transaction"
        params["board"] = self._store.number
        self._line.say(f"DECLARE {query} NO SCROLL CURSOR FOR {self._store.queries[query]}", params)
        while page := self._line.hear(self._line.say(f"FETCH {PAGE} FROM {query}")):
            yield from page
        self._line.say(f"CLOSE {query}")

    def change(self, query: str, params: Params) -> None:
        """Not waited for: an error comes with the next answer, at the latest the commit's."""
        assert self._line is not None, "inside a transaction"
        self._ahead.clear()
        params["board"] = self._store.number
        if query not in ADDS and query not in SAVES:
            self._say_changes(self._line)
            self._say(query, params)
            return
        before = self._changes
        if len(before) == TOGETHER or (query in SAVES and may_meet(query, params, before)):
            self._say_changes(self._line)
        self._changes.append((query, params))

    def _say_changes(self, line: Line) -> None:
        if self._changes:
            queries = self._store.queries
            line.say_together([(queries[query], params) for query, params in self._changes])
            self._changes = []

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if self.committing and did_not_wait(notice):
            self._unsure = True

    def _end(self, error: BaseException | None) -> None:
        session, self._session = self._session, None
        line, self._line = self._line, None
        if session is None:
            return
        try:
            if line is None or not isinstance(error, Exception | None):
                session.close()  # what was not committed ends with its connection
            elif error is None:
                self._commit(line)
                if self._turn is not None and not line.hear(self._turn)[0][-1]:
                    hints.give(self._store, session)
            else:
                with suppress(psycopg.Error):
                    line.end("ROLLBACK")
        finally:
            session.remove_notice_handler(self._notice)
            self._store.give_back(session)

    def _commit(self, line: Line) -> None:
        """What was only read has been heard: nothing depends on how it ends."""
        with suppress(psycopg.Error):
            line.end("COMMIT")


class WriteContext(ReadContext):
    """`with store.write(...) as tx`: the board's lock, the clock after it; commit, or roll back."""

    begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    changes = True

    def __enter__(self) -> WriteTransaction:
        transaction = super().__enter__()
        assert isinstance(transaction, WriteTransaction), "made by _open"
        return transaction

    def _open(self) -> WriteTransaction:
        self._turn = self._take("take_turn")
        self._look()
        for query, params in self._questions:
            self._expect(query, params)
        return self._transaction()

    def _commit(self, line: Line) -> None:
        self._say_changes(line)
        self.committing = True
        line.end("COMMIT")
        if self._unsure:
            raise faults.standby_silent(self._store.where)

    def _take(self, turn: str) -> Answer:
        """The board's lock; whoever waits too long for it is refused."""
        limits = {"wait": self._store.patience(), "idle": IDLE}
        return self._say(turn, {"board": self._store.number, **limits})

    def _look(self) -> None:
        """The board and its clock, after every lock; the server, if it may be another one now."""
        assert self._session is not None, "inside a transaction"
        self._expect("look_at_board", {})
        if not self._session.own:
            self._session.home = None
        if self._session.home is None:
            self._expect("server", {})

    def _expect(self, query: str, params: Params, by: str = "") -> None:
        """Asks ahead, perhaps by another query; the answer is heard when the question comes."""
        asked = {**params, "board": self._store.number}
        self._ahead[query] = asked, self._say(by or query, asked)

    def _transaction(self) -> WriteTransaction:
        session = self._session
        assert session is not None, "inside a transaction"
        board, now = self._board()
        if session.home is None or session.home[0] != board.epoch:
            [found] = self.ask("server")
            session.home = board.epoch, new_home(*found)
        return WriteTransaction(
            self,
            board,
            now,
            skewed=False,
            actors=self._store.actors_at(board.head),
            rises=True,
            new_home=session.home[1],
        )


class RenewalContext(WriteContext):
    """The board's lock shared, then the task's row: renewals go side by side, and with no claim."""

    def __init__(self, store: PostgresStore, task: TaskKey) -> None:
        super().__init__(store)
        self._task = task

    def _open(self) -> WriteTransaction:
        self._take("share_turn")
        self._expect("task_by_key", {"folded": folded_key(self._task)}, by="lock_task")
        self._look()
        return self._transaction()


def did_not_wait(notice: psycopg.errors.Diagnostic) -> bool:
    """A commit that did not wait for its standby is a success with a warning."""
    return notice.sqlstate == "01000"


@contextmanager
def heard_by_standbys(store: PostgresStore, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Around what is committed by other ways than a `WriteContext`: the same is refused."""
    warned: list[bool] = []
    connection.add_notice_handler(lambda notice: warned.append(did_not_wait(notice)))
    yield
    if any(warned):
        raise faults.standby_silent(store.where)


def board_in(store: PostgresStore, row: tuple[Any, ...]) -> tuple[BoardRow, int]:
    """What `look_at_board` answers: the board and the clock, if the schema is still one that we know."""
    *fields, version, stamp = row
    faults.too_new(store.where, version)
    return BoardRow(*fields), stamp


def at_home(store: PostgresStore, board: BoardRow, *, changes: bool = False) -> BoardRow:
    """The board, if it is here. What was replaced is here for who asks for it by its own name: to read."""
    aside = f"{ASIDE}{store.number}"
    if not (board.uid.endswith(aside) and store.address.board.endswith(aside)):
        faults.moved_away(board, store.where)
        return board
    if changes:
        raise faults.replaced(store.where, board.moved_to, board.uid)
    return board.but(uid=id_of(board.uid), moved_to="", arriving=0)


def may_meet(query: str, params: Params, before: list[tuple[str, Params]]) -> bool:
    """Whether a change may be of the same row as one before. No task depends on itself."""
    told = dict(before)
    if query in told:
        return True
    told[query] = params
    if not told.keys() >= {"save_task", "settle_dependants"}:
        return False
    return bool(told["save_task"]["id"] != told["settle_dependants"]["task"])


def new_home(system: str, timeline: str, system_now: str, timeline_now: str) -> str:
    """What happened to the server since the epoch was last raised, if anything."""
    if system != system_now:
        return "restore"
    return "promotion" if timeline != timeline_now else ""


def fault_of(error: psycopg.Error, store: PostgresStore, committing: bool) -> Refused:
    """What an error of the server or the network means to the caller."""
    where = store.where
    state = error.sqlstate or ""
    detail = str(error).strip().partition("\n")[0]
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return faults.bad_address(where)  # what the driver says of it may hold a password
    if not state and any(sign in detail for sign in NOT_LET_IN):
        return faults.not_let_in(where, store.address.user, detail, before=store.number != 0)
    if "statement pooling mode" in detail:
        return faults.statement_pooler(where)
    if state == "55P03":
        return busy(store)
    if state in BY_STATE:
        return BY_STATE[state](where, detail)
    if state == "22P02" and (found := _FOREIGN.search(detail)):
        return faults.foreign_schema(where, found[1])
    if state in (*NOTHING_DONE, "25P04") or state[:2] in ("08", "53", "57") or not state:
        unknown = committing and state not in NOTHING_DONE
        return faults.unreachable(where, detail, unknown=unknown, how=how(state, detail))
    return faults.storage_failed(where, detail)


def busy(store: PostgresStore) -> Refused:
    """A lock was waited for in vain: who has it, as far as that can still be seen."""
    waited = round(store.lock_wait, 1)
    found = None
    with suppress(psycopg.Error):
        found = store.blocker()
    if found is None:
        return faults.busy(store.where, "another session of the server", waited, "a lock")
    lock, pid, role, program, since = found
    begun = "" if since is None else f", since {iso(Instant(since))}"
    who = f"process {pid} of the server ({program or 'a program'} of the role {role}{begun})"
    return faults.busy(store.where, who, waited, lock)


BY_STATE: dict[str, Callable[[str, str], Refused]] = {
    "53100": lambda where, _: faults.disk_full(where),
    "42501": faults.not_granted,
    # A column is not there.
    "42703": lambda where, _: faults.other_schema(where, NEWEST, 0, FINGERPRINTS[NEWEST]),
    "42P01": lambda where, _: faults.no_board(where),
    "3F000": lambda where, _: faults.no_board(where),
}
"""What the server's own codes mean."""


def how(state: str, detail: str) -> str:
    """Whether the server is silent, or has answered that it does not do it now."""
    if state == "25006" or "session is read-only" in detail:
        return "takes no changes"
    return "said no" if state or "FATAL:" in detail else "does not answer"


_FOREIGN = re.compile('"dibs: (.*)"')
"""What `check_owners` fails with."""

NOT_LET_IN = (
    "authentication failed", "no password supplied", "does not exist", "no pg_hba.conf entry",
    "definition of service", "is not permitted to log in", "does not support SSL",
    "certificate verify failed", "server certificate for",
)  # fmt: skip
"""What a server says to who will never be let in with this address: it has no codes for it."""

NOTHING_DONE = ("40001", "40P01", "25006", "25P03", "57014", STALE, *NOT_PREPARED)
