"""How the library waits: through a connection of its own, so that no other thread waits with it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta

from dibs import opening
from dibs.board import watching
from dibs.board.views import LogFilter, task_by_key
from dibs.core import checks
from dibs.core.instants import SECOND
from dibs.core.refusals import bad_argument
from dibs.interfaces import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from dibs.board.execute import Board

    Use = Callable[[], AbstractContextManager[Board]]
    Timeout = str | timedelta | None

SEQ_MAX = 10**checks.NUMBER_DIGITS - 1


def events(
    use: Use, key: str | None, since: int | None, timeout: Timeout
) -> Iterator[records.Event]:
    """It begins now, not when the first event is asked for."""
    wanted = LogFilter(task=None if key is None else checks.task_key(key))
    after = None if since is None else checks.whole(since, "since", 0, SEQ_MAX)
    left = seconds(timeout)
    with use() as board:
        if wanted.task is not None:
            task_by_key(board, wanted.task)
        after = watching.last_event(board) if after is None else after
    return stream(use, after, wanted, left)


def stream(use: Use, after: int, wanted: LogFilter, left: float) -> Iterator[records.Event]:
    with own_connection(use) as own:
        for page in watching.stream(own, after, wanted, left):
            for line in page.lines:
                yield records.event(line.entry, line.key, line.actor)
            with use():  # which refuses if the board was closed meanwhile
                pass


def until(use: Use, key: str, goal: str, timeout: Timeout) -> records.Task:
    wanted, left = checks.task_key(key), seconds(timeout)
    checks.one_of(goal, "the goal", tuple(watching.GOALS))
    with own_connection(use) as own:
        seen = watching.wait_until(own, wanted, goal, left)
        return records.task(seen.task, seen.actors, seen.now)


@contextmanager
def own_connection(use: Use) -> Iterator[Board]:
    with use() as board:
        own = opening.another(board)
    try:
        yield own
    finally:
        own.store.close()


def seconds(timeout: Timeout) -> float:
    """`"90s"` as on the command line, or a `timedelta`; nothing is for ever."""
    if timeout is None:
        return watching.FOREVER
    if isinstance(timeout, str):
        return checks.duration(timeout, "the timeout") / SECOND
    checks.is_a(timeout, timedelta, "the timeout", 'text like "5m", or a timedelta')
    if timeout < timedelta(0):
        raise bad_argument(f"the timeout is {timeout}; it is not below zero")
    return timeout.total_seconds()
