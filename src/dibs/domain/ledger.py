"""The ledger: encodes, chains and decodes events.

The events of a task form a hash chain: each entry carries a digest over itself and the previous digest, and
the task's row stores the last one. The board's own events form a chain too.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder  # `json` would load `re` at every start

from dibs.domain.checks import short
from dibs.domain.events import tasks as e
from dibs.domain.events.base import USAGE, ended_lease, ended_stint, evolve
from dibs.domain.events.board import BOARD_EVENTS
from dibs.domain.model import (
    ActorId,
    EndedLease,
    EndedStint,
    ItemSnapshot,
    Lease,
    Place,
    Task,
    TaskId,
    Terms,
    Token,
)
from dibs.domain.refusals import unreadable
from dibs.domain.values import Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from hashlib import sha256
    from typing import Any
else:
    try:  # as the standard library's random.py does: hashlib would load OpenSSL at every start
        from _sha2 import sha256
    except ImportError:
        from _sha256 import sha256

EVENTS: list[type[e.Event]] = [e.Added, *e.TASK_EVENTS, *BOARD_EVENTS]
BY_VERB = {kind.verb: kind for kind in EVENTS}
NESTED = {
    "ending": e.Ending, "former": e.Ending, "stint": e.Stint, "terms": Terms, "lease": Lease,
    "item": ItemSnapshot, "place": Place,
}  # fmt: skip
TOKENS = ("token", "lost")


class Entry(Value):
    """One event as stored in the ledger."""

    seq: int
    task: TaskId | None
    position: int
    at: Instant
    actor: ActorId
    session: str
    token: Token | None
    verb: str
    cause: str
    facts: str
    digest: str

    @property
    def event(self) -> e.Event:
        return decode(self.verb, self.facts)


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} has no place in JSON")


_parts = make_encoder(None, _refuse, encode_basestring, None, ":", ",", True, False, True)


def canonical(value: object) -> str:
    """Canonical JSON: equal values give equal text."""
    return "".join(_parts(value, 0))


def plain(value: object) -> Any:
    """The value as plain JSON types."""
    if not isinstance(value, tuple):
        return value
    if not isinstance(value, Value):
        return [plain(inner) for inner in value]
    if isinstance(value, Token):
        return str(value)
    return {
        field: plain(inner)
        if isinstance(inner, tuple)
        else inner  # saves a call: most are no tuples
        for field, inner in zip(value.fields, value)
    }


def encode(event: e.Event) -> str:
    """The event's facts as JSON. A `note` is replaced by its digest."""
    facts = plain(event)
    if facts.get("note"):
        facts["note"] = digest_of(facts["note"])
    return canonical(facts)


def decode(verb: str, facts: str) -> e.Event:
    """The event that `encode` wrote; its note is the digest instead of the text."""
    import json

    try:
        event: e.Event = build(BY_VERB.get(verb) or seldom(verb), json.loads(facts))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise unreadable(f"an event, {short(verb, 40)}") from None
    return event


def seldom(verb: str) -> type[e.Event]:
    """The class of a stint event. Loaded on demand: most reads need none."""
    from dibs.domain.events.stints import STINT_EVENTS

    return {kind.verb: kind for kind in STINT_EVENTS}[verb]


def build(kind: type[Any], facts: dict[str, Any]) -> Any:
    return kind(**{field: _part(field, value) for field, value in facts.items()})


def _part(field: str, value: Any) -> Any:
    if isinstance(value, dict):
        return build(NESTED[field], value)
    if isinstance(value, list):
        return tuple(value)
    return token(value) if field in TOKENS and value is not None else value


def kind_of_note(event: e.Event) -> str:
    """The kind of an event's note: `late` if its author had lost the lease, else the event's verb."""
    return "late" if getattr(event, "late", "") else event.verb


def token(text: str) -> Token:
    epoch, _, number = text.partition(".")
    return Token(int(epoch), int(number))


def chain(head: str, entry: Entry) -> str:
    """The digest of an entry that follows `head`."""
    *facts, _ = entry
    return chained(head, *facts).digest


def chained(
    head: str, seq: int, task: TaskId | None, position: int, at: Instant, actor: ActorId,
    session: str, token: Token | None, verb: str, cause: str, facts: str,
) -> Entry:  # fmt: skip
    """The entry that follows `head`, with its digest."""
    written = None if token is None else str(token)
    content = canonical([seq, task, position, at, actor, session, written, verb, cause, facts])
    digest = digest_of(f"{head}\n{content}")
    return Entry(seq, task, position, at, actor, session, token, verb, cause, facts, digest)


