"""The items of a file that a board can take in. One that holds what is no text is told of; the rest goes on."""

from __future__ import annotations

from dibs.backlogs.item import Problem
from dibs.board.bounded import Unreadable
from dibs.core.checks import quoted
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.backlogs.item import Dialect, Item
    from dibs.core.instants import Instant

NOT_TEXT = "it holds characters that are not text"


def items_in(
    dialect: Dialect, path: str, data: bytes, now: Instant, *, strict: bool = False
) -> tuple[list[Item], list[Problem]]:
    """As the dialect reads them; if `strict`, the first that cannot be taken in is `Unreadable`."""
    items, problems = dialect.read(path, data, now, strict=strict)
    good = [item for item in items if is_text(item)]
    for item in items if len(good) < len(items) else ():
        if is_text(item):
            continue
        if strict:
            raise Unreadable(f"{quoted(item.id)}: {NOT_TEXT}", item.line)
        problems.append(
            Problem(path, f"{quoted(item.id)}: {NOT_TEXT}", "it is not a task", item.line)
        )
    return good, problems


def is_text(item: Item) -> bool:
    """Whether every database can keep what the item says: no NUL, and no half of a character."""
    return all(_is_text(value) for value in item.but(path="", problems=()))


def _is_text(value: object) -> bool:
    if isinstance(value, str):
        return (value.isascii() and "\0" not in value) or not _NO_TEXT.intersection(value)
    return all(map(_is_text, value)) if isinstance(value, tuple | Value) else True


_NO_TEXT = frozenset(("\0", *map(chr, range(0xD800, 0xE000))))
