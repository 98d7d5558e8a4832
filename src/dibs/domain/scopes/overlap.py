"""Scope overlap: is there a path that two scopes both match? Decided exactly.

A scope is a set of patterns, relative to the repository, with `/` between segments:

| pattern | matches |
|---|---|
| `src/auth` | that path and everything below it; so does `src/auth/` |
| `*` | any run of characters within a segment, also none; a segment itself is never empty |
| `?` | one character, never `/` |
| `[a-z]`, `[!a-z]` | one character of the class, or one outside it; `[^a-z]` is the same |
| `**` | as a whole segment: any number of segments, also none; elsewhere the same as `*` |
| `a/**` | everything below `a`, but not `a` itself, as in git |
| `src/*/` | a glob that ends with `/`: what it matches and everything below |
| `@web` | an area: it overlaps with the same name, and matches no path |

There is no escape character: `[[]`, `[*]` and `[@]` are the literal characters, and so is a `[` that is never
closed. Names are compared in Unicode NFC; with `fold` case-insensitively, character by character: `ß` is
not `SS`.

Segments in a path and characters in a segment are the same problem, a sequence with gaps. `_meet` solves
both in a number of steps that grows with the lengths and not with the stars. A decision about many scopes
has a step limit (`Work`): steps are counted, not timed, so that the result is deterministic.
"""

from __future__ import annotations

from dibs.domain.model import AREA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Ranges = tuple[tuple[int, int], ...]
    """A set of characters, as ranges of code points: sorted, disjoint, not empty.

    With `fold`, only characters that are their own folded form count; the first of each range is one.
    """
    Character = int | Ranges
    Segment = tuple[Character | None, ...]
    Pattern = tuple[Segment | None, ...]
    Item = TypeVar("Item")

GAP = None
"""Matches any run of items, also none."""

FIRST, LAST = 1, 0x10FFFF
LAST_CASED = 0x1FFFF
"""No script has cased letters beyond this code point."""
SLASH = ord("/")
ANY: Ranges = ((FIRST, SLASH - 1), (SLASH + 1, LAST))
ANY_SEGMENT: Segment = (ANY, GAP)
STEPS = 1_000_000
"""The step limit of one decision about paths: some tenths of a second."""
PAIR, FOLDED = 10, 4
"""The base cost in steps of comparing two patterns, and the cost of a character with `fold`."""
NARROW = 512
"""Ranges up to this size are case-folded one by one; for wider ones the table of cased letters is used."""
WILD = frozenset("*?[")


class TooManySteps(Exception):  # noqa: N818 - what it is about is in the name
    """The decision exceeded its step limit."""


class StepBudget:
    """The step budget of one decision, and a cache of the character classes it has compared."""

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
    return PreparedScope(one, fold, StepBudget()).overlaps(other)


class PreparedScope:
    """One scope prepared for comparison with many others. Most are ruled out by their first segment.

    Raises `TooManySteps` when the budget is used up: the overlap is then unknown.
    """

    def __init__(self, scope: tuple[str, ...], fold: bool, work: StepBudget) -> None:
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
        plain = None if self._fold else _overlap_fast_path(text, there)
        if plain is not None:
            return plain
        for each in (text, there):
            if each not in self._compiled:
                self._work.spend(len(each) * (FOLDED if self._fold else 1))
                self._compiled[each] = _pattern(each, self._fold)
        return _share_a_path(self._compiled[text], self._compiled[there], self._work)


def matches(scope: tuple[str, ...], path: str, *, fold: bool = False) -> bool:
    """Whether a path, relative to the repository, lies in a scope."""
    names, work = names_of(path, fold), StepBudget()
    return any(lies_in(compiled(pattern, fold), names, work) for pattern in scope)


# For checks of many paths: each pattern and each path is parsed once.


def compiled(pattern: str, fold: bool) -> Pattern:
    return _pattern(_composed(pattern), fold)


def names_of(path: str, fold: bool) -> Pattern:
    """The segments of a path, relative to the repository."""
    return tuple(tuple(map(ord, name)) for name in folded_path(path, fold).split("/") if name)


def lies_in(pattern: Pattern, names: Pattern, work: StepBudget) -> bool:
    return _share_a_path(pattern, names, work)


def is_plain(pattern: str) -> bool:
    """Whether it is a literal path, not a glob."""
    return not _is_wild(pattern)


def folded_path(path: str, fold: bool) -> str:
    """The form in which paths are compared."""
    text = _composed(path)
    if not fold:
        return text
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _areas(scope: tuple[str, ...]) -> Iterable[str]:
    return (pattern for pattern in scope if pattern.startswith(AREA))


