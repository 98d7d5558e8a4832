"""Edits JSON files of others: inserts and removes items without changing any other byte.

Whether an emptied list, object or file goes with our last item is decided by the record of what was there before.
"""

from __future__ import annotations

import json
from itertools import pairwise
from json.decoder import scanstring  # type: ignore[attr-defined]  # in every Python

from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dibs.integrations.install.manifest import Entry

SPACE = " \t\r\n"
UNIT = "  "
MARK = "\ufeff"
HOOKS = "hooks"
"""The key of the object of all events; in a group, of the list of its handlers."""
VERSION = "version"
"""The other key of a new file, in some layouts."""


class Node(Value):
    """A parsed value with its position. `names` and `starts` belong to the members of an object or list."""

    start: int
    end: int
    value: Any
    items: tuple[Node, ...] = ()
    starts: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def member(self, name: str) -> int | None:
        """The index of a member; the last one counts if a name occurs twice, as in every parser."""
        places = [place for place, each in enumerate(self.names) if each == name]
        return places[-1] if places else None


def parsed(text: str, path: str) -> Node:
    """Parses the object in a file; refuses anything else, and files with comments."""
    body = text.removeprefix(MARK)
    try:
        value = json.loads(body)
    except RecursionError:
        raise bad_argument(f"{path} is nested too deeply; the file is unchanged") from None
    except ValueError as error:
        hint = " (it may have comments, which would be lost)" if "//" in body else ""
        raise bad_argument(
            f"{path} is not plain JSON{hint}: {error}; the file is unchanged"
        ) from None
    if not isinstance(value, dict):
        raise bad_argument(f"{path} contains no JSON object; the file is unchanged")
    return node_at(text, skipped(text, len(text) - len(body)))


def is_blank(text: str | None) -> bool:
    """Whether there is no file, or nothing in it."""
    return text is None or not text.removeprefix(MARK).strip(SPACE)


def skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at


def node_at(text: str, start: int) -> Node:
    """Parses the value that begins at `start`. The text must be valid JSON."""
    if text[start] not in "{[":
        value, end = json.JSONDecoder().raw_decode(text, start)
        return Node(start, end, value)
    is_object, items, starts, names = text[start] == "{", [], [], []
    at = skipped(text, start + 1)
    while text[at] not in "}]":
        at = skipped(text, at + 1) if text[at] == "," else at
        starts.append(at)
        if is_object:
            name, at = scanstring(text, at + 1)
            names.append(name)
            at = skipped(text, skipped(text, at) + 1)
        items.append(node_at(text, at))
        at = skipped(text, items[-1].end)
    values = [item.value for item in items]
    value = dict(zip(names, values)) if is_object else values
    return Node(start, at + 1, value, tuple(items), tuple(starts), tuple(names))


# Insertion.


class Style(Value):
    """The line break and indentation of a file."""

    line: str
    unit: str

    @classmethod
    def of(cls, text: str) -> Style:
        line = "\r\n" if "\r\n" in text else "\n"
        for each in text.splitlines():
            blank = each[: len(each) - len(each.lstrip(" \t"))]
            if blank and each.strip():
                return cls(line, blank if len(blank) <= 8 else UNIT)
        return cls(line, UNIT)

    def written(self, value: object, depth: int) -> str:
        lines = json.dumps(value, indent=self.unit, ensure_ascii=False).split("\n")
        return f"{self.line}{self.unit * depth}".join(lines)


def new_text(members: dict[str, Any], before: str | None) -> str:
    """The text of a new file, or of one that was blank (its byte order mark and spaces stay)."""
    style = Style.of(before or "")
    mark = MARK if before is not None and before.startswith(MARK) else ""
    tail = style.line if before is None else before.removeprefix(MARK)
    return f"{mark}{style.written(members, 0)}{tail}"


def with_item(text: str, path: str, way: tuple[str, ...], item: object, style: Style) -> str:
    """Appends an item to the list at the path `way`; creates what is missing on that path."""
    node = parsed(text, path)
    for depth, name in enumerate(way, 1):
        place = node.member(name)
        if place is None:
            value: Any = [item]
            for missing in reversed(way[depth:]):
                value = {missing: value}
            member = f"{json.dumps(name)}: {style.written(value, depth)}"
            return put_in(text, node, member)
        node = node.items[place]
        kind = list if depth == len(way) else dict
        if not isinstance(node.value, kind):
            where = ".".join(way[:depth])
            raise bad_argument(f"{path}: {where} has an unexpected type; the file is unchanged")
    return put_in(text, node, style.written(item, len(way) + 1))


def put_in(text: str, node: Node, piece: str) -> str:
    """Inserts after the last item, with its spacing; in an empty container right after the bracket."""
    if not node.items:
        return f"{text[: node.start + 1]}{piece}{text[node.start + 1 :]}"
    first = node.starts[-1]
    space = text[len(text[:first].rstrip(SPACE)) : first]
    at = node.items[-1].end
    return f"{text[:at]},{space or ' '}{piece}{text[at:]}"


# Removal.


def without(
    text: str, path: str, is_ours: Callable[[Any], bool], record: Entry | None
) -> str | None:
    """Removes our handlers; `None` if that leaves nothing of a file that dibs created.

    A list or object that becomes empty goes with them if the record shows that it was not there before.
    """
    while True:
        root = parsed(text, path)
        spot = first_of_ours(root, is_ours)
        if spot is None:
            return text
        chain, place = spot
        while len(chain[-1].items) == 1 and is_new(chain, record):
            inner = chain.pop()
            place = chain[-1].items.index(inner)
        node = chain[-1]
        left = [name for at, name in enumerate(node.names) if at != place and name != VERSION]
        if len(chain) == 1 and not left and record is not None and is_blank(record.before):
            return record.before
        text = taken_out(text, node, place)


def is_new(chain: list[Node], record: Entry | None) -> bool:
    """Whether dibs created the last node, the object of events or the list of one event."""
    if record is None or len(chain) not in (2, 3):
        return False
    value = {} if is_blank(record.before) else parsed(record.before or "", record.path).value
    for outer, inner in pairwise(chain):
        name = outer.names[outer.items.index(inner)]
        if name not in value:
            return True
        value = value[name]
    return False


def first_of_ours(root: Node, is_ours: Callable[[Any], bool]) -> tuple[list[Node], int] | None:
    """The nodes from the root to the first list with an item of ours, and that item's index."""
    at = root.member(HOOKS)
    lists = root.items[at] if at is not None else None
    if lists is None or not isinstance(lists.value, dict):
        return None
    for each in lists.items:
        for place, item in enumerate(each.items if isinstance(each.value, list) else ()):
            ours = [is_ours(handler) for handler in handlers_in(item.value)]
            if ours and all(ours):
                return [root, lists, each], place
            if any(ours):  # somebody added their own handler to our group
                group = item.items[item.member(HOOKS) or 0]
                return [root, lists, each, item, group], ours.index(True)
    return None


def handlers_in(item: Any) -> list[Any]:
    """The handlers of a group; or the handler itself, where there are no groups."""
    if not isinstance(item, dict):
        return []
    if HOOKS not in item:
        return [item]
    return item[HOOKS] if isinstance(item[HOOKS], list) else []


def taken_out(text: str, node: Node, place: int) -> str:
    if place > 0:
        return text[: node.items[place - 1].end] + text[node.items[place].end :]
    following = node.starts[1] if len(node.items) > 1 else node.items[0].end
    return text[: node.starts[0]] + text[following:]
