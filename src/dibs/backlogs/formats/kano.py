"""kano: items below `_kano/backlog/**/items/**`, one Markdown file each, with a Worklog."""

from __future__ import annotations

import os
from os.path import basename, join, relpath

from dibs.backlogs.formats.base import BaseDialect
from dibs.backlogs.formats.pointer import pointer_of
from dibs.backlogs.formats.words import (
    Words,
    day_of,
    in_one_line,
    instant_of,
    minute_of,
    stamp,
    title_of,
)
from dibs.backlogs.item import Item, Problem, Record
from dibs.backlogs.yaml.frontmatter import REMOVED, Document, Raw
from dibs.domain.model import (
    ACTIONS,
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    IN_PROGRESS,
    OPEN,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    REVIEW,
)
from dibs.domain.values import exact
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.backlogs.item import Pointer, Step
    from dibs.backlogs.yaml.frontmatter import Removed
    from dibs.domain.values import Instant

    Values = dict[str, str | tuple[str, ...] | Removed | None]

FOLDER = "_kano/backlog"

WORDS = Words(
    {
        "new": OPEN, "proposed": OPEN, "planned": OPEN, "ready": OPEN, "inprogress": IN_PROGRESS,
        "in progress": IN_PROGRESS, "review": REVIEW, "done": COMPLETE, "blocked": BLOCKED,
        "dropped": DROPPED, "duplicate": DROPPED,
    },
    {
        OPEN: "Ready", IN_PROGRESS: "InProgress", REVIEW: "Review", COMPLETE: "Done",
        BLOCKED: "Blocked", FAILED: "Blocked", DROPPED: "Dropped",
    },
)  # fmt: skip

SECTIONS = ("Context", "Goal", "Approach", "Acceptance Criteria", "Risks")
"""The ready gate: these sections must not be empty before the work starts."""

RECORD = (
    "assignee_agent", "assignee_tier", "assigned_at", "lease_ttl", "lease_expires_at",
    "handoff_reason",
)  # fmt: skip
"""The assignment record: the keys that have a value while somebody holds the item."""

OWNER = "dibs_owner"
"""Who owned the item before somebody held it: owner again when it is free and open."""

CONTAINERS = frozenset(("epic", "feature", "initiative", "theme", "milestone"))
"""Types that hold other items: nobody works on them."""