def _head(text: str, fold: bool) -> str:
    """The first segment if it is literal, else "". Two patterns with different heads share no path."""
    first = text.partition("/")[0]
    return "" if _is_wild(first) else folded_path(first, fold)


def _overlap_fast_path(one: str, other: str) -> bool | None:
    """A fast path for simple pairs, like a folder and a folder within it; `None` if it cannot decide.

    Skips the common literal prefix. After it, two literal names may differ, or `**` matches the rest.
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
    work: StepBudget,
) -> bool:
    """Whether some sequence matches both. `places` returns the items of `other` that match an item of `one`.

    Runs through `one` item by item and keeps the set of reachable positions in `other` as bits: bit `n` is
    the position before item `n`. Neither sequence has two adjacent gaps.
    """
    work.spend(len(one) + len(other))
    gaps = sum(1 << place for place, item in enumerate(other) if item is GAP)
    end = 1 << len(other)
    reached = 1 | (1 & gaps) << 1
    known: dict[Item, int] = {}
    for item in one:
        if item is GAP:  # a gap matches everything in `other` from the first reachable position on
            reached = 2 * end - (reached & -reached)
            continue
        if item not in known:
            known[item] = places(item)
        reached = (reached & known[item]) << 1 | reached & gaps
        if not reached:
            return False
        reached |= (reached & gaps) << 1
    return bool(reached & end)


def _share_a_path(one: Pattern, other: Pattern, work: StepBudget) -> bool:
    work.spend(PAIR)

    def places(name: Segment) -> int:
        work.spend(len(other))
        return sum(
            1 << place
            for place, there in enumerate(other)
            if there is not GAP and _share_a_name(name, there, work)
        )

    return bool(one and other) and _meet(one, other, places, work)


def _share_a_name(one: Segment, other: Segment, work: StepBudget) -> bool:
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

    # mypy joins the item types to `object`.
    return _meet(one, other, places, work)  # type: ignore[arg-type]


def _has(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _share_a_character(one: Ranges, other: Ranges, work: StepBudget) -> bool:
    """Whether two classes have a common character. Each pair is compared once, then cached."""
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


# Parsing.


def _composed(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def _pattern(text: str, fold: bool) -> Pattern:
    """The compiled pattern; empty if no path can match it."""
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
    """The compiled segment; empty if no name can match it."""
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
    """The index of the `]` that closes the class beginning here; 0 if none does. A first `]` is a member."""
    if name[place] != "[":
        return 0
    negated = name[place + 1 : place + 2] in ("!", "^")
    return max(0, name.find("]", place + 2 + negated))


def classes(pattern: str) -> list[str]:
    """The content of each character class, without its brackets."""
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
    """The characters of `a-z` or `!a-z`; possibly none."""
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
    """The complement: all characters in none of these ranges."""
    left, start = [], FIRST
    for low, high in sorted(ranges):
        if low > high:
            continue
        if start < low:
            left.append((start, low - 1))
        start = max(start, high + 1)
    return (*left, (start, LAST)) if start <= LAST else tuple(left)


# Case folding.


def _code(character: str, fold: bool) -> int:
    return ord(_lower(character) if fold else character)


def _lower(character: str) -> str:
    """The one character that represents all cases of a letter: `k` also for the Kelvin sign."""
    for lower in (character.lower(), character.casefold()):
        character = lower if len(lower) == 1 else character
    return character


_known: dict[int, int] = {}


def _cased() -> dict[int, int]:
    """The characters whose folded form differs, with that form. Computed once, on demand."""
    if not _known:
        for code in range(LAST_CASED + 1):
            lower = ord(_lower(chr(code)))
            if lower != code:
                _known[code] = lower
    return _known


def _folded(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges, extended by the folded forms of their characters."""
    found = list(ranges)
    for low, high in ranges:
        if high - low < NARROW:
            lower = {ord(_lower(chr(code))) for code in range(low, high + 1)}
        else:
            lower = {there for code, there in _cased().items() if low <= code <= high}
        found += [(code, code) for code in lower if not low <= code <= high]
    return found


def _from_own(ranges: Ranges) -> Ranges:
    """Trims each range to begin with a character that is its own folded form; drops ranges without one.

    If two such ranges overlap, the first character of the overlap is its own folded form, too.
    """
    found = []
    for first, high in ranges:
        low = first
        while low <= high and _lower(chr(low)) != chr(low):
            low += 1
        if low <= high:
            found.append((low, high))
    return tuple(found)
