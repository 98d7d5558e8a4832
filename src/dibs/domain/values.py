"""`Value`: the immutable record that all layers share.

A `Value` is a tuple with named, typed fields, like `typing.NamedTuple`, but its class is created without
`exec` and without importing `typing`: the command line runs before every edit, loads some sixty of these
classes, and pays for each at every start (see docs/decisions/0003-values.md).
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # as namedtuple does

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, dataclass_transform
else:

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
