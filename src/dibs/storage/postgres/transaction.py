"""Transactions on PostgreSQL: which lock they take, when they read the clock, how errors map to refusals.

Changes are pipelined: the result of the commit covers them (`pipeline`). They are also batched: most of a
transaction is one statement.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress

import psycopg

from dibs.domain.model import folded_key
from dibs.domain.refusals import unreadable
from dibs.domain.values import Instant, iso, quoted
from dibs.storage import errors
from dibs.storage.copy import REPLACED_SUFFIX, id_of
from dibs.storage.postgres import notifications
from dibs.storage.postgres.pipeline import NOT_PREPARED, STALE, PendingResult, Pipeline
from dibs.storage.queries import FINGERPRINTS, NEWEST, BoardRow, name_of, refuse_moved, too_new
from dibs.storage.transaction import ReadTransaction, WriteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from dibs.domain.model import TaskKey
    from dibs.domain.refusals import Refused
    from dibs.storage.postgres.pipeline import Params, Server, ServerConnection
    from dibs.storage.store import Question


PAGE = 2_000
"""Rows per fetch of a cursor, where there may be very many."""

IDLE = "1min"
"""Idle timeout of a writer that blocks others, such as a stopped process."""

ADDS = ("add_event", "add_note", "add_ended_lease", "add_request")
"""Inserts that affect no other row: any of them can share one statement."""

SAVES = ("save_task", "save_seq", "settle_dependants")
"""Updates: a second one of the same row in one statement would be lost silently."""

BATCH_MAX = 8
"""Most changes per statement: the server keeps every combination as a prepared statement."""


class PostgresErrorMap:
    """Maps errors of the server and the network to refusals."""

    def __init__(self, store: Server) -> None:
        self._store = store
        self.committing = False

    def __enter__(self) -> Any:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, psycopg.Error):
            raise refusal_of_error(error, self._store, self.committing) from error


class ReadContext(PostgresErrorMap):
    """`with store.read() as tx`: one snapshot, released at the end."""

    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    changes = False

    def __init__(self, store: Server, ahead: tuple[Question, ...] = ()) -> None:
        super().__init__(store)
        self._session: ServerConnection | None = None
        self._pipeline: Pipeline | None = None
        self._first_queries = ahead
        self._ahead: dict[str, tuple[Params, PendingResult]] = {}
        self._changes: list[tuple[str, Params]] = []
        """Changes that are not queued yet."""
        self._unreplicated = False
        self._lock: PendingResult | None = None
        """The pending result of the statement that takes the board's lock."""

    def __enter__(self) -> ReadTransaction:
        try:
            self._session = self._store.borrow()
            self._session.add_notice_handler(self._notice)
            self._pipeline = Pipeline(self._session, self._store.wait)
            self._pipeline.queue(self.begin)
            return self._open()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._end(error)
        except psycopg.Error as cut:
            super().__exit__(type(cut), cut, trace)
        super().__exit__(kind, error, trace)

    def _open(self) -> ReadTransaction:
        self._queue("begin_reading", {"wait": self._store.patience()})
        board, now = self._board()
        return ReadTransaction(self, board, now, skewed=False)

    def _board(self) -> tuple[BoardRow, Instant]:
        """The board's row and its clock."""
        found = self.ask("look_at_board")
        if not found:
            raise unreadable("the row of the board itself")
        board, stamp = board_and_clock(self._store, found[0])
        board = active_board(self._store, board, changes=self.changes)
        return board, Instant(max(self._store.instant(stamp), board.floor))

    def _queue(self, query: str, params: Params) -> PendingResult:
        assert self._pipeline is not None, "inside a transaction"
        return self._pipeline.queue(self._store.queries[query], params)

    def ask(self, query: str, **params: Any) -> list[Any]:
        assert self._pipeline is not None, "inside a transaction"
        params["board"] = self._store.number
        sent, pending = self._ahead.pop(query, (None, None))
        if pending is None or sent != params:
            self._queue_changes(self._pipeline)
            pending = self._queue(query, params)
        return self._pipeline.result(pending)

    def stream(self, query: str, **params: Any) -> Iterator[Any]:
        """Fetches by a server-side cursor: a plain query would load the whole result into memory first."""
        assert self._pipeline is not None, "inside a transaction"
        params["board"] = self._store.number
        self._pipeline.queue(
            f"DECLARE {query} NO SCROLL CURSOR FOR {self._store.queries[query]}", params
        )
        while page := self._pipeline.result(self._pipeline.queue(f"FETCH {PAGE} FROM {query}")):
            yield from page
        self._pipeline.queue(f"CLOSE {query}")

    def change(self, query: str, params: Params) -> None:
        """Queues a change. Its error comes with the next result, at the latest the commit's."""
        assert self._pipeline is not None, "inside a transaction"
        self._ahead.clear()
        params["board"] = self._store.number
        if query not in ADDS and query not in SAVES:
            self._queue_changes(self._pipeline)
            self._queue(query, params)
            return
        before = self._changes
        if len(before) == BATCH_MAX or (
            query in SAVES and may_touch_same_row(query, params, before)
        ):
            self._queue_changes(self._pipeline)
        self._changes.append((query, params))

    def _queue_changes(self, pipeline: Pipeline) -> None:
        if self._changes:
            queries = self._store.queries
            pipeline.queue_batch([(queries[query], params) for query, params in self._changes])
            self._changes = []

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if self.committing and was_not_replicated(notice):
            self._unreplicated = True

    def _end(self, error: BaseException | None) -> None:
        session, self._session = self._session, None
        pipeline, self._pipeline = self._pipeline, None
        if session is None:
            return
        try:
            if pipeline is None or not isinstance(error, Exception | None):
                session.close()  # rolls back what was not committed
            elif error is None:
                self._commit(pipeline)
                if self._lock is not None and not pipeline.result(self._lock)[0][-1]:
                    notifications.notify_listeners(self._store, session)
            else:
                with suppress(psycopg.Error):
                    pipeline.end("ROLLBACK")
        finally:
            session.remove_notice_handler(self._notice)
            self._store.give_back(session)

    def _commit(self, pipeline: Pipeline) -> None:
        """Ignores errors: everything was read already."""
        with suppress(psycopg.Error):
            pipeline.end("COMMIT")


