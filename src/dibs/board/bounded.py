"""Files that anybody may have written, read within limits: of type, of size, of depth.

A repository comes from somewhere, and agents write into it. A file of it may be a pipe that nobody
writes to, a device without end, or text that is nested so deeply that whoever walks through it fails.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LIMIT = 1 << 20
"""The largest file that is read, in bytes, where nothing else is said."""

DEPTH = 32
"""Tables in tables, lists in lists: deeper than this nobody writes by hand."""

DEEP = "it is nested too deeply"
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(Exception):  # noqa: N818 - what it is about is in the name
    """A file that cannot be read as what it claims to be, and why."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


def read(path: str, limit: int = LIMIT) -> bytes:
    """A file by its path, links followed. Raises `Unreadable` beyond a limit, else `OSError`.

    It is looked at before it is opened: to open a device may be to use it.
    """
    _check_type(os.stat(path))
    file = os.open(path, _READ)
    try:
        return contents(file, limit)[1]
    finally:
        os.close(file)


def lines(path: str, limit: int = LIMIT) -> list[str]:
    """The lines of a small file of git's, or none: it cannot be read, or there is none."""
    try:
        return read(path, limit).decode("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError, Unreadable):  # a path that holds a NUL is none
        return []


def contents(file: int, limit: int) -> tuple[os.stat_result, bytes]:
    """All of a file that is open, from its first byte on, and what it was like before that."""
    before = os.fstat(file)
    _check_type(before)
    if before.st_size > limit:
        raise Unreadable(f"it has {before.st_size} bytes; at most {limit} are read")
    os.lseek(file, 0, os.SEEK_SET)
    return before, b"".join(_pieces(file, before.st_size))


def _check_type(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable("it is not a file")


def _pieces(file: int, size: int) -> Iterator[bytes]:
    """One byte more is asked for than there should be: it may have grown."""
    left = size + 1
    while left > 0:
        piece = os.read(file, left)
        if not piece:
            return
        left -= len(piece)
        yield piece


# What is in them.


def toml(data: bytes) -> dict[str, Any]:
    """Raises `Unreadable`. Long keys are refused first: to read one takes the square of its length."""
    import re
    import tomllib

    try:
        text = data.decode()
        part = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
        if re.search(rf"(?<![\w-]){part}(?:[ \t]*\.[ \t]*{part}){{{DEPTH}}}", text):
            raise Unreadable(DEEP)
        stated = tomllib.loads(text)
        shallow(stated)
    except RecursionError:
        raise Unreadable(DEEP) from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return stated


def json(data: bytes | str) -> Any:
    """Raises `Unreadable`."""
    from json import loads

    try:
        return shallow(loads(data))
    except RecursionError:
        raise Unreadable(DEEP) from None
    except ValueError:
        raise Unreadable("it is not JSON") from None


def shallow(value: Any, most: int = DEPTH) -> Any:
    """The value itself, if it is not nested too deeply."""
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return value
    raise Unreadable(DEEP)
