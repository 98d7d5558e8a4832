"""What all layers are made of: `Value`, the immutable record; instants; text of others.

A `Value` is a tuple with named, typed fields, like `typing.NamedTuple`, but its class is created without
`exec` and without importing `typing`: the command line runs before every edit, loads some sixty of these
classes, and pays for each at every start (see docs/decisions/0003-values.md).
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # as namedtuple does

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, NewType, Self, dataclass_transform

    Instant = NewType("Instant", int)
    Duration = NewType("Duration", int)
else:
    Instant = Duration = int

    def dataclass_transform(**_options):  # noqa: ANN003, ANN201 - typing's own, without typing
        return lambda cls: cls


_GETTERS = [_tuplegetter(place, "") for place in range(64)]
"""One getter per index, shared by all classes."""

OFTEN = 100
"""After this many instances a class gets a generated constructor, which is faster."""

_made: dict[type, int] = {}


def _make(cls: type[Value], *given: Any, **named: Any) -> Value:
    """The generic constructor, used until a class has `OFTEN` instances: applies defaults, checks names."""
    fields = cls.fields
    made = _made[cls] = _made.get(cls, 0) + 1
    if made == OFTEN:
        _write_out(cls)
    if len(given) < len(fields):
        defaults = cls.defaults
        try:
            given += tuple(
                [
                    named.pop(field) if field in named else defaults[field]
                    for field in fields[len(given) :]
                ]
            )
        except KeyError as missing:
            message = f"{cls.__name__} needs {missing.args[0]!r}"
            raise TypeError(message) from None
    if named or len(given) != len(fields):
        message = f"{cls.__name__} has the fields {', '.join(fields)}"
        raise TypeError(message)
    return tuple.__new__(cls, given)


def _write_out(cls: type[Value]) -> None:
    """Generates a constructor with the fields as parameters, as `namedtuple` does for every class."""
    fields, defaults = cls.fields, cls.defaults
    last = fields[len(fields) - len(defaults) :]
    if not fields or not all(field in defaults for field in last):
        return
    names = ", ".join(fields)
    text = f"lambda cls, {names}: new(cls, ({names},))"
    make = eval(text, {"new": tuple.__new__})  # noqa: S307 - only field names from our own source
    make.__defaults__ = tuple([defaults[field] for field in last])
    cls.__new__ = make  # type: ignore[method-assign]


class _ValueType(type):
    """Turns annotations into tuple fields; a subclass appends its own to those it inherits."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        parent = bases[0]
        fields, defaults = getattr(parent, "fields", ()), getattr(parent, "defaults", {})
        own = []
        for field, kind in space.get("__annotations__", {}).items():
            if kind[:8] != "ClassVar":
                own.append(field)
        if own:
            given = {field: space[field] for field in own if field in space}
            for place, field in enumerate(own, len(fields)):
                space[field] = _GETTERS[place]
            fields, defaults = (*fields, *own), {**defaults, **given}
        space["__slots__"] = ()
        space["__new__"] = _make
        space["fields"] = fields
        space["defaults"] = defaults
        space["places"] = dict(zip(fields, range(len(fields))))
        return type.__new__(mcs, name, bases, space)


