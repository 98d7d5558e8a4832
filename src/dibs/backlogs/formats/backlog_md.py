"""Backlog.md: a folder with `config.yml`, and one Markdown file per task, edited in place.

What is in `completed` is complete; an id whose file is in `archive/tasks` is dropped, and the tool may issue it
again: then the file in `tasks` is the one that counts. Leading zeros and case of an id mean nothing.
"""

from __future__ import annotations

import os
from math import isfinite
from os.path import basename, isfile, join, relpath

from dibs.backlogs import files
from dibs.backlogs.formats.base import BaseDialect
from dibs.backlogs.formats.kano import pointer_in
from dibs.backlogs.formats.words import Words, day_of, instant_of, minute_of, stamp, title_of
from dibs.backlogs.item import UNBOUND, Item, Problem, Record
from dibs.backlogs.yaml.frontmatter import REMOVED, Document, Raw
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    FINAL,
    IN_PROGRESS,
    OPEN,
    PRIORITY_DEFAULT,
    REVIEW,
)
from dibs.domain.values import Value
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from dibs.backlogs.yaml.frontmatter import Removed
    from dibs.domain.model import State, Task
    from dibs.domain.values import Instant

    Values = dict[str, str | tuple[str, ...] | Removed | None]

FOLDER = "backlog"
CONFIG = "config.yml"
TASKS, COMPLETED, ARCHIVE = "tasks", "completed", "archive/tasks"
FOLDERS = (TASKS, COMPLETED, ARCHIVE)
SHOWS = {COMPLETED: "Completed", ARCHIVE: "Archived"}
"""The status assumed in a folder of finished work: the tool leaves the word as it was, perhaps an old one."""
STATE = "dibs_state"
"""The state, where the backlog has no status for it."""
OURS = "dibs_assignee"
"""The assignee that dibs wrote; `-`: nobody, the holder was an assignee before."""
LARGEST = 1024 * 1024
STATUSES = ("To Do", "In Progress", "Done")
"""The default statuses of a new backlog."""

NAMED: dict[str, State] = {
    "progress": IN_PROGRESS, "doing": IN_PROGRESS, "review": REVIEW, "block": BLOCKED,
    "fail": FAILED, "done": COMPLETE, "complete": COMPLETE,
}  # fmt: skip
"""Meaning of a status between the first and the last, if its name contains this; else it is open."""
UNWANTED = ("cancel", "drop", "abandon", "wont", "won't", "duplicate", "reject")
"""Parts of status names that mean dropped, at any position of the list."""

NEAREST: dict[State, tuple[State, ...]] = {
    OPEN: (),
    IN_PROGRESS: (OPEN,),
    REVIEW: (IN_PROGRESS, OPEN),
    BLOCKED: (OPEN,),
    FAILED: (BLOCKED, OPEN),
    COMPLETE: (OPEN,),
    DROPPED: (COMPLETE, OPEN),  # nobody who reads only the file should start it
}
"""For a state without a status of its own: the first of these states that has one is written."""

PRIORITIES = {"high": 1, "medium": 2, "low": 3}


def words_of(statuses: tuple[str, ...]) -> Words:
    """Maps a backlog's statuses, in order: the first is open, the last is complete."""
    means: dict[str, State] = {}
    last = len(statuses) - 1
    for place, status in enumerate(statuses):
        means.setdefault(status.casefold(), meaning(status.casefold(), place, last))
    by_state: dict[State, str] = {}
    for status in statuses:
        by_state.setdefault(means[status.casefold()], status)
    if COMPLETE in by_state:
        by_state[COMPLETE] = [s for s in statuses if means[s.casefold()] == COMPLETE][-1]
    by_state.setdefault(OPEN, statuses[0])
    writes = {
        state: next(by_state[one] for one in (state, *nearest) if one in by_state)
        for state, nearest in NEAREST.items()
    }
    finished = {SHOWS[ARCHIVE].casefold(): DROPPED, SHOWS[COMPLETED].casefold(): COMPLETE}
    return Words(finished | means, writes)


def meaning(status: str, place: int, last: int) -> State:
    if place == 0:
        return OPEN
    if any(part in status for part in UNWANTED):
        return DROPPED
    if place == last:
        return COMPLETE
    return next((state for part, state in NAMED.items() if part in status), OPEN)