class WriteContext(ReadContext):
    """`with store.write(...) as tx`: locks the board, then reads the clock; commits or rolls back."""

    begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    changes = True

    def __enter__(self) -> WriteTransaction:
        transaction = super().__enter__()
        assert isinstance(transaction, WriteTransaction), "made by _open"
        return transaction

    def _open(self) -> WriteTransaction:
        self._lock = self._lock_board("lock_board")
        self._read_board()
        for query, params in self._first_queries:
            self._prefetch(query, params)
        return self._transaction()

    def _commit(self, pipeline: Pipeline) -> None:
        self._queue_changes(pipeline)
        self.committing = True
        pipeline.end("COMMIT")
        if self._unreplicated:
            raise errors.not_replicated(self._store.where)

    def _lock_board(self, lock_query: str) -> PendingResult:
        """Takes the board's lock; refuses after a timeout."""
        limits = {"wait": self._store.patience(), "idle": IDLE}
        return self._queue(lock_query, {"board": self._store.number, **limits})

    def _read_board(self) -> None:
        """Reads board and clock after all locks; also the server's identity, if it may have changed."""
        assert self._session is not None, "inside a transaction"
        self._prefetch("look_at_board", {})
        if not self._session.own:
            self._session.home = None
        if self._session.home is None:
            self._prefetch("server", {})

    def _prefetch(self, query: str, params: Params, by: str = "") -> None:
        """Prefetches a query, perhaps by another one (`by`); `ask` uses the result when it comes to it."""
        sent = {**params, "board": self._store.number}
        self._ahead[query] = sent, self._queue(by or query, sent)

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
    """Takes the board's lock shared, then the task's row: renewals run in parallel, but not with a claim."""

    def __init__(self, store: Server, task: TaskKey) -> None:
        super().__init__(store)
        self._task = task

    def _open(self) -> WriteTransaction:
        self._lock_board("lock_board_shared")
        self._prefetch("task_by_key", {"folded": folded_key(self._task)}, by="lock_task")
        self._read_board()
        return self._transaction()


def was_not_replicated(notice: psycopg.errors.Diagnostic) -> bool:
    """Whether a commit was not replicated: the server reports that as success with a warning."""
    return notice.sqlstate == "01000"


