"""Other tools' exports, read once and one way: beads, GitHub issues, Taskwarrior.

    bd export                                       lines of JSON, or a list
    gh issue list --json number,title,state,...     a list
    task export                                     a list, or lines of JSON

Each element becomes an item with an origin, so that a second import finds the first one's tasks. Of its
texts only the title is kept. An element that makes no sense is a problem, and the rest is read.
"""

from __future__ import annotations

from dibs.backlogs.formats.words import in_one_line, instant_of, title_of
from dibs.backlogs.item import Item, Problem
from dibs.domain.checks import NUMBER_DIGITS, REF_LENGTH, short
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DEPENDENCIES_MAX,
    DROPPED,
    IN_PROGRESS,
    OPEN,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
)
from dibs.domain.values import Instant, iso
from dibs.machine import wall_clock
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from dibs.domain.model import State

    Read = tuple[list[Item], list[Problem]]

SIZE_MAX = 64 * 1024 * 1024
ITEMS_MAX = 100_000
OWNER_LENGTH = 200

# State words of each tool: one table each.

BEADS_STATES: dict[str, State] = {
    "open": OPEN,
    "in_progress": IN_PROGRESS,
    "hooked": OPEN,
    "blocked": BLOCKED,
    "deferred": OPEN,
    "pinned": OPEN,
    "closed": COMPLETE,
    "tombstone": DROPPED,  # deleted, and kept so that it is not imported again
}
BEADS_GATES = {
    "deferred": "deferred in beads",
    "pinned": "pinned in beads: not to be worked on",
    "hooked": "hooked in beads: a worker of its own has it",
}
BEADS_WAITS = ("blocks", "waits-for", "conditional-blocks")
"""The kinds of dependency that block an issue."""
BEADS_PARENT = "parent-child"
"""What blocks a parent blocks its children."""
BEADS_OWN = ("agent", "message", "gate", "molecule")
"""Types of issues with which beads runs its own machinery: nobody works on them."""

GITHUB_STATES: dict[tuple[str, str], State] = {
    ("open", ""): OPEN,
    ("open", "reopened"): OPEN,
    ("closed", ""): COMPLETE,
    ("closed", "completed"): COMPLETE,
    ("closed", "not_planned"): DROPPED,
    ("closed", "duplicate"): DROPPED,
}
GITHUB_PRIORITIES = {
    "0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "critical": 0, "urgent": 0, "highest": 0, "high": 1,
    "medium": 2, "normal": 2, "moderate": 2, "low": 3, "lowest": 4, "trivial": 4,
}  # fmt: skip
"""For a label such as `P1`, `priority: high`, `prio/1` or `low priority`; the most urgent counts."""

TASKWARRIOR_STATES: dict[str, State] = {
    "pending": OPEN,  # in progress once it was started
    "waiting": OPEN,
    "completed": COMPLETE,
    "deleted": DROPPED,
}
TASKWARRIOR_GATES = {"waiting": "waiting in Taskwarrior"}
TASKWARRIOR_PRIORITIES = {"H": 1, "M": 2, "L": 3, "": PRIORITY_DEFAULT}


class SkippedElement(Exception):  # noqa: N818 - the name says what it is about
    """An element that is skipped, and why; `known`: the tool writes such elements normally."""

    def __init__(self, why: str, *, known: bool = False) -> None:
        super().__init__(why)
        self.known = known


