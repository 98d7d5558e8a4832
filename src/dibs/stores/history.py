"""The ledger as a transaction reads it: events, notes, refusals, and what is counted."""

from __future__ import annotations

from dibs.core.board_events import ClockSet
from dibs.core.ledger import Entry
from dibs.core.model import ActorId, Approval, EndedStint, KeptNote, LoggedRefusal, TaskId
from dibs.core.values import Value
from dibs.stores import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.core.event import Event
    from dibs.core.instants import Duration, Instant
    from dibs.stores.transaction import BoardRow


CLOCK_SET = ClockSet.verb
BATCH = 1_000
"""Rows read at a time where all are wanted: a read transaction holds one page of them."""


STINT = ("actor", "start", "end", "aside")
"""What a stint is told with, if its task does not matter."""


class Highest(Value):
    """The highest id of a task and an actor, epoch of a token, and instant of a change."""

    task: int
    actor: int
    epoch: int
    instant: Instant


class History:
    """The part of a transaction that reads what happened."""

    board: BoardRow
    now: Instant
    _ask: Any
    _one: Any
    _stream: Any

    def events_of(self, task: TaskId) -> Iterator[Entry]:
        """A task's events, oldest first."""
        return self._chain("events_of_task", task=task)

    def events_of_board(self) -> Iterator[Entry]:
        """The board's own events, which belong to no task, oldest first."""
        return self._chain("events_of_board")

    def _chain(self, query: str, **of: TaskId) -> Iterator[Entry]:
        last = 0
        while page := self._ask(query, after=last, limit=BATCH, **of):
            yield from map(rows.entry_of, page)
            last = rows.beyond(last, page[-1][2])

    def clock_events(self) -> list[Entry]:
        """How the board's clock was set, oldest first."""
        return [one for one in self.events_of_board() if one.verb == CLOCK_SET]

    def digests(self) -> Iterator[tuple[int, str]]:
        """Number and digest of every event, oldest first."""
        last = 0
        while page := self._ask("digests_after", after=last, limit=BATCH):
            yield from page
            last = rows.beyond(last, page[-1][0])

    def events_of_request(self, request_id: str, after: int) -> list[Entry]:
        """What was done under an id that no answer is kept for, after an event."""
        found = self._ask("events_of_request", request=request_id, after=after)
        return [rows.entry_of(row) for row in found]

    def first_event(self, task: TaskId) -> Event | None:
        page = self._ask("events_of_task", task=task, after=0, limit=1)
        return rows.entry_of(page[0]).event if page else None

    def receipts_of(self, task: TaskId) -> list[Entry]:
        """Each delivery of the request behind a task, the first with its addition."""
        return [rows.entry_of(row) for row in self._ask("receipts_of_task", task=task)]

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

    def events_between(self, since: Instant, until: Instant) -> Iterator[Entry]:
        """Those of a period. Instants fall only at an event of the clock: from each such event to the
        next, the first of the period is found by halving, and the rest is not read.
        """
        ends = [one.seq for one in self.events_of_board() if one.verb == ClockSet.verb]
        for first, end in zip([1, *ends], [*ends, self.board.seq + 1], strict=True):
            for entry in self.events_since(self._before(since, first, end)):
                if entry.seq >= end or entry.at >= until:
                    break
                yield entry

    def _before(self, instant: Instant, first: int, end: int) -> int:
        """The last event, of some whose instants do not fall, that is earlier than an instant."""
        last = first - 1
        while last < end - 1:
            middle = (last + end) // 2
            row = self._one("instant_of_event", after=middle - 1)
            if row is None or row[0] >= end or row[1] >= instant:
                end = middle
            else:
                last = row[0]
        return last

    def approvals(self, actor: ActorId | None) -> list[Approval]:
        """Approved periods that were not opened again, of one actor or of all."""
        return [one for one in self.all_approvals(actor) if one.reopened is None]

    def all_approvals(self, actor: ActorId | None = None) -> list[Approval]:
        return [Approval(*row) for row in self._ask("approvals", actor=actor)]

    def author_of(self, seq: int) -> ActorId:
        """Who is behind an event."""
        return self.entries(seq, 1)[0].actor

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

    def strays(self) -> list[str]:
        """Rows that belong to nothing, or contradict themselves."""
        return [f"{what} {number} belongs to nothing" for what, number in self._ask("strays")] + [
            f"{key}: the columns of its lease contradict each other"
            for (key,) in self._ask("wrong_leases")
        ]

    # Stints.

    def stints(
        self, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[rows.Row]:
        """All that touch the period, by actor, then by start, as `STINT` names their columns.

        `idle`: after how long a silence a session that is watched does not work.
        """
        return self._streamed("stints", since, until, actor, idle)

    def stints_and_tasks(
        self, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[rows.Row]:
        """The same, each with what a timesheet tells of its task."""
        return self._streamed("stints_and_tasks", since, until, actor, idle)

    def _streamed(
        self, query: str, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[rows.Row]:
        asked = {"since": since, "until": until, "actor": actor, "now": self.now}
        found: Iterator[rows.Row] = self._stream(query, idle_since=self.now - idle, **asked)
        return found

    def stints_of(self, task: TaskId) -> list[EndedStint]:
        """Those of a task that did not end with a lease, oldest event first."""
        return [EndedStint(*row) for row in self._ask("stints_of_task", task=task)]

    def all_stints_of(self, task: TaskId) -> list[EndedStint]:
        """Those that ended with a lease, too; also those that another one replaced."""
        with_leases = [
            EndedStint(
                one.seq, one.actor, one.stint_started, one.stint_ended, "claim", None, one.tokens,
                one.cost, one.spending,
            )
            for one in map(rows.ended_lease_of, self._ask("ended_leases", task=task))
            if one.stint_started is not None and one.stint_ended is not None
        ]  # fmt: skip
        return sorted(with_leases + self.stints_of(task))

    def stray_stints(self) -> list[int]:
        """Those that belong to no task."""
        return [seq for (seq,) in self._ask("stints_without_task")]

    def notes(self, task: TaskId) -> list[KeptNote]:
        return [KeptNote(*row) for row in self._ask("notes_of_task", task=task)]

    def text_of(self, task: TaskId, seq: int) -> str | None:
        """Of the note that an event brought to this task, if it did; empty, if it was redacted."""
        row = self._one("note_text", task=task, seq=seq)
        return row[0] if row else None

    def redactions(self, task: TaskId) -> dict[int, Entry]:
        """By the number of the note's event: who removed its text, when and why."""
        entries = map(rows.entry_of, self._ask("redactions_of_task", task=task))
        return {entry.event.named()["of"]: entry for entry in entries}

    def last_note(self, task: TaskId, kind: str) -> str:
        row = self._one("last_note", task=task, kind=kind)
        return row[0] or "redacted" if row else ""

    def late_notes(self, limit: int) -> list[tuple[TaskId, KeptNote]]:
        """Results of former holders that nobody else has seen yet, newest first."""
        return [(row[-1], KeptNote(*row[:-1])) for row in self._ask("late_notes", limit=limit)]

    def refusals_backwards(self) -> Iterator[LoggedRefusal]:
        last = 2**62
        while page := self._ask("refusals", before=last, limit=BATCH):
            yield from (LoggedRefusal(*row) for row in page)
            last = -rows.beyond(-last, -page[-1][0])
