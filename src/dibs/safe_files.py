"""Read files of others safely: within limits of type, size and nesting depth, and only from owners we trust.

A repository comes from somewhere, and agents write into it. A file in it may be a pipe
without a writer, an endless device, or text nested so deeply that a recursive reader fails.
"""

from __future__ import annotations

import os
import stat

from dibs.domain.refusals import Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LIMIT = 1 << 20
"""The default maximum size of a file, in bytes."""

DEPTH = 32
"""The maximum nesting of tables and lists: nobody writes deeper ones by hand."""

DEEP = "it is nested too deeply"
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(Exception):  # noqa: N818 - the name says it already
    """A file that cannot be read as what it claims to be, and why."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


def read(path: str, limit: int = LIMIT) -> bytes:
    """The contents of a file, links followed. Raises `Unreadable` beyond a limit, else `OSError`."""
    return read_with_stat(path, limit)[1]


def read_with_stat(path: str, limit: int = LIMIT) -> tuple[os.stat_result, bytes]:
    """As `read`, with the stat result of the opened file.

    Checks the type before opening: opening a device may have side effects.
    """
    _check_type(os.stat(path))
    file = os.open(path, _READ)
    try:
        return contents(file, limit)
    finally:
        os.close(file)


def lines(path: str, limit: int = LIMIT) -> list[str]:
    """The lines of a small file of git; empty if it is missing or unreadable."""
    try:
        return read(path, limit).decode("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError, Unreadable):  # a path with a NUL names no file
        return []


def contents(file: int, limit: int) -> tuple[os.stat_result, bytes]:
    """The whole contents of an open file, and its stat result before reading."""
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
    """Reads one byte more than the size: the file may have grown."""
    left = size + 1
    while left > 0:
        piece = os.read(file, left)
        if not piece:
            return
        left -= len(piece)
        yield piece


# Parsing.


def toml(data: bytes | str, depth: int = DEPTH) -> dict[str, Any]:
    """Raises `Unreadable`. Long dotted keys are refused first: parsing one takes quadratic time."""
    import tomllib

    try:
        text = data if isinstance(data, str) else data.decode()
        if has_long_key(text):
            raise Unreadable(DEEP)
        stated = tomllib.loads(text)
        shallow(stated, depth)
    except RecursionError:
        raise Unreadable(DEEP) from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return stated


TOKENS = r'''(?sx)
    (?P<text> """ (?: [^"\\] | \\. | "(?!"") )*+ (?: """ )? | \'\'\' .*? (?: \'\'\' | \Z ) | \#[^\n]* )
  | (?P<part> [\w-]+ | " (?: [^"\\\n] | \\[^\n] )*+ "? | ' [^'\n]*+ '? )
  | (?P<dot> \. )
  | [ \t]+
  | (?P<other> . )
'''
"""A text that is not closed ends with its line, or the file: each character is read once."""


def has_long_key(text: str) -> bool:
    """Whether a dotted key of a TOML file has more than `DEPTH` parts. In one pass."""
    if text.count(".") < DEPTH:
        return False
    import re

    parts, dotted = 0, False
    for token in re.finditer(TOKENS, text):
        if token.lastgroup == "part":
            parts = parts + 1 if dotted else 1
            if parts > DEPTH:
                return True
        elif token.lastgroup in ("text", "other"):
            parts = 0
        if token.lastgroup is not None:
            dotted = token.lastgroup == "dot" and parts > 0
    return False


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
    """The value itself; raises `Unreadable` if it is nested too deeply."""
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


# Owners: files and folders of another user are refused before they are read.


def unsafe_storage(path: str, why: str) -> Refused:
    return refused("unsafe_storage", f"{path} {why}", path=path)


def is_ours(uid: int) -> bool:
    """Whether the uid is our own or, under sudo, that of the user who called it. git has the same rule."""
    own = os.geteuid()
    return uid == own or (own == 0 and os.environ.get("SUDO_UID") == str(uid))


def foreign(path: str) -> str:
    """Why `path` must not be read: it, or its link target, belongs to another user. Else ""."""
    for look in (os.lstat, os.stat):
        try:
            owner = look(path).st_uid
        except (OSError, ValueError):  # missing, unreachable or not a path: nothing is read
            continue
        if not is_ours(owner):
            return f"belongs to another user (uid {owner})"
    return ""


def check_owner(path: str) -> None:
    why = foreign(path)
    if why:
        raise unsafe_storage(path, why)


def check_opened(path: str, found: os.stat_result) -> None:
    """Checks the owner of the opened file: the path may point elsewhere by now."""
    if not is_ours(found.st_uid):
        raise unsafe_storage(path, f"belongs to another user (uid {found.st_uid})")


def check_private(folder: str) -> None:
    """Refuses a folder of another user, or one that others can write to; a missing folder is fine."""
    check_owner(folder)
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise unsafe_storage(folder, "can be written by other users")


def replace(path: str, text: str) -> None:
    """Replaces a file in the board's folder, for its owner alone.

    An agent's sandbox may be able to write there too: no link in the way is followed.
    """
    part = f"{path}.{os.getpid()}"
    if os.path.lexists(part):  # left by a killed process, or planted
        os.unlink(part)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


def file_id(path: str) -> tuple[int, int] | None:
    """Device and inode of the file at the path, if any. Does not open it: closing would drop locks."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return there.st_dev, there.st_ino