@dataclass_transform(eq_default=True, frozen_default=True)
class Value(tuple, metaclass=_ValueType):  # type: ignore[type-arg]  # noqa: SLOT001 - set above
    """An immutable record. Equal only to a record of the same class with the same fields."""

    fields: ClassVar[tuple[str, ...]]
    defaults: ClassVar[Mapping[str, Any]]
    places: ClassVar[Mapping[str, int]]

    def but(self, **changes: Any) -> Self:
        """A copy with some fields replaced."""
        values, places = list(self), self.places
        try:
            for field, value in changes.items():
                values[places[field]] = value
        except KeyError:
            raise TypeError(f"{type(self).__name__} has no field {field!r}") from None
        return tuple.__new__(type(self), values)

    def named(self) -> dict[str, Any]:
        """The fields as a dict, in order."""
        return dict(zip(self.fields, self))

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For `pickle` and `copy`: the class takes its fields one by one, not as one tuple."""
        return tuple(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return type(self) is not type(other) or tuple.__ne__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        inner = ", ".join(f"{field}={value!r}" for field, value in zip(self.fields, self))
        return f"{type(self).__name__}({inner})"


# Instants and durations: integers of microseconds, and their text forms. UTC only: local time belongs to the
# interfaces. The calendar is computed here, since `datetime` costs a short command more than this whole module.


MICROSECOND = Duration(1)
SECOND = Duration(1_000_000)
MINUTE = Duration(60 * SECOND)
HOUR = Duration(60 * MINUTE)
DAY = Duration(24 * HOUR)
YEAR = Duration(366 * DAY)

UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

LAST_INSTANT = Instant(253_402_300_799_999_999)
"""9999-12-31T23:59:59.999999Z, the latest instant, so that every instant can be formatted."""


def later(instant: Instant, duration: Duration) -> Instant:
    return Instant(instant + duration)


def between(start: Instant, end: Instant) -> Duration:
    return Duration(end - start)


def date_of(instant: Instant) -> tuple[int, int, int]:
    """Year, month, day in UTC (Gregorian, counted in eras of 400 years from 1 March)."""
    days = instant // DAY + 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def clock_of(instant: Instant) -> str:
    """Time of day in UTC, whole seconds: `14:30:00Z`."""
    seconds = instant % DAY // SECOND
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def iso(instant: Instant) -> str:
    """RFC 3339 in UTC, exact: with six decimals unless the second is whole."""
    year, month, day = date_of(instant)
    clock, fraction = clock_of(instant), instant % SECOND
    if fraction:
        clock = f"{clock[:-1]}.{fraction:06}Z"
    return f"{year:04}-{month:02}-{day:02}T{clock}"


def brief(instant: Instant, now: Instant) -> str:
    """For people: only the time if it is today (UTC), else with the date."""
    if instant // DAY == now // DAY:
        return clock_of(instant)
    year, month, day = date_of(instant)
    return f"{year:04}-{month:02}-{day:02} {clock_of(instant)}"


def exact(duration: Duration) -> str:
    """A duration as people type it: `90s`, `30m`, `2h`, `7d`; in the largest unit that is exact."""
    for unit, size in reversed(UNITS.items()):
        if duration and duration % size == 0:
            return f"{duration // size}{unit}"
    return f"{duration / SECOND:.6f}".rstrip("0").rstrip(".") + "s"


def rough_duration(duration: Duration) -> str:
    """A duration for people, in its two largest units: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = abs(duration) // SECOND
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


# Text of others (titles, scopes, paths, notes, reasons, names), shown to terminals and models as data, never as
# instructions: invisible characters are escaped; inside our own messages it is quoted and truncated.


LONGEST = 200
"""The most characters of one text inside a message."""

SPACES = "\u00a0\u3000"
"""Not printable for Python, but harmless."""
JOINERS = "\u200c\u200d"
"""Some words and emoji need these joiners. Allowed only between two visible characters."""
EMOJI = "\ufe0f"
"""Variation selector that requests the emoji form of the character before it."""
UNSEEN = frozenset(
    map(
        chr,
        (
            0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164,
            *range(0xFE00, 0xFE10), 0xFFA0, *range(0xE0100, 0xE01F0),
        ),
    )
)  # fmt: skip
"""Printable for Python, but invisible: variation selectors, fillers, the blank braille pattern."""


def safe(text: str) -> str:
    """Escapes every character that moves the cursor, sets a title, changes the direction or is hidden."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(text, place) for place in range(len(text)))


def quoted(text: str, longest: int = LONGEST) -> str:
    """The text quoted and truncated, for use as data inside a message."""
    escaped = safe(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped if len(escaped) <= longest else escaped[: longest - 3] + "..."}"'


def _shown(text: str, place: int) -> str:
    character = text[place]
    if _is_seen(character) or character in SPACES:
        return character
    before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
    wide = _is_seen(before) and not before.isascii()
    if character in JOINERS and wide and _is_seen(after) and not after.isascii():
        return character
    if character == EMOJI and wide and not before.isalnum():
        return ""
    if character in JOINERS and before == EMOJI and _is_seen(after) and not after.isascii():
        return character
    return character.encode("unicode_escape").decode()


def _is_seen(character: str) -> bool:
    return bool(character) and character.isprintable() and character not in UNSEEN
