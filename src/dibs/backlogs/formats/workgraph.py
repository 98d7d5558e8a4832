"""Workgraph: one task per line of `.wg/graph.jsonl`, or of the older `.workgraph/graph.jsonl`.

Its own program (`wg`) loads and rewrites the whole graph, under `graph.lock` beside it. It drops unknown
keys: the next sync restores `dibs` and `lease_expires_at`.
"""

from __future__ import annotations

import os

from dibs.backlogs.files import GRAPH_LIMIT
from dibs.backlogs.formats.base import BaseDialect
from dibs.backlogs.formats.json_line import BOM, REMOVED, SPACE, Line, More, strict_decoder
from dibs.backlogs.formats.words import Words
from dibs.backlogs.formats.workgraph_fields import (
    STATES,
    WORDS,
    begin_of,
    cleaned,
    gate_of,
    ids,
    instant_of,
    oddities,
    pointer_in,
    priority_of,
    shown,
    stamp,
    state_of,
    status_word,
    text_of,
    title_of,
)
from dibs.backlogs.formats.workgraph_files import GRAPH, folder_of, locked, read_registry
from dibs.backlogs.item import Item, Lock, Problem
from dibs.domain.checks import REF_LENGTH, quoted, short
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    FINAL,
    HOLDABLE,
    IN_PROGRESS,
    OPEN,
)
from dibs.domain.values import Instant, between
from dibs.machine import this_machine
from dibs.safe_files import DEPTH, Unreadable, shallow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Self

    from dibs.backlogs.formats.workgraph_fields import Fields
    from dibs.backlogs.formats.workgraph_files import Registry
    from dibs.backlogs.item import Pointer, Record, Step
    from dibs.domain.model import State
    from dibs.machine import Machine

COMMENTS = ("#", "//")
LOCK_WAIT = 5.0
EVALUATION = ".evaluate-"
"""Begins the id of the task that judges another one, before what waits for that one begins."""

EVALUATED = (COMPLETE, DROPPED, FAILED)
FEW = 20
"""Up to so many tasks are looked for one by one."""

UNKNOWN = "whether it lives is unknown: the registry cannot be read"

WRITES: dict[str, str] = {
    "status": "the state's word, unless the current word means the same state",
    "assigned": "the holder's name; removed when nobody holds the task; of a task that is done or"
    " abandoned its last holder's stays",
    "started_at": "when the holder's lease began, while the task is in progress; removed when it is"
    " open, or blocked and not held",
    "completed_at": "when the task was completed; removed when it is open, in progress or blocked"
    " (with the status `incomplete` it stays: it is the tool's own)",
    "retry_count": "attempts less one, when that is more than the current value",
    "lease_expires_at": "when the lease ends; removed without one; after a renewal only when less"
    " than half of the ttl is left by the current value",
    "dibs": "board, token and holder, from the first lease on",
    "log": "an entry for each change of state that it does not tell yet; the others stay",
}
"""All fields that are written or cleared, and when. Every other one is preserved."""

QUOTED = tuple((key, f'"{key}"') for key in WRITES)


