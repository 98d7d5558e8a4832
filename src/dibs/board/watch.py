"""Watch a board: stream its events, or wait until a task is complete, free or ready.

Polls a change counter a few times a second; a server may send a notification to
wake the waiter (docs/decisions/0013-waiting-for-changes.md).
"""

from __future__ import annotations

from dibs.board import queries
from dibs.board.explain import why_it_waits
from dibs.board.facts.task import found
from dibs.board.outcome import actors_named
from dibs.board.retry import retry_on_disconnect
from dibs.domain import refusals
from dibs.domain.model import COMPLETE, DROPPED, FAILED, Actor, ActorId, Task, TaskKey
from dibs.domain.refusals import Refused, refused, shown
from dibs.domain.values import SECOND, Instant, Value
from dibs.storage.errors import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dibs.board.execute import Board
    from dibs.board.queries import LogFilter, LogLine, TaskView
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.transaction import ReadTransaction

HEARTBEAT = 1.0
"""Seconds between heartbeats of a stream, at which its reader can stop."""

A_MOMENT = 0.01
"""At the instant of its expiry a lease is still live; this many seconds later it is not."""

LOOK = 2.0
"""Seconds between liveness checks of a holder: a process dies without a change of the board."""

PAGE = 200
"""How many events are read at once."""

FOREVER = float("inf")
FREE = "free"
EVERYTHING = queries.LogFilter()


# The change counter.


def change_counter(board: Board) -> int:
    """A number that differs when the board may have changed, also by a move to another store."""
    return retry_on_disconnect(board, lambda: hash((board.store.where, board.store.pulse())))


def wait_for_change(board: Board, counter: int, seconds: float) -> int:
    """Waits until the change counter differs from `counter`, or until the timeout; returns the counter.

    Read the counter before you read the board: a change during the read then counts as one. There is
    always a pause first: on a busy board something always changes, and nobody should poll without pause.
    """
    left = countdown(board, seconds)
    while True:
        rest = left()
        if rest > 0:
            board.store.listen(rest)
        now = change_counter(board)
        if now != counter or rest <= 0:
            return now


def countdown(board: Board, seconds: float) -> Callable[[], float]:
    """A function that returns how many of these seconds are left, on a clock that
    counts sleep and cannot be set.
    """
    machine = board.store.machine
    end = machine.boottime() + seconds * SECOND
    return lambda: (end - machine.boottime()) / SECOND


def keeps_waiting(left: float) -> bool:
    """Whether to keep waiting for an unreachable server: only with a finite timeout, and until it."""
    return 0 < left < FOREVER


# Streaming events.


class Page(Value):
    """Consecutive events, without those that the filter excludes."""

    lines: tuple[LogLine, ...]
    actors: Mapping[ActorId, Actor]
    now: Instant
    reached: int
    """The number of the last event that was read, wanted or not."""
    more: bool = False


def last_event(board: Board) -> int:
    """The number of the newest event."""
    with board.read() as tx:
        return tx.board.seq


def events_after(board: Board, seq: int, limit: int = PAGE, wanted: LogFilter = EVERYTHING) -> Page:
    """Of the next `limit` events after `seq`, those that are wanted; oldest first."""
    return retry_on_disconnect(board, lambda: read_after(board, seq, limit, wanted))


def read_after(board: Board, seq: int, limit: int, wanted: LogFilter) -> Page:
    with board.read() as tx:
        first = min(seq, tx.board.seq) + 1  # a restored board continues from a lower number
        task = None if wanted.task is None else found(tx, wanted.task)
        actor = None if wanted.actor is None else tx.actor_named(wanted.actor)
        if wanted.actor is not None and actor is None:
            raise Refused(refusals.unknown_actor(wanted.actor))
        entries = tx.entries(first, limit)
        reached = entries[-1].seq if entries else first - 1
        chosen = [
            entry
            for entry in entries
            if (task is None or entry.task == task.id) and queries.fits(entry, wanted, actor)
        ]
        everybody = tx.actors()
        lines = queries.lines_of(tx, chosen, everybody)
        return Page(lines, everybody, tx.now, reached, reached < tx.board.seq)


def all_after(board: Board, after: int, task: TaskKey | None) -> Iterator[tuple[LogLine, ...]]:
    """The existing events after `after`, page by page, of one task or of all."""
    if task is not None:
        yield retry_on_disconnect(board, lambda: read_of_task(board, after, task))
        return
    last = last_event(board)
    while after < last:
        page = events_after(board, after, min(PAGE, last - after))
        if page.reached <= after:
            return
        yield page.lines
        after = page.reached


