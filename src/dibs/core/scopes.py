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
`_meet` solves both, in a number of steps that grows with the lengths and not with the stars. A
decision about many scopes has a limited number of them (`Work`): they are counted, not timed, so
that the same question always has the same answer.
"""

from __future__ import annotations

from dibs.core.ground import AREA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Ranges = tuple[tuple[int, int], ...]
    """Characters, as ranges of code points: in order, apart, and at least one.

    With `fold`, those of them count that stand for themselves; the first of each range does.
    """
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
STEPS = 1_000_000
"""What one decision about paths may cost: some tenths of a second."""
PAIR, FOLDED = 10, 4
"""Steps that two patterns cost before their characters are compared, and a character whose case is not kept."""
NARROW = 512
"""A range of so few characters is looked through; for a wider one all letters are known by heart."""
WILD = frozenset("*?[")


class TooManySteps(Exception):  # noqa: N818 - what it is about is in the name
    """The decision would take longer than it may."""


class Work:
    """What one decision may still cost, and which classes of characters it has compared."""

    __slots__ = ("left", "shared")

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps
        self.shared: dict[tuple[Ranges, Ranges], bool] = {}

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooManySteps


def overlap(one: tuple[str, ...], other: tuple[str, ...], *, fold: bool = False) -> bool:
    """Whether there is a path that both match, or an area that both name."""
    return Compared(one, fold, Work()).overlaps(other)


class Compared:
    """One scope that is compared with many others: most are told apart by their first names.

    Raises `TooManySteps` when the work is used up: nobody knows then whether they overlap.
    """

    def __init__(self, scope: tuple[str, ...], fold: bool, work: Work) -> None:
        self._fold = fold
        self._work = work
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
        self._work.spend(PAIR)
        plain = None if self._fold else _at_a_glance(text, there)
        if plain is not None:
            return plain
        for each in (text, there):
            if each not in self._compiled:
                self._work.spend(len(each) * (FOLDED if self._fold else 1))
                self._compiled[each] = _pattern(each, self._fold)
        return _share_a_path(self._compiled[text], self._compiled[there], self._work)


def matches(scope: tuple[str, ...], path: str, *, fold: bool = False) -> bool:
    """Whether a path, relative to the repository, lies in a scope."""
    names, work = names_of(path, fold), Work()
    return any(lies_in(compiled(pattern, fold), names, work) for pattern in scope)


# For those who ask about many paths: each pattern and each path is read once.


def compiled(pattern: str, fold: bool) -> Pattern:
    return _pattern(_composed(pattern), fold)


def names_of(path: str, fold: bool) -> Pattern:
    """The names in a path, relative to the repository."""
    return tuple(tuple(map(ord, name)) for name in folded(path, fold).split("/") if name)


def lies_in(pattern: Pattern, names: Pattern, work: Work) -> bool:
    return _share_a_path(pattern, names, work)


def is_plain(pattern: str) -> bool:
    """Whether it is a path, and no glob."""
    return not _is_wild(pattern)


def folded(path: str, fold: bool) -> str:
    """A path as it is compared with others."""
    text = _composed(path)
    if not fold:
        return text
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _areas(scope: tuple[str, ...]) -> Iterable[str]:
    return (pattern for pattern in scope if pattern.startswith(AREA))


def _head(text: str, fold: bool) -> str:
    """The first segment, if it is a plain name: two that differ have no path in common."""
    first = text.partition("/")[0]
    return "" if _is_wild(first) else folded(first, fold)


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
    one: tuple[Item | None, ...],
    other: tuple[Item | None, ...],
    places: Callable[[Item], int],
    work: Work,
) -> bool:
    """Whether some sequence fits both. `places` says which items of `other` fit an item of `one`.

    Goes through `one` item by item, and keeps the places in `other` where one can be by then: bit
    `n` is the place before item `n`. No two gaps stand side by side.
    """
    work.spend(len(one) + len(other))
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


def _share_a_path(one: Pattern, other: Pattern, work: Work) -> bool:
    work.spend(PAIR)

    def places(name: Segment) -> int:
        work.spend(len(other))
        return sum(
            1 << place
            for place, there in enumerate(other)
            if there is not GAP and _share_a_name(name, there, work)
        )

    return bool(one and other) and _meet(one, other, places, work)


def _share_a_name(one: Segment, other: Segment, work: Work) -> bool:
    if one == other:
        return True
    for end in (0, -1):
        if isinstance(one[end], int) and isinstance(other[end], int) and one[end] != other[end]:
            return False
    letters: dict[int, int] = {}
    classes: list[tuple[int, Ranges]] = []
    for place, item in enumerate(other):
        if isinstance(item, int):
            letters[item] = letters.get(item, 0) | 1 << place
        elif item is not GAP:
            classes.append((1 << place, item))

    def places(item: Character) -> int:
        if isinstance(item, int):
            work.spend(len(classes))
            found = letters.get(item, 0)
            return found | sum(bit for bit, there in classes if _has(there, item))
        work.spend(len(classes) + len(letters))
        found = sum(there for code, there in letters.items() if _has(item, code))
        return found | sum(bit for bit, there in classes if _share_a_character(item, there, work))

    # mypy joins the kinds of items to `object`.
    return _meet(one, other, places, work)  # type: ignore[arg-type]


def _has(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _share_a_character(one: Ranges, other: Ranges, work: Work) -> bool:
    """Each pair of classes is compared once: through both from their first ranges on."""
    known = work.shared.get((one, other))
    if known is None:
        work.spend(len(one) + len(other))
        known = work.shared[one, other] = _cross(one, other)
    return known


def _cross(one: Ranges, other: Ranges) -> bool:
    mine = theirs = 0
    while mine < len(one) and theirs < len(other):
        (low, high), (first, last) = one[mine], other[theirs]
        if max(low, first) <= min(high, last):
            return True
        mine, theirs = (mine + 1, theirs) if high < first else (mine, theirs + 1)
    return False


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


def classes(pattern: str) -> list[str]:
    """What stands between the brackets of each class."""
    found = []
    for name in pattern.split("/"):
        place = 0
        while place < len(name):
            close = _close(name, place)
            if close:
                found.append(name[place + 1 : close])
                place = close
            place += 1
    return found


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
    excluded = chosen if negated else _others(chosen)
    found = _others([*excluded, (SLASH, SLASH)])
    return _from_own(found) if fold else found


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
    found = list(ranges)
    for low, high in ranges:
        if high - low < NARROW:
            lower = {ord(_lower(chr(code))) for code in range(low, high + 1)}
        else:
            lower = {there for code, there in _cased().items() if low <= code <= high}
        found += [(code, code) for code in lower if not low <= code <= high]
    return found


def _from_own(ranges: Ranges) -> Ranges:
    """Each range from its first character that stands for itself on; without those that have none.

    Two of these have such a character in common if they overlap at all: the first of the overlap.
    """
    found = []
    for first, high in ranges:
        low = first
        while low <= high and _lower(chr(low)) != chr(low):
            low += 1
        if low <= high:
            found.append((low, high))
    return tuple(found)
