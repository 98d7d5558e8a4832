"""The ledger as a transaction reads it: events, notes, refusals, and what is counted."""

from __future__ import annotations

from dibs.core.ledger import Entry
from dibs.core.model import KeptNote, LoggedRefusal, TaskId
from dibs.core.values import Value
from dibs.stores import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.core.event import Event
    from dibs.core.instants import Instant
    from dibs.stores.transaction import BoardRow


BATCH = 1_000
"""Rows read at a time where all are wanted: a read transaction holds one page of them."""


class Highest(Value):
    """The highest id of a task and an actor, epoch of a token, and instant of a change."""

    task: int
    actor: int
    epoch: int
    instant: Instant


class History:
    """The part of a transaction that reads what happened."""

    board: BoardRow
    _ask: Any
    _one: Any

    def events_of(self, task: TaskId) -> Iterator[Entry]:
        """A task's events (those of `NO_TASK` are the board's own), oldest first."""
        last = 0
        while page := self._ask("events_of_task", task=task, after=last, limit=BATCH):
            yield from map(rows.entry_of, page)
            last = rows.beyond(last, page[-1][2])

    def first_event(self, task: TaskId) -> Event | None:
        page = self._ask("events_of_task", task=task, after=0, limit=1)
        return rows.entry_of(page[0]).event if page else None

    def receipts_of(self, task: TaskId) -> list[Entry]:
        """Each delivery of the request behind a task, the first with its addition."""
        return [rows.entry_of(row) for row in self._ask("receipts_of_task", task=task)]

    def events_with_stint(self) -> Iterator[Entry]:
        """Those that ended a period of work, oldest first."""
        last = 0
        while page := self._ask("events_with_stint", after=last, limit=BATCH):
            yield from map(rows.entry_of, page)
            last = rows.beyond(last, page[-1][0])

    def events_backwards(self) -> Iterator[Entry]:
        """All events, newest first."""
        last = self.board.seq + 1
        while page := self._ask("events_before", before=last, limit=BATCH):
            yield from map(rows.entry_of, page)
            last = -rows.beyond(-last, -page[-1][0])

    def events(self) -> Iterator[Entry]:
        """All events, oldest first."""
        return self.events_since(0)

    def events_since(self, last: int) -> Iterator[Entry]:
        """Those that came after one of them."""
        while page := self._ask("events_after", after=last, limit=BATCH):
            yield from map(rows.entry_of, page)
            last = rows.beyond(last, page[-1][0])

    def entries(self, first: int, count: int) -> list[Entry]:
        """Some events that follow each other."""
        return [
            rows.entry_of(row) for row in self._ask("events_after", after=first - 1, limit=count)
        ]

    def count_events(self) -> tuple[int, int]:
        """How many there are, and the highest number."""
        [(count, highest)] = self._ask("count_events")
        return count, highest

    def count_task_events(self) -> int:
        [(count,)] = self._ask("count_task_events")
        return int(count)

    def highest(self) -> Highest:
        """The highest of everything that is counted."""
        [row] = self._ask("highest")
        return Highest(*row)

    def orphans(self) -> list[str]:
        """Rows that belong to no task."""
        return [f"event {seq} has no task" for (seq,) in self._ask("events_without_task")] + [
            f"an ended lease of task {task} has no task"
            for (task,) in self._ask("leases_without_task")
        ]

    def notes(self, task: TaskId) -> list[KeptNote]:
        return [KeptNote(*row) for row in self._ask("notes_of_task", task=task)]

    def last_note(self, task: TaskId, kind: str) -> str:
        row = self._one("last_note", task=task, kind=kind)
        return row[0] if row else ""

    def refusals_backwards(self) -> Iterator[LoggedRefusal]:
        last = 2**62
        while page := self._ask("refusals", before=last, limit=BATCH):
            yield from (LoggedRefusal(*row) for row in page)
            last = -rows.beyond(-last, -page[-1][0])
