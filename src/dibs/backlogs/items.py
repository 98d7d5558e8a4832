"""The items of a file that a board can store. Items with invalid text are reported and skipped."""

from __future__ import annotations

from dibs.backlogs.item import Problem
from dibs.domain.checks import quoted
from dibs.domain.values import Value
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.backlogs.item import Dialect, Item
    from dibs.domain.values import Instant

NOT_TEXT = "it holds characters that are not text"


def items_in(
    dialect: Dialect,
    path: str,
    data: bytes,
    now: Instant,
    *,
    strict: bool = False,
    only: str | None = None,
) -> tuple[list[Item], list[Problem]]:
    """The items as the dialect parses them; if `strict`, the first invalid one raises `Unreadable`.

    `only`: the ref of the one that is needed; the others may be left out.
    """
    if only is None:
        items, problems = dialect.read(path, data, now, strict=strict)
    else:
        items, problems = dialect.read_one(path, data, now, only)
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
    """Whether both databases can store the item: no NUL, no lone surrogate."""
    return all(_is_text(value) for value in item.but(path="", problems=()))


def _is_text(value: object) -> bool:
    if isinstance(value, str):
        return (value.isascii() and "\0" not in value) or not _NO_TEXT.intersection(value)
    return all(map(_is_text, value)) if isinstance(value, tuple | Value) else True


_NO_TEXT = frozenset(("\0", *map(chr, range(0xD800, 0xE000))))
