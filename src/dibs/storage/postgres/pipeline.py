"""A pipeline to the server: statements are sent when a result is needed; results arrive in order.

The driver's own pipeline sends each statement separately, sends more after the end of a transaction, and
waits for results without a timeout. This one uses the same connection through the driver's `pq`.
"""

from __future__ import annotations

import re
import select
import time
from collections import deque
from functools import cache
from itertools import count

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from psycopg.abc import RV, PQGen
    from psycopg.pq.abc import PGresult

    from dibs.storage.address import Address

    Params = dict[str, Any]
    Rows = list[tuple[Any, ...]]

    class Server(Protocol):
        """The part of a `PostgresStore` that its transactions and notifications use."""

        where: str
        address: Address
        number: int
        queries: dict[str, str]
        wait: float
        lock_wait: float
        last_notify: float

        def borrow(self) -> ServerConnection: ...

        def give_back(self, connection: ServerConnection) -> None: ...

        def patience(self) -> str: ...

        def blocker(self) -> tuple[str, int, str, str, int | None] | None: ...

        def instant(self, stamp: int) -> int: ...

        def actors_at(self, head: str) -> dict[Any, Any]: ...


RESPONSE_TIMEOUT = 30.0
"""Response timeout, in addition to a lock wait; a stopped server would never respond."""

TIMED_OUT = "timed out"

NEVER = float("-inf")

NOT_PREPARED = ("26000", "42P05")
"""The server session has changed: it lacks a prepared statement, or has another client's."""

STALE = "0A000"
"""A prepared statement would return other types: the tables were replaced, as by loading a dump."""

_numbers = count(1)
_NAMED = re.compile(r"%\((\w+)\)s")
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_SYNCED = pq.ExecStatus.PIPELINE_SYNC


class ServerConnection(psycopg.Connection["tuple[Any, ...]"]):
    """A connection, and the state it may keep in the server session behind it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.own: bool | None = None
        """Whether the server session is ours alone, not lent by a transaction pooler; None: unknown."""
        self.prepared: set[bytes] = set()
        """Names of the statements prepared in it."""
        self.home: tuple[int, str] | None = None
        """An epoch, and what happened to the server (restore, promotion) since it began.

        A session that can write stays on one server, so this remains valid.
        """
        self.silence = RESPONSE_TIMEOUT
        """Response timeout outside a pipeline."""
        self.deadline = float("inf")
        """On the `time.monotonic()` clock: stop waiting for the server after it."""
        self.listens = False
        """Whether it is subscribed to change notifications."""
        self.last_notified = NEVER
        """When the last notification arrived, on this machine's clock."""
        self.encoding = self.info.encoding
        self.rows = Transformer(self)
        self.poll = select.poll()
        self.poll.register(self.pgconn.socket, select.POLLIN)

    def wait(self, gen: PQGen[RV], *args: Any, **named: Any) -> RV:
        """Waits as the driver does, with a timeout."""
        return super().wait(self._with_timeout(gen), *args, **named)

    def _with_timeout(self, gen: PQGen[RV]) -> PQGen[RV]:
        """Wraps the driver's generator: raises when nothing arrived within the timeout."""
        last_data = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    last_data = time.monotonic()
                elif time.monotonic() > min(last_data + self.silence, self.deadline):
                    self.close()
                    raise psycopg.OperationalError(TIMED_OUT)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class PendingResult:
    """The pending result of one statement."""

    __slots__ = ("prepares", "result")

    def __init__(self, prepares: bytes = b"") -> None:
        self.prepares = prepares
        self.result: PGresult | None = None


@cache
def protocol(*texts: str) -> tuple[bytes, bytes, tuple[tuple[str, ...], ...]]:
    """A statement's name, its text with numbered parameters, and the parameter names in that order.

    Several texts become one statement; each has its own parameters.
    """
    parts: list[str] = []
    wanted: list[tuple[str, ...]] = []
    for text in texts:
        part, names = numbered(text, sum(map(len, wanted)) + 1)
        parts.append(part)
        wanted.append(names)
    *others, last = parts
    beside = ", ".join(f"part_{place} AS ({part})" for place, part in enumerate(others))
    whole = f"WITH {beside} {last}" if others else last
    return b"dibs_%d" % next(_numbers), whole.replace("%%", "%").encode(), tuple(wanted)


def numbered(text: str, first: int) -> tuple[str, tuple[str, ...]]:
    """A text with numbered instead of named parameters, and the names in that order."""
    names = tuple(dict.fromkeys(_NAMED.findall(text)))
    numbers = {name: f"${number}" for number, name in enumerate(names, first)}
    return _NAMED.sub(lambda found: numbers[found[1]], text), names