class Kano(BaseDialect):
    """The dialect of kano's backlogs."""

    channel = "kano"
    words = WORDS

    def __init__(self, folder: str = FOLDER, offer: tuple[str, ...] = ()) -> None:
        """`offer`: the types that are offered; by default all that are no containers."""
        self.folder = folder
        self.offer = frozenset(type_.casefold() for type_ in offer)

    def named(self, text: str) -> tuple[str, str]:
        """`ID`, or `ID@UID` with the beginning of the uid, where several items have the id."""
        id_, _, uid = text.partition("@")
        return id_.strip(), uid.strip().casefold()

    def gate(self, document: Document) -> str:
        type_ = document.text("type").strip()
        offered = (
            type_.casefold() in self.offer if self.offer else type_.casefold() not in CONTAINERS
        )
        if type_ and not offered:
            return f"it is of the type {type_}, which is not offered"
        return gate_of(document)

    def paths(self, root: str) -> Iterator[str]:
        return (path for path, why in self.found(root) if not why)

    def skipped(self, root: str) -> Iterator[tuple[str, str]]:
        return ((path, why) for path, why in self.found(root) if why)

    def found(self, root: str) -> Iterator[tuple[str, str]]:
        """Every file, and why it is not read, if it is not."""
        closed: list[OSError] = []
        for folder, folders, names in os.walk(join(root, self.folder), onerror=closed.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = relpath(folder, root)
            if "items" not in inside.split(os.sep):
                continue
            for name in sorted(name for name in names if name.endswith(".md")):
                index = name.endswith(".index.md") or name == "README.md"
                yield join(inside, name), "it is an index, and no item" if index else ""
        yield from ((relpath(one.filename, root), "") for one in closed)  # reported when it is read

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        document = Document(data)
        problems: list[Problem] = []
        id_ = id_of(document, path, problems)
        uid, said = document.text("uid").strip(), document.text("state").strip()
        title, wrong = title_of(title_in(document), id_)
        if wrong:
            problems.append(Problem(path, wrong, f"it is called {title}"))
        state = self.words.state(said)
        if state is None:
            problems.append(Problem(path, f"its state is {said!r}", "it cannot be started"))
        pointer = pointer_in(document, path, problems)
        item = Item(
            channel=self.channel,
            ref=uid or id_,
            id=id_,
            path=path,
            title=title,
            state=state or OPEN,
            said=said,
            priority=priority_of(document.text("priority")),
            uid=uid if is_uuid(uid) else "",
            owner=document.text("owner").strip(),
            after=document.nested("links", "blocked_by") or document.texts("blocked_by"),
            scope=document.texts("scope"),
            constraints=known_actions(document.texts("constraints"), path, problems),
            gate=self.gate(document) if state else f"its state {said!r} is none of kano's",
            by_name=not document.text("id").strip(),
            pointer=pointer,
            expires=instant_of(document.text("lease_expires_at")) if pointer else None,
        )
        return [item], problems

    def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        document = Document(data)
        record = records.get(document.text("uid").strip()) or next(iter(records.values()))
        values = self.values(document, record)
        steps = [step for step in record.steps if not (step.redacted or is_told(step, data))]
        lasting = {key: value for key, value in values.items() if key != "lease_expires_at"}
        if document.has("updated") and (steps or document.with_values(lasting) != data):
            values["updated"] = Raw(day_of(record.now))  # a renewal is no change
        changed = document.with_values(values)
        for step in steps:
            word = self.words.word_for(record.task.but(state=step.state), document.text("state"))
            line = self.told(step, word)
            changed = Document(changed).with_line("Worklog", line)
        for step in record.steps:
            changed = without_text(step, changed) if step.redacted else changed
        return changed

    def values(self, document: Document, record: Record) -> Values:
        """The board's values under kano's field names."""
        task, lease, holder = record.task, record.task.lease, record.holder
        values: Values = {"dibs": str(record.pointer)} if task.token.number else {}
        if document.has("state"):
            values["state"] = self.words.word_for(task, document.text("state"))
        if not task.token.number:
            return values
        values |= owner_values(document, record)
        stated: Values = {}
        if lease is not None and holder is not None:
            stated = {
                "assignee_agent": holder.name,
                "assignee_tier": Raw(str(holder.tier)),
                "assigned_at": Raw(stamp(lease.acquired)),
                "lease_ttl": exact(lease.ttl),
                "lease_expires_at": Raw(stamp(record.expires or lease.expires)),
            }
            if lease.reason:
                stated["handoff_reason"] = lease.reason
        for key in RECORD:
            values[key] = stated[key] if key in stated else document.emptied(key)
        for key, allowed in (("scope", task.scope), ("constraints", task.terms.constraints)):
            if allowed or document.has(key):
                values[key] = allowed
        return values

    def told(self, step: Step, word: str) -> str:
        """One line of the Worklog, with the file's own word for the state."""
        said = f": {in_one_line(step.text)}" if step.text else ""
        agent, model = in_brackets(step.actor), in_brackets(step.model) or "unknown"
        return (
            f"{minute_of(step.at)} [agent={agent}] [model={model}] "
            f"{word}: {step.verb.replace('_', ' ')}{said} {step.mark}"
        )


def owner_values(document: Document, record: Record) -> Values:
    """The holder owns it, then who brought it to its state; open and free it is as it was before."""
    before, owner = document.text(OWNER).strip(), document.text("owner").strip()
    if record.task.lease is None and record.task.state == OPEN:
        return {"owner": before or document.emptied("owner"), OWNER: REMOVED}
    pointer = pointer_in(document, "", [])
    if not before and owner not in ("", record.owner) and (pointer is None or not pointer.held):
        before = owner
    kept = before if before and before != record.owner else REMOVED
    return {"owner": record.owner or document.emptied("owner"), OWNER: kept}


def in_brackets(name: str) -> str:
    """A name without brackets and line breaks; a variable may contain anything."""
    return in_one_line(name).replace("[", "(").replace("]", ")")


def is_told(step: Step, data: bytes) -> bool:
    """Whether the log contains the step."""
    lines = data.split(b"\n") if step.mark.encode() in data else []
    return any(tells(line, step) for line in lines)


def tells(line: bytes, step: Step) -> bool:
    """Compares the time too: the board of another clone may produce the same mark."""
    minute, mark = minute_of(step.at).encode(), step.mark.encode()
    return line.startswith(minute) and line.rstrip().endswith(mark)


def without_text(step: Step, data: bytes) -> bytes:
    """The log with the text of a redacted step removed."""
    lines = data.split(b"\n")
    for place, line in enumerate(lines):
        if tells(line, step):
            told = f": {step.verb.replace('_', ' ')}".encode()
            start = line.find(told, line.find(b"] ", line.find(b"[model=")))
            if start >= 0:
                rest = line[len(line.rstrip()) :]
                head = line[: start + len(told)]
                lines[place] = head + f": redacted {step.mark}".encode() + rest
    return b"\n".join(lines)


def gate_of(document: Document) -> str:
    empty = [title for title in SECTIONS if not document.section(title)]
    return (
        f"the ready gate: {', '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty"
        if empty
        else ""
    )


# Shared with other dialects.


def id_of(document: Document, path: str, problems: list[Problem]) -> str:
    """The id from the frontmatter; else from the file name."""
    stated, name = document.text("id").strip(), basename(path).removesuffix(".md")
    if not stated:
        named = name.partition("_")[0].strip()
        problems.append(Problem(path, "it has no id", f"it is known as {named}, by its name"))
        return named
    behind = name[len(stated) :][:1]
    if not name.casefold().startswith(stated.casefold()) or behind.isalnum():
        problems.append(Problem(path, f"its id is {stated}", "the id decides, not the name"))
    return stated


def title_in(document: Document) -> str:
    """The title as stated; `title: Fix: it` is invalid YAML, and is taken literally."""
    try:
        return document.text("title")
    except Unreadable:
        line = document.data.split(b"\n")[document.line("title") - 1]
        return line.decode("utf-8", "replace").partition(":")[2].strip()


def pointer_in(document: Document, path: str, problems: list[Problem]) -> Pointer | None:
    text = document.text("dibs").strip()
    pointer = pointer_of(text) if text else None
    if text and pointer is None:
        problems.append(Problem(path, f"its key dibs is {text[:80]!r}", "it is not followed"))
    return pointer


def known_actions(stated: tuple[str, ...], path: str, problems: list[Problem]) -> tuple[str, ...]:
    known = tuple(action for action in stated if action in ACTIONS)
    if known != stated:
        problems.append(
            Problem(
                path, f"its constraints are {list(stated)}", f"of these, {list(known)} are known"
            )
        )
    return known


PRIORITIES = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "normal": 2, "low": 3}


def priority_of(text: str) -> int:
    """`P0` to `P4`, or a word."""
    if text.strip().casefold() in PRIORITIES:
        return PRIORITIES[text.strip().casefold()]
    number = text.strip().removeprefix("P").removeprefix("p")
    if number.isascii() and number.isdigit() and len(number) < 3 and int(number) <= PRIORITY_MAX:
        return int(number)
    return PRIORITY_DEFAULT


def is_uuid(text: str) -> bool:
    digits = text.replace("-", "")
    return (
        len(text) == 36 and len(digits) == 32 and all(d in "0123456789abcdefABCDEF" for d in digits)
    )
