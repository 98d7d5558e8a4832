"""TOML settings files written by people: read with limits, edited line by line, replaced atomically."""

from __future__ import annotations

import os
from errno import ENAMETOOLONG

from dibs import safe_files
from dibs.domain import checks
from dibs.domain.refusals import Refused, refused
from dibs.safe_files import Unreadable, read_with_stat, toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

DEPTH_MAX = 16
"""The limit of nested tables. No setting needs more than four."""

Path = tuple[str, ...]


# Reading.


def read(path: str) -> dict[str, Any]:
    """The contents of the file; empty if there is none."""
    return parse(text_of(path), path)


def text_of(path: str) -> str:
    """The text of a file of ours; "" if there is none."""
    safe_files.check_owner(path)
    try:
        found, data = read_with_stat(path)
        safe_files.check_opened(path, found)
        return data.decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError, Unreadable) as error:
        if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
            return ""
        raise unreadable(path, error) from None


def parse(text: str, where: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        return toml(text, DEPTH_MAX)
    except Unreadable as error:
        raise unreadable(where, error) from None


def unreadable(where: str, error: Exception) -> Exception:
    return refused("bad_setting", f"{where} cannot be read: {checks.short(str(error))}")


# Editing one value; all other lines and comments stay as they are.


class Chunk:
    """A piece of a file: a header, one `key = value` (which may span lines), or anything else."""

    def __init__(self, text: str, table: Path, keys: Path = ()) -> None:
        self.text, self.table, self.keys = text, table, keys

    @property
    def is_header(self) -> bool:
        return not self.keys and self.text.lstrip().startswith("[")

    @property
    def path(self) -> Path:
        return (*self.table, *self.keys)


def with_value(text: str, path: Path, value: Any, where: str) -> str:
    """The text with `path = value`; refused if that is impossible without touching other lines."""
    stated = parse(text, where)
    chunks = list(chunks_of(text.removesuffix("\n")))
    found = [each for each in chunks if each.keys and each.path == path]
    line = f"{shown_path(path[-1:])} = {shown(value)}\n"
    if found:
        key = found[0].text.partition("=")[0].rstrip()
        found[0].text = f"{key} = {shown(value)}{comment_of(found[0].text)}\n"
    else:
        insert(chunks, path[:-1], line)
    put(stated, path, value)
    return checked("".join(each.text for each in chunks), stated, path, where)


def comment_of(statement: str) -> str:
    """The comment after a value on one line, with the space before it."""
    import tomllib

    stated = tomllib.loads(statement)
    at = statement.find("#")
    while at >= 0 and statement.count("\n") == 1:
        try:
            if tomllib.loads(statement[:at]) == stated:
                before = statement[:at].rstrip()
                return statement[len(before) :].rstrip("\n")
        except ValueError:
            pass
        at = statement.find("#", at + 1)
    return ""


def without_value(text: str, path: Path, where: str) -> str:
    """The text without `path` and everything below it; unchanged if it is not there."""
    stated = parse(text, where)
    if not remove(stated, path):
        return text
    kept = [
        each
        for each in chunks_of(text.removesuffix("\n"))
        if not ((each.keys or each.is_header) and each.path[: len(path)] == path)
    ]
    return checked("".join(each.text for each in kept), stated, path, where)


def checked(text: str, wanted: dict[str, Any], path: Path, where: str) -> str:
    """The new text, if it parses to what is wanted: nothing else may have changed."""
    try:
        fits = without_empty(parse(text, where)) == without_empty(wanted)
    except Refused:
        fits = False
    if not fits:
        what = f"{where}: {shown_path(path)} is written in a way that cannot be changed alone"
        raise refused("bad_setting", f"{what}: edit the file", setting=shown_path(path))
    return text


def without_empty(stated: Any) -> Any:
    """The value without empty tables, which state nothing."""
    if not isinstance(stated, dict):
        return stated
    inner = {key: without_empty(value) for key, value in stated.items()}
    return {key: value for key, value in inner.items() if value != {}}


def chunks_of(text: str) -> Iterator[Chunk]:
    import tomllib

    table: Path = ()
    pending = ""
    for line in text.split("\n") if text else ():
        pending += f"{line}\n"
        try:
            stated = tomllib.loads(pending)
        except ValueError:
            continue  # the value continues on the next line
        if pending.lstrip().startswith("["):
            table = only_path(stated)
            yield Chunk(pending, table)
        else:
            yield Chunk(pending, table, keys_before_equals(pending) if stated else ())
        pending = ""


def only_path(stated: dict[str, Any]) -> Path:
    """The path through tables that contain exactly one key each."""
    keys: list[str] = []
    value: Any = stated
    while isinstance(value, dict) and len(value) == 1:
        [(key, value)] = value.items()
        keys.append(key)
    return tuple(keys)


def keys_before_equals(statement: str) -> Path:
    """The keys of a statement. A quoted key may contain an equals sign: it ends at
    the first where it is complete.
    """
    import tomllib

    at = statement.find("=")
    while at >= 0:
        try:
            return only_path(tomllib.loads(f"{statement[:at]}= 0"))
        except ValueError:
            at = statement.find("=", at + 1)
    return ()


def insert(chunks: list[Chunk], table: Path, line: str) -> None:
    """Inserts after the last line of the table; a missing table is added at the end."""
    own = [
        at
        for at, each in enumerate(chunks)
        if each.table == table and (each.keys or each.is_header)
    ]
    if own:
        chunks.insert(own[-1] + 1, Chunk(line, table))
    elif table:
        gap = "\n" if chunks and chunks[-1].text.strip() else ""
        chunks.append(Chunk(f"{gap}[{shown_path(table)}]\n{line}", table))
    else:
        chunks.insert(top(chunks), Chunk(line, table))


def top(chunks: list[Chunk]) -> int:
    """Where a top-level line goes: before the first header and the comment above it."""
    at = next((at for at, each in enumerate(chunks) if each.is_header), len(chunks))
    while at < len(chunks) and at and chunks[at - 1].text.startswith("#"):
        at -= 1
    return at


def put(stated: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        inner = stated.setdefault(key, {})
        if not isinstance(inner, dict):
            inner = stated[key] = {}
        stated = inner
    stated[path[-1]] = value


def remove(stated: dict[str, Any], path: Path) -> bool:
    for key in path[:-1]:
        inner = stated.get(key)
        if not isinstance(inner, dict):
            return False
        stated = inner
    return stated.pop(path[-1], None) is not None


def shown_path(path: Path) -> str:
    return ".".join(key if is_bare(key) else quoted(key) for key in path)


def is_bare(key: str) -> bool:
    return bool(key) and all(one.isascii() and (one.isalnum() or one in "-_") for one in key)


def shown(value: Any) -> str:
    """A value in TOML syntax, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{shown_path((key,))} = {shown(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return str(value)


def quoted(text: str) -> str:
    def escaped(one: str) -> str:
        if one in '"\\':
            return f"\\{one}"
        return one if one.isprintable() else f"\\U{ord(one):08x}"

    return f'"{"".join(map(escaped, text))}"'


# Writing.


def rewrite(path: str, change: Callable[[str], str], within: str = "") -> None:
    """Replaces the file by `change(text)`: atomically, synced, readable only by its owner.

    Concurrent changes in the same folder wait for a lock: none is lost. A missing
    folder is created, private like the one around it, `within`.
    """
    from fcntl import LOCK_EX, flock

    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    try:
        for each in (within, folder):
            if each:
                os.makedirs(each, mode=0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flock(lock, LOCK_EX)
            before = text_of(path)
            after = change(before)
            if after != before:
                replace(path, after, lock)
        finally:
            os.close(lock)
    except OSError as error:
        from dibs.storage.errors import storage_failed

        raise storage_failed(path, os.strerror(error.errno or 0)) from None


def replace(path: str, text: str, folder: int) -> None:
    part = f"{path}.{os.getpid()}"
    if os.path.lexists(part):  # left by a killed process: we hold the lock
        os.unlink(part)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(part, path)
        os.fsync(folder)
    except BaseException:
        if os.path.lexists(part):
            os.unlink(part)
        raise
