"""Waiting for a board: for what happens next, or until a task is complete, free or ready.

Who waits looks again, a few times a second, at one number that differs when something may have changed;
a server may hint that it is time to (docs/decisions/0013-waiting-for-changes.md).
"""

from __future__ import annotations

from dibs.board import views
from dibs.board.known import found
from dibs.board.many import is_ready
from dibs.board.outcome import actors_named
from dibs.board.persist import persist
from dibs.board.waiting import why_it_waits
from dibs.core import refusals
from dibs.core.instants import SECOND, Instant
from dibs.core.model import COMPLETE, DROPPED, FAILED, Actor, ActorId, Task, TaskKey
from dibs.core.refusals import Refused, refused, shown
from dibs.core.values import Value
from dibs.stores.faults import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dibs.board.execute import Board
    from dibs.board.views import LogFilter, LogLine, TaskView
    from dibs.core.ground import Ground
    from dibs.stores.transaction import ReadTransaction

BEAT = 1.0
"""So often a stream says that it is alive: who reads it may want to stop."""

A_MOMENT = 0.01
"""At the instant of its expiry a lease is still live; a moment later it is not."""

LOOK = 2.0
"""So often it is looked whether a holder is dead: a process dies without a change of the board."""

PAGE = 200
"""How many events are read at once."""

FOREVER = float("inf")
FREE = "free"
EVERYTHING = views.LogFilter()


# The pulse.


def pulse(board: Board) -> int:
    """A number that differs when the board may have changed, also by moving to another place."""
    return persist(board, lambda: hash((board.store.where, board.store.pulse())))


def wait_for_change(board: Board, felt: int, seconds: float) -> int:
    """The board's pulse, as soon as it is not the one that was felt, or when the time is over.

    Feel it before you look at the board: what changes during the look is then a change. It is noticed
    after a pause all the same: on a busy board there is always a change, and no one looks all the time.
    """
    left = countdown(board, seconds)
    while True:
        rest = left()
        if rest > 0:
            board.store.listen(rest)
        now = pulse(board)
        if now != felt or rest <= 0:
            return now


def countdown(board: Board, seconds: float) -> Callable[[], float]:
    """How many of these seconds are left; on a clock that counts sleep, and that nobody sets."""
    machine = board.store.machine
    end = machine.boottime() + seconds * SECOND
    return lambda: (end - machine.boottime()) / SECOND


def goes_on(left: float) -> bool:
    """Who said how long to wait waits so long for a server that is away, too; nobody does for ever."""
    return 0 < left < FOREVER


# What happens next.


class Page(Value):
    """Some events that follow each other, without those that were not wanted."""

    lines: tuple[LogLine, ...]
    actors: Mapping[ActorId, Actor]
    now: Instant
    reached: int
    """The number of the last event that was looked at, wanted or not."""
    more: bool = False


def last_event(board: Board) -> int:
    """The number of the newest event."""
    with board.read() as tx:
        return tx.board.seq


def events_after(board: Board, seq: int, limit: int = PAGE, wanted: LogFilter = EVERYTHING) -> Page:
    """Of the next events after `seq`, at most `limit`, those that are wanted; oldest first."""
    return persist(board, lambda: read_after(board, seq, limit, wanted))


def read_after(board: Board, seq: int, limit: int, wanted: LogFilter) -> Page:
    with board.read() as tx:
        first = min(seq, tx.board.seq) + 1  # a board that was restored counts on from before
        task = None if wanted.task is None else found(tx, wanted.task)
        actor = None if wanted.actor is None else tx.actor_named(wanted.actor)
        if wanted.actor is not None and actor is None:
            raise Refused(refusals.unknown_actor(wanted.actor))
        entries = tx.entries(first, limit)
        reached = entries[-1].seq if entries else first - 1
        chosen = [
            entry
            for entry in entries
            if (task is None or entry.task == task.id) and views.fits(entry, wanted, actor)
        ]
        everybody = tx.actors()
        lines = views.lines_of(tx, chosen, everybody)
        return Page(lines, everybody, tx.now, reached, reached < tx.board.seq)


