"""Items whose file is not there any more, or cannot be read; and boards that files name."""

from __future__ import annotations

from dibs.backlogs import files
from dibs.backlogs.reading import items_in
from dibs.board.bounded import Unreadable
from dibs.core.model import FINAL, Listed, Task
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.item import Item
    from dibs.core.instants import Instant
    from dibs.stores.transaction import ReadTransaction

GONE = "its item file is not there, or cannot be read"
"""A gate: what stands in a file that nobody can read, nobody can have met."""


def missing(
    tx: ReadTransaction, channel: str, before: set[str] | None, there: set[str]
) -> list[Task]:
    """Tasks whose items are not among those that are there; of those that were, or of all."""
    found: Iterable[Task | None] = (
        tx.tasks_of(channel)
        if before is None
        else (tx.task_of_origin(channel, ref) for ref in sorted(before - there))
    )
    return [
        task
        for task in found
        if task and task.item is not None and task.origin_ask_ref not in there
    ]


def as_gone(task: Task, why: str = GONE) -> Listed | None:
    """What is taken in of an item that cannot be read: nobody begins it. Nothing, if that is known."""
    if task.item is None or task.item.gate == why or task.state in FINAL:
        return None
    assert task.channel is not None, "an item has an origin"
    assert task.origin_ask_ref is not None, "an item has an origin"
    terms = task.terms
    said = task.item.but(gate=why)
    listed = Listed(task.channel, task.origin_ask_ref, task.key, terms.title, terms.priority, said)
    return listed.but(compared_with=task.events)


def told(error: Exception) -> str:
    """Why a file cannot be read or written, for people."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


class Named(Value):
    """A board that item files name, how many of them, and who holds items of it now."""

    board: str
    files: int
    holders: tuple[str, ...]


def boards_named(backlog: Backlog, now: Instant) -> list[Named]:
    files_of: dict[str, int] = {}
    holders: dict[str, set[str]] = {}
    for item in every_item(backlog, now):
        pointer = item.pointer
        if pointer is None:
            continue
        files_of[pointer.board] = files_of.get(pointer.board, 0) + 1
        if pointer.held and item.expires is not None and item.expires >= now:
            holders.setdefault(pointer.board, set()).add(pointer.actor)
    return [
        Named(board, count, tuple(sorted(holders.get(board, ()))))
        for board, count in sorted(files_of.items(), key=lambda each: -each[1])
    ]


def every_item(backlog: Backlog, now: Instant) -> Iterator[Item]:
    for dialect in backlog.dialects:
        for path in dialect.paths(backlog.root):
            try:
                data = files.read(backlog.root, path, dialect.largest).data
                yield from items_in(dialect, path, data, now)[0]
            except (Unreadable, OSError):
                continue
