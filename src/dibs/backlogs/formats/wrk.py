"""WRK: items below `.claude/work-queue/**/WRK-*.md`, locked by `locked_by` and `locked_at`.

`status` decides, except in the folders of finished work (`done`, `archive`): what is there is final, whatever
word was left in it. Both lock fields are `""` while the item is free, never removed.
"""

from __future__ import annotations

import os
from os.path import basename, dirname, join, relpath

from dibs.backlogs import files
from dibs.backlogs.formats.base import BaseDialect
from dibs.backlogs.formats.kano import id_of, known_actions, pointer_in, priority_of, title_in
from dibs.backlogs.formats.words import Words, instant_of, said_yes, stamp, title_of, until
from dibs.backlogs.item import PERSON, UNBOUND, Item, Lock, Problem, Record
from dibs.backlogs.yaml.frontmatter import Document
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    FINAL,
    IN_PROGRESS,
    OPEN,
    REVIEW,
)
from dibs.domain.values import HOUR, MINUTE, SECOND, Duration, Instant
from dibs.safe_files import Unreadable, json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.backlogs.item import Pointer
    from dibs.domain.model import State

    Values = dict[str, str | tuple[str, ...] | None]

FOLDER = ".claude/work-queue"
SESSIONS = (
    ".claude/state/session-state.yaml",
    ".claude/session-state.yaml",
    ".claude/work-queue/session-state.yaml",
    "session-state.yaml",
)
"""Where to look for the list of running sessions."""

LISTS = ("sessions", "active_sessions", "active")
IDS = ("session_id", "id")
DEEPEST = 12
"""Nesting limit of such a list."""

STALE = Duration(2 * HOUR)
"""Age after which a lock is stale; exactly this age is not."""

SKEW = Duration(5 * MINUTE)
"""Tolerated clock skew of another machine; more is reported."""

WORDS = Words(
    {
        "pending": OPEN, "ready": OPEN, "queued": OPEN, "working": IN_PROGRESS,
        "in_progress": IN_PROGRESS, "in-progress": IN_PROGRESS, "blocked": BLOCKED,
        "review": REVIEW, "done": COMPLETE, "complete": COMPLETE, "completed": COMPLETE,
        "archived": COMPLETE, "closed": COMPLETE, "resolved": COMPLETE, "resolved-*": COMPLETE,
        "failed": FAILED, "cancelled": DROPPED, "dropped": DROPPED, "superseded": DROPPED,
    },
    {
        OPEN: "pending", IN_PROGRESS: "working", BLOCKED: "blocked", REVIEW: "review",
        COMPLETE: "done", FAILED: "failed", DROPPED: "cancelled",
    },
)  # fmt: skip

FOLDERS = {"archive": "archived"}
"""Folders whose name differs from the status that they show."""

DATES = ("updated_at", "updated", "completed_at", "archived_at", "created_at", "created")
"""When an item was changed last, of two copies; the first that is stated counts."""


