"""A line to the server: statements are sent when an answer is wanted, and answers come in their order.

The driver's own pipeline sends each statement by itself, asks for more after the end of a transaction,
and waits for an answer without end. This one speaks to the same connection through the driver's `pq`.
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
    from typing import Any

    from psycopg.abc import RV, PQGen
    from psycopg.pq.abc import PGresult

    Params = dict[str, Any]
    Rows = list[tuple[Any, ...]]

ANSWER_SECONDS = 30.0
"""How long a server may be silent, beside the wait for a lock; a stopped one would be so for ever."""

SILENT = "it keeps silent"

NEVER = float("-inf")

NOT_PREPARED = ("26000", "42P05")
"""The session was another one, after all: it does not know a statement, or has it from somebody else."""

STALE = "0A000"
"""A prepared statement would give other types than before: the tables were replaced, as by loading a dump."""

_numbers = count(1)
_NAMED = re.compile(r"%\((\w+)\)s")
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_SYNCED = pq.ExecStatus.PIPELINE_SYNC


class Session(psycopg.Connection["tuple[Any, ...]"]):
    """A connection, and what it may keep in the session of the server behind it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.own: bool | None = None
        """Whether it is this connection's alone (a transaction pooler lends it); None: not known yet."""
        self.prepared: set[bytes] = set()
        """Statements that the server keeps for it."""
        self.home: tuple[int, str] | None = None
        """An epoch, and what happened to the server since it began: that stays the same as long as a
        session that writes."""
        self.silence = ANSWER_SECONDS
        """How long the server may be silent, where no line is used."""
        self.deadline = float("inf")
        """By `time.monotonic()`: then it is waited for no more."""
        self.listens = False
        """Whether the server tells it of changes."""
        self.heard = NEVER
        """When it was last told, on this machine's clock."""
        self.encoding = self.info.encoding
        self.rows = Transformer(self)
        self.poll = select.poll()
        self.poll.register(self.pgconn.socket, select.POLLIN)

    def wait(self, gen: PQGen[RV], *args: Any, **named: Any) -> RV:
        """As the driver waits, but not for ever."""
        return super().wait(self._given_up(gen), *args, **named)

    def _given_up(self, gen: PQGen[RV]) -> PQGen[RV]:
        """The same, until nothing has come for too long."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() > min(heard + self.silence, self.deadline):
                    self.close()
                    raise psycopg.OperationalError(SILENT)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Answer:
    """What will be answered to one statement."""

    __slots__ = ("prepares", "result")

    def __init__(self, prepares: bytes = b"") -> None:
        self.prepares = prepares
        self.result: PGresult | None = None


@cache
def protocol(*texts: str) -> tuple[bytes, bytes, tuple[tuple[str, ...], ...]]:
    """A name for a statement, the statement with its parameters numbered, and theirs in this order.

    Several texts become one statement; each has parameters of its own.
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
    """A text with numbers for the names of its parameters, and the names in this order."""
    names = tuple(dict.fromkeys(_NAMED.findall(text)))
    numbers = {name: f"${number}" for number, name in enumerate(names, first)}
    return _NAMED.sub(lambda found: numbers[found[1]], text), names


class Line:
    """One conversation, which ends with `end` or with the connection."""

    def __init__(self, session: Session, wait: float, silence: float | None = None) -> None:
        """`wait`: for a lock. `silence`: how long the server may be silent beside that."""
        self._session = session
        self._wire = session.pgconn
        self._encoding = session.encoding
        self._patience = (wait + (ANSWER_SECONDS if silence is None else silence)) * 1000
        self._rows = session.rows
        self._awaited: deque[Answer] = deque()
        self._unasked = False
        """Whether something was said whose answer was not asked for."""
        self._wire.enter_pipeline_mode()

    def say(self, text: str, params: Params | None = None) -> Answer:
        """Queued, not sent. What comes of it is heard with its answer, or with one after it."""
        name, statement, (names,) = protocol(text)
        return self._queue(name, statement, [params[each] for each in names] if params else [])

    def say_together(self, changes: list[tuple[str, Params]]) -> Answer:
        """Several changes as one statement: none of them sees what another one does."""
        name, statement, wanted = protocol(*[text for text, _ in changes])
        values = [params[each] for (_, params), names in zip(changes, wanted) for each in names]
        return self._queue(name, statement, values)

    def _queue(self, name: bytes, statement: bytes, values: list[Any]) -> Answer:
        encoding = self._encoding
        texts = [None if value is None else str(value).encode(encoding) for value in values]
        if b"\0" in b"".join(filter(None, texts)):  # it would end its text early
            raise psycopg.DataError("a text with a zero byte cannot be stored")
        session = self._session
        if session.own:
            if name not in session.prepared:
                self._wire.send_prepare(name, statement)
                session.prepared.add(name)
                self._awaited.append(Answer(name))
            self._wire.send_query_prepared(name, texts)
        else:
            self._wire.send_query_params(statement, texts)
        answer = Answer()
        self._awaited.append(answer)
        self._unasked = True
        return answer

    def hear(self, answer: Answer) -> Rows:
        """Its rows. An error of whatever was said before is raised here.

        A sync, not a flush: the server knows then that it waits for us, and does not wait for ever.
        """
        if self._unasked:
            self._sync()
        while answer.result is None:
            self._next()
        return self._rows_of(answer)

    def end(self, text: str, params: Params | None = None) -> Rows:
        """The last statement: sends the rest with it, and waits for all. Nothing is sent after that:
        a pooler that has seen the end of the transaction would lend a session for it.
        """
        last = self.say(text, params)
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

    def _rows_of(self, answer: Answer) -> Rows:
        assert answer.result is not None, "heard before"
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
        wire.get_result()  # nothing, at once: the end of this one
        if status not in _DONE:
            self._session.prepared.discard(answer.prepares)
            problem = errors.error_from_result(result, encoding=self._encoding)
            if problem.sqlstate in NOT_PREPARED:
                self._session.own = False
            if problem.sqlstate == STALE:
                self._session.close()  # all that it has prepared goes with it
            raise problem

    def _sync(self) -> None:
        self._wire.pipeline_sync()
        self._awaited.append(Answer())
        self._unasked = False
        while self._wire.flush():
            ready = select.poll()
            ready.register(self._wire.socket, select.POLLIN | select.POLLOUT)
            self._wait(ready)

    def _wait(self, ready: select.poll) -> None:
        left = (self._session.deadline - time.monotonic()) * 1000
        found = ready.poll(max(0, min(self._patience, left)))
        if not found:
            self._session.close()
            raise psycopg.OperationalError(SILENT)
        if found[0][1] != select.POLLOUT:
            self._wire.consume_input()
