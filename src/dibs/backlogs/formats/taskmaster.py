"""task-master: all tasks of a repository in `.taskmaster/tasks/tasks.json`, edited in place.

Tasks are in lists by tag; a task may have subtasks (`22.7`). A dependency is a number or a text: in a task it names a
task of the same tag, in a subtask a sibling, unless it has a dot. A task waits for its subtasks, and they wait for what
it waits for.
"""

from __future__ import annotations

from os.path import join

from dibs.backlogs.files import GRAPH_LIMIT
from dibs.backlogs.formats.base import BaseDialect
from dibs.backlogs.formats.json_line import REMOVED, Line, strict_decoder
from dibs.backlogs.formats.kano import priority_of
from dibs.backlogs.formats.pointer import pointer_of
from dibs.backlogs.formats.words import Words, instant_of, stamp, title_of
from dibs.backlogs.item import Item, Problem
from dibs.domain.checks import quoted
from dibs.domain.model import BLOCKED, COMPLETE, DROPPED, FAILED, IN_PROGRESS, OPEN, REVIEW
from dibs.safe_files import Unreadable, shallow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from dibs.backlogs.item import Record
    from dibs.domain.values import Instant

FOLDER = ".taskmaster"
FILE = "tasks/tasks.json"
MAIN = "master"
"""The tag whose tasks need no tag in their keys."""

WORDS = Words(
    {
        "pending": OPEN, "deferred": OPEN, "in-progress": IN_PROGRESS, "review": REVIEW,
        "blocked": BLOCKED, "done": COMPLETE, "completed": COMPLETE, "cancelled": DROPPED,
    },
    {
        OPEN: "pending", IN_PROGRESS: "in-progress", REVIEW: "review", BLOCKED: "blocked",
        FAILED: "blocked", COMPLETE: "done", DROPPED: "cancelled",
    },
)  # fmt: skip
GATES = {"deferred": "deferred in task-master"}


class Node:
    """A task or subtask: where its object is in the text, and what it is called."""

    __slots__ = ("end", "fields", "number", "parent", "start", "tag")

    def __init__(
        self, tag: str, number: str, parent: Node | None, fields: Any, at: int, end: int
    ) -> None:
        self.tag, self.number, self.parent, self.fields = tag, number, parent, fields
        self.start, self.end = at, end

    @property
    def ref(self) -> str:
        return ref_of(self.tag, self.number)


def ref_of(tag: str, number: str) -> str:
    return f"TM-{number}" if tag == MAIN else f"{tag}-TM-{number}"


class Taskmaster(BaseDialect):
    channel = "taskmaster"
    words = WORDS
    single = True
    largest = GRAPH_LIMIT

    def __init__(self, folder: str = FOLDER) -> None:
        self.folder = folder

    def paths(self, root: str) -> Iterator[str]:
        yield join(self.folder, FILE)

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        text, problems = decoded(data), []
        items: dict[str, Item] = {}
        for node in nodes(text):
            line = text.count("\n", 0, node.start) + 1
            if node.ref in items:
                what = f"the id {quoted(node.number)} is there twice"
                problems.append(Problem(path, what, "the first counts", line))
                continue
            items[node.ref] = self.item(path, node, line, problems)
        for item in problems if strict else ():
            raise Unreadable(str(item), item.line)
        return list(items.values()), problems

    def item(self, path: str, node: Node, line: int, problems: list[Problem]) -> Item:
        fields = node.fields
        said = text_in(fields, "status") or "pending"
        state = self.words.state(said)
        title, wrong = title_of(text_in(fields, "title"), node.ref)
        if wrong:
            problems.append(Problem(path, wrong, f"it is called {title}", line))
        pointer = pointer_of(text_in(fields, "dibs"))
        gate = GATES.get(said.casefold(), "") if state else f"its status {said!r} is unknown"
        if state is None:
            problems.append(Problem(path, gate, "it cannot be started", line))
        return Item(
            channel=self.channel,
            ref=node.ref,
            id=node.ref,
            path=path,
            title=title,
            state=state or OPEN,
            said=said,
            priority=priority_of(text_in(fields, "priority")),
            after=tuple(dict.fromkeys(waits_of(node))),
            gate=gate,
            pointer=pointer,
            expires=instant_of(text_in(fields, "lease_expires_at")) if pointer else None,
            line=line,
        )

    def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        text = decoded(data)
        for ref, record in records.items():
            for node in nodes(text):
                if node.ref == ref:
                    own = Line(text[node.start : node.end]).with_values(self.changes(node, record))
                    text = text[: node.start] + own + text[node.end :]
                    break
        return text.encode()

    def changes(self, node: Node, record: Record) -> dict[str, Any]:
        task, said = record.task, text_in(node.fields, "status")
        word = self.words.word_for(task, said or "pending")
        changes: dict[str, Any] = (
            {} if word == said or (not said and task.state == OPEN) else {"status": word}
        )
        if task.token.number:
            changes["dibs"] = str(record.pointer)
        held = task.lease is not None
        end = stamp(record.expires or task.lease.expires) if task.lease is not None else ""
        if held or "lease_expires_at" in node.fields:
            changes["lease_expires_at"] = end if held else REMOVED
        return changes


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Unreadable("the file is not UTF-8") from None