class Wrk(BaseDialect):
    """The dialect of WRK items. `sessions`: the running ones, if the list has several."""

    channel = "wrk"
    words = WORDS

    def __init__(self, folder: str = FOLDER, sessions: frozenset[str] = frozenset()) -> None:
        self.folder = folder
        self.sessions = sessions

    @property
    def knows_sessions(self) -> bool:
        """Only a list of several sessions counts: a single one may just be the last writer."""
        return len(self.sessions) > 1

    def paths(self, root: str) -> Iterator[str]:
        return (path for path in self.found(root) if basename(path).startswith("WRK-"))

    def skipped(self, root: str) -> Iterator[tuple[str, str]]:
        for path in self.found(root):
            if not basename(path).startswith("WRK-"):
                yield path, "its name does not begin with WRK-"

    def found(self, root: str) -> Iterator[str]:
        for folder, folders, names in os.walk(join(root, self.folder)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            yield from (
                join(relpath(folder, root), name) for name in sorted(names) if name.endswith(".md")
            )

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        document = Document(data)
        problems: list[Problem] = []
        id_, said = id_of(document, path, problems), document.text("status").strip()
        title, wrong = title_of(title_in(document), id_)
        if wrong:
            problems.append(Problem(path, wrong, f"it is called {title}"))
        pointer = pointer_in(document, path, problems)
        said, state = self.state_in(path, said, pointer, problems)
        begin = begin_of(document)
        since = locked_since(document.text("locked_at"))
        lock, owner = self.lock(document, pointer, path, now, problems), document.text("locked_by")
        item = Item(
            channel=self.channel,
            ref=id_,
            id=id_,
            path=path,
            title=title,
            state=state or OPEN,
            said=said,
            priority=priority_of(document.text("priority")),
            owner=owner.strip(),
            after=document.texts("blocked_by"),
            scope=document.texts("scope"),
            constraints=known_actions(document.texts("constraints"), path, problems),
            gate=gate_of(document, now) if state else f"its status {said!r} is unknown",
            lock=lock,
            pointer=pointer,
            expires=until(since, pointer.ttl) if pointer else None,
            gone=lock is None,
            begin=begin,
            dated=next((date for key in DATES if (date := document.text(key).strip())), ""),
        )
        return [item], problems

    def state_in(
        self, path: str, said: str, pointer: Pointer | None, problems: list[Problem]
    ) -> tuple[str, State | None]:
        """The word and the state by status and folder. Where dibs wrote the status, they may differ."""
        state = self.words.state(said)
        for folder in relpath(dirname(path), self.folder).split(os.sep):
            shown = FOLDERS.get(folder, folder)
            shows = self.words.state(shown)
            if shows is None or shows == state or {shows, state} <= set(FINAL):
                continue
            final = shows in FINAL
            if pointer is None:
                what = f"it is in {folder}, and its status is {said!r}"
                choice = "the folder decides" if final else "the status decides"
                problems.append(Problem(path, what, choice))
            if final:
                return shown, shows
        return said, state

    def lock(
        self,
        document: Document,
        pointer: Pointer | None,
        path: str,
        now: Instant,
        problems: list[Problem],
    ) -> Lock | None:
        """The claim that only the file knows. An invalid one counts as held, and is reported."""
        holder, at = document.text("locked_by").strip(), document.text("locked_at").strip()
        if not holder or (pointer is not None and pointer.held and holder in names_of(pointer)):
            return None
        since = locked_since(at)
        if since is None or since > now + SKEW:
            what = (
                f"its lock by {holder} is from {at!r}, which "
                f"{'is no instant' if since is None else 'is still to come: clock skew'}"
            )
            problems.append(
                Problem(path, what, "it counts as held until a person forces it", warns=True)
            )
            return Lock(holder, since, what)
        if now - since > STALE:
            problems.append(
                Problem(
                    path,
                    f"its lock by {holder} is older than two hours",
                    "it is released",
                    warns=True,
                )
            )
            return None
        if self.is_dead(holder):
            what = f"its lock is that of {holder}, which is not among the running sessions"
            problems.append(Problem(path, what, "it is released", warns=True))
            return None
        return Lock(holder, since)

    def is_dead(self, session: str) -> bool:
        return self.knows_sessions and session not in self.sessions

    def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
        document, record = Document(data), next(iter(records.values()))
        return document.with_values(self.values(document, record))

    def values(self, document: Document, record: Record) -> Values:
        task, lease, pointer = record.task, record.task.lease, record.pointer
        values: Values = {"status": self.words.word_for(task, document.text("status"))}
        if lease is not None:
            renewed = (record.expires or lease.expires) - lease.ttl
            values |= {
                "locked_by": names_of(pointer)[0],
                "locked_at": stamp(renewed),  # type: ignore[arg-type]
                "dibs": str(pointer),
            }
        elif task.token.number or document.has("locked_by"):
            if not self.is_locked(document, record.now):
                values |= {"locked_by": "", "locked_at": ""}
            if task.token.number:
                values["dibs"] = str(pointer)
        return values

    def is_locked(self, document: Document, now: Instant) -> bool:
        """Whether another tool holds a lock: only a lease that begins against it removes it."""
        return self.lock(document, pointer_in(document, "", []), "", now, []) is not None


def names_of(pointer: Pointer) -> tuple[str, ...]:
    """How `locked_by` may name a holder: by session or, without one, by actor."""
    named = pointer.session not in ("", PERSON, UNBOUND)
    return (pointer.session, pointer.actor) if named else (pointer.actor,)


def locked_since(text: str) -> Instant | None:
    """Parses a script's lock time: UTC if it has no zone, or seconds from `date +%s`."""
    at = text.strip()
    if len(at) == 10 and at.isascii() and at.isdigit():
        return Instant(int(at) * SECOND)
    read = (instant_of(stated) for stated in (at, f"{at}Z", f"{at}T00:00:00Z"))
    return next((since for since in read if since is not None), None)


def begin_of(document: Document) -> Instant | None:
    """When it may begin, if it says so. A day begins at midnight UTC."""
    return locked_since(document.text("not_before"))


def gate_of(document: Document, now: Instant) -> str:
    begin, stated = begin_of(document), document.text("not_before").strip()
    if stated and begin is None:
        return f"its not_before {stated!r} is no instant"
    if begin is not None and now < begin:
        return f"not before {stamp(begin)}"
    approved = document.text("plan_approved").strip()
    if not document.has("plan_approved") or said_yes(approved):
        return ""
    return f"the plan gate: plan_approved is {approved or 'empty'}"


def running_sessions(root: str, stated: str | None = None) -> frozenset[str]:
    """The sessions in the list, if there is one."""
    for path in (stated,) if stated else SESSIONS:
        try:
            return sessions_in(files.read(root, path).data.decode("utf-8", "replace"))
        except (OSError, Unreadable):
            continue
    return frozenset()


# The list of sessions is whatever the scripts of a repository write: simple YAML, or JSON.


def sessions_in(text: str) -> frozenset[str]:
    """The session ids in a `session-state.yaml`."""
    data = data_in(text)
    found = names_in(data, listed=isinstance(data, list))
    return frozenset(found) - {"", "null", "~"}


def names_in(data: object, *, listed: bool = False) -> Iterator[str]:
    """`session_id` counts anywhere; in a list of sessions also `id`, plain names, and keys."""
    if isinstance(data, list):
        for one in data:
            if isinstance(one, str) and listed:
                yield one
            yield from names_in(one, listed=listed)
    elif isinstance(data, dict):
        own = own_id(data, listed=listed)
        if own:
            yield own
        for key, value in data.items():
            if listed and not own and not own_id(value, listed=True):
                yield str(key)
            inside = key in LISTS or (listed and not own and bool(own_id(value, listed=True)))
            yield from names_in(value, listed=inside)


def own_id(data: object, *, listed: bool) -> str:
    """The id of a mapping that is one session."""
    stated = [data.get(key) for key in IDS[: 2 if listed else 1]] if isinstance(data, dict) else []
    return next((one for one in stated if isinstance(one, str)), "")


def data_in(text: str) -> object:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json(text)
        except Unreadable:
            return flow(" ".join(text.split()), DEEPEST)
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]
    told = [line for line in lines if line[1] and not line[1].startswith(("#", "---", "..."))]
    return block(told, DEEPEST)


