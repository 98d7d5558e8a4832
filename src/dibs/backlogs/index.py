"""What the files were like when they were last read, so that a sync with nothing changed reads none.

It lies beside the board, and may be lost at any time: then everything is read again.
"""

from __future__ import annotations

import os
from os.path import basename, join

from dibs.backlogs.files import GRAPH_LIMIT
from dibs.board import bounded
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.backlogs.item import Item

FILE = "backlog-index.json"
VERSION = 1
RACY = 2_000_000_000
"""A file that was changed so shortly before it was read may change again within the same tick (ns)."""

Print = tuple[int, int, int, int]
"""Of a file: when it was modified, when its inode changed, its size, its inode."""


class Noted(Value):
    """An item as it was last read, as much of it as the next sync needs."""

    channel: str
    ref: str
    id: str
    after: tuple[str, ...] = ()
    pointed: bool = False
    """Whether it has the key `dibs`."""


class File(Value):
    """A file as it was last read."""

    print: Print
    read_at: int
    items: tuple[Noted, ...] = ()
    again: bool = False
    """Whether it is read again though it has not changed: time alone changes what it means."""

    def is_as(self, now: Print) -> bool:
        return not self.again and now == self.print and self.read_at - now[1] > RACY


class Index:
    """All files of a root, and how far the ledger was when they were last in step."""

    def __init__(self, folder: str, board: str, root: str) -> None:
        self._path = join(folder, FILE)
        self._of = [VERSION, board, root]
        self.seq = 0
        self.files: dict[str, File] = {}
        self._places: dict[tuple[str, str], str] = {}
        self._stat = self._look()
        self._load()

    def _look(self) -> tuple[int, int]:
        try:
            there = os.stat(self._path)
        except OSError:
            return 0, 0
        return there.st_mtime_ns, there.st_ino

    def is_current(self, board: str) -> bool:
        return self._of[1] == board and self._stat == self._look()

    def _load(self) -> None:
        try:
            kept = bounded.json(bounded.read(self._path, GRAPH_LIMIT))
            if kept["of"] != self._of:
                return
            self.files = {path: _file(stored) for path, stored in kept["files"].items()}
            self.seq = kept["seq"]
        except (
            OSError, bounded.Unreadable, ValueError, KeyError, TypeError, IndexError, AttributeError,
        ):  # fmt: skip
            self.files, self.seq = {}, 0

    def save(self) -> None:
        import json

        stored = {path: _stored(file) for path, file in self.files.items()}
        temporary = f"{self._path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"of": self._of, "seq": self.seq, "files": stored}, file)
        os.replace(temporary, self._path)
        self._stat, self._places = self._look(), {}

    def items(self) -> Iterator[tuple[str, Noted]]:
        for path, file in self.files.items():
            for noted in file.items:
                yield path, noted

    def path_of(self, channel: str, ref: str) -> str | None:
        if not self._places:
            best: dict[tuple[str, str], tuple[str, Noted]] = {}
            for path, one in self.items():
                other = best.setdefault((one.channel, one.ref), (path, one))
                if other[0] != path and counts_before(path, one) < counts_before(*other):
                    best[one.channel, one.ref] = (path, one)
            self._places = {key: path for key, (path, _) in best.items()}
        return self._places.get((channel, ref))


def counts_before(path: str, one: Noted) -> tuple[bool, bool, str]:
    """Of several files of an item, the least counts: dibs has written it, it is named after its id."""
    named = basename(path).casefold().startswith(one.id.casefold())
    return not one.pointed, not named, path


def noted(item: Item) -> Noted:
    return Noted(item.channel, item.ref, item.id, item.after, item.pointer is not None)


def _stored(file: File) -> list[Any]:
    return [list(file.print), file.read_at, [list(one) for one in file.items], file.again]


def _file(stored: list[Any]) -> File:
    print_, read_at, items, again = stored
    kept = tuple(Noted(one[0], one[1], one[2], tuple(one[3]), one[4]) for one in items)
    return File(tuple(print_), read_at, kept, again)