class BacklogMd(BaseDialect):
    """The dialect of Backlog.md. `wrong`: why the default statuses are used, if they are."""

    channel = "backlog.md"

    def __init__(
        self, folder: str = FOLDER, statuses: tuple[str, ...] = STATUSES, wrong: str = ""
    ) -> None:
        self.folder, self.words, self.wrong = folder, words_of(statuses), wrong

    @classmethod
    def at(cls, root: str, folder: str = FOLDER, otherwise: str = "") -> Self:
        """The dialect with the statuses from its `config.yml`, or from the one at the root."""
        config = join(folder, CONFIG)
        if otherwise and not isfile(join(root, config)):
            config = otherwise
        try:
            return cls(folder, statuses_in(files.read(root, config, LARGEST).data))
        except (OSError, Unreadable) as error:
            return cls(folder, STATUSES, f"{config} cannot be read: {error}")

    def folded(self, id_: str) -> str:
        """`task-007` is `TASK-7`."""
        prefix, dash, number = id_.casefold().rpartition("-")
        return prefix + dash + ".".join(part.lstrip("0") or "0" for part in number.split("."))

    def paths(self, root: str) -> Iterator[str]:
        return (path for path, why in self.found(root) if not why)

    def skipped(self, root: str) -> Iterator[tuple[str, str]]:
        return ((path, why) for path, why in self.found(root) if why)

    def found(self, root: str) -> Iterator[tuple[str, str]]:
        """Every file, and why it is not read, if it is not."""
        seen: set[str] = set()
        for inner in FOLDERS:
            folder = join(self.folder, *inner.split("/"))
            for name in names_in(join(root, folder)):
                id_ = self.folded(named_id(name))
                again = inner == ARCHIVE and id_ in seen
                yield (
                    join(folder, name),
                    "it is archived, and its id was given again" if again else "",
                )
                seen |= set() if inner == ARCHIVE else {id_}
            for path in below(join(root, folder)):
                yield (
                    join(folder, path),
                    f"it is in a subfolder of {inner}, where the tool has no tasks",
                )

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        document = Document(quoted(data).data)
        problems: list[Problem] = []
        id_ = id_of(document, path, problems)
        title, wrong = title_of(document.text("title"), id_)
        if wrong:
            problems.append(Problem(path, wrong, f"it is called {title}"))
        said, state, gate = self.state_of(document, path)
        if gate:
            problems.append(Problem(path, gate, "it cannot be started"))
        pointer = pointer_in(document, path, problems)
        item = Item(
            channel=self.channel,
            ref=id_,
            id=id_,
            path=path,
            title=title,
            state=state,
            said=said,
            priority=PRIORITIES.get(document.text("priority").strip().casefold(), PRIORITY_DEFAULT),
            owner=", ".join(assignees(document)),
            after=tuple(full_id(one, id_) for one in document.texts("dependencies")),
            scope=document.texts("scope"),
            gate=gate,
            pointer=pointer,
            expires=instant_of(document.text("lease_expires_at")) if pointer else None,
            order=number_of(document.text("ordinal")),
        )
        return [item], problems

    def state_of(self, document: Document, path: str) -> tuple[str, State, str]:
        """The status word, its state, and why the item cannot be started if the word is unknown."""
        said = document.text("status").strip()
        state = self.words.state(said)
        shown = self.folder_shows(path)
        if shown:
            return (said, COMPLETE, "") if state == COMPLETE else (shown, self.means(shown), "")
        kept = document.text(STATE).strip()
        if state is not None and kept in NEAREST and self.words.shown(kept) == state:
            return said, kept, ""
        if state is None and said:
            why = self.wrong or f"{self.folder}/{CONFIG} has others"
            return said, OPEN, f"its status {said!r} is unknown: {why}"
        return said, state or OPEN, ""

    def means(self, word: str) -> State:
        return self.words.state(word) or OPEN

    def folder_shows(self, path: str) -> str:
        """The status that its folder shows, if that is one of finished work."""
        for inner, word in SHOWS.items():
            if path.startswith(join(self.folder, *inner.split("/")) + os.sep):
                return word
        return ""

    def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        source, record = quoted(data), next(iter(records.values()))
        document = Document(source.data)
        values = self.shown(document, path, record)
        if document.with_values(values) != source.data:
            values["updated_date"] = dated(document, record.now)
        values = pointer_values(record) | values | lease_values(record)
        values |= ours_values(document, path, record)
        return source.undone(document.with_values(values))

    def shown(self, document: Document, path: str, record: Record) -> Values:
        """The fields by which the tool itself shows state and holder."""
        values: Values = {}
        task, said = record.task, document.text("status").strip()
        if not self.folder_shows(path):
            word = self.words.word_for(task, said)
            values["status"] = REMOVED if is_back(document, "status", task) else word
            told = self.words.shown(task.state) == task.state
            values[STATE] = REMOVED if told else task.state
        before, (after, _) = document.texts("assignee"), assigned(document, path, record)
        if after != before:
            added = not after and document.is_below("assignee", "dibs")
            values["assignee"] = REMOVED if added else after
        return values


class Quoted(Value):
    """A file whose assignees are valid YAML, and their original line."""

    data: bytes
    line: bytes = b""
    was: bytes = b""

    def undone(self, data: bytes) -> bytes:
        return data.replace(self.line, self.was, 1) if self.line else data


def quoted(data: bytes) -> Quoted:
    """People write `assignee: @ana` or `[@ana]`; the tool accepts it, but it is not valid YAML."""
    start = data.find(b"\nassignee:") + 1
    closing = data.find(b"\n---", 3)
    if not 0 < start < closing:
        return Quoted(data)
    line = data[start:].partition(b"\n")[0].rstrip(b"\r")
    stated = line.removeprefix(b"assignee:").strip()
    several = stated[:1] == b"[" and stated[-1:] == b"]"
    names = stated[1:-1].split(b",") if several else [stated]
    if not any(name.strip()[:1] == b"@" for name in names) or any(
        s in stated for s in (b'"', b"'", b"#")
    ):
        return Quoted(data)
    listed = b", ".join(b'"%s"' % name.strip() for name in names)
    fixed = b"assignee: [%s]" % listed
    return Quoted(data[:start] + fixed + data[start + len(line) :], fixed, line)