class Element:
    """One element of an export, its problems, and its position."""

    def __init__(self, path: str, line: int, place: int, fields: Any) -> None:
        """`line`: in the file, if it has one element per line; else `place` counts elements."""
        self._path, self._line, self._place = path, line, place
        self.is_object = isinstance(fields, dict)
        self.fields: dict[str, Any] = fields if self.is_object else {}
        self.problems: list[Problem] = []
        if not self.is_object:
            self.doubt("it is no object", "it is left out")

    def doubt(self, what: str, choice: str) -> None:
        where = "" if self._line else f"element {self._place}: "
        self.problems.append(Problem(self._path, f"{where}{what}", choice, self._line))

    def text(self, name: str) -> str:
        """The text in one line; empty if missing or not a text."""
        value = self.fields.get(name)
        if isinstance(value, str):
            return in_one_line(value, len(value))
        if value is not None:
            self.doubt(f"its {name} is no text", "it counts as not given")
        return ""

    def name(self, name: str) -> str:
        """An identifier: short and printable; empty if invalid."""
        value = self.fields.get(name)
        fits = isinstance(value, str) and value.isprintable() and len(value) <= REF_LENGTH
        return value.strip() if fits else ""  # type: ignore[union-attr]

    def each(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        if value is None or isinstance(value, list):
            return value or []
        self.doubt(f"its {name} is no list", "it counts as empty")
        return []

    def state(self, said: str, states: dict[str, State]) -> State:
        state = states.get(said.casefold())
        if state is None:
            self.doubt(f"its status {shown(said)} is unknown", "it counts as open")
        return state or OPEN

    def item(self, *, id: str, title: str, after: list[str], **known: Any) -> Item:  # noqa: A002
        named, wrong = title_of(title, id)
        if wrong:
            self.doubt(wrong, f"it is called {shown(named)}")
        if id in after:
            self.doubt("it waits for itself", "that is left out")
        waits = tuple(dict.fromkeys(one for one in after if one and one != id))
        if len(waits) > DEPENDENCIES_MAX:
            self.doubt(f"it waits for {len(waits)} others", f"{DEPENDENCIES_MAX} of them count")
        return Item(
            id=id,
            title=named,
            after=waits[:DEPENDENCIES_MAX],
            path=self._path,
            line=self._line,
            **known,
        )


# beads.


def beads(data: bytes, path: str = "", now: Instant | None = None) -> Read:
    """Parses the output of `bd export`."""
    parents: dict[str, str] = {}
    at = wall_clock() if now is None else now
    items, problems = all_of(data, path, "beads", lambda one: beads_item(one, at, parents))
    return below_parents(items, parents), problems


def below_parents(items: list[Item], parents: dict[str, str]) -> list[Item]:
    """Children wait for what their parents wait for, and have the gates of their parents."""
    named = {item.id: item for item in items}
    found = []
    for item in items:
        after, gate, seen = dict.fromkeys(item.after), item.gate, {item.id}
        parent = named.get(parents.get(item.id, ""))
        while parent is not None and parent.id not in seen:
            seen.add(parent.id)
            after |= dict.fromkeys(parent.after)
            if not gate and (parent.gate or parent.state == BLOCKED):
                gate = f"its parent {parent.id} is held back: {parent.gate or parent.said}"
            parent = named.get(parents.get(parent.id, ""))
        after.pop(item.id, None)
        found.append(item.but(after=tuple(after)[:DEPENDENCIES_MAX], gate=gate))
    return found


def beads_gate(element: Element, said: str, now: Instant) -> str:
    """Why `bd ready` does not list an open issue, apart from what blocks it."""
    type_ = element.name("issue_type").casefold()
    if type_ in BEADS_OWN:
        return f"of the type {type_}, with which beads runs itself"
    if element.fields.get("ephemeral") is True:
        return "ephemeral in beads"
    later = instant_of(element.name("defer_until"))
    if later is not None and later > now:
        return f"deferred in beads until {iso(later)}"
    return BEADS_GATES.get(said.casefold(), "")


def beads_item(element: Element, now: Instant, parents: dict[str, str]) -> Item:
    fields = element.fields
    if fields.get("_type", "issue") != "issue" or fields.get("is_template") is True:
        raise SkippedElement("it is no issue", known=True)
    id_ = element.name("id")
    if not id_:
        raise SkippedElement("it has no id")
    said = element.text("status") or "open"
    for one in element.each("dependencies"):
        if isinstance(one, dict) and one.get("type") == BEADS_PARENT:
            parents.setdefault(id_, str(one.get("depends_on_id")))
    return element.item(
        channel="beads",
        ref=id_,
        id=id_,
        title=element.text("title"),
        state=element.state(said, BEADS_STATES),
        said=said,
        priority=beads_priority(element),
        owner=owner(element.text("assignee")),
        after=[blocker(one, id_) for one in element.each("dependencies")],
        gate=beads_gate(element, said, now),
    )


def beads_priority(element: Element) -> int:
    value = element.fields.get("priority", PRIORITY_DEFAULT)
    if type(value) is int and 0 <= value <= PRIORITY_MAX:
        return value
    element.doubt(f"its priority is {shown(value)}", f"it is {PRIORITY_DEFAULT}")
    return PRIORITY_DEFAULT


def blocker(dependency: Any, id_: str) -> str:
    """The issue that blocks this one; empty if none does."""
    if not isinstance(dependency, dict) or dependency.get("type") not in BEADS_WAITS:
        return ""
    on, whose = dependency.get("depends_on_id"), dependency.get("issue_id", id_)
    return on if isinstance(on, str) and on.isprintable() and whose == id_ else ""


# GitHub.


def github(data: bytes, path: str = "", now: Instant | None = None) -> Read:  # noqa: ARG001 - all alike
    """Parses `gh issue list --json number,title,state,stateReason,labels,assignees,url`."""
    items, problems = all_of(data, path, "github", github_item)
    twice = also_with_address(items)
    problems += [
        Problem(item.path, f"{item.ref} stands in it with its url, too", "that counts", item.line)
        for item in items
        if item.ref in twice
    ]
    return [item for item in items if item.ref not in twice], problems


def also_with_address(items: list[Item]) -> set[str]:
    """Numbers without a url that also occur with one, with the same title, in the only repository."""
    with_url = [item for item in items if item.ref[0] != "#"]
    if len({repository(item.ref) for item in with_url}) != 1:
        return set()
    known = {(item.id, item.title) for item in with_url}
    return {item.ref for item in items if item.ref[0] == "#" and (item.id, item.title) in known}


def github_item(element: Element) -> Item:
    number = element.fields.get("number")
    if type(number) is not int or number < 1:
        raise SkippedElement("it has no number")
    url = element.name("url")
    if element.fields.get("pull_request") or element.fields.get("isPullRequest") or "/pull/" in url:
        raise SkippedElement("it is a pull request, and no issue", known=True)
    if not url.startswith(("https://", "http://")):
        url = ""
    said, state = github_state(element)
    logins = [one.get("login") for one in element.each("assignees") if isinstance(one, dict)]
    return element.item(
        channel="github",
        ref=url or f"#{number}",
        id=f"GH-{number}",
        title=element.text("title"),
        state=state,
        said=said,
        priority=github_priority(element),
        owner=owner(", ".join(login for login in logins if isinstance(login, str))),
        after=github_blockers(element, url),
    )


def github_state(element: Element) -> tuple[str, State]:
    state, reason = element.text("state").casefold(), element.text("stateReason").casefold()
    if not state and isinstance(element.fields.get("closed"), bool):
        state = "closed" if element.fields["closed"] else "open"
    said = f"{state} {reason}".strip()
    found = GITHUB_STATES.get((state, reason)) or GITHUB_STATES.get((state, ""))
    if found is None:
        element.doubt(
            f"its state is {shown(said)}" if said else "it has no state", "it counts as open"
        )
    return said, found or OPEN


def github_priority(element: Element) -> int:
    found = []
    for label in element.each("labels"):
        name = label.get("name") if isinstance(label, dict) else label
        priority = priority_in(name) if isinstance(name, str) else None
        if priority is not None:
            found.append(priority)
    return min(found, default=PRIORITY_DEFAULT)


def priority_in(label: str) -> int | None:
    """`P1`, or a word beside `priority`; a word alone is ambiguous."""
    words = label.casefold().translate(dict.fromkeys(map(ord, ":/-_=."), " ")).split()
    if words and len(words[0]) == 2 and words[0][0] == "p" and words[0][1] in "01234":
        return int(words[0][1])
    if not {"priority", "prio"} & set(words):
        return None
    known = [word.removeprefix("p") if word[1:].isdigit() else word for word in words]
    return next((GITHUB_PRIORITIES[word] for word in known if word in GITHUB_PRIORITIES), None)


def github_blockers(element: Element, url: str) -> list[str]:
    """Issues of the same repository only: those of another have other keys, or none."""
    value = element.fields.get("blockedBy")
    nodes = value.get("nodes") if isinstance(value, dict) else value
    found = []
    for node in nodes if isinstance(nodes, list) else []:
        number = node.get("number") if isinstance(node, dict) else None
        there = node.get("url") if isinstance(node, dict) else None
        elsewhere = url and isinstance(there, str) and repository(there) != repository(url)
        if type(number) is int and number > 0 and not elsewhere:
            found.append(f"GH-{number}")
    return found


def repository(url: str) -> str:
    return url.rpartition("/")[0].casefold()


# Taskwarrior.


def taskwarrior(data: bytes, path: str = "", now: Instant | None = None) -> Read:
    """Parses the output of `task export`."""
    at = wall_clock() if now is None else now
    return all_of(data, path, "taskwarrior", lambda one: taskwarrior_item(one, at))


def taskwarrior_gate(element: Element, said: str, now: Instant) -> str:
    """Why a pending task is not `+READY`, apart from what blocks it."""
    for key, what in (("wait", "waiting"), ("scheduled", "scheduled")):
        stated = element.name(key)
        begin = instant_of(stated) if stated else None
        if begin is not None and begin > now:
            return f"{what} in Taskwarrior until {iso(begin)}"
    return "" if element.name("wait") else TASKWARRIOR_GATES.get(said, "")


def taskwarrior_item(element: Element, now: Instant) -> Item:
    uuid = element.name("uuid").lower()
    if not is_uuid(uuid):
        raise SkippedElement("it has no uuid")
    said = element.text("status") or "pending"
    if said == "recurring":
        raise SkippedElement("it is the pattern of a task that recurs, and none itself", known=True)
    state = element.state(said, TASKWARRIOR_STATES)
    if said == "pending" and element.name("start"):
        said, state = "pending, started", IN_PROGRESS
    return element.item(
        channel="taskwarrior",
        ref=uuid,
        id=taskwarrior_id(uuid),
        title=element.text("description"),
        state=state,
        said=said,
        priority=taskwarrior_priority(element),
        owner=owner(element.text("assignee")),
        after=taskwarrior_after(element),
        gate=taskwarrior_gate(element, said, now),
    )


def taskwarrior_id(uuid: str) -> str:
    return f"TW-{uuid[:8]}"


def taskwarrior_priority(element: Element) -> int:
    said = element.text("priority")
    if said not in TASKWARRIOR_PRIORITIES:
        element.doubt(f"its priority is {shown(said)}", f"it is {PRIORITY_DEFAULT}")
    return TASKWARRIOR_PRIORITIES.get(said, PRIORITY_DEFAULT)


def taskwarrior_after(element: Element) -> list[str]:
    """A list; before version 2.6 a text with commas."""
    value = element.fields.get("depends")
    stated = value.split(",") if isinstance(value, str) else element.each("depends")
    found = [one.strip().lower() for one in stated if isinstance(one, str)]
    return [taskwarrior_id(uuid) for uuid in found if is_uuid(uuid)]


def is_uuid(text: str) -> bool:
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        digit in "0123456789abcdef" for part in parts for digit in part
    )


