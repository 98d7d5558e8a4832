"""The files as last read, so that a sync without changes reads none.

Stored beside the board, and disposable: without it, everything is read again.
"""

from __future__ import annotations

import os
from os.path import basename, join

from dibs import safe_files
from dibs.backlogs.files import GRAPH_LIMIT
from dibs.backlogs.item import APART, refs_of
from dibs.domain.model import FINAL
from dibs.domain.values import Value
from dibs.safe_files import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from dibs.backlogs.item import Dialect, Item
    from dibs.domain.values import Instant

FILE = "backlog-index.json"
VERSION = 2
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
    by_name: bool = False
    """Whether its id is only in the file's name."""
    title: str = ""
    """What tells two items with one id apart; empty if the file has other items too."""
    final: bool = False
    dated: str = ""

    @property
    def refs(self) -> tuple[str, ...]:
        return refs_of(self.ref, self.id)


class File(Value):
    """A file as last read."""

    print: Print
    read_at: int
    items: tuple[IndexedItem, ...] = ()
    again: int = 0
    """From when on to read it again though unchanged: its meaning depends on the time. 0: never."""

    def is_as(self, print_: Print, now: Instant) -> bool:
        due = 0 < self.again <= now
        return not due and print_ == self.print and self.read_at - print_[1] > RACY


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
            kept = safe_files.json(safe_files.read(self._path, GRAPH_LIMIT))
            if kept["of"] != self._of:
                return
            self.files = {path: _file(stored) for path, stored in kept["files"].items()}
            self.seq = int(kept["seq"])
        except (
            OSError, safe_files.Unreadable, ValueError, KeyError, TypeError, IndexError, AttributeError,
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

    def names(self, dialect: Dialect) -> Names:
        return Names(dialect, (one for _, one in self.items() if one.channel == dialect.channel))

    def path_of(self, channel: str, ref: str) -> str | None:
        if not self._places:
            places: dict[tuple[str, str], list[tuple[str, IndexedItem]]] = {}
            for path, one in self.items():
                places.setdefault((one.channel, one.ref), []).append((path, one))
            self._places = {key: in_order(found)[0][0] for key, found in places.items()}
        return self._places.get((channel, ref))


class Names:
    """Finds items by what files call them."""

    def __init__(self, dialect: Dialect, items: Iterable[IndexedItem]) -> None:
        """Of several items with one id the first is meant; what only has it in its name comes last."""
        self._dialect = dialect
        self._refs: dict[str, list[str]] = {}
        self._ids: dict[str, str] = {}
        for one in sorted(items, key=lambda one: (one.by_name, APART in one.ref)):
            self._refs.setdefault(dialect.folded(one.id), []).append(one.ref)
            self._ids[one.ref] = one.id

    def ref(self, text: str) -> str | None:
        """The ref of the item that is called so."""
        if text in self._ids:
            return text
        id_, uid = self._dialect.named(text)
        found = self._refs.get(self._dialect.folded(id_), ())
        return next((ref for ref in found if ref.casefold().startswith(uid)), None)

    def plain(self, text: str) -> str:
        """The id of that item, or its ref where another has its id; as it is if there is none."""
        ref = self.ref(text)
        if ref is None:
            return text
        id_ = self._ids[ref]
        return id_ if self.ref(id_) == ref else ref


def in_order(places: Iterable[tuple[str, IndexedItem]]) -> list[tuple[str, IndexedItem]]:
    """Several files of one item, the one that counts first.

    What is final counts before what is not; then what dibs wrote; then the latest by its own date; then what is
    named after its id.
    """
    found = sorted(places, key=lambda place: place[0])
    found.sort(key=lambda place: not is_named(place[0], place[1].id))
    found.sort(key=lambda place: place[1].dated, reverse=True)
    found.sort(key=lambda place: (not place[1].final, not place[1].pointed))
    return found


def is_named(path: str, name: str) -> bool:
    """Whether a file is named after an id: `WRK-1.md` and `WRK-1_fix.md`, not `WRK-12.md`."""
    stem, wanted = basename(path).casefold(), name.casefold()
    return stem.startswith(wanted) and not stem[len(wanted) : len(wanted) + 1].isalnum()


def noted(item: Item) -> IndexedItem:
    one = IndexedItem(
        item.channel, item.ref, item.id, item.after, item.pointer is not None, item.by_name
    )
    if item.line:
        return one
    return one.but(title=item.title, final=item.state in FINAL, dated=item.dated)


def _stored(file: File) -> list[Any]:
    return [list(file.print), file.read_at, [list(one) for one in file.items], file.again]


def _file(stored: list[Any]) -> File:
    print_, read_at, items, again = stored
    return File(tuple(print_), read_at, tuple(map(_item, items)), again)


def _item(stored: list[Any]) -> IndexedItem:
    """Raises `TypeError` for other types than were stored: others can write to the file."""
    channel, ref, id_, after, pointed, by_name, title, final, dated = stored
    texts = (channel, ref, id_, title, dated, *after)
    if not all(isinstance(one, str) for one in texts):
        raise TypeError("a text is expected")
    return IndexedItem(
        channel, ref, id_, tuple(after), bool(pointed), bool(by_name), title, bool(final), dated
    )