class Workgraph(BaseDialect):
    """The dialect. It is given the agents' registry, and reads no files itself."""

    channel = "workgraph"
    words = Words(STATES, WORDS)
    heals = True
    single = True
    largest = GRAPH_LIMIT

    def __init__(
        self,
        registry: Registry | None = None,
        machine: Machine | None = None,
        folder: str = "",
    ) -> None:
        self._registry, self._machine = registry, machine or this_machine()
        self._folder = folder

    @classmethod
    def at(cls, root: str, folder: str) -> Self:
        """The dialect with the agents' registry."""
        return cls(read_registry(root, folder), folder=folder)

    def paths(self, root: str) -> Iterator[str]:
        folder = self._folder or folder_of(root)
        if folder:
            yield os.path.join(folder, GRAPH)

    def alone(self, root: str) -> AbstractContextManager[object]:
        """Holds the lock that `wg` itself uses."""
        return locked(root, LOCK_WAIT, self._folder)

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        """The tasks in line order. A bad line is a problem; if `strict`, it raises."""
        problems: list[Problem] = []
        if self._registry is not None and self._registry.problem is not None:
            problems.append(self._registry.problem)
        items: dict[str, Item] = {}
        before: dict[str, list[str]] = {}
        for task in _tasks(path, data, problems, strict=strict):
            earlier = items.pop(task.id, None)
            if earlier is not None:
                what = f"the id {quoted(task.id)} stands in line {earlier.line} too"
                problems.append(Problem(path, what, "the last counts, as for wg", task.line))
            items[task.id] = self._item(path, task, now)
            before[task.id] = ids(task.fields, "before", "blocks")
        _add_inverse(items, before)
        found = [
            item.but(after=waits) if (waits := _waits(item, items.get)) != item.after else item
            for item in items.values()
        ]
        problems += [problem for item in found for problem in item.problems]
        return found, problems

    def read_one(
        self, path: str, data: bytes, now: Instant, ref: str
    ) -> tuple[list[Item], list[Problem]]:
        """Decodes only the lines that name the task, and those of what it waits for."""
        lines = _Lines(data)
        task = lines.task(ref)
        named = [] if task is None else ids(task.fields, "after", "blocked_by")
        if task is None or not all(map(_has_one_spelling, (ref, *named))):
            return self.read(path, data, now)

        def other(id_: str) -> Item | None:
            found = lines.task(id_)
            return None if found is None else self._item(path, found, now)

        item = self._item(path, task, now)
        earlier = [id_ for id_ in lines.coming_before(ref) if id_ not in item.after]
        item = item.but(after=(*item.after, *earlier))
        problems = [self._registry.problem] if self._registry and self._registry.problem else []
        return [item.but(after=_waits(item, other))], [*problems, *item.problems]

    def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        """Keeps lines that are unreadable, have duplicates of a key to change, or need no change."""
        lines = _Lines(data)
        if len(records) > FEW or any(lines.task(ref) is None for ref in records):
            return self._written(path, data, records)
        for ref, record in records.items():
            task = lines.task(ref)
            assert task is not None, "found before"
            changes = _changes(task.fields, record)
            if changes:
                start, end = lines.place(ref)
                data = data[:start] + _changed(data[start:end], changes) + data[end:]
                lines = _Lines(data)
        return data

    def _written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        news: dict[str, tuple[int, dict[str, Any]]] = {}
        for task in _tasks(path, data, []):
            if task.id in records:
                news[task.id] = task.line - 1, _changes(task.fields, records[task.id])
        lines = data.split(b"\n")
        for place, changes in news.values():
            if changes:
                lines[place] = _changed(lines[place], changes)
        return b"\n".join(lines)

    def _item(self, path: str, task: _Task, now: Instant) -> Item:
        fields, title = task.fields, title_of(task.fields)
        state, pointer = state_of(fields), pointer_in(fields)
        odd = oddities(fields, title, state, pointer) + task.doubled()
        owner, lock = text_of(fields.get("assigned")), self._lock(fields, state, pointer)
        return Item(  # positional: keyword arguments would cost more than the parsing
            self.channel,
            task.id,
            task.id,
            path,
            shown(title),
            state or OPEN,
            status_word(fields),
            priority_of(fields.get("priority")),
            "",
            owner,
            tuple(dict.fromkeys(ids(fields, "after", "blocked_by"))),
            (),
            (),
            gate_of(fields, state, now),
            lock,
            pointer,
            instant_of(fields.get("lease_expires_at")) if pointer else None,
            task.line,
            tuple([Problem(path, what, choice, task.line) for what, choice in odd]),
            lock is None and self._is_agent(owner),
            begin_of(fields),
        )

    def _is_agent(self, name: str) -> bool:
        """Whether workgraph started it: it names agents `agent-7`, and has a registry of them."""
        known = self._registry is not None and name in self._registry.agents
        return known or (name.startswith("agent-") and name[6:].isdigit())

    def _lock(self, fields: Fields, state: State | None, pointer: Pointer | None) -> Lock | None:
        """A claim counts while the registry shows its agent alive: else it is stale.

        On an open task too: its agent is about to start, or was reset and works on. While the registry
        exists but
        cannot be read, every claim counts.
        """
        if self._registry is None or state not in (OPEN, IN_PROGRESS):
            return None
        agent = text_of(fields.get("assigned"))
        if not agent or (pointer and pointer.actor == agent):
            return None
        begun = instant_of(fields.get("started_at"))
        if self._registry.problem is not None:  # the unreadable registry may show it alive
            return Lock(agent, begun, UNKNOWN)
        if self._registry.dead(agent, self._machine) is not False:
            return None
        return Lock(agent, begun)


# Parsing lines into tasks.


class _Task:
    """A line that is a task: its number and fields."""

    __slots__ = ("fields", "id", "line", "text")

    def __init__(self, line: int, text: str, fields: dict[str, Any]) -> None:
        self.line, self.text, self.fields, self.id = line, text, fields, fields["id"]

    def doubled(self) -> list[tuple[str, str]]:
        """Our keys that are duplicated. Rare: searched only where possible."""
        if not any(self.text.count(text) > 1 for key, text in QUOTED if key in self.fields):
            return []
        try:
            twice = Line(self.text).twice(WRITES)
        except ValueError as problem:
            return [(f"the line cannot be edited: {problem}", "it is not written")]
        return [(f"the key {key!r} stands there twice", "it is not written") for key in twice]