class ReplayedTask(Value):
    """The state of one task, rebuilt from the ledger."""

    task: Task
    ended: tuple[EndedLease, ...]
    faults: tuple[str, ...]
    after: frozenset[str] = frozenset()
    """The keys of its dependencies."""
    stints: tuple[EndedStint, ...] = ()
    """The stints that did not end with a lease."""


class SideRecords:
    """Collects what a task's events store outside its row: ended leases, stints, dependencies."""

    def __init__(self) -> None:
        self.ended: list[EndedLease] = []
        self.stints: list[EndedStint] = []
        self.after: set[str] = set()

    def take(self, entry: Entry, event: e.Event, before: Task) -> None:
        over = ended_lease(event, entry.at, entry.seq)
        if over is not None:
            self.ended.append(over)
        stint = ended_stint(event, before, entry.seq)
        if stint is not None:
            self.stints.append(stint)
        if isinstance(event, e.Added):
            self.after.update(event.after)
        if isinstance(event, e.Depended):
            self.after = (self.after | set(event.on)) - set(event.not_on)
        if event.verb == USAGE:
            used = event.named()
            number = used.pop("number")
            self.ended = [one.but(**used) if one.seq == number else one for one in self.ended]
            self.stints = [one.but(**used) if one.seq == number else one for one in self.stints]
        if isinstance(event, e.Acknowledged):
            self.ended = [
                lease.but(acknowledged=True) if lease.token == event.lost else lease
                for lease in self.ended
            ]


def fold(entries: Iterable[Entry], clock: Iterable[Entry]) -> ReplayedTask | None:
    """Rebuilds a task from its first event on. `clock` has the board's clock events, in order."""
    task: Task | None = None
    faults: list[str] = []
    beside = SideRecords()
    for entry in merged_by_seq(entries, clock):
        if entry.task is None:
            if task is not None:
                task = evolve(task, entry.event, entry.at).but(updated=task.updated)  # type: ignore[arg-type]
            continue
        event, before = entry.event, task
        if isinstance(event, e.Added):
            task = event.task(entry.task, entry.actor, entry.at)
        elif task is None:
            return None
        else:
            assert isinstance(event, e.TaskEvent)
            task = evolve(task, event, entry.at)
        faults += _faults_of_entry(entry, before, task)
        beside.take(entry, event, before or task)
        task = task.but(head=entry.digest, events=entry.position)
    if task is None:
        return None
    ended, stints, after = beside.ended, beside.stints, beside.after
    return ReplayedTask(task, tuple(ended), tuple(faults), frozenset(after), tuple(stints))


def merged_by_seq(entries: Iterable[Entry], clock: Iterable[Entry]) -> Iterator[Entry]:
    """Merges a task's events with the clock events, by sequence number."""
    changes = list(clock)
    for entry in entries:
        while changes and changes[0].seq < entry.seq:
            yield changes.pop(0)
        yield entry
    yield from changes


def _faults_of_entry(entry: Entry, before: Task | None, after: Task) -> list[str]:
    faults = []
    head, position = (before.head, before.events) if before else ("", 0)
    if entry.position != position + 1:
        faults.append(f"event {entry.seq}: position {entry.position} follows {position}")
    if entry.digest != chain(head, entry):
        faults.append(f"event {entry.seq}: its digest does not follow from the one before")
    if entry.token != after.token:
        faults.append(f"event {entry.seq}: token {entry.token}, but the task's is {after.token}")
    return faults


def differences(row: Task, folded: Task) -> list[str]:
    """The fields in which a row differs from its events.

    Renewals, suspect marks and the count of open dependencies are not events, so these may differ.
    """
    found = []
    for field, is_, folded_value in zip(Task.fields, row, folded):
        renewed = field == "lease" and is_ and folded_value
        kept = (
            is_.but(
                renewed=folded_value.renewed,
                renewals=folded_value.renewals,
                suspect=folded_value.suspect,
            )
            if renewed
            else is_
        )
        if kept != folded_value and field not in ("version", "waits_on"):
            found += _difference(field, kept, folded_value)
    return found


def _difference(field: str, is_: object, folded_value: object) -> list[str]:
    if isinstance(is_, Value) and isinstance(folded_value, Value) and not isinstance(is_, Token):
        inner = zip(is_.fields, is_, folded_value)
        return [
            f"{name} is {plain(a)!r}, and the ledger says {plain(b)!r}"
            for name, a, b in inner
            if a != b
        ]
    return [f"{field} is {plain(is_)!r}, and the ledger says {plain(folded_value)!r}"]
