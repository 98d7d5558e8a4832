"""The values of a backlog: an item as read from its file, and a record to be written to it.

A dialect (`kano`, `wrk`, `workgraph`, `backlog_md`) handles one file format. It parses bytes into items,
and
merges records into bytes; it opens no files.
"""

from __future__ import annotations

from dibs.domain.checks import PLACEHOLDERS
from dibs.domain.model import IN_PROGRESS, PRIORITY_DEFAULT, Actor, Task, Token
from dibs.domain.values import Duration, Instant, Value, exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Protocol

    from dibs.backlogs.formats.words import Words
    from dibs.domain.model import State

PERSON, UNBOUND = "*", "-"
"""Placeholders for a session: of a person, who has none, and of an unbound assignee."""


class Pointer(Value):
    """The key `dibs` of an item: `BOARD TOKEN`, and while it is held `ACTOR SESSION TTL`."""

    board: str
    token: Token
    actor: str = ""
    session: str = ""
    ttl: Duration = Duration(0)

    @property
    def held(self) -> bool:
        return bool(self.actor)

    def __str__(self) -> str:
        held = f" {self.actor} {self.session} {exact(self.ttl)}" if self.held else ""
        return f"{self.board} {self.token}{held}"


class Lock(Value):
    """A claim of another tool, which only the file knows. `problem`: why it is invalid."""

    holder: str
    since: Instant | None = None
    problem: str = ""


class Problem(Value):
    """Something invalid in a file, and how it was handled."""

    path: str
    what: str
    choice: str
    line: int = 0
    warns: bool = False
    """Whether it matters to somebody about to start the work."""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.what}; {self.choice}"


class Item(Value):
    """One unit of work as read from its file."""

    channel: str
    ref: str
    """Its permanent identity: the origin of its task."""
    id: str
    """Its name for people: the key of its task, if valid as one."""
    path: str
    title: str
    state: State
    said: str
    """The file's own word for its state."""
    priority: int = PRIORITY_DEFAULT
    uid: str = ""
    owner: str = ""
    """Who has it, as text, not necessarily an actor."""
    after: tuple[str, ...] = ()
    """The ids of its dependencies."""
    scope: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    gate: str = ""
    """Why it cannot be started, as text; empty if it can."""
    lock: Lock | None = None
    pointer: Pointer | None = None
    expires: Instant | None = None
    """When the lease of the pointer expires, according to the file."""
    line: int = 0
    problems: tuple[Problem, ...] = ()
    gone: bool = False
    """Whether its holder stopped working, by the rule of its own tool."""
    begin: Instant | None = None
    """When it may begin, if it says so; until then it has a gate."""
    dated: str = ""
    """When it was changed last, in its own words; of two copies the later one counts."""
    order: float | None = None
    """Its place among items of one priority, if people have put them in order."""
    by_name: bool = False
    """Whether its id is only in the file's name."""

    @property
    def refs(self) -> tuple[str, ...]:
        """The refs that its task may have: an item may have had no uid at first."""
        return refs_of(self.ref, self.id)

    @property
    def is_claimed(self) -> bool:
        """Whether somebody works on it according to the file alone, without a lease on a board."""
        by_hand = self.pointer is None or not self.pointer.held
        named = self.owner != "" and self.owner.casefold() not in PLACEHOLDERS
        return self.state == IN_PROGRESS and named and by_hand


APART = "#"
"""Between id and title in the ref of an item whose id another item has too."""


def ref_apart(id_: str, title: str) -> str:
    """The ref of the second item with an id: two titles are two units of work."""
    words = "".join(c if c.isalnum() else " " for c in title.casefold()).split()
    return f"{id_}{APART}{'-'.join(words)[:60]}"


def refs_of(ref: str, id_: str) -> tuple[str, ...]:
    return (ref,) if ref == id_ or ref.startswith(id_ + APART) else (ref, id_)


class Step(Value):
    """A change of state, as an entry in an item's own log."""

    seq: int
    at: Instant
    actor: str
    verb: str
    state: State
    token: Token
    model: str = ""
    text: str = ""
    redacted: bool = False
    """Its text was redacted on the board, so it is removed from the log too."""

    @property
    def mark(self) -> str:
        """Identifies a step in a log, so that it is written once."""
        return f"(dibs {self.token} #{self.seq})"


class Record(Value):
    """The board's state of a task, to be written to its file."""

    task: Task
    board: str
    now: Instant
    holder: Actor | None = None
    steps: tuple[Step, ...] = ()
    """The latest changes of state, oldest first, including those already in the file."""
    owner: str = ""
    """Who holds it, or brought it to its state."""
    expires: Instant | None = None
    """The end of the lease to write, if not the true one: the file may lag behind."""

    @property
    def pointer(self) -> Pointer:
        lease, token = self.task.lease, self.task.token
        if lease is None or self.holder is None:
            return Pointer(self.board, token)
        session = UNBOUND if lease.session is None else lease.session or PERSON
        return Pointer(self.board, token, self.holder.name, session, lease.ttl)


if TYPE_CHECKING:

    class Dialect(Protocol):
        """One backlog format."""

        channel: str
        words: Words
        heals: bool
        """Whether the first sync corrects claims of the dead in the file too."""
        largest: int
        """Size limit of a file in bytes."""

        single: bool
        """Whether all items are in one file."""

        def folded(self, id_: str) -> str:
            """The id without what is cosmetic in it."""
            ...

        def named(self, text: str) -> tuple[str, str]:
            """The id in a reference to another item, and how the uid of that item begins, if stated."""
            ...

        def skipped(self, root: str) -> Iterator[tuple[str, str]]:
            """Files of the backlog that are not read, and why."""
            ...

        @property
        def knows_sessions(self) -> bool:
            """Whether it has a list of running sessions."""
            ...

        def alone(self, root: str) -> AbstractContextManager[object]:
            """The lock of the tool that owns the files, if it has one; held while they are written."""
            ...

        def is_dead(self, session: str) -> bool:
            """Whether a session has ended, according to that list."""
            ...

        def paths(self, root: str) -> Iterator[str]:
            """The files of such a backlog below `root`, relative to it."""
            ...

        def read(
            self, path: str, data: bytes, now: Instant, *, strict: bool = False
        ) -> tuple[list[Item], list[Problem]]:
            """The items of a file. Raises `Unreadable` if none is readable or, if `strict`, if one is not."""
            ...

        def read_one(
            self, path: str, data: bytes, now: Instant, ref: str
        ) -> tuple[list[Item], list[Problem]]:
            """The item with this ref, perhaps with others: a large file need not be parsed whole."""
            ...

        def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
            """The file with the records, by the refs of its items; every other byte stays."""
            ...
