"""A line to the server: statements are sent when an answer is wanted, and answers come in their order.

The driver's own pipeline sends each statement by itself, asks for more after the end of a transaction,
and waits for an answer without end. This one speaks to the same connection through the driver's `pq`.
"""

from __future__ import annotations

import re
import select
from collections import deque
from functools import cache
from itertools import count

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg.pq.abc import PGresult

    Params = dict[str, Any]
    Rows = list[tuple[Any, ...]]

ANSWER_SECONDS = 30.0
"""How long a server may be silent, beside the wait for a lock; a stopped one would be so for ever."""

NOT_PREPARED = ("26000", "42P05")
"""The session was another one, after all: it does not know a statement, or has it from somebody else."""

_numbers = count(1)
_NAMED = re.compile(r"%\((\w+)\)s")
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class Session(psycopg.Connection["tuple[Any, ...]"]):
    """A connection, and what it may keep in the session of the server behind it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.own: bool | None = None
        """Whether it is this connection's alone (a transaction pooler lends it); None: not known yet."""
        self.prepared: set[bytes] = set()
        """Statements that the server keeps for it."""
        self.server: tuple[str, ...] | None = None
        """Which one it is, on which timeline: both stay the same as long as a session that writes."""


class Answer:
    """What will be answered to one statement, or to one of several questions in it."""

    __slots__ = ("parts", "place", "prepares", "result", "whole")

    def __init__(self, prepares: bytes = b"", whole: Answer | None = None, place: int = 0) -> None:
        self.prepares = prepares
        self.whole = whole or self
        self.place = place
        self.result: PGresult | None = None
        self.parts: list[Rows] = []


class Statement:
    """A text as the protocol has it: a name, parameters by number, and theirs in this order."""

    __slots__ = ("name", "text", "wanted")

    def __init__(self, text: str, wanted: tuple[str, ...]) -> None:
        self.name = b"dibs_%d" % next(_numbers)
        self.text = text.replace("%%", "%").encode()
        self.wanted = wanted


def numbered(text: str, first: int = 1) -> tuple[str, tuple[str, ...]]:
    names: dict[str, int] = {}
    text = _NAMED.sub(lambda found: f"${names.setdefault(found[1], len(names) + first)}", text)
    return text, tuple(names)


@cache
def protocol(text: str) -> Statement:
    return Statement(*numbered(text))


@cache
def together(kind: str, texts: tuple[str, ...]) -> tuple[Statement, tuple[tuple[str, ...], ...]]:
    """Several texts as one statement, and the parameters of each."""
    parts, wanted, count = [], [], 1
    for text in texts:
        part, names = numbered(text, count)
        parts.append(part)
        wanted.append(names)
        count += len(names)
    return Statement(ONE[kind](parts), ()), tuple(wanted)


def one_change(parts: list[str]) -> str:
    """All see what was before all of them, and no row may be changed by two of them."""
    *others, last = parts
    return f"WITH {', '.join(f'c{at} AS ({part})' for at, part in enumerate(others))} {last}"


def one_question(parts: list[str]) -> str:
    """Each has one row at most; before its columns stands a mark, which is null if it has none."""
    found = [f"(SELECT 1 AS {MARK}, a.* FROM ({part}) AS a) AS q" for part in parts]  # noqa: S608
    joined = " ON true LEFT JOIN ".join(f"{each}{at}" for at, each in enumerate(found))
    return f"SELECT * FROM (SELECT) AS one LEFT JOIN {joined} ON true"  # noqa: S608 - our own texts


def parted(result: PGresult, rows: Rows) -> list[Rows]:
    """The row of each of several questions, without its mark."""
    marks = [at for at in range(result.nfields) if result.fname(at) == MARK.encode()]
    ends = (*marks[1:], result.nfields)
    [row] = rows
    return [[] if row[mark] is None else [row[mark + 1 : end]] for mark, end in zip(marks, ends)]


ONE = {"changes": one_change, "questions": one_question}
MARK = "dibs_mark"


def written(values: list[Any], encoding: str) -> list[bytes | None]:
    """Parameters as texts."""
    texts = [None if value is None else str(value).encode(encoding) for value in values]
    if b"\0" in b"".join(filter(None, texts)):  # it would end its text early
        raise psycopg.DataError("a text with a zero byte cannot be stored")
    return texts


class Line:
    """One conversation, which ends with `end` or with the connection."""

    def __init__(self, session: Session, wait: float) -> None:
        self._session = session
        self._wire = session.pgconn
        self._encoding = session.info.encoding
        self._patience = (wait + ANSWER_SECONDS) * 1000
        self._rows = Transformer(session)
        self._awaited: deque[Answer] = deque()
        self._unasked = False
        """Whether something was said whose answer was not asked for."""
        self._wire.enter_pipeline_mode()

    def say(self, text: str, params: Params | None = None) -> Answer:
        """Queued, not sent. What comes of it is heard with its answer, or with one after it."""
        statement = protocol(text)
        return self._say(statement, [params[each] for each in statement.wanted] if params else [])

    def say_together(self, kind: str, said: list[tuple[str, Params]]) -> Answer:
        """Some changes, or some questions of one row at most, as one statement."""
        statement, wanted = together(kind, tuple([text for text, _ in said]))
        values = [params[name] for names, (_, params) in zip(wanted, said) for name in names]
        return self._say(statement, values)

    def _say(self, statement: Statement, values: list[Any]) -> Answer:
        texts = written(values, self._encoding) if values else None
        session, name = self._session, statement.name
        if session.own:
            if name not in session.prepared:
                self._wire.send_prepare(name, statement.text)
                session.prepared.add(name)
                self._awaited.append(Answer(name))
            self._wire.send_query_prepared(name, texts)
        else:
            self._wire.send_query_params(statement.text, texts)
        answer = Answer()
        self._awaited.append(answer)
        self._unasked = True
        return answer

    def hear(self, answer: Answer) -> Rows:
        """Its rows. An error of whatever was said before is raised here.

        A sync, not a flush: the server knows then that it waits for us, and does not wait for ever.
        """
        whole = answer.whole
        if self._unasked:
            self._sync()
        while whole.result is None:
            self._next()
        if whole is answer:
            return self._rows_of(whole)
        whole.parts = whole.parts or parted(whole.result, self._rows_of(whole))
        return whole.parts[answer.place]

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
        answer = self._awaited.popleft()
        result = answer.result = self._result()
        assert result is not None, "everything has an answer"
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return
        self._wire.get_result()  # nothing, at once: the end of this one
        if result.status not in _DONE:
            self._session.prepared.discard(answer.prepares)
            problem = errors.error_from_result(result, encoding=self._encoding)
            if problem.sqlstate in NOT_PREPARED:
                self._session.own = False
            raise problem

    def _result(self) -> PGresult | None:
        while self._wire.is_busy():
            self._wait(select.POLLIN)
        return self._wire.get_result()

    def _sync(self) -> None:
        self._wire.pipeline_sync()
        self._awaited.append(Answer())
        self._unasked = False
        while self._wire.flush():
            self._wait(select.POLLIN | select.POLLOUT)

    def _wait(self, what: int) -> None:
        ready = select.poll()
        ready.register(self._wire.socket, what)
        found = ready.poll(self._patience)
        if not found:
            self._session.close()
            raise psycopg.OperationalError("it keeps silent")
        if found[0][1] != select.POLLOUT:
            self._wire.consume_input()