def nodes(text: str) -> Iterator[Node]:
    """Every task and subtask, in the order of the file."""
    try:
        shallow(strict_decoder().decode(text))
        whole = Line(text)
        lists = {member.key: member for member in whole.members if isinstance(member.value, dict)}
        for tag, member in lists.items():
            yield from in_list(text, member.value_start, member.end, tag)
        if any(member.key == "tasks" for member in whole.members):
            yield from in_list(text, 0, len(text), MAIN)  # before there were tags
    except (ValueError, RecursionError) as why:
        raise Unreadable(f"it is not JSON: {why}") from None


def in_list(text: str, start: int, end: int, tag: str) -> Iterator[Node]:
    for at, stop, fields in objects(text[start:end], "tasks"):
        number = number_in(fields)
        if number is None:
            continue
        task = Node(tag, number, None, fields, start + at, start + stop)
        yield task
        for low, high, inner in objects(text[task.start : task.end], "subtasks"):
            own = number_in(inner)
            if own is not None:
                full = own if "." in own else f"{number}.{own}"
                yield Node(tag, full, task, inner, task.start + low, task.start + high)


def objects(text: str, key: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The objects of the list under a key of the object, with their places."""
    decoder = strict_decoder()
    for member in Line(text).members:
        if member.key != key or not isinstance(member.value, list):
            continue
        at = member.value_start + 1
        for _ in member.value:
            while text[at] in " \t\r\n,":
                at += 1
            value, end = decoder.raw_decode(text, at)
            if isinstance(value, dict):
                yield at, end, value
            at = end


def number_in(fields: dict[str, Any]) -> str | None:
    """Its id: a number, or a text of one."""
    value = fields.get("id")
    text = str(value) if type(value) is int else value if isinstance(value, str) else ""
    parts = text.split(".")
    return text if all(part.isascii() and part.isdigit() for part in parts) else None


def waits_of(node: Node) -> Iterator[str]:
    parent = node.parent
    for stated in listed(node.fields):
        relative = parent is not None and "." not in stated
        number = f"{parent.number}.{stated}" if relative and parent is not None else stated
        if number != node.number:
            yield ref_of(node.tag, number)
    if parent is not None:
        yield from (ref_of(node.tag, stated) for stated in listed(parent.fields))
        return
    for inner in node.fields.get("subtasks") or ():
        own = number_in(inner) if isinstance(inner, dict) else None
        if own is not None:
            yield ref_of(node.tag, own if "." in own else f"{node.number}.{own}")


def listed(fields: dict[str, Any]) -> list[str]:
    """The dependencies as texts: they are numbers or texts."""
    value = fields.get("dependencies")
    return (
        [str(one).strip() for one in value if type(one) in (int, str)]
        if isinstance(value, list)
        else []
    )


def text_in(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""
