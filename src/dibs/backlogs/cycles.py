"""Cycles in the dependencies of a backlog: they are cut and reported."""

from __future__ import annotations

from dibs.backlogs.item import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.backlogs.item import Item

SHOWN = 4
"""How many tasks of a long cycle are shown at each end."""


def broken_cycles(items: Iterable[Item]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """By ref, each item's dependencies without the edges that close a cycle, and a problem per cycle.

    Walks the items in order, each edge once: the same file always gives the same cuts. An unknown id is
    kept,
    and of two items with one id the first is meant.
    """
    walk = _Walk(list(items))
    for item in walk.items:
        if item.ref not in walk.done:
            walk.start(item)
    return {item.ref: tuple(walk.after[item.ref]) for item in walk.items}, walk.problems


class _Walk:
    """Depth-first search with an explicit stack: a chain of 50,000 tasks must not overflow it."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.named: dict[str, Item] = {}
        for item in items:
            self.named.setdefault(item.id, item)
        self.after: dict[str, dict[str, None]] = {
            item.ref: dict.fromkeys(item.after) for item in items
        }
        self.done: set[str] = set()
        self.way: list[Item] = []
        self.places: dict[str, int] = {}
        self.edges: list[Iterator[str]] = []
        self.problems: list[Problem] = []

    def start(self, item: Item) -> None:
        self._enter(item)
        while self.way:
            wanted = next(self.edges[-1], None)
            if wanted is None:
                self._leave()
            elif (other := self.named.get(wanted)) is None or other.ref in self.done:
                continue
            elif other.ref in self.places:
                self._cut(wanted, self.places[other.ref])
            else:
                self._enter(other)

    def _enter(self, item: Item) -> None:
        self.places[item.ref] = len(self.way)
        self.way.append(item)
        self.edges.append(iter(list(self.after[item.ref])))

    def _leave(self) -> None:
        item = self.way.pop()
        self.edges.pop()
        del self.places[item.ref]
        self.done.add(item.ref)

    def _cut(self, wanted: str, place: int) -> None:
        last = self.way[-1]
        del self.after[last.ref][wanted]
        self.problems.append(
            Problem(
                last.path,
                f"a cycle: {self._told(place)}",
                f"{last.id} does not wait for {wanted}",
                last.line,
            )
        )

    def _told(self, place: int) -> str:
        """The cycle as text; of a long one only its ends, to stay short."""
        way, length = self.way, len(self.way) - place
        if length <= 2 * SHOWN:
            ids = [item.id for item in way[place:]]
        else:
            first, last = way[place : place + SHOWN], way[-SHOWN:]
            between = f"... ({length - 2 * SHOWN} more) ..."
            ids = [*(item.id for item in first), between, *(item.id for item in last)]
        return " waits for ".join([*ids, way[place].id])