def read_of_task(board: Board, after: int, key: TaskKey) -> tuple[LogLine, ...]:
    with board.read() as tx:
        entries = [entry for entry in tx.events_of(found(tx, key).id) if entry.seq > after]
        return queries.lines_of(tx, entries, tx.actors())


def stream(board: Board, after: int, wanted: LogFilter, seconds: float = FOREVER) -> Iterator[Page]:
    """Streams events after `after`: each wanted event once and in order, with heartbeats.

    A page without lines comes at least once per `BEAT`, so that the reader can stop.
    """
    left = countdown(board, seconds)
    while True:
        try:
            counter = change_counter(board)
            page = events_after(board, after, wanted=wanted)
            after = page.reached
            yield page
            while not page.more:
                if left() <= 0:
                    return
                if wait_for_change(board, counter, min(HEARTBEAT, left())) != counter:
                    break
                yield page.but(lines=())
        except Interrupted:
            if not keeps_waiting(left()):
                raise


# Waiting for a state of a task.


def is_complete(_tx: ReadTransaction, task: Task) -> bool:
    return task.state == COMPLETE


GOALS: dict[str, Callable[[ReadTransaction, Task], bool]] = {
    "complete": is_complete,
    FREE: queries.is_free,
    "ready": lambda tx, task: tx.is_ready(task.id),
}

LOST: dict[str, tuple[str, ...]] = {
    "complete": (DROPPED, FAILED),
    FREE: (COMPLETE, DROPPED, FAILED),
    "ready": (COMPLETE, DROPPED, FAILED),
}
"""States from which a task does not reach the goal by itself."""


def wait_until(board: Board, key: TaskKey, goal: str, seconds: float = FOREVER) -> TaskView:
    """Waits until the task is complete, free or ready, and returns it.

    Refused as `timed_out` on timeout, as `never` if it cannot get there by itself.
    """
    left = countdown(board, seconds)
    while True:
        try:
            counter = change_counter(board)
            seen = (
                retry_on_disconnect(board, lambda: free_of_the_dead(board, key))
                if goal == FREE
                else None
            )
            if seen is None:
                seen, pause = retry_on_disconnect(
                    board, lambda: poll_goal(board, key, goal, in_vain=left() <= 0)
                )
            if seen is not None:
                return seen
            wait_for_change(board, counter, min(left(), pause, LOOK if goal == FREE else FOREVER))
        except Interrupted:
            if not keeps_waiting(left()):
                raise


def free_of_the_dead(board: Board, key: TaskKey) -> TaskView | None:
    """The task, if only a dead holder keeps it from being free: a claim takes it over."""
    with board.read() as tx:
        task = found(tx, key)
        if not queries.is_free(tx, task, of_the_dead=True):
            return None
        seen = queries.TaskView(task, tx.now, actors_named(tx, task))
    from dibs.board.liveness import is_dead

    return seen if is_dead(board, task) else None


def poll_goal(
    board: Board, key: TaskKey, goal: str, *, in_vain: bool
) -> tuple[TaskView | None, float]:
    """The task if it has reached the goal; else the maximum number of seconds to wait for a change."""
    with board.read() as tx:
        task = found(tx, key)
        if GOALS[goal](tx, task):
            return queries.TaskView(task, tx.now, actors_named(tx, task)), 0.0
        if task.state in LOST[goal]:
            raise never(task, goal)
        if in_vain:
            raise timed_out(tx, task, goal, board.settings.rules.ground)
        return None, seconds_until_due(task, tx.now)


def seconds_until_due(task: Task, now: Instant) -> float:
    """Seconds until time alone changes its state: no change of the board announces that."""
    expires = None if task.lease is None else task.lease.expires
    instants = (expires, task.terms.not_before, task.rests_until)
    ahead = [(at - now) / SECOND + A_MOMENT for at in instants if at is not None and at >= now]
    return min(ahead, default=FOREVER)


def never(task: Task, goal: str) -> Refused:
    return refused(
        "never",
        f"{task.key} is {shown(task.state)}: it does not become {goal} by itself",
        task=task.key,
        state=task.state,
        goal=goal,
    )


def timed_out(tx: ReadTransaction, task: Task, goal: str, ground: ScopePolicy) -> Refused:
    holder = None if task.lease is None else tx.actor(task.lease.actor).name
    return refused(
        "timed_out",
        f"{task.key} is not {goal} yet: {why_it_waits(tx, task, ground).why}",
        task=task.key,
        state=task.state,
        goal=goal,
        holder=holder,
    )