@contextmanager
def replicated_commit(store: Server, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Refuses unreplicated commits outside a `WriteContext`, as that does."""
    warned: list[bool] = []
    connection.add_notice_handler(lambda notice: warned.append(was_not_replicated(notice)))
    yield
    if any(warned):
        raise errors.not_replicated(store.where)


def board_and_clock(store: Server, row: tuple[Any, ...]) -> tuple[BoardRow, int]:
    """The board and the clock from a row of `look_at_board`; refuses a newer schema."""
    *fields, version, stamp = row
    too_new(store.where, version)
    return BoardRow(*fields), stamp


def active_board(store: Server, board: BoardRow, *, changes: bool = False) -> BoardRow:
    """The board, unless it moved away. A replaced board can be read under its own name, not changed."""
    aside = f"{REPLACED_SUFFIX}{store.number}"
    if not (board.uid.endswith(aside) and store.address.board.endswith(aside)):
        refuse_moved(board, store.where)
        return board
    if changes:
        raise errors.replaced(store.where, board.moved_to, board.uid)
    return board.but(uid=id_of(board.uid), moved_to="", arriving=0)


def may_touch_same_row(query: str, params: Params, before: list[tuple[str, Params]]) -> bool:
    """Whether a change may touch the same row as an earlier one. No task depends on itself."""
    changes = dict(before)
    if query in changes:
        return True
    changes[query] = params
    if not changes.keys() >= {"save_task", "settle_dependants"}:
        return False
    return bool(changes["save_task"]["id"] != changes["settle_dependants"]["task"])


def new_home(system: str, timeline: str, system_now: str, timeline_now: str) -> str:
    """What happened to the server since the last new epoch: a restore, a promotion, or nothing."""
    if system != system_now:
        return "restore"
    return "promotion" if timeline != timeline_now else ""


def refusal_of_error(error: psycopg.Error, store: Server, committing: bool) -> Refused:
    """Maps an error of the server or the network to a refusal."""
    where = store.where
    state = error.sqlstate or ""
    detail = str(error).strip().partition("\n")[0]
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return errors.bad_address(where)  # the driver's message may contain a password
    if not state and any(sign in detail for sign in LOGIN_ERRORS):
        return errors.login_failed(where, store.address.user, detail, before=store.number != 0)
    if "statement pooling mode" in detail:
        return errors.statement_pooler(where)
    if state == "55P03":
        return busy(store)
    if state in BY_STATE:
        return BY_STATE[state](where, detail)
    if state == "22P02" and (found := _FOREIGN.search(detail)):
        return errors.foreign_schema(where, found[1])
    if state in (*NOT_COMMITTED, "25P04") or state[:2] in ("08", "53", "57") or not state:
        unknown = committing and state not in NOT_COMMITTED
        return errors.unreachable(where, detail, unknown=unknown, how=failure_kind(state, detail))
    return errors.storage_failed(where, detail)


def busy(store: Server) -> Refused:
    """Lock timeout: names the blocker, if it can still be found."""
    waited = round(store.lock_wait, 1)
    found = None
    with suppress(psycopg.Error):
        found = store.blocker()
    if found is None:
        return errors.busy(store.where, "another session of the server", waited, "a lock")
    lock, pid, role, program, since = found
    started = "" if since is None else f", since {iso(Instant(since))}"
    by = f"{quoted(program) if program else 'a program'} of the role {name_of(role)}"
    who = f"process {pid} of the server ({by}{started})"
    return errors.busy(store.where, who, waited, lock)


BY_STATE: dict[str, Callable[[str, str], Refused]] = {
    "53100": lambda where, _: errors.disk_full(where),
    "42501": errors.not_granted,
    # undefined_column
    "42703": lambda where, _: errors.other_schema(where, NEWEST, 0, FINGERPRINTS[NEWEST]),
    "42P01": lambda where, _: errors.no_board(where),
    "3F000": lambda where, _: errors.no_board(where),
}
"""Refusals by SQLSTATE."""


def failure_kind(state: str, detail: str) -> str:
    """Whether the server is unreachable, or rejected the request for now."""
    if state == "25006" or "session is read-only" in detail:
        return "is read-only"
    return "rejected the request" if state or "FATAL:" in detail else "is unreachable"


_FOREIGN = re.compile('"dibs: (.*)"')
"""The error message of `check_owners`."""

LOGIN_ERRORS = (
    "authentication failed", "no password supplied", "does not exist", "no pg_hba.conf entry",
    "definition of service", "is not permitted to log in", "does not support SSL",
    "certificate verify failed", "server certificate for",
)  # fmt: skip
"""Messages of permanent connection failures, which have no SQLSTATE."""

NOT_COMMITTED = ("40001", "40P01", "25006", "25P03", "57014", STALE, *NOT_PREPARED)
