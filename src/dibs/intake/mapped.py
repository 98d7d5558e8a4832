"""Intake of any other JSON, by a mapping in the settings from payload paths to ref, title, ...

    {"ref": "data.id", "title": "data.subject", "url": "data.links.0.href?"}

A path leads through objects by key and through lists by index from 0. Its value is required, so that a
mistake in a mapping shows with the first payload; a `?` at its end makes it optional.
"""

from __future__ import annotations

from dibs.domain.checks import quoted
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value
from dibs.intake.request import (
    BadPayload,
    IntakeRequest,
    Missing,
    build_request,
    object_of,
    scalar_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATH_LENGTH = 256
PATH_STEPS = 16


class PayloadPath(Value):
    """The path of a value in a payload."""

    steps: tuple[str, ...]
    optional: bool = False

    def of(self, payload: dict[str, Any]) -> str:
        try:
            return scalar_at(payload, self.steps)
        except Missing:
            if self.optional:
                return ""
            raise


class PayloadMapping(Value):
    """A channel's mapping: the path of each part of a request."""

    ref: PayloadPath
    title: PayloadPath | None = None
    url: PayloadPath | None = None
    delivery: PayloadPath | None = None

    def __str__(self) -> str:
        named = {name: path for name, path in self.named().items() if path is not None}
        return ", ".join(f"{name}: {'.'.join(path.steps)}" for name, path in named.items())


def paths_of(settings: Mapping[str, object]) -> PayloadMapping:
    """The mapping in the settings. Raises `Refused` if it is invalid."""
    unknown = [name for name in settings if name not in PayloadMapping.fields]
    if unknown:
        raise bad_argument(
            f"a mapping has no {quoted(str(unknown[0]))}; it has {', '.join(PayloadMapping.fields)}"
        )
    if "ref" not in settings:
        raise bad_argument("a mapping needs a path for the ref")
    paths = PayloadMapping(**{name: path_of(name, value) for name, value in settings.items()})
    if paths.ref.optional:
        raise bad_argument("the ref of a mapping is required: its path must not end with ?")
    return paths


def path_of(name: str, value: object) -> PayloadPath:
    if not isinstance(value, str) or len(value) > PATH_LENGTH:
        raise bad_argument(f"the path to the {name} is text of at most {PATH_LENGTH} characters")
    steps = tuple(value.removesuffix("?").split("."))
    if not all(steps) or len(steps) > PATH_STEPS or not value.isprintable():
        raise bad_argument(f"{quoted(value)} is not a path; one looks like data.0.id")
    return PayloadPath(steps, optional=value.endswith("?"))


def read(channel: str, paths: PayloadMapping, payload: bytes, delivery: str = "") -> IntakeRequest:
    """The request in a payload. `delivery` is the id in its headers, used if the mapping names none.

    Raises `BadPayload`, which names the path.
    """
    fields = object_of(payload)
    given = {name: path.of(fields) for name, path in paths.named().items() if path is not None}
    given["delivery"] = given.get("delivery") or delivery
    try:
        return build_request(channel, given.pop("ref"), payload, **given)
    except BadPayload as why:
        raise BadPayload(f"{why.what} ({paths})") from None
