"""The queries of a transaction on the ledger: events, notes, refusals, stints, counters."""

from __future__ import annotations

from dibs.domain.events.board import ClockSet
from dibs.domain.ledger import Entry
from dibs.domain.model import ActorId, Approval, EndedStint, KeptNote, LoggedRefusal, TaskId
from dibs.domain.values import Value
from dibs.storage import queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.domain.events.base import Event
    from dibs.domain.values import Duration, Instant
    from dibs.storage.queries import BoardRow


CLOCK_SET = ClockSet.verb
BATCH = 1_000
"""Rows per page when all are wanted: a read transaction keeps one page in memory."""


STINT = ("actor", "start", "end", "aside")
"""The columns of a stint without its task."""


class Highest(Value):
    """The highest task id, actor id, token epoch, and instant of a change."""

    task: int
    actor: int
    epoch: int
    instant: Instant


class LedgerQueries:
    """The part of a transaction that reads the ledger."""

    board: BoardRow
    now: Instant
    _ask: Any
    _one: Any
    _stream: Any

    def events_of(self, task: TaskId) -> Iterator[Entry]:
        """A task's events, oldest first."""
        return self._chain("events_of_task", task=task)

    def events_of_board(self) -> Iterator[Entry]:
        """The board's own events, which have no task, oldest first."""
        return self._chain("events_of_board")

    def _chain(self, query: str, **of: TaskId) -> Iterator[Entry]:
        last = 0
        while page := self._ask(query, after=last, limit=BATCH, **of):
            yield from map(queries.entry_of, page)
            last = queries.next_page_key(last, page[-1][2])

    def clock_events(self) -> list[Entry]:
        """Events that set the board's clock, oldest first."""
        return [one for one in self.events_of_board() if one.verb == CLOCK_SET]

    def digests(self) -> Iterator[tuple[int, str]]:
        """Number and digest of every event, oldest first."""
        last = 0
        while page := self._ask("digests_after", after=last, limit=BATCH):
            yield from page
            last = queries.next_page_key(last, page[-1][0])

    def events_of_request(self, request_id: str, after: int) -> list[Entry]:
        """Events of a request id without a stored answer, after a given event."""
        found = self._ask("events_of_request", request=request_id, after=after)
        return [queries.entry_of(row) for row in found]

    def first_event(self, task: TaskId) -> Event | None:
        page = self._ask("events_of_task", task=task, after=0, limit=1)
        return queries.entry_of(page[0]).event if page else None

    def receipts_of(self, task: TaskId) -> list[Entry]:
        """Every delivery of the request behind a task, the first with its addition."""
        return [queries.entry_of(row) for row in self._ask("receipts_of_task", task=task)]

    def events_backwards(self) -> Iterator[Entry]:
        """All events, newest first."""
        last = self.board.seq + 1
        while page := self._ask("events_before", before=last, limit=BATCH):
            yield from map(queries.entry_of, page)
            last = -queries.next_page_key(-last, -page[-1][0])

    def events(self) -> Iterator[Entry]:
        """All events, oldest first."""
        return self.events_since(0)

    def events_since(self, last: int) -> Iterator[Entry]:
        """Events after the given one, oldest first."""
        while page := self._ask("events_after", after=last, limit=BATCH):
            yield from map(queries.entry_of, page)
            last = queries.next_page_key(last, page[-1][0])

    def events_between(self, since: Instant, until: Instant) -> Iterator[Entry]:
        """Events of a period.

        Instants only decrease where the clock was set: between two such events, a binary search finds the first
        event of the period, and nothing before it is read.
        """
        ends = [one.seq for one in self.events_of_board() if one.verb == ClockSet.verb]
        for first, end in zip([1, *ends], [*ends, self.board.seq + 1], strict=True):
            for entry in self.events_since(self._before(since, first, end)):
                if entry.seq >= end or entry.at >= until:
                    break
                yield entry

    def _before(self, instant: Instant, first: int, end: int) -> int:
        """Binary search: the last event before an instant, in a range where instants do not decrease."""
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
        """Approved periods that were not reopened, of one actor or of all."""
        return [one for one in self.all_approvals(actor) if one.reopened is None]

    def all_approvals(self, actor: ActorId | None = None) -> list[Approval]:
        return [Approval(*row) for row in self._ask("approvals", actor=actor)]

    def author_of(self, seq: int) -> ActorId:
        """The actor of an event."""
        return self.entries(seq, 1)[0].actor

    def entries(self, first: int, count: int) -> list[Entry]:
        """`count` consecutive events from `first`."""
        return [
            queries.entry_of(row) for row in self._ask("events_after", after=first - 1, limit=count)
        ]

    def count_events(self) -> tuple[int, int]:
        """The number of events, and the highest sequence number."""
        [(count, highest)] = self._ask("count_events")
        return count, highest

    def count_task_events(self) -> int:
        [(count,)] = self._ask("count_task_events")
        return int(count)

    def highest(self) -> Highest:
        """The highest value of every counter."""
        [row] = self._ask("highest")
        return Highest(*row)

    def orphans(self) -> list[str]:
        """Events and ended leases whose task is missing."""
        return [f"event {seq} has no task" for (seq,) in self._ask("events_without_task")] + [
            f"an ended lease of task {task} has no task"
            for (task,) in self._ask("leases_without_task")
        ]

    def strays(self) -> list[str]:
        """Rows that reference nothing, or contradict themselves."""
        return [f"{what} {number} belongs to nothing" for what, number in self._ask("strays")] + [
            f"{key}: the columns of its lease contradict each other"
            for (key,) in self._ask("wrong_leases")
        ]

    # Stints.

    def stints(
        self, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[queries.Row]:
        """Stints that overlap the period, by actor, then start, with the columns of `STINT`.

        `idle`: how long a watched session may be silent before it counts as not working.
        """
        return self._streamed("stints", since, until, actor, idle)

    def stints_and_tasks(
        self, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[queries.Row]:
        """As `stints`, each with the task's columns for a timesheet."""
        return self._streamed("stints_and_tasks", since, until, actor, idle)

    def _streamed(
        self, query: str, since: Instant, until: Instant, actor: ActorId | None, idle: Duration
    ) -> Iterator[queries.Row]:
        period = {"since": since, "until": until, "actor": actor, "now": self.now}
        found: Iterator[queries.Row] = self._stream(query, idle_since=self.now - idle, **period)
        return found

    def stints_of(self, task: TaskId) -> list[EndedStint]:
        """Stints of a task that did not end with a lease, oldest event first."""
        return [EndedStint(*row) for row in self._ask("stints_of_task", task=task)]

    def all_stints_of(self, task: TaskId) -> list[EndedStint]:
        """All stints of a task, including those that ended with a lease and those that were replaced."""
        with_leases = [
            EndedStint(
                one.seq, one.actor, one.stint_started, one.stint_ended, "claim", None, one.tokens,
                one.cost, one.spending,
            )
            for one in map(queries.ended_lease_of, self._ask("ended_leases", task=task))
            if one.stint_started is not None and one.stint_ended is not None
        ]  # fmt: skip
        return sorted(with_leases + self.stints_of(task))

    def stray_stints(self) -> list[int]:
        """Stints whose task is missing."""
        return [seq for (seq,) in self._ask("stints_without_task")]

    def notes(self, task: TaskId) -> list[KeptNote]:
        return [KeptNote(*row) for row in self._ask("notes_of_task", task=task)]

    def text_of(self, task: TaskId, seq: int) -> str | None:
        """The text of the note that an event added to this task, if any; empty if it was redacted."""
        row = self._one("note_text", task=task, seq=seq)
        return row[0] if row else None

    def redactions(self, task: TaskId) -> dict[int, Entry]:
        """Who removed the text of a note, when and why, by the note's event number."""
        entries = map(queries.entry_of, self._ask("redactions_of_task", task=task))
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
            last = -queries.next_page_key(-last, -page[-1][0])