# Shared.


def all_of(data: bytes, path: str, channel: str, item_of: Callable[[Element], Item]) -> Read:
    """The items, without duplicate origins, and all problems."""
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    known = False
    for element in elements(data, path or channel, problems):
        try:
            item = item_of(element) if element.is_object else None
        except SkippedElement as why:
            element.doubt(str(why), "it is left out")
            item, known = None, known or why.known
        if item is not None and item.ref in items:
            element.doubt(f"{shown(item.ref)} stands in it before", "the first counts")
        elif item is not None:
            items[item.ref] = item.but(problems=tuple(element.problems))
        problems += element.problems
    if problems and not items and not known:
        raise Unreadable(f"nothing in it is of {channel}: {problems[0].what}", problems[0].line)
    over = {item.id for item in items.values() if item.state == DROPPED}
    return [without(item, over) for item in items.values()], problems


def without(item: Item, over: set[str]) -> Item:
    """The item without dependencies that will never be complete: its tool does not wait for them."""
    if over.isdisjoint(item.after):
        return item
    return item.but(after=tuple(id_ for id_ in item.after if id_ not in over))


def elements(data: bytes, path: str, problems: list[Problem]) -> Iterator[Element]:
    """The elements of a list, or one per line."""
    if len(data) > SIZE_MAX:
        raise Unreadable(f"it has {len(data)} bytes; the most is {SIZE_MAX}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    if text.lstrip()[:1] == "[":
        found = parsed(text)
        if not isinstance(found, list):
            raise Unreadable("it is no list")
        check_count(len(found))
        yield from (Element(path, 0, n, fields) for n, fields in enumerate(found, 1))
        return
    if is_spread(text):
        yield from spread(text, path)
        return
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    check_count(len(lines))
    for place, (number, line) in enumerate(lines, 1):
        try:
            fields = parsed(line)
        except Unreadable as why:
            problems.append(Problem(path, str(why), "the line is left out", number))
            continue
        yield Element(path, number, place, fields)


def is_spread(text: str) -> bool:
    """Whether objects go over several lines: pretty-printed JSON."""
    first, _, rest = text.lstrip().partition("\n")
    return bool(rest) and first.rstrip() == "{"


def spread(text: str, path: str) -> Iterator[Element]:
    """Objects one after another."""
    from json import JSONDecodeError, JSONDecoder

    decoder, at, place = JSONDecoder(parse_int=whole), 0, 0
    while (at := at + len(text[at:]) - len(text[at:].lstrip())) < len(text):
        line = text.count("\n", 0, at) + 1
        try:
            fields, at = decoder.raw_decode(text, at)
        except JSONDecodeError as error:
            raise Unreadable(f"it is not JSON: {error.msg}", error.lineno) from None
        except RecursionError:
            raise Unreadable("it is nested too deeply") from None
        place += 1
        check_count(place)
        yield Element(path, line, place, fields)


def check_count(count: int) -> None:
    if count > ITEMS_MAX:
        raise Unreadable(f"it has {count} elements; the most is {ITEMS_MAX}")


def parsed(text: str) -> Any:
    import json

    try:
        return json.loads(text, parse_int=whole)
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None


def whole(digits: str) -> int | str:
    """A number out of range stays a text, which no numeric field accepts."""
    return int(digits) if len(digits) <= NUMBER_DIGITS else digits


def owner(text: str) -> str:
    return short(text, OWNER_LENGTH)


def shown(value: object) -> str:
    return short(repr(value), 60)


FORMATS: dict[str, Callable[..., Read]] = {
    "beads": beads,
    "github": github,
    "taskwarrior": taskwarrior,
}
"""Parsers by format name."""