def all_after(board: Board, after: int, task: TaskKey | None) -> Iterator[tuple[LogLine, ...]]:
    """The events after `after` that there are now, page by page; of one task, or of all."""
    if task is not None:
        yield persist(board, lambda: read_of_task(board, after, task))
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
        return views.lines_of(tx, entries, tx.actors())


def stream(board: Board, after: int, wanted: LogFilter, seconds: float = FOREVER) -> Iterator[Page]:
    """What happens after an event, each wanted event once and in order; now and then, nothing.

    A page without lines comes at least once in a `BEAT`, so that who reads can stop.
    """
    left = countdown(board, seconds)
    while True:
        try:
            felt = pulse(board)
            page = events_after(board, after, wanted=wanted)
            after = page.reached
            yield page
            while not page.more:
                if left() <= 0:
                    return
                if wait_for_change(board, felt, min(BEAT, left())) != felt:
                    break
                yield page.but(lines=())
        except Interrupted:
            if not goes_on(left()):
                raise


# Until a task is as somebody wants it.


def is_complete(_tx: ReadTransaction, task: Task) -> bool:
    return task.state == COMPLETE


GOALS: dict[str, Callable[[ReadTransaction, Task], bool]] = {
    "complete": is_complete,
    FREE: views.is_free,
    "ready": is_ready,
}

LOST: dict[str, tuple[str, ...]] = {
    "complete": (DROPPED, FAILED),
    FREE: (COMPLETE, DROPPED, FAILED),
    "ready": (COMPLETE, DROPPED, FAILED),
}
"""From these states a task does not get there by itself."""


def wait_until(board: Board, key: TaskKey, goal: str, seconds: float = FOREVER) -> TaskView:
    """The task as soon as it is complete, free or ready.

    Refused as `timed_out` when the time is over, as `never` when it cannot come to that by itself.
    """
    left = countdown(board, seconds)
    while True:
        try:
            felt = pulse(board)
            seen = persist(board, lambda: free_of_the_dead(board, key)) if goal == FREE else None
            if seen is None:
                seen, pause = persist(board, lambda: look(board, key, goal, in_vain=left() <= 0))
            if seen is not None:
                return seen
            wait_for_change(board, felt, min(left(), pause, LOOK if goal == FREE else FOREVER))
        except Interrupted:
            if not goes_on(left()):
                raise


def free_of_the_dead(board: Board, key: TaskKey) -> TaskView | None:
    """A task of which nothing but a dead holder is in the way: a claim takes it over."""
    with board.read() as tx:
        task = found(tx, key)
        if not views.is_free(tx, task, of_the_dead=True):
            return None
        seen = views.TaskView(task, tx.now, actors_named(tx, task))
    from dibs.board.liveness import is_dead

    return seen if is_dead(board, task) else None


def look(board: Board, key: TaskKey, goal: str, *, in_vain: bool) -> tuple[TaskView | None, float]:
    """The task if it is as wanted; else how many seconds to wait for a change at most."""
    with board.read() as tx:
        task = found(tx, key)
        if GOALS[goal](tx, task):
            return views.TaskView(task, tx.now, actors_named(tx, task)), 0.0
        if task.state in LOST[goal]:
            raise never(task, goal)
        if in_vain:
            raise timed_out(tx, task, goal, board.settings.rules.ground)
        return None, by_itself(task, tx.now)


def by_itself(task: Task, now: Instant) -> float:
    """Seconds until time alone changes something about it: no change of the board tells of that."""
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


def timed_out(tx: ReadTransaction, task: Task, goal: str, ground: Ground) -> Refused:
    holder = None if task.lease is None else tx.actor(task.lease.actor).name
    return refused(
        "timed_out",
        f"{task.key} is not {goal} yet: {why_it_waits(tx, task, ground).why}",
        task=task.key,
        state=task.state,
        goal=goal,
        holder=holder,
    )
