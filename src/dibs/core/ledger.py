"""The ledger: how an event is written down, chained, and read back.

The events of one task form a chain: each carries a digest over itself and the digest before it,
and the last digest stands in the task's row. The board's own events form a chain too.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder  # json itself would load re at every start

from dibs.core import events as e
from dibs.core.board_events import BOARD_EVENTS
from dibs.core.checks import short
from dibs.core.evolve import ended_lease, ended_stint, evolve
from dibs.core.instants import Instant
from dibs.core.model import (
    ActorId,
    EndedLease,
    EndedStint,
    Lease,
    Mirrored,
    Place,
    Task,
    TaskId,
    Terms,
    Token,
)
from dibs.core.refusals import unreadable
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from hashlib import sha256
    from typing import Any
else:
    try:  # as random.py of the standard library does: hashlib would load OpenSSL at every start
        from _sha2 import sha256
    except ImportError:
        from _sha256 import sha256

EVENTS: list[type[e.Event]] = [e.Added, *e.TASK_EVENTS, *BOARD_EVENTS]
BY_VERB = {kind.verb: kind for kind in EVENTS}
NESTED = {
    "ending": e.Ending, "former": e.Ending, "stint": e.Stint, "terms": Terms, "lease": Lease,
    "item": Mirrored, "place": Place,
}  # fmt: skip
TOKENS = ("token", "lost")
USAGE = "usage_reported"


class Entry(Value):
    """One event as it stands in the ledger."""

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
    """JSON in one way only: the same value is always the same text."""
    return "".join(_parts(value, 0))


def plain(value: object) -> Any:
    """A value as JSON can hold it."""
    if not isinstance(value, tuple):
        return value
    if not isinstance(value, Value):
        return [plain(inner) for inner in value]
    if isinstance(value, Token):
        return str(value)
    return {
        field: plain(inner) if isinstance(inner, tuple) else inner  # most are not: a call saved
        for field, inner in zip(value.fields, value)
    }


def encode(event: e.Event) -> str:
    """The event's facts. Free text (`note`) is not among them: its digest is."""
    facts = plain(event)
    if facts.get("note"):
        facts["note"] = digest_of(facts["note"])
    return canonical(facts)


def decode(verb: str, facts: str) -> e.Event:
    """The event that `encode` wrote, with the digest of its note in the place of the text."""
    import json

    try:
        event: e.Event = build(BY_VERB.get(verb) or seldom(verb), json.loads(facts))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise unreadable(f"an event, {short(verb, 40)}") from None
    return event


def seldom(verb: str) -> type[e.Event]:
    """What is said about stints afterwards: most boards are read without it."""
    from dibs.core.stint_events import STINT_EVENTS

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
    """Of the text that an event brings: the event's own name, or that its author was too late."""
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
    """The entry that follows `head`."""
    written = None if token is None else str(token)
    said = canonical([seq, task, position, at, actor, session, written, verb, cause, facts])
    digest = digest_of(f"{head}\n{said}")
    return Entry(seq, task, position, at, actor, session, token, verb, cause, facts, digest)


class Folded(Value):
    """What the ledger says about one task."""

    task: Task
    ended: tuple[EndedLease, ...]
    faults: tuple[str, ...]
    after: frozenset[str] = frozenset()
    """The keys of what it depends on."""
    stints: tuple[EndedStint, ...] = ()
    """Those that did not end with a lease."""


class Beside:
    """What the events of a task put beside its row: ended leases, stints, dependencies."""

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


def fold(entries: Iterable[Entry], clock: Iterable[Entry]) -> Folded | None:
    """A task's row from its first event on; `clock` holds the board's clock events, in order."""
    task: Task | None = None
    faults: list[str] = []
    beside = Beside()
    for entry in in_order(entries, clock):
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
    return Folded(task, tuple(ended), tuple(faults), frozenset(after), tuple(stints))


def in_order(entries: Iterable[Entry], clock: Iterable[Entry]) -> Iterator[Entry]:
    """A task's events with those of the clock among them."""
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
    """Fields in which a row is not what its events say.

    Renewals, suspicions and open dependencies are not events: these may differ.
    """
    found = []
    for field, is_, said in zip(Task.fields, row, folded):
        renewed = field == "lease" and is_ and said
        kept = (
            is_.but(renewed=said.renewed, renewals=said.renewals, suspect=said.suspect)
            if renewed
            else is_
        )
        if kept != said and field not in ("version", "waits_on"):
            found += _difference(field, kept, said)
    return found


def _difference(field: str, is_: object, said: object) -> list[str]:
    if isinstance(is_, Value) and isinstance(said, Value) and not isinstance(is_, Token):
        inner = zip(is_.fields, is_, said)
        return [
            f"{name} is {plain(a)!r}, and the ledger says {plain(b)!r}"
            for name, a, b in inner
            if a != b
        ]
    return [f"{field} is {plain(is_)!r}, and the ledger says {plain(said)!r}"]
