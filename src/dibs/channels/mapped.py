"""Any other JSON, by a mapping in the settings: which part of a payload is the ref, the title, ...

    {"ref": "data.id", "title": "data.subject", "url": "data.links.0.href?"}

A path leads through objects by their keys and through lists by numbers from 0. What it names has to be
there, so that a mistake in a mapping is found with the first payload; `?` at its end says that it need not.
"""

from __future__ import annotations

from dibs.channels.ask import Ask, Unacceptable, ask_of
from dibs.channels.payload import Missing, object_of, scalar_at
from dibs.core.checks import quoted
from dibs.core.refusals import bad_argument
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATH_LENGTH = 256
PATH_STEPS = 16


class Path(Value):
    """Where something stands in a payload."""

    steps: tuple[str, ...]
    optional: bool = False

    def of(self, payload: dict[str, Any]) -> str:
        try:
            return scalar_at(payload, self.steps)
        except Missing:
            if self.optional:
                return ""
            raise


class Paths(Value):
    """Where the parts of an ask stand in the payloads of a channel."""

    ref: Path
    title: Path | None = None
    url: Path | None = None
    delivery: Path | None = None

    def __str__(self) -> str:
        named = {name: path for name, path in self.named().items() if path is not None}
        return ", ".join(f"{name}: {'.'.join(path.steps)}" for name, path in named.items())


def paths_of(settings: Mapping[str, object]) -> Paths:
    """The mapping that the settings state. Raises `Refused` with what is wrong with it."""
    unknown = [name for name in settings if name not in Paths.fields]
    if unknown:
        raise bad_argument(
            f"a mapping has no {quoted(str(unknown[0]))}; it has {', '.join(Paths.fields)}"
        )
    if "ref" not in settings:
        raise bad_argument("a mapping says where the ref is")
    paths = Paths(**{name: path_of(name, value) for name, value in settings.items()})
    if paths.ref.optional:
        raise bad_argument("a mapping's ref has to be there: its path has no ?")
    return paths


def path_of(name: str, value: object) -> Path:
    if not isinstance(value, str) or len(value) > PATH_LENGTH:
        raise bad_argument(f"the path to the {name} is text of at most {PATH_LENGTH} characters")
    steps = tuple(value.removesuffix("?").split("."))
    if not all(steps) or len(steps) > PATH_STEPS or not value.isprintable():
        raise bad_argument(f"{quoted(value)} is not a path; one looks like data.0.id")
    return Path(steps, optional=value.endswith("?"))


def read(channel: str, paths: Paths, payload: bytes, delivery: str = "") -> Ask:
    """What a payload asks for; `delivery` is the id in its headers, if the mapping names none.

    Raises `Unacceptable`, which names the path.
    """
    fields = object_of(payload)
    given = {name: path.of(fields) for name, path in paths.named().items() if path is not None}
    given["delivery"] = given.get("delivery") or delivery
    try:
        return ask_of(channel, given.pop("ref"), payload, **given)
    except Unacceptable as why:
        raise Unacceptable(f"{why.what} ({paths})") from None
