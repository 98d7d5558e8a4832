"""Builds records from tasks, and writes records to files."""

from __future__ import annotations

import os

from dibs.backlogs import files
from dibs.backlogs.item import Record, Step
from dibs.backlogs.missing import reason_text
from dibs.domain.events import tasks as e
from dibs.domain.events.base import evolve
from dibs.domain.model import Task
from dibs.domain.verbs import ended_by
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.backlogs.item import Dialect, Item
    from dibs.storage.transaction import ReadTransaction

TRIES = 5
"""Retries when somebody changes the file at the same time."""

STEPS = 50
"""How many of the latest changes of state are added to a log."""

LOGGED_EVENTS = (e.TakenOver, e.Forced, e.HandedOff, e.BroughtBack)
"""Events that are logged although the state stays the same: the work changed hands."""

SHOWN = (
    e.LeaseBegun, e.Bound, e.Started, e.Renewed, e.EndsLease, e.Unblocked, e.Accepted, e.Rejected,
    e.Scoped, e.Edited, e.Redacted,
)  # fmt: skip
"""Events after which an item file may look different."""

MODEL = "DIBS_MODEL"


def records_of(
    tx: ReadTransaction, tasks: list[Task], own: frozenset[int] = frozenset()
) -> dict[str, Record]:
    """Records by the refs of the items. `own`: events of this process, which knows its model."""
    return {task.origin_ask_ref or "": record_of(tx, task, own) for task in tasks}


def record_of(tx: ReadTransaction, task: Task, own: frozenset[int]) -> Record:
    holder = None if task.lease is None else tx.actor(task.lease.actor)
    last = tx.last_ended_lease(task.id) if holder is None and task.token.number else None
    owner = holder or (tx.actor(last.actor) if last and ended_by(last.cause).owns_result else None)
    name = owner.name if owner else ""
    return Record(task, tx.board.uid, tx.now, holder, steps_of(tx, task, own), name)


def steps_of(tx: ReadTransaction, task: Task, own: frozenset[int]) -> tuple[Step, ...]:
    notes = {note.seq: note.text for note in tx.notes(task.id)}
    steps: list[Step] = []
    was: Task | None = None
    for entry in tx.events_of(task.id):
        event = entry.event
        if isinstance(event, e.Added):
            was = event.task(task.id, entry.actor, entry.at)
            continue
        assert was is not None, "a task's first event adds it"
        assert isinstance(event, e.TaskEvent), event.verb
        now = evolve(was, event, entry.at)
        moved = now.state != was.state and not isinstance(event, e.Synced)
        if moved or isinstance(event, LOGGED_EVENTS):
            step = Step(
                seq=entry.seq,
                at=entry.at,
                actor=tx.actor(entry.actor).name,
                verb=event.verb,
                state=now.state,
                token=now.token,
                model=os.environ.get(MODEL, "") if entry.seq in own else "",
                text=notes.get(entry.seq, "") or why(tx, event, was),
                redacted=notes.get(entry.seq) == "",
            )
            steps.append(step)
        was = now
    first = len(steps) - STEPS
    return tuple(step for place, step in enumerate(steps) if place >= first or step.redacted)


def why(tx: ReadTransaction, event: e.TaskEvent, was: Task) -> str:
    """The given reason; for a lease ended by a sweep, the cause and its holder."""
    if isinstance(event, e.LeaseEnded) and was.lease is not None:
        return f"{event.why}; {tx.actor(was.lease.actor).name} had it"
    reason: str = getattr(event, "reason", "")
    return reason


def write(root: str, path: str, dialect: Dialect, records: dict[str, Record]) -> tuple[bool, str]:
    """Writes the records to the file: whether that changed it, and why it failed, if it did."""
    for _ in range(TRIES):
        try:
            with dialect.alone(root):
                seen = files.read(root, path, dialect.largest)
                data = in_step(dialect, path, seen.data, records)
                if data == seen.data:
                    return False, ""
                if files.replace(root, path, seen, data):
                    return True, ""
        except (Unreadable, OSError) as error:
            return False, f"{path} was not written: {reason_text(error)}"
    return False, f"{path} was not written: somebody keeps changing it; dibs sync does it later"


def is_behind(root: str, path: str, dialect: Dialect, records: dict[str, Record]) -> bool:
    """Whether the records would change the file. An unreadable file shows nothing."""
    try:
        data = files.read(root, path, dialect.largest).data
        return in_step(dialect, path, data, records) != data
    except (Unreadable, OSError):
        return True


def in_step(dialect: Dialect, path: str, data: bytes, records: dict[str, Record]) -> bytes:
    """The file with the records. A lease that was only renewed is written when half of it is over."""
    now = next(iter(records.values())).now
    if dialect.single and len(records) == 1:
        items, _ = dialect.read_one(path, data, now, *records)
    else:
        items, _ = dialect.read(path, data, now)
    only = items[0] if len(items) == 1 else None
    stated = dict.fromkeys(records, only) | {ref: item for item in items for ref in item.refs}
    lagging = {ref: as_stated(record, stated.get(ref)) for ref, record in records.items()}
    same = dialect.written(path, data, lagging)
    if same != data or lagging == records:
        return dialect.written(path, data, records) if same != data else data
    late = {ref: record for ref, record in records.items() if is_half_over(record, stated.get(ref))}
    return dialect.written(path, data, late) if late else data


def as_stated(record: Record, item: Item | None) -> Record:
    """The record with the lease end that the file states."""
    stated = item.expires if item is not None else None
    return record if stated is None or record.task.lease is None else record.but(expires=stated)


def is_half_over(record: Record, item: Item | None) -> bool:
    """Whether less than half of the ttl is left, according to the file."""
    if item is None or item.expires is None or item.pointer is None:
        return False
    return 2 * (item.expires - record.now) < item.pointer.ttl