def block(lines: list[tuple[int, str]], deep: int) -> object:
    """Parses lists, mappings and texts by indentation."""
    if not lines or not deep:
        return ""
    indent, first = lines[0]
    dash = is_dash(first)
    groups: list[list[tuple[int, str]]] = []
    for line in lines:
        if not groups or (line[0] <= indent and is_dash(line[1]) == dash):
            groups.append([])
        groups[-1].append(line)
    if dash:
        return [block(undashed(*group), deep - 1) for group in groups]
    if ":" not in first or first[0] in "[{":
        return flow(" ".join(line for _, line in lines), deep)
    return dict(entry(group, deep) for group in groups)


def is_dash(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def undashed(first: tuple[int, str], *rest: tuple[int, str]) -> list[tuple[int, str]]:
    inside = first[1][1:].lstrip()
    own = [(first[0] + len(first[1]) - len(inside), inside)] if inside else []
    return [*own, *rest]


def entry(lines: list[tuple[int, str]], deep: int) -> tuple[str, object]:
    name, _, value = f"{lines[0][1]} ".partition(": ")
    if value.strip() and not value.startswith("#"):
        return plain(name), flow(" ".join([value, *(line for _, line in lines[1:])]), deep)
    return plain(name), block(lines[1:], deep - 1)


def flow(text: str, deep: int) -> object:
    """Parses `[a, b]`, `{a: 1, b: 2}`, or a text."""
    text = text.strip()
    if text[:1] not in ("[", "{") or not deep:
        return plain(text)
    parts = parted(text[1:])
    if text[0] == "[":
        return [flow(part, deep - 1) for part in parts]
    pairs = [f"{part} ".partition(": ") for part in parts]
    return {plain(name): flow(value, deep - 1) for name, _, value in pairs}


def parted(text: str) -> list[str]:
    """Splits at commas up to the closing bracket, ignoring both inside quotes."""
    parts, inside, quote = [""], 0, ""
    for sign in text:
        if quote or sign in "\"'":
            quote = "" if sign == quote else quote or sign
        elif sign in "[{":
            inside += 1
        elif sign in "]}":
            inside -= 1
        if inside < 0:
            break
        if sign == "," and not inside and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def plain(text: str) -> str:
    return text.partition(" #")[0].strip().strip("\"'")