def _tasks(
    path: str, data: bytes, problems: list[Problem], *, strict: bool = False
) -> Iterator[_Task]:
    decode = strict_decoder().decode
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            text = line.decode()
            bare = text.removeprefix(BOM).strip(SPACE)
            if not bare or bare.startswith(COMMENTS):
                continue
            fields = decode(bare)
            if bare.count("{") + bare.count("[") > DEPTH:
                shallow(fields)
            if _is_task(fields):
                yield _Task(number, text, fields)
        except (ValueError, RecursionError, Unreadable) as problem:
            if strict:
                raise Unreadable(f"{path}:{number}: {_why(problem)}", number) from None
            problems.append(Problem(path, _why(problem), "the line is left alone", number))


def _why(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return "the line is not UTF-8"
    if isinstance(problem, RecursionError | Unreadable):
        return "the line is nested too deeply"
    return short(f"the line cannot be read: {problem}", 200)


def _is_task(fields: object) -> bool:
    """Whether it is a task; a task must have an id. Other kinds only need to state their kind."""
    if not isinstance(fields, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - the same for every bad line
    kind = fields.get("kind")
    if not isinstance(kind, str):
        raise ValueError("it has no kind")  # noqa: TRY004
    if kind != "task":
        return False
    id_ = fields.get("id")
    if id_ is not None and not isinstance(id_, str):
        raise ValueError(f"the id of the task is {short(repr(id_), 40)}, and an id is text")
    if id_ is None or not id_.strip():
        raise ValueError("the task has no id")
    if len(id_) > REF_LENGTH or cleaned(id_) != id_:
        raise ValueError(f"{quoted(id_)} cannot be an id")
    return True


class _Lines:
    """Finds the lines of single tasks in a graph by their ids, without decoding the others."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._found: dict[str, tuple[int, int, _Task] | None] = {}

    def task(self, id_: str) -> _Task | None:
        """The task; None if it is not there, or if its id may be spelt in another way."""
        if id_ not in self._found:
            self._found[id_] = self._find(id_)
        found = self._found[id_]
        return None if found is None else found[2]

    def place(self, id_: str) -> tuple[int, int]:
        """Where its line begins and ends."""
        found = self._found[id_]
        assert found is not None, "asked only of a task that was found"
        return found[0], found[1]

    def coming_before(self, id_: str) -> Iterator[str]:
        """The tasks that say that they come before it."""
        for start, end in self._naming(id_):
            task = self._decoded(start, end)
            if task is None or id_ not in ids(task.fields, "before", "blocks"):
                continue
            current = self.task(task.id)
            if current is not None and current.line == task.line:
                yield task.id

    def _find(self, id_: str) -> tuple[int, int, _Task] | None:
        """Of several lines with one id the last counts, as for `wg`."""
        for start, end in self._naming(id_):
            task = self._decoded(start, end)
            if task is not None and task.id == id_:
                return start, end, task
        return None

    def _naming(self, id_: str) -> Iterator[tuple[int, int]]:
        """The lines that contain the id in quotes, the last first."""
        data, wanted = self._data, _json_text(id_)
        at = data.rfind(wanted)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            yield start, len(data) if end < 0 else end
            at = data.rfind(wanted, 0, start)

    def _decoded(self, start: int, end: int) -> _Task | None:
        number = self._data.count(b"\n", 0, start)
        found = list(_tasks("", self._data[start:end], []))
        if not found:
            return None
        found[0].line += number
        return found[0]


def _has_one_spelling(id_: str) -> bool:
    """Whether every tool writes it alike in JSON."""
    return id_.isascii() and id_.isprintable() and not set(id_) & set('"\\/')


def _json_text(id_: str) -> bytes:
    from json import dumps

    return dumps(id_, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _waits(item: Item, other: Callable[[str], Item | None]) -> tuple[str, ...]:
    """What holds it back: as for `wg`, an abandoned task does not, and an open evaluation of one does."""
    found: list[str] = []
    for id_ in item.after:
        cause = other(id_)
        if cause is not None and cause.state == DROPPED:
            continue
        found.append(id_)
        judge = other(f"{EVALUATION}{id_}") if id_[0] != "." and item.id[0] != "." else None
        if judge is not None and judge.state not in EVALUATED and judge.id not in item.after:
            found.append(judge.id)
    return tuple(found)


def _add_inverse(items: dict[str, Item], before: Mapping[str, list[str]]) -> None:
    """Adds the inverse edges: a task also depends on those that say that they come before it."""
    waits: dict[str, dict[str, None]] = {}
    for id_ in items:
        for later in before[id_]:
            if later in items:
                waits.setdefault(later, dict.fromkeys(items[later].after))[id_] = None
    for id_, after in waits.items():
        items[id_] = items[id_].but(after=tuple(after))


# From a record to changes of a line.


def _changed(line: bytes, changes: Mapping[str, Any]) -> bytes:
    try:
        return Line(line.decode()).with_values(changes).encode()
    except ValueError:  # a duplicate key, or nested too deeply to decode
        return line


def _changes(fields: Fields, record: Record) -> dict[str, Any]:
    """Only what differs; empty if the line stays."""
    changes: dict[str, Any] = {}
    state = record.task.state
    if (state_of(fields) or OPEN) != state:
        changes["status"] = WORDS[state]
    changes |= _claim(fields, record) | _ended(fields, record)
    retries, counted = record.task.attempts - 1, fields.get("retry_count")
    if retries > (counted if type(counted) is int else 0):
        changes["retry_count"] = retries
    if record.task.token.number or "dibs" in fields:
        changes |= _as(fields, "dibs", str(record.pointer))
    if isinstance(fields.get("log"), list | None):
        changes |= _told(fields.get("log") or [], record.steps)
    return changes


def _claim(fields: Fields, record: Record) -> dict[str, Any]:
    """All fields about the holder: set and cleared only here."""
    state, lease, pointer = record.task.state, record.task.lease, record.pointer
    if lease is None or not pointer.held:
        cleared = ["lease_expires_at"]
        if state in (OPEN, BLOCKED):
            cleared.append("started_at")
        if state not in FINAL or not _shows_the_last_holder(fields, record):
            cleared.append("assigned")
        return _without(fields, *cleared)
    changes = _as(fields, "assigned", pointer.actor)
    if state == IN_PROGRESS:
        changes |= _at(fields, "started_at", lease.acquired)
    elif state == OPEN:
        changes |= _without(fields, "started_at")
    if not _lasts(fields, record):
        changes |= _at(fields, "lease_expires_at", lease.expires)
    return changes


def _shows_the_last_holder(fields: Fields, record: Record) -> bool:
    pointer = pointer_in(fields)
    return state_of(fields) in FINAL or (pointer is not None and pointer.token == record.task.token)


def _lasts(fields: Fields, record: Record) -> bool:
    """Whether it is the same lease with half its time left by the line: not every renewal is written."""
    lease, there = record.task.lease, instant_of(fields.get("lease_expires_at"))
    if lease is None or there is None or pointer_in(fields) != record.pointer:
        return False
    return there <= lease.expires and 2 * between(record.now, there) >= lease.ttl


def _ended(fields: Fields, record: Record) -> dict[str, Any]:
    state = record.task.state
    if state == COMPLETE and state_of(fields) != COMPLETE:
        completed = [step.at for step in record.steps if step.state == COMPLETE]
        return _at(fields, "completed_at", completed[-1] if completed else record.task.updated)
    if state in HOLDABLE and not (state == OPEN and fields.get("status") == "incomplete"):
        return _without(fields, "completed_at")
    return {}


def _as(fields: Fields, key: str, text: str) -> dict[str, Any]:
    return {} if fields.get(key) == text else {key: text}


def _at(fields: Fields, key: str, instant: Instant) -> dict[str, Any]:
    """Keeps an equal instant in another notation."""
    return {} if instant_of(fields.get(key)) == instant else {key: stamp(instant)}


def _without(fields: Fields, *keys: str) -> dict[str, Any]:
    """Clears fields; `null` counts as cleared."""
    return {key: REMOVED for key in keys if fields.get(key) is not None}


def _told(log: list[Any], steps: tuple[Step, ...]) -> dict[str, Any]:
    messages = [str(entry.get("message")) for entry in log if isinstance(entry, dict)]
    marks = {message[message.rfind("(dibs ") :] for message in messages}
    new = (step for step in steps if step.mark not in marks and not step.redacted)
    entries = tuple(_entry(step) for step in new)
    kept = [_without_text(entry, steps) for entry in log]
    if kept != log:
        return {"log": [*kept, *entries]}
    return {"log": More(entries)} if entries else {}


def _without_text(entry: Any, steps: Iterable[Step]) -> Any:
    """Replaces the text of an entry whose step was redacted on the board."""
    message = entry.get("message") if isinstance(entry, dict) else None
    for step in steps:
        if step.redacted and isinstance(message, str) and message.endswith(step.mark):
            said = f"{step.verb}, {WORDS[step.state]}: redacted {step.mark}"
            return entry | {"message": said}
    return entry


def _entry(step: Step) -> dict[str, str]:
    model = f" ({step.model})" if step.model else ""
    text = f": {step.text}" if step.text else ""
    message = f"{step.verb}, {WORDS[step.state]}{model}{text} {step.mark}"
    return {"timestamp": stamp(step.at), "actor": step.actor, "message": message}