# `dibs` is the first key that is added: a key below it was added by dibs, and goes when it has no value.


def pointer_values(record: Record) -> Values:
    return {"dibs": str(record.pointer)} if record.task.token.number else {}


def lease_values(record: Record) -> Values:
    """While a lease exists, when it expires."""
    lease = record.task.lease
    if lease is not None and record.holder is not None:
        return {"lease_expires_at": Raw(stamp(record.expires or lease.expires))}
    return {"lease_expires_at": REMOVED}


def is_back(document: Document, key: str, task: Task) -> bool:
    """Whether a key that dibs added is not needed: the item is open again, as it was without it."""
    return task.state == OPEN and document.is_below(key, "dibs")


# Assignees: those set by people stay, in order; dibs adds one and removes only that one.


def assigned(document: Document, path: str, record: Record) -> tuple[tuple[str, ...], str]:
    """The assignees to write, and which of them dibs wrote."""
    stated, ours = document.texts("assignee"), ours_in(document, path)
    holder, state = holder_of(record), record.task.state
    if not holder and state in FINAL:
        return stated, ""  # who completed it stays named for good
    if not holder:
        return (without(stated, ours), "") if state == OPEN else (stated, ours)
    if holder != ours:
        stated = without(stated, ours)
    if holder not in map(bare, stated):
        return (*stated, f"@{holder}"), holder
    return stated, holder if holder == ours else ""


def ours_in(document: Document, path: str) -> str:
    """The assignee that dibs wrote: the holder, unless `dibs_assignee` says otherwise."""
    said = document.texts(OURS)
    if said:
        return "" if said[0] == UNBOUND else said[0]
    pointer = pointer_in(document, path, [])
    return pointer.actor if pointer is not None else ""


def ours_values(document: Document, path: str, record: Record) -> Values:
    """`dibs_assignee`, only where it differs from the pointer."""
    _, ours = assigned(document, path, record)
    if ours != holder_of(record):
        return {OURS: ours or UNBOUND}
    return {OURS: REMOVED}


def holder_of(record: Record) -> str:
    return record.holder.name if record.task.lease is not None and record.holder else ""


def without(stated: tuple[str, ...], ours: str) -> tuple[str, ...]:
    return tuple(one for one in stated if not ours or one.strip() != f"@{ours}")


def bare(name: str) -> str:
    """The name without the leading `@` of the tool."""
    return name.strip().removeprefix("@")


def assignees(document: Document) -> tuple[str, ...]:
    return tuple(filter(None, map(bare, document.texts("assignee"))))


def dated(document: Document, now: Instant) -> str:
    """In the tool's format: to the minute, or to the day where the file has days."""
    before = document.text("updated_date") or document.text("created_date")
    return day_of(now) if len(before.strip()) == len("2026-11-15") else minute_of(now)


def id_of(document: Document, path: str, problems: list[Problem]) -> str:
    """In upper case, as the tool compares ids; older files have lower case."""
    stated = document.text("id").strip()
    if stated:
        return stated.upper()
    named = named_id(basename(path))
    problems.append(Problem(path, "it has no id", f"it is known as {named}, by its name"))
    return named


def named_id(name: str) -> str:
    """The id in a file name such as `task-12 - Fix login.md`."""
    return name.removesuffix(".md").partition(" - ")[0].strip().upper()


def full_id(stated: str, own: str) -> str:
    """A dependency with its prefix: it may be stated as a bare number."""
    bare = stated.strip().upper()
    return f"{own.rpartition('-')[0]}-{bare}" if bare[:1].isdigit() else bare


def names_in(folder: str) -> list[str]:
    try:
        found = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [name for name in found if is_item(name)]


def is_item(name: str) -> bool:
    return name.endswith(".md") and name[0] != "." and name.casefold() != "readme.md"


def below(folder: str) -> Iterator[str]:
    """Markdown files in subfolders."""
    for inside, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if inside != folder:
            yield from (
                relpath(join(inside, name), folder) for name in sorted(names) if is_item(name)
            )


def number_of(text: str) -> float | None:
    """Its place by hand; None if it has none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def directory_in(root: str, config: str) -> str:
    """The folder that the configuration at the root names."""
    try:
        return (
            document_of(files.read(root, config, LARGEST).data).text("backlog_directory") or FOLDER
        )
    except (OSError, Unreadable):
        return FOLDER


def document_of(data: bytes) -> Document:
    """YAML without the lines around it."""
    return Document(b"---\n" + data.removeprefix(b"---\n").rstrip() + b"\n---\n")


def statuses_in(data: bytes) -> tuple[str, ...]:
    """The statuses listed in `config.yml`, without duplicates; the defaults if there are none."""
    stated = (status.strip() for status in document_of(data).texts("statuses"))
    return tuple(dict.fromkeys(status for status in stated if status)) or STATUSES
