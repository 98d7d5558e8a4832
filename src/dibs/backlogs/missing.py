"""Items whose file is missing or unreadable; and the boards that files name."""

from __future__ import annotations

from dibs.backlogs import files
from dibs.backlogs.items import items_in
from dibs.domain.model import FINAL, BacklogItem, Task
from dibs.domain.values import Value
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.item import Item
    from dibs.domain.values import Instant
    from dibs.storage.transaction import ReadTransaction

GONE = "its item file is not there, or cannot be read"
"""A gate: nobody can meet the conditions of an unreadable file."""


def missing(
    tx: ReadTransaction, channel: str, before: set[str] | None, there: set[str]
) -> list[Task]:
    """Tasks whose items are missing: of those that existed before, or of all."""
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


def as_gone(task: Task, why: str = GONE) -> BacklogItem | None:
    """The gate that stops anybody from starting an unreadable item; None if already set."""
    if task.item is None or task.item.gate == why or task.state in FINAL:
        return None
    assert task.channel is not None, "an item has an origin"
    assert task.origin_ask_ref is not None, "an item has an origin"
    terms = task.terms
    said = task.item.but(gate=why)
    listed = BacklogItem(
        task.channel, task.origin_ask_ref, task.key, terms.title, terms.priority, said
    )
    return listed.but(compared_with=task.events)


def reason_text(error: Exception) -> str:
    """Why a file cannot be read or written, for people."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


class NamedBoard(Value):
    """A board named by item files: how many, and who holds its items now."""

    board: str
    files: int
    holders: tuple[str, ...]


def boards_named(backlog: Backlog, now: Instant) -> list[NamedBoard]:
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
        NamedBoard(board, count, tuple(sorted(holders.get(board, ()))))
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
