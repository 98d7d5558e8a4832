"""Bulk intake: JSON lines, one request per line, read as a stream.

    {"channel": "slack", "ref": "https://...", "title": "Fix login", "url": "https://...", "delivery": "..."}

An invalid line becomes a problem with its line number, and reading continues. A stream may have any length:
only one line is held in memory.
"""

from __future__ import annotations

from dibs.domain.checks import quoted
from dibs.domain.values import Value
from dibs.intake.request import BadPayload, build_request, object_of, scalar_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from dibs.intake.request import IntakeRequest

LINE_MAX = 64 * 1024
FIELDS = ("channel", "ref", "title", "url", "delivery")


class Problem(Value):
    """A rejected line, and why."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def read_requests(stream: BinaryIO, channel: str = "") -> Iterator[IntakeRequest | Problem]:
    """The requests and the problems, in the order of the stream.

    `channel` is the default for lines that name none. Empty lines are skipped.
    """
    number = 0
    while line := stream.readline(LINE_MAX + 1):
        number += 1
        if len(line) > LINE_MAX and not line.endswith(b"\n"):
            _skip_line(stream)
            yield Problem(number, f"it has more than {LINE_MAX} bytes")
        elif line.strip():
            yield _read(number, line.rstrip(b"\r\n"), channel)


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(LINE_MAX)) and not rest.endswith(b"\n"):
        pass


def _read(number: int, line: bytes, channel: str) -> IntakeRequest | Problem:
    try:
        return request_in(line, channel)
    except BadPayload as why:
        return Problem(number, why.what)


def request_in(line: bytes, channel: str = "") -> IntakeRequest:
    """The request of one line; its digest covers the line without its line end. Raises `BadPayload`."""
    fields = object_of(line, LINE_MAX)
    for name in fields:
        if name not in FIELDS:
            raise BadPayload(f"it has the field {quoted(name)}; a line has {', '.join(FIELDS)}")
    given = {name: scalar_at(fields, (name,)) for name in FIELDS if fields.get(name) is not None}
    for name in ("channel", "ref"):
        if name not in given and not (name == "channel" and channel):
            raise BadPayload(f"it has no {name}")
    where, ref = given.pop("channel", channel), given.pop("ref")
    return build_request(where, ref, line, **given)
