"""The facts of an event, told as JSON tells everything: instants as RFC 3339, durations as they may be typed,
actors by name, amounts as amounts.

The ledger keeps them as numbers, and its digests are over those: here they are only shown. What a number
means is read off the type of its field, so that a new event is told rightly without a line here.
"""

from __future__ import annotations

from dibs.core.instants import exact, iso
from dibs.core.model import Token
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.core.model import Actor, ActorId

    Actors = Mapping[ActorId, Actor]

AMOUNT = "cost"
"""A field whose type does not say what it is: millionths of the board's currency."""

_types: dict[type, dict[str, str]] = {}


def told(value: Value, actors: Actors) -> dict[str, Any]:
    """Each field by its name; the names of actors are those of today."""
    types = types_of(type(value))
    return {
        field: fact(inner, AMOUNT if field == AMOUNT else types[field], actors)
        for field, inner in zip(value.fields, value)
    }


def fact(value: Any, kind: str, actors: Actors) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return several(value, actors)
    if kind == "Instant":
        return iso(value)
    if kind == "Duration":
        return exact(value)
    if kind == "ActorId":
        return actors[value].name if value in actors else value
    return amount(value) if kind == AMOUNT else value


def several(value: tuple[Any, ...], actors: Actors) -> Any:
    if isinstance(value, Token):
        return str(value)
    return told(value, actors) if isinstance(value, Value) else list(value)


def amount(millionths: int) -> str:
    from dibs.interfaces.sheets import money

    return money(millionths)


def types_of(kind: type) -> dict[str, str]:
    """The type of each field, as it is written: `Instant` for `Instant | None` too."""
    found = _types.get(kind)
    if found is None:
        found = {}
        for each in reversed(kind.__mro__):
            for field, written in vars(each).get("__annotations__", {}).items():
                found[field] = written.removesuffix(" | None")
        _types[kind] = found
    return found
