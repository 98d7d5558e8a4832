"""The nouns of a backlog: an item as its file has it, and a record as the board wants it there.

A dialect (`kano`, `wrk`, `workgraph`, `backlog_md`) knows one kind of file. It reads bytes into items,
and puts records into bytes; it opens nothing.
"""

from __future__ import annotations

from dibs.core.checks import PLACEHOLDERS
from dibs.core.instants import Duration, Instant, exact
from dibs.core.model import IN_PROGRESS, PRIORITY_DEFAULT, Actor, Task, Token
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Protocol

    from dibs.backlogs.words import Words
    from dibs.core.model import State

PERSON, UNBOUND = "*", "-"
"""What stands for the session of a person, who has none, and of an assignee who has not come yet."""


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
    """Somebody holds the item by its file alone: another tool wrote that. `problem`: it makes no sense."""

    holder: str
    since: Instant | None = None
    problem: str = ""


class Problem(Value):
    """Something in a file that is not as it should be, and what was made of it."""

    path: str
    what: str
    choice: str
    line: int = 0
    warns: bool = False
    """Whether it matters to who is about to begin the work."""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.what}; {self.choice}"


class Item(Value):
    """One unit of work as its file has it."""

    channel: str
    ref: str
    """What it is known by for ever: the origin of its task."""
    id: str
    """What people call it: the key of its task, if that can be one."""
    path: str
    title: str
    state: State
    said: str
    """The file's own word for its state."""
    priority: int = PRIORITY_DEFAULT
    uid: str = ""
    owner: str = ""
    """Who has it, as text: it need not be an actor."""
    after: tuple[str, ...] = ()
    """The ids of what it waits for."""
    scope: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    gate: str = ""
    """Why it cannot be begun, in words; empty: it can."""
    lock: Lock | None = None
    pointer: Pointer | None = None
    expires: Instant | None = None
    """When the lease that the pointer names ends, as the file states it."""
    line: int = 0
    problems: tuple[Problem, ...] = ()
    gone: bool = False
    """By its tool's own rule whoever has it works on it no more."""

    @property
    def is_claimed(self) -> bool:
        """Somebody is at work on it by the file alone: no lease of a board stands behind that."""
        by_hand = self.pointer is None or not self.pointer.held
        named = self.owner != "" and self.owner.casefold() not in PLACEHOLDERS
        return self.state == IN_PROGRESS and named and by_hand


class Step(Value):
    """A change of state, as it is told in an item's own log."""

    seq: int
    at: Instant
    actor: str
    verb: str
    state: State
    token: Token
    model: str = ""
    text: str = ""
    redacted: bool = False
    """Its text was removed on the board: where it was told, it goes, too."""

    @property
    def mark(self) -> str:
        """By this a step is known again in a log: it is told once."""
        return f"(dibs {self.token} #{self.seq})"


class Record(Value):
    """What the board says of a task, as its file is to show it."""

    task: Task
    board: str
    now: Instant
    holder: Actor | None = None
    steps: tuple[Step, ...] = ()
    """The latest changes of state, oldest first; those that the file tells already among them."""
    owner: str = ""
    """Who holds it, or brought it where it is."""
    expires: Instant | None = None
    """What the file is to state as the end of the lease, if not its true end: it may lag behind."""

    @property
    def pointer(self) -> Pointer:
        lease, token = self.task.lease, self.task.token
        if lease is None or self.holder is None:
            return Pointer(self.board, token)
        session = UNBOUND if lease.session is None else lease.session or PERSON
        return Pointer(self.board, token, self.holder.name, session, lease.ttl)


if TYPE_CHECKING:

    class Dialect(Protocol):
        """One kind of backlog."""

        channel: str
        words: Words
        heals: bool
        """Whether the first look puts claims of the dead right in the file, too."""
        largest: int
        """How many bytes a file may have."""

        @property
        def knows_sessions(self) -> bool:
            """Whether it has a list of the sessions that run."""
            ...

        def alone(self, root: str) -> AbstractContextManager[object]:
            """While its files are written: the lock of the tool that they belong to, if it has one."""
            ...

        def is_dead(self, session: str) -> bool:
            """Whether that list says that a session has ended."""
            ...

        def paths(self, root: str) -> Iterator[str]:
            """The files of such a backlog below `root`, relative to it; none if there is none."""
            ...

        def read(
            self, path: str, data: bytes, now: Instant, *, strict: bool = False
        ) -> tuple[list[Item], list[Problem]]:
            """The items in a file. Raises `Unreadable` if there is nothing to be had from it; if
            `strict`, already if one of many cannot be read.
            """
            ...

        def written(self, path: str, data: bytes, records: Mapping[str, Record]) -> bytes:
            """The file with the records, by the refs of its items, and nothing else changed."""
            ...
