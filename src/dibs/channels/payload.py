"""JSON that somebody else wrote: read strictly, and asked by paths (`issue.number`, `data.0.id`)."""

from __future__ import annotations

from functools import cache

from dibs.channels.ask import PAYLOAD_MAX, Unacceptable, check_size
from dibs.core.checks import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from json import JSONDecoder
    from typing import Any

KINDS = {dict: "an object", list: "a list", str: "text", bool: "a yes or no", type(None): "null"}


class Missing(Unacceptable):
    """There is nothing at a path."""


class Number(str):
    """A number as it is written: none is too large, and none loses a digit."""

    __slots__ = ()


class Fraction(Number):
    __slots__ = ()


def object_of(data: bytes, most: int = PAYLOAD_MAX) -> dict[str, Any]:
    """The object that the bytes are, in which every key stands once. Raises `Unacceptable`."""
    from json import JSONDecodeError

    check_size(data, most)
    try:
        value = _decoder().decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unacceptable(f"it is not UTF-8 (byte {error.start})") from None
    except JSONDecodeError as error:
        raise Unacceptable(f"it is not JSON: {error.msg} (character {error.pos})") from None
    except RecursionError:
        raise Unacceptable("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise Unacceptable(f"it is {kind_of(value)}, and no object")
    return value


@cache
def _decoder() -> JSONDecoder:
    """One for all payloads: to make one takes longer than to read a line."""
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
                raise Unacceptable(f"the key {quoted(key)} stands in it twice")
            seen.add(key)
    return value


def _no_constant(word: str) -> None:
    raise Unacceptable(f"it is not JSON: {word}")


def kind_of(value: object) -> str:
    return KINDS.get(type(value), "a number")


def at(value: Any, steps: Sequence[str]) -> Any:
    """What stands at a path. Raises `Missing` if there is nothing, or null; `Unacceptable` if the
    path leads through something that has no parts.
    """
    path = ".".join(steps)
    for place, step in enumerate(steps):
        here = ".".join(steps[:place]) or "the payload"
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list):
            index = int(step) if step.isascii() and step.isdigit() else None
            if index is None:
                raise Unacceptable(
                    f"there is no {path}: {here} is a list, {step} is no place in it"
                )
            value = value[index] if index < len(value) else None
        else:
            raise Unacceptable(f"there is no {path}: {here} is {kind_of(value)}")
        if value is None:
            raise Missing(f"there is no {path}: {here} has no {step}")
    return value


def text_at(value: Any, path: str) -> str:
    found = at(value, path.split("."))
    if type(found) is not str:
        raise Unacceptable(f"{path} is {kind_of(found)}; it is text")
    return found


def number_at(value: Any, path: str) -> str:
    """A whole number above zero, in its digits."""
    found = at(value, path.split("."))
    if type(found) is not Number:
        raise Unacceptable(f"{path} is {_kind_of_number(found)}; it is a whole number")
    if len(found) > 18 or found[0] in "-0":
        raise Unacceptable(f"{path} is not between 1 and 18 digits long, or not above zero")
    return str(found)


def scalar_at(value: Any, steps: Sequence[str]) -> str:
    """Text, or a whole number in its digits."""
    found = at(value, steps)
    if type(found) not in (str, Number):
        raise Unacceptable(
            f"{'.'.join(steps)} is {_kind_of_number(found)}; it is text or a whole number"
        )
    return str(found)


def _kind_of_number(value: object) -> str:
    return "a number with a fraction" if isinstance(value, Fraction) else kind_of(value)
