"""Whether two scopes overlap: is there a path that both match? Decided exactly.

A scope is some patterns, relative to the repository, `/` between their segments:

| written | means |
|---|---|
| `src/auth` | that path and everything below it; so does `src/auth/` |
| `*` | any run of characters within a segment, also none; a segment itself is never empty |
| `?` | one character, never `/` |
| `[a-z]`, `[!a-z]` | one character of these, or one of all others; `[^a-z]` is the same |
| `**` | as a whole segment: any number of segments, also none; elsewhere the same as `*` |
| `a/**` | everything below `a`, but not `a` itself, as git has it |
| `src/*/` | with a `/` at its end, a glob too means what it matches and everything below |
| `@web` | an area: it overlaps with the same name, and matches no path |

There is no escape: `[[]`, `[*]` and `[@]` are the characters themselves, and a `[` that nothing
closes is one. Names are compared in Unicode's composed form (NFC); with `fold`, letters of both
cases are the same, one by one: `ß` is not `SS`.

Segments in a path and characters in a segment are the same problem, a sequence with gaps, and
`_meet` solves both, in a number of steps that grows with the lengths and not with the stars.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Ranges = tuple[tuple[int, int], ...]
    """Characters, as ranges of code points: in order, apart, and at least one."""
    Character = int | Ranges
    Segment = tuple[Character | None, ...]
    Pattern = tuple[Segment | None, ...]
    Item = TypeVar("Item")

GAP = None
"""Any run of items, also none."""

FIRST, LAST = 1, 0x10FFFF
LAST_CASED = 0x1FFFF
"""Beyond it no script has letters of two cases."""
SLASH = ord("/")
ANY: Ranges = ((FIRST, SLASH - 1), (SLASH + 1, LAST))
ANY_SEGMENT: Segment = (ANY, GAP)
WILD = frozenset("*?[")
AREA = "@"


def overlap(one: tuple[str, ...], other: tuple[str, ...], *, fold: bool = False) -> bool:
    """Whether there is a path that both match, or an area that both name."""
    return Compared(one, fold).overlaps(other)


class Compared:
    """One scope that is compared with many others: most are told apart by their first names."""

    def __init__(self, scope: tuple[str, ...], fold: bool) -> None:
        self._fold = fold
        self._areas = {*_areas(scope)}
        self._by_head: dict[str, list[str]] = {}
        for text in map(_composed, scope):
            self._by_head.setdefault(_head(text, fold), []).append(text)
        self._wild = self._by_head.get("", ())
        self._all = [text for texts in self._by_head.values() for text in texts]
        self._compiled: dict[str, Pattern] = {}

    def overlaps(self, other: tuple[str, ...]) -> bool:
        """Whether there is a path that both match, or an area that both name."""
        if self._areas and not self._areas.isdisjoint(other):
            return True
        return any(self._meets(text) for text in map(_composed, other))

    def _meets(self, there: str) -> bool:
        head = _head(there, self._fold)
        mine = (*self._by_head.get(head, ()), *self._wild) if head else self._all
        return any(self._meet(text, there) for text in mine)

    def _meet(self, text: str, there: str) -> bool:
        plain = None if self._fold else _at_a_glance(text, there)
        if plain is not None:
            return plain
        for each in (text, there):
            if each not in self._compiled:
                self._compiled[each] = _pattern(each, self._fold)
        return _share_a_path(self._compiled[text], self._compiled[there])


def matches(scope: tuple[str, ...], path: str, *, fold: bool = False) -> bool:
    """Whether a path, relative to the repository, lies in a scope."""
    names = names_of(path, fold)
    return any(lies_in(compiled(pattern, fold), names) for pattern in scope)


# For those who ask about many paths: each pattern and each path is read once.


def compiled(pattern: str, fold: bool) -> Pattern:
    return _pattern(_composed(pattern), fold)


def names_of(path: str, fold: bool) -> Pattern:
    """The names in a path, relative to the repository."""
    return tuple(
        tuple(_code(character, fold) for character in name)
        for name in _composed(path).split("/")
        if name
    )


def lies_in(pattern: Pattern, names: Pattern) -> bool:
    return _share_a_path(pattern, names)


def is_plain(pattern: str) -> bool:
    """Whether it is a path, and no glob."""
    return not _is_wild(pattern)


def folded(path: str, fold: bool) -> str:
    """A path as it is compared with others."""
    text = _composed(path)
    return "".join(_lower(character) for character in text) if fold else text


def _areas(scope: tuple[str, ...]) -> Iterable[str]:
    return (pattern for pattern in scope if pattern.startswith(AREA))


def _head(text: str, fold: bool) -> str:
    """The first segment, if it is a plain name: two that differ have no path in common."""
    first = text.partition("/")[0]
    if _is_wild(first):
        return ""
    return "".join(chr(_code(character, fold)) for character in first) if fold else first


def _at_a_glance(one: str, other: str) -> bool | None:
    """Whether two patterns overlap, if that is plain; most are: a folder, and a folder within it.

    Names that both begin with say nothing. After them two names may differ, or `**` takes the rest.
    """
    if AREA in (one[:1], other[:1]):
        return None
    mine, theirs = one.split("/"), other.split("/")
    place = 0
    while mine[place] == theirs[place] and not _is_wild(mine[place]):
        place += 1
        if place in (len(mine), len(theirs)):
            return None
    left, there = mine[place:], theirs[place:]
    if not _is_wild(left[0]) and not _is_wild(there[0]):
        return None if "" in (left[0], there[0]) else False
    ends = ["**"]
    if (left == ends and there[0] and "[" not in other) or (
        there == ends and left[0] and "[" not in one
    ):
        return True
    return None


def _is_wild(name: str) -> bool:
    return not WILD.isdisjoint(name)


# Sequences with gaps.


def _meet(
    one: tuple[Item | None, ...], other: tuple[Item | None, ...], places: Callable[[Item], int]
) -> bool:
    """Whether some sequence fits both. `places` says which items of `other` fit an item of `one`.

    Goes through `one` item by item, and keeps the places in `other` where one can be by then: bit
    `n` is the place before item `n`. No two gaps stand side by side.
    """
    gaps = sum(1 << place for place, item in enumerate(other) if item is GAP)
    end = 1 << len(other)
    reached = 1 | (1 & gaps) << 1
    known: dict[Item, int] = {}
    for item in one:
        if item is GAP:  # it takes whatever stands in `other` from the first place on
            reached = 2 * end - (reached & -reached)
            continue
        if item not in known:
            known[item] = places(item)
        reached = (reached & known[item]) << 1 | reached & gaps
        if not reached:
            return False
        reached |= (reached & gaps) << 1
    return bool(reached & end)


def _share_a_path(one: Pattern, other: Pattern) -> bool:
    def places(name: Segment) -> int:
        return sum(
            1 << place
            for place, there in enumerate(other)
            if there is not GAP and _share_a_name(name, there)
        )

    return bool(one and other) and _meet(one, other, places)


def _share_a_name(one: Segment, other: Segment) -> bool:
    letters: dict[int, int] = {}
    classes: list[tuple[int, Ranges]] = []
    for place, item in enumerate(other):
        if isinstance(item, int):
            letters[item] = letters.get(item, 0) | 1 << place
        elif item is not GAP:
            classes.append((1 << place, item))

    def places(item: Character) -> int:
        if isinstance(item, int):
            found, ranges = letters.get(item, 0), _only(item)
        else:
            found, ranges = 0, item
            for code, there in letters.items():
                found |= there if _share_a_character(item, _only(code)) else 0
        return found | sum(bit for bit, there in classes if _share_a_character(ranges, there))

    # mypy joins the kinds of items to `object`.
    return one == other or _meet(one, other, places)  # type: ignore[arg-type]


def _only(code: int) -> Ranges:
    return ((code, code),)


def _share_a_character(one: Ranges, other: Ranges) -> bool:
    return any(max(low, first) <= min(high, last) for low, high in one for first, last in other)


# From text to patterns.


def _composed(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def _pattern(text: str, fold: bool) -> Pattern:
    """Empty if no path can match it."""
    if text.startswith(AREA):
        return ()
    names = text.rstrip("/").split("/")
    segments = [GAP if name == "**" else _segment(name, fold) for name in names]
    if () in segments:
        return ()
    plain = all(isinstance(item, int) for segment in segments for item in segment or (GAP,))
    if names[-1] == "**":
        segments[-1:] = [ANY_SEGMENT, GAP]
    elif plain or text.endswith("/"):
        segments.append(GAP)
    return _without_double_gaps(segments)


def _segment(name: str, fold: bool) -> Segment:
    """Empty if no name can match it."""
    items: list[Character | None] = []
    place = 0
    while place < len(name):
        character = name[place]
        close = _close(name, place)
        if character == "*":
            items.append(GAP)
        elif character == "?":
            items.append(ANY)
        elif close:
            items.append(_class(name[place + 1 : close], fold))
            place = close
        else:
            items.append(_code(character, fold))
        place += 1
    return () if () in items else _without_double_gaps(items)


def _without_double_gaps(items: list[Item | None]) -> tuple[Item | None, ...]:
    return tuple(
        item
        for place, item in enumerate(items)
        if item is not GAP or place == 0 or items[place - 1] is not GAP
    )


def _close(name: str, place: int) -> int:
    """Where the class ends that begins here; 0 if none does. A `]` that comes first is a member."""
    if name[place] != "[":
        return 0
    negated = name[place + 1 : place + 2] in ("!", "^")
    return max(0, name.find("]", place + 2 + negated))


def _class(inner: str, fold: bool) -> Ranges:
    """The characters of `a-z` or `!a-z`; maybe none."""
    negated = inner[0] in "!^"
    members = inner[1:] if negated else inner
    ranges = []
    while members:
        is_range = members[1:2] == "-" and len(members) > 2
        ranges.append((ord(members[0]), ord(members[2 if is_range else 0])))
        members = members[3 if is_range else 1 :]
    chosen = _folded(ranges) if fold else ranges
    never = [SLASH, *_cased()] if fold else [SLASH]
    excluded = chosen if negated else _others(chosen)
    return _others([*excluded, *((code, code) for code in never)])


def _others(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All characters that lie in none of these ranges."""
    left, start = [], FIRST
    for low, high in sorted(ranges):
        if low > high:
            continue
        if start < low:
            left.append((start, low - 1))
        start = max(start, high + 1)
    return (*left, (start, LAST)) if start <= LAST else tuple(left)


# Letters of two cases.


def _code(character: str, fold: bool) -> int:
    return ord(_lower(character) if fold else character)


def _lower(character: str) -> str:
    """The one character that stands for all cases of a letter: `k` also for the sign of Kelvin."""
    for lower in (character.lower(), character.casefold()):
        character = lower if len(lower) == 1 else character
    return character


_known: dict[int, int] = {}


def _cased() -> dict[int, int]:
    """Each character that another one stands for, and which. Found once, when it is needed."""
    if not _known:
        for code in range(LAST_CASED + 1):
            lower = ord(_lower(chr(code)))
            if lower != code:
                _known[code] = lower
    return _known


def _folded(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """With the characters that stand for others in these ranges."""
    lower = {
        there
        for code, there in _cased().items()
        if any(low <= code <= high for low, high in ranges)
    }
    return ranges + [(code, code) for code in lower]
