"""The files as last read, so that a sync without changes reads none.

Stored beside the board, and disposable: without it, everything is read again.
"""

from __future__ import annotations

import os
from os.path import basename, join

from dibs.backlogs.files import GRAPH_LIMIT
from dibs.board import limited_files
from dibs.domain.values import Value
from dibs.storage.owners import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.backlogs.item import Item

FILE = "backlog-index.json"
VERSION = 1
RACY = 2_000_000_000
"""A file changed this shortly before it was read may change again within the same clock tick (ns)."""

Print = tuple[int, int, int, int]
"""Of a file: mtime, ctime, size, inode."""


class IndexedItem(Value):
    """An item as last read, reduced to what the next sync needs."""

    channel: str
    ref: str
    id: str
    after: tuple[str, ...] = ()
    pointed: bool = False
    """Whether it has the key `dibs`."""


class File(Value):
    """A file as last read."""

    print: Print
    read_at: int
    items: tuple[IndexedItem, ...] = ()
    again: bool = False
    """Whether to read it again though unchanged: its meaning depends on the time."""

    def is_as(self, now: Print) -> bool:
        return not self.again and now == self.print and self.read_at - now[1] > RACY


class Index:
    """All files of a root, and the last ledger event when they were last in sync."""

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
            kept = limited_files.json(limited_files.read(self._path, GRAPH_LIMIT))
            if kept["of"] != self._of:
                return
            self.files = {path: _file(stored) for path, stored in kept["files"].items()}
            self.seq = kept["seq"]
        except (
            OSError, limited_files.Unreadable, ValueError, KeyError, TypeError, IndexError, AttributeError,
        ):  # fmt: skip
            self.files, self.seq = {}, 0

    def save(self) -> None:
        import json

        stored = {path: _stored(file) for path, file in self.files.items()}
        replace(self._path, json.dumps({"of": self._of, "seq": self.seq, "files": stored}))
        self._stat, self._places = self._look(), {}

    def items(self) -> Iterator[tuple[str, IndexedItem]]:
        for path, file in self.files.items():
            for noted in file.items:
                yield path, noted

    def path_of(self, channel: str, ref: str) -> str | None:
        if not self._places:
            best: dict[tuple[str, str], tuple[str, IndexedItem]] = {}
            for path, one in self.items():
                other = best.setdefault((one.channel, one.ref), (path, one))
                if other[0] != path and counts_before(path, one) < counts_before(*other):
                    best[one.channel, one.ref] = (path, one)
            self._places = {key: path for key, (path, _) in best.items()}
        return self._places.get((channel, ref))


def counts_before(path: str, one: IndexedItem) -> tuple[bool, bool, str]:
    """Sort key for several files of one item; the least counts: written by dibs, then named after its id."""
    named = basename(path).casefold().startswith(one.id.casefold())
    return not one.pointed, not named, path


def noted(item: Item) -> IndexedItem:
    return IndexedItem(item.channel, item.ref, item.id, item.after, item.pointer is not None)


def _stored(file: File) -> list[Any]:
    return [list(file.print), file.read_at, [list(one) for one in file.items], file.again]


def _file(stored: list[Any]) -> File:
    print_, read_at, items, again = stored
    kept = tuple(IndexedItem(one[0], one[1], one[2], tuple(one[3]), one[4]) for one in items)
    return File(tuple(print_), read_at, kept, again)
