"""The facts of an event as JSON values: RFC 3339 instants, durations as typed, actors by name, amounts.

Only for display: the ledger stores numbers, and its digests cover those. The conversion follows the type
annotation of each field, so a new event needs no code here.
"""

from __future__ import annotations

from dibs.domain.instants import exact, iso
from dibs.domain.model import Token
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.domain.model import Actor, ActorId

    Actors = Mapping[ActorId, Actor]

AMOUNT = "cost"
"""A field whose type does not show its unit: millionths of the board's currency."""

_types: dict[type, dict[str, str]] = {}


def facts_payload(value: Value, actors: Actors) -> dict[str, Any]:
    """The fields by name; actors appear under their current names."""
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
    return facts_payload(value, actors) if isinstance(value, Value) else list(value)


def amount(millionths: int) -> str:
    from dibs.timesheets.formats import money

    return money(millionths)


def types_of(kind: type) -> dict[str, str]:
    """The annotation of each field, without `| None`."""
    found = _types.get(kind)
    if found is None:
        found = {}
        for each in reversed(kind.__mro__):
            for field, written in vars(each).get("__annotations__", {}).items():
                found[field] = written.removesuffix(" | None")
        _types[kind] = found
    return found
