"""Many asks at once: one JSON object in each line, read one by one.

    {"channel": "slack", "ref": "https://...", "title": "Fix login", "url": "https://...", "delivery": "..."}

A line that makes no sense is a problem with its number, and the next one is read. A stream may have any
length: never more than one line is held.
"""

from __future__ import annotations

from dibs.channels.ask import Unacceptable, ask_of
from dibs.channels.payload import object_of, scalar_at
from dibs.core.checks import quoted
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from dibs.channels.ask import Ask

LINE_MAX = 64 * 1024
FIELDS = ("channel", "ref", "title", "url", "delivery")


class Problem(Value):
    """A line that is not taken in, and why."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def asks(stream: BinaryIO, channel: str = "") -> Iterator[Ask | Problem]:
    """The asks and the problems, in the order of the stream.

    `channel` is that of the lines that name none. Empty lines are passed over.
    """
    number = 0
    while line := stream.readline(LINE_MAX + 1):
        number += 1
        if len(line) > LINE_MAX and not line.endswith(b"\n"):
            _pass_over(stream)
            yield Problem(number, f"it has more than {LINE_MAX} bytes")
        elif line.strip():
            yield _read(number, line.rstrip(b"\r\n"), channel)


def _pass_over(stream: BinaryIO) -> None:
    while (rest := stream.readline(LINE_MAX)) and not rest.endswith(b"\n"):
        pass


def _read(number: int, line: bytes, channel: str) -> Ask | Problem:
    try:
        return ask_in(line, channel)
    except Unacceptable as why:
        return Problem(number, why.what)


def ask_in(line: bytes, channel: str = "") -> Ask:
    """The ask of one line; its digest is that of the line without its end. Raises `Unacceptable`."""
    fields = object_of(line, LINE_MAX)
    for name in fields:
        if name not in FIELDS:
            raise Unacceptable(f"it has the field {quoted(name)}; a line has {', '.join(FIELDS)}")
    given = {name: scalar_at(fields, (name,)) for name in FIELDS if fields.get(name) is not None}
    for name in ("channel", "ref"):
        if name not in given and not (name == "channel" and channel):
            raise Unacceptable(f"it has no {name}")
    where, ref = given.pop("channel", channel), given.pop("ref")
    return ask_of(where, ref, line, **given)
