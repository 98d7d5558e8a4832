"""Strict parsing of untrusted JSON, and lookup by path (`issue.number`, `data.0.id`)."""

from __future__ import annotations

from functools import cache

from dibs.domain.checks import quoted
from dibs.intake.request import PAYLOAD_MAX, BadPayload, check_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from json import JSONDecoder
    from typing import Any

KINDS = {dict: "an object", list: "a list", str: "text", bool: "a yes or no", type(None): "null"}


class Missing(BadPayload):
    """The payload has no value at a path."""


class Number(str):
    """A number as its digits, so that any size is exact."""

    __slots__ = ()


class Fraction(Number):
    __slots__ = ()


def object_of(data: bytes, most: int = PAYLOAD_MAX) -> dict[str, Any]:
    """The JSON object in the bytes. Refuses duplicate keys. Raises `BadPayload`."""
    from json import JSONDecodeError

    check_size(data, most)
    try:
        value = _decoder().decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadPayload(f"it is not UTF-8 (byte {error.start})") from None
    except JSONDecodeError as error:
        raise BadPayload(f"it is not JSON: {error.msg} (character {error.pos})") from None
    except RecursionError:
        raise BadPayload("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadPayload(f"it is {kind_of(value)}, and no object")
    return value


@cache
def _decoder() -> JSONDecoder:
    """A shared decoder: creating one takes longer than parsing a line."""
    from json import JSONDecoder

    return JSONDecoder(
        object_pairs_hook=_each_key_once,
        parse_int=Number,
        parse_float=Fraction,
        parse_constant=_no_constant,
    )


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadPayload(f"the key {quoted(key)} occurs twice")
            seen.add(key)
    return value


def _no_constant(word: str) -> None:
    raise BadPayload(f"it is not JSON: {word}")


def kind_of(value: object) -> str:
    return KINDS.get(type(value), "a number")


def at(value: Any, steps: Sequence[str]) -> Any:
    """The value at a path. Raises `Missing` if it is absent or null, `Unacceptable` if the path leads
    through a scalar.
    """
    path = ".".join(steps)
    for place, step in enumerate(steps):
        here = ".".join(steps[:place]) or "the payload"
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list):
            index = int(step) if step.isascii() and step.isdigit() else None
            if index is None:
                raise BadPayload(f"there is no {path}: {here} is a list, {step} is no place in it")
            value = value[index] if index < len(value) else None
        else:
            raise BadPayload(f"there is no {path}: {here} is {kind_of(value)}")
        if value is None:
            raise Missing(f"there is no {path}: {here} has no {step}")
    return value


def text_at(value: Any, path: str) -> str:
    found = at(value, path.split("."))
    if type(found) is not str:
        raise BadPayload(f"{path} is {kind_of(found)}; it is text")
    return found


def number_at(value: Any, path: str) -> str:
    """A positive whole number, as digits."""
    found = at(value, path.split("."))
    if type(found) is not Number:
        raise BadPayload(f"{path} is {_kind_of_number(found)}; it is a whole number")
    if len(found) > 18 or found[0] in "-0":
        raise BadPayload(f"{path} is not between 1 and 18 digits long, or not above zero")
    return str(found)


def scalar_at(value: Any, steps: Sequence[str]) -> str:
    """Text, or a whole number as digits."""
    found = at(value, steps)
    if type(found) not in (str, Number):
        raise BadPayload(
            f"{'.'.join(steps)} is {_kind_of_number(found)}; it is text or a whole number"
        )
    return str(found)


def _kind_of_number(value: object) -> str:
    return "a number with a fraction" if isinstance(value, Fraction) else kind_of(value)
