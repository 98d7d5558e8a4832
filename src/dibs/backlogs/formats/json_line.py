"""Edits one JSON object in one line, preserving every character of what does not change.

Spacing, number formats (`1e3`, `1.0`), escapes and key order belong to the writer, and another tool may
compare them. So a line is never decoded and encoded again: it is split at its keys.
"""

from __future__ import annotations

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from json import JSONDecoder
    from typing import Any

SPACE = " \t\r\n"
BOM = "\ufeff"


class _Removed:
    def __repr__(self) -> str:
        return "REMOVED"


REMOVED = _Removed()
"""In place of a value: removes the key with its comma."""


class More(Value):
    """In place of a value: appends these elements to the list."""

    elements: tuple[Any, ...]


class DuplicateKey(ValueError):  # noqa: N818 - the name says what it is about
    """A key to be changed is duplicated: it is unknown which one counts."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} stands there twice")
        self.key = key


class Member(Value):
    """One key with its value, and their positions."""

    key: str
    start: int
    key_end: int
    value_start: int
    end: int
    value: Any


def strict_decoder() -> JSONDecoder:
    """A decoder of standard JSON: no `NaN`, no `Infinity`."""
    from json import JSONDecoder

    return JSONDecoder(parse_constant=_no_constant)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


class Line:
    """One JSON object as text. Preserves whitespace and a byte order mark around it. Raises `ValueError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.members = _members(text, strict_decoder())
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        self.value: dict[str, Any] = {member.key: member.value for member in self.members}

    def twice(self, keys: Iterable[str]) -> list[str]:
        """Which of the keys are duplicated."""
        present = [member.key for member in self.members]
        return [key for key in keys if present.count(key) > 1]

    def with_values(self, changes: Mapping[str, Any]) -> str:
        """The line with these values: replaced in place, appended, or `REMOVED`.

        An equal value keeps its format. Raises `Twice`.
        """
        doubled = self.twice(changes)
        if doubled:
            raise DuplicateKey(doubled[0])
        kept: list[tuple[int, str]] = []
        for place, member in enumerate(self.members):
            if member.key not in changes:
                kept.append((place, self.text[member.start : member.end]))
            elif changes[member.key] is not REMOVED:
                kept.append((place, self._changed(member, changes[member.key])))
        added = [
            self._added(key, value)
            for key, value in changes.items()
            if key not in self.value and value is not REMOVED
        ]
        return self._joined(kept, added)

    def _joined(self, kept: list[tuple[int, str]], added: list[str]) -> str:
        """Keeps the separator before each member; the first takes the position of the first."""
        head, tail = self._around()
        parts = [head]
        for number, (place, body) in enumerate(kept):
            if number:
                parts.append(self.text[self.members[place - 1].end : self.members[place].start])
            parts.append(body)
        for number, body in enumerate(added, len(kept)):
            if number:
                parts.append(self._comma)
            parts.append(body)
        return "".join([*parts, tail])

    def _around(self) -> tuple[str, str]:
        if not self.members:
            inside = self.text.index("{") + 1
            return self.text[:inside], self.text[inside:]
        return self.text[: self.members[0].start], self.text[self.members[-1].end :]

    def _changed(self, member: Member, value: Any) -> str:
        key, old = (
            self.text[member.start : member.value_start],
            self.text[member.value_start : member.end],
        )
        if isinstance(value, More):
            if not isinstance(member.value, list):
                return key + self._written(list(value.elements))
            return key + self._longer(old, value)
        if _plain(value) == _plain(member.value):
            return key + old
        return key + self._written(value)

    def _longer(self, old: str, more: More) -> str:
        inside = old[:-1].rstrip(SPACE)
        written = [self._written(element) for element in more.elements]
        known = [inside] if inside != "[" else []
        joined = self._comma.join([*known, *written])
        return ("" if known else "[") + joined + old[len(inside) :]

    def _added(self, key: str, value: Any) -> str:
        value = list(value.elements) if isinstance(value, More) else value
        return self._written(key) + self._colon + self._written(value)

    def _written(self, value: Any) -> str:
        return _json(value, (self._comma, self._colon))

    @property
    def _comma(self) -> str:
        """The separator between the last two keys; with one key, derived from its colon."""
        if len(self.members) > 1:
            return self.text[self.members[-2].end : self.members[-1].start]
        return ", " if self._colon.endswith(" ") else ","

    @property
    def _colon(self) -> str:
        if not self.members:
            return ":"
        return self.text[self.members[-1].key_end : self.members[-1].value_start]


def _members(text: str, decoder: JSONDecoder) -> list[Member]:
    place = _expect(text, _after_space(text, 1 if text.startswith(BOM) else 0), "{")
    members: list[Member] = []
    place = _after_space(text, place)
    while text[place : place + 1] != "}":
        if members:
            place = _after_space(text, _expect(text, place, ","))
        start = place
        key, key_end = decoder.raw_decode(text, start)
        if not isinstance(key, str):
            raise ValueError(f"a key is missing at character {start}")  # noqa: TRY004 - bad JSON
        value_start = _after_space(text, _expect(text, _after_space(text, key_end), ":"))
        value, end = decoder.raw_decode(text, value_start)
        members.append(Member(key, start, key_end, value_start, end, value))
        place = _after_space(text, end)
    if _after_space(text, place + 1) != len(text):
        raise ValueError(f"something follows the object at character {place + 1}")
    return members


def _after_space(text: str, place: int) -> int:
    while text[place : place + 1] and text[place] in SPACE:
        place += 1
    return place


def _expect(text: str, place: int, wanted: str) -> int:
    if text[place : place + 1] != wanted:
        raise ValueError(f"{wanted} is missing at character {place}")
    return place + 1


def _plain(value: Any) -> str:
    """A canonical form that distinguishes types: 1, 1.0 and true differ."""
    return _json(value, (",", ":"))


def _json(value: Any, separators: tuple[str, str]) -> str:
    """JSON in the style of its neighbours; lone surrogates are escaped."""
    from json import dumps

    text = dumps(value, ensure_ascii=False, separators=separators)
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        text = dumps(value, separators=separators)
    return text
