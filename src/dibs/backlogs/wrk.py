"""WRK: items below `.claude/work-queue/**/WRK-*.md`, locked by `locked_by` and `locked_at`.

The folder is a view; `status` decides. Both lock fields are `""` while the item is free, never removed.
"""

from __future__ import annotations

import os
from os.path import dirname, join, relpath

from dibs.backlogs.dialect import Plain
from dibs.backlogs.frontmatter import Document
from dibs.backlogs.item import UNBOUND, Item, Lock, Problem, Record
from dibs.backlogs.kano import id_of, known_actions, pointer_in, priority_of, title_in
from dibs.backlogs.words import Words, instant_of, said_yes, stamp, title_of, until
from dibs.core.instants import HOUR, MINUTE, Duration
from dibs.core.model import BLOCKED, COMPLETE, DROPPED, FAILED, IN_PROGRESS, OPEN, REVIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.backlogs.item import Pointer
    from dibs.core.instants import Instant

    Values = dict[str, str | tuple[str, ...] | None]

FOLDER = ".claude/work-queue"
SESSIONS = (
    ".claude/state/session-state.yaml",
    ".claude/session-state.yaml",
    ".claude/work-queue/session-state.yaml",
    "session-state.yaml",
)
"""Where the list of running sessions is looked for."""

STALE = Duration(2 * HOUR)
"""A lock that is older is released; exactly so old is not older."""

SKEW = Duration(5 * MINUTE)
"""How far ahead another machine's clock may be before it is reported."""

WORDS = Words(
    {
        "pending": OPEN, "ready": OPEN, "queued": OPEN, "working": IN_PROGRESS,
        "in_progress": IN_PROGRESS, "in-progress": IN_PROGRESS, "blocked": BLOCKED,
        "review": REVIEW, "done": COMPLETE, "complete": COMPLETE, "completed": COMPLETE,
        "archived": COMPLETE, "failed": FAILED, "cancelled": DROPPED, "dropped": DROPPED,
    },
    {
        OPEN: "pending", IN_PROGRESS: "working", BLOCKED: "blocked", REVIEW: "review",
        COMPLETE: "done", FAILED: "failed", DROPPED: "cancelled",
    },
)  # fmt: skip

PRIORITIES = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "normal": 2, "low": 3}
FOLDERS = {"archive": "archived"}
"""Folders whose name is not the status that it shows."""


class Wrk(Plain):
    """The dialect of WRK items. `sessions`: those that run, if a list of several says so."""

    channel = "wrk"
    words = WORDS

    def __init__(self, folder: str = FOLDER, sessions: frozenset[str] = frozenset()) -> None:
        self.folder = folder
        self.sessions = sessions

    @property
    def knows_sessions(self) -> bool:
        """A list of one session may be that of whoever wrote it last: only several are a list."""
        return len(self.sessions) > 1

    def paths(self, root: str) -> Iterator[str]:
        for folder, folders, names in os.walk(join(root, self.folder)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.startswith("WRK-") and name.endswith(".md"):
                    yield join(relpath(folder, root), name)

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        document = Document(data)
        problems: list[Problem] = []
        id_, said = id_of(document, path, problems), document.text("status").strip()
        title, wrong = title_of(title_in(document), id_)
        if wrong:
            problems.append(Problem(path, wrong, f"it is called {title}"))
        state = self.words.state(said)
        self.compare_with_folder(path, said, problems)
        pointer = pointer_in(document, path, problems)
        since = instant_of(document.text("locked_at"))
        item = Item(
            channel=self.channel,
            ref=id_,
            id=id_,
            path=path,
            title=title,
            state=state or OPEN,
            said=said,
            priority=PRIORITIES.get(
                document.text("priority").casefold(), priority_of(document.text("priority"))
            ),
            owner=document.text("locked_by").strip(),
            after=document.texts("blocked_by"),
            scope=document.texts("scope"),
            constraints=known_actions(document.texts("constraints"), path, problems),
            gate=gate_of(document) if state else f"its status {said!r} is unknown",
            lock=self.lock(document, pointer, path, now, problems),
            pointer=pointer,
            expires=until(since, pointer.ttl) if pointer else None,
        )
        return [item], problems

    def compare_with_folder(self, path: str, said: str, problems: list[Problem]) -> None:
        for folder in dirname(path).split(os.sep):
            shows = self.words.state(FOLDERS.get(folder, folder))
            if shows is not None and shows != self.words.state(said):
                what = f"it lies in {folder}, and its status is {said!r}"
                problems.append(Problem(path, what, "the status decides"))

    def lock(
        self,
        document: Document,
        pointer: Pointer | None,
        path: str,
        now: Instant,
        problems: list[Problem],
    ) -> Lock | None:
        """Who has the item by the file alone. What makes no sense counts as held, and is reported."""
        holder, at = document.text("locked_by").strip(), document.text("locked_at").strip()
        if not holder or (pointer is not None and pointer.held and holder in names_of(pointer)):
            return None
        since = instant_of(at)
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
        """Another tool has a lock there: only who begins a lease against it takes it away."""
        return self.lock(document, pointer_in(document, "", []), "", now, []) is not None


def names_of(pointer: Pointer) -> tuple[str, ...]:
    """How `locked_by` may name a holder: by the session, or, where there is none, by the actor."""
    named = pointer.session.isascii() and pointer.session not in ("*", UNBOUND)
    return (pointer.session, pointer.actor) if named else (pointer.actor,)


def gate_of(document: Document) -> str:
    approved = document.text("plan_approved").strip()
    if not document.has("plan_approved") or said_yes(approved):
        return ""
    return f"the plan gate: plan_approved is {approved or 'empty'}"


def running_sessions(root: str, stated: str | None = None) -> frozenset[str]:
    """Those that the list of sessions names, where there is one."""
    for path in (stated,) if stated else SESSIONS:
        try:
            with open(join(root, path), encoding="utf-8", errors="replace") as file:
                return sessions_in(file.read(1 << 20))
        except OSError:
            continue
    return frozenset()


def sessions_in(text: str) -> frozenset[str]:
    """The ids of the sessions that a `session-state.yaml` lists."""
    found: set[str] = set()
    inside = -1
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        entry = bare.removeprefix("- ").strip()
        name, colon, value = entry.partition(":")
        if name.strip() in ("session_id", "id") and value.strip():
            found.add(plain(value))
        elif name.strip() in ("sessions", "active_sessions") and not value.strip():
            inside = indent
            continue
        elif inside >= 0 and (indent > inside or bare.startswith("- ")):
            if bare.startswith("- ") and not colon:
                found.add(plain(entry))
            elif not bare.startswith("- ") and not value.strip():
                found.add(plain(name))
        if indent <= inside and not bare.startswith("- "):
            inside = -1
    return frozenset(found - {""})


def plain(text: str) -> str:
    return text.partition(" #")[0].strip().strip("\"'")
