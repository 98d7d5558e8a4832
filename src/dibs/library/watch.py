"""Waiting in the library: over a second connection, so that no other thread is blocked."""

from __future__ import annotations

from contextlib import contextmanager

from dibs import opening
from dibs.board import watch
from dibs.board.command_builder import wait
from dibs.board.queries import LogFilter, task_by_key
from dibs.domain import checks
from dibs.domain.values import SECOND
from dibs.library import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from dibs.board.execute import Board

    Use = Callable[[], AbstractContextManager[Board]]
    Timeout = str | timedelta | None

SEQ_MAX = 10**checks.NUMBER_DIGITS - 1


def events(
    use: Use, key: str | None, since: int | None, timeout: Timeout
) -> Iterator[records.Event]:
    """Starts now, not when the first event is requested."""
    wanted = LogFilter(task=None if key is None else checks.task_key(key))
    after = None if since is None else checks.whole(since, "since", 0, SEQ_MAX)
    left = seconds(timeout)
    with use() as board:
        if wanted.task is not None:
            task_by_key(board, wanted.task)
        after = watch.last_event(board) if after is None else after
    return stream(use, after, wanted, left)


def stream(use: Use, after: int, wanted: LogFilter, left: float) -> Iterator[records.Event]:
    with own_connection(use) as own:
        for page in watch.stream(own, after, wanted, left):
            for line in page.lines:
                yield records.event(line.entry, line.key, line.actor)
            with use():  # refuses if the board was closed meanwhile
                pass


def until(use: Use, key: str, goal: str, timeout: Timeout) -> records.Task:
    wanted, left = checks.task_key(key), seconds(timeout)
    checks.one_of(goal, "the goal", tuple(watch.GOALS))
    with own_connection(use) as own:
        seen = watch.wait_until(own, wanted, goal, left)
        return records.task(seen.task, seen.actors, seen.now)


@contextmanager
def own_connection(use: Use) -> Iterator[Board]:
    with use() as board:
        own = opening.second_connection(board)
    try:
        yield own
    finally:
        own.store.close()


def seconds(timeout: Timeout) -> float:
    """`None` is forever."""
    return watch.FOREVER if timeout is None else wait(timeout, "the timeout") / SECOND