class Pipeline:
    """One pipeline, closed by `end` or with the connection."""

    def __init__(
        self, session: ServerConnection, wait: float, silence: float | None = None
    ) -> None:
        """`wait`: timeout for a lock. `silence`: response timeout in addition to that."""
        self._session = session
        self._wire = session.pgconn
        self._encoding = session.encoding
        self._patience = (wait + (RESPONSE_TIMEOUT if silence is None else silence)) * 1000
        self._rows = session.rows
        self._awaited: deque[PendingResult] = deque()
        self._unsynced = False
        """Whether statements were queued after the last sync."""
        self._wire.enter_pipeline_mode()

    def queue(self, text: str, params: Params | None = None) -> PendingResult:
        """Queues a statement without sending it. Its errors are raised with its own or a later result."""
        name, statement, (names,) = protocol(text)
        return self._queue(name, statement, [params[each] for each in names] if params else [])

    def queue_batch(self, changes: list[tuple[str, Params]]) -> PendingResult:
        """Queues several changes as one statement: none sees the effects of another."""
        name, statement, wanted = protocol(*[text for text, _ in changes])
        values = [params[each] for (_, params), names in zip(changes, wanted) for each in names]
        return self._queue(name, statement, values)

    def _queue(self, name: bytes, statement: bytes, values: list[Any]) -> PendingResult:
        encoding = self._encoding
        texts = [None if value is None else str(value).encode(encoding) for value in values]
        if b"\0" in b"".join(filter(None, texts)):  # it would truncate the text
            raise psycopg.DataError("a text with a zero byte cannot be stored")
        session = self._session
        if session.own:
            if name not in session.prepared:
                self._wire.send_prepare(name, statement)
                session.prepared.add(name)
                self._awaited.append(PendingResult(name))
            self._wire.send_query_prepared(name, texts)
        else:
            self._wire.send_query_params(statement, texts)
        answer = PendingResult()
        self._awaited.append(answer)
        self._unsynced = True
        return answer

    def result(self, answer: PendingResult) -> Rows:
        """The rows of a result. Raises the error of any earlier statement.

        Sends a sync, not a flush: then the server knows that it waits for us, and its idle timeout applies.
        """
        if self._unsynced:
            self._sync()
        while answer.result is None:
            self._next()
        return self._rows_of(answer)

    def end(self, text: str, params: Params | None = None) -> Rows:
        """Sends the last statement with the rest of the queue, and waits for all results.

        Nothing is sent after that: a pooler that saw the end of the transaction would lend another session
        for it.
        """
        last = self.queue(text, params)
        self._sync()
        problem = None
        while self._awaited:
            try:
                self._next()
            except psycopg.Error as error:
                if self._wire.status != pq.ConnStatus.OK:
                    raise problem or error from None
                problem = problem or error
        self._wire.exit_pipeline_mode()
        if problem is not None:
            raise problem
        return self._rows_of(last)

    def _rows_of(self, answer: PendingResult) -> Rows:
        assert answer.result is not None, "received before"
        self._rows.set_pgresult(answer.result)
        return self._rows.load_rows(0, answer.result.ntuples, tuple)

    def _next(self) -> None:
        wire = self._wire
        answer = self._awaited.popleft()
        while wire.is_busy():
            self._wait(self._session.poll)
        result = answer.result = wire.get_result()
        assert result is not None, "everything has an answer"
        status = result.status
        if status == _SYNCED:
            return
        wire.get_result()  # returns None at once: the end of this result
        if status not in _DONE:
            self._session.prepared.discard(answer.prepares)
            problem = errors.error_from_result(result, encoding=self._encoding)
            if problem.sqlstate in NOT_PREPARED:
                self._session.own = False
            if problem.sqlstate == STALE:
                self._session.close()  # drops all its prepared statements
            raise problem

    def _sync(self) -> None:
        self._wire.pipeline_sync()
        self._awaited.append(PendingResult())
        self._unsynced = False
        while self._wire.flush():
            ready = select.poll()
            ready.register(self._wire.socket, select.POLLIN | select.POLLOUT)
            self._wait(ready)

    def _wait(self, ready: select.poll) -> None:
        left = (self._session.deadline - time.monotonic()) * 1000
        found = ready.poll(max(0, min(self._patience, left)))
        if not found:
            self._session.close()
            raise psycopg.OperationalError(TIMED_OUT)
        if found[0][1] != select.POLLOUT:
            self._wire.consume_input()
