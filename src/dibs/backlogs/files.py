"""Reads backlog files whole, and replaces them atomically if nobody changed them meanwhile."""

from __future__ import annotations

import os
import stat
from os.path import join, realpath

from dibs import safe_files
from dibs.domain.values import Value
from dibs.safe_files import LIMIT, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

GRAPH_LIMIT = 256 << 20
"""Size limit in bytes of a file that contains all items."""

TEMPORARY = ".dibs-"
"""Name prefix of temporary files; the process id and random bytes follow."""

RANDOM = 8
"""Random bytes in such a name."""

SWEEP = 60.0
"""Seconds between two cleanups of a folder by one process, after killed writers."""

LOOKS = 3
"""How often a file is read again that changes while it is read."""

TURN_WAIT, TURN_LOOK = 5.0, 0.01
"""How long a writer waits for another in the same folder, and the poll interval; in seconds."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_OWN_FILES = "/proc/self/fd"
"""Where a file without a name can be named."""

_swept: dict[tuple[int, int], float] = {}
"""When this process last cleaned up a folder."""


class FileVersion(Value):
    """A file as it was read: its content, and how to detect a change."""

    data: bytes
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    mode: int


class _Place:
    """A file by the descriptor of its folder, and its name there."""

    def __init__(self, folder: int, name: str) -> None:
        self.folder, self.name = folder, name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)


def read(root: str, relative: str, limit: int = LIMIT) -> FileVersion:
    """Reads the file below `root`.

    Raises `Unreadable` for anything but a regular file below `root` of at most `limit` bytes, also behind
    links; `OSError` if it cannot be read.
    """
    with _place(root, relative) as place:
        return _read(place, limit)


def replace(root: str, relative: str, seen: FileVersion, data: bytes) -> bool:
    """Replaces the file, keeping its mode and, where allowed, its owner; False if it has changed.

    Atomic: the file is always the old or the new one, whole. Writers that use this function never
    overwrite
    each other; a change by another program is lost only in the microseconds between the last check and
    the
    rename.
    """
    try:
        place = _place(root, relative)
    except (FileNotFoundError, NotADirectoryError):
        return False
    with place:
        _sweep(place.folder)
        return _replace(place, seen, data)


def _replace(place: _Place, seen: FileVersion, data: bytes) -> bool:
    temporary = f"{TEMPORARY}{os.getpid()}-{os.urandom(RANDOM).hex()}"
    renamed = False
    file = _create(place.folder, temporary)
    try:
        _lock(file)  # until it is closed: a cleanup sees that it is in use
        _write(place, file, data)
        renamed = _rename(place, file, temporary, seen)
    except FileNotFoundError:
        return False
    finally:
        os.close(file)
        if not renamed:
            _remove(place.folder, temporary)
    if renamed:
        os.fsync(place.folder)
    return renamed


# Finding.


def _place(root: str, relative: str) -> _Place:
    """The file's place, with links resolved, if that is below `root`.

    Opens each folder from its parent without following links: nobody can insert one between a check and
    an
    open.
    """
    parts = _parts(relative)
    place = _opened(root, parts)
    if place is None:
        base, real = realpath(root), realpath(join(root, *parts))
        inside = real[len(base.rstrip("/")) + 1 :]
        if join(base, inside) != real or not inside:
            raise Unreadable("it is a link that leads out of the repository")
        place = _opened(base, inside.split("/"))
    if place is None:
        raise Unreadable("it is a link that leads nowhere")
    return place


def _parts(relative: str) -> list[str]:
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if relative.startswith("/") or ".." in parts or not parts or "\0" in relative:
        raise Unreadable("it is not a path below the repository")
    return parts


def _opened(root: str, parts: list[str]) -> _Place | None:
    """None if there is a link on the way."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            if _is_link(folder, part):
                os.close(folder)
                return None
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        if _is_link(folder, parts[-1]):
            os.close(folder)
            return None
    except BaseException:
        os.close(folder)
        raise
    return _Place(folder, parts[-1])


def _is_link(folder: int, name: str) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


# Reading.


def _read(place: _Place, limit: int) -> FileVersion:
    now = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    if not stat.S_ISREG(now.st_mode):
        raise Unreadable("it is not a file")
    file = os.open(place.name, _READ, dir_fd=place.folder)
    try:
        for _ in range(LOOKS):
            before, data = safe_files.contents(file, limit)
            seen = _seen(before, data)
            if seen == _seen(os.fstat(file), data):
                return seen
    finally:
        os.close(file)
    raise Unreadable("it changes while it is read")


def _seen(now: os.stat_result, data: bytes) -> FileVersion:
    mode = stat.S_IMODE(now.st_mode)
    return FileVersion(data, now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, mode)


# Writing.


def _create(folder: int, name: str) -> int:
    """An unnamed file where supported: it disappears when its writer is killed."""
    if os.path.isdir(_OWN_FILES):
        try:
            return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError:  # not supported by this file system
            pass
    return os.open(name, _CREATE, 0o600, dir_fd=folder)


def _lock(file: int) -> bool:
    """Whether the lock was acquired; False where locks are not supported."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write(place: _Place, file: int, data: bytes) -> None:
    like = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    _give(file, like)
    os.fchmod(file, stat.S_IMODE(like.st_mode))
    os.fsync(file)


def _give(file: int, like: os.stat_result) -> None:
    """Copies owner and group as far as allowed, so that files of other users stay readable to them."""
    own = os.fstat(file)
    for user, group in ((like.st_uid, -1), (-1, like.st_gid)):
        if (user in (-1, own.st_uid)) and (group in (-1, own.st_gid)):
            continue
        try:
            os.fchown(file, user, group)
        except PermissionError:
            continue


def _rename(place: _Place, file: int, temporary: str, seen: FileVersion) -> bool:
    """Checks once more and renames.

    The lock on the folder makes that atomic for all users of this module; it ends when the folder is
    closed.
    """
    if not _has_turn(place.folder):
        return False
    try:
        if _read(place, len(seen.data)) != seen:
            return False
    except (Unreadable, FileNotFoundError):
        return False
    if not os.fstat(file).st_nlink:
        os.link(f"{_OWN_FILES}/{file}", temporary, dst_dir_fd=place.folder, follow_symlinks=True)
    os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    return True


def _has_turn(folder: int) -> bool:
    import fcntl
    import time

    until = time.monotonic() + TURN_WAIT
    while time.monotonic() < until:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(TURN_LOOK)
        except OSError:
            return True  # no locks on this file system: rely on the comparison
        else:
            return True
    return False


# Cleanup after killed writers.


def _sweep(folder: int) -> None:
    """Removes orphaned temporary files. Not every time: a folder may contain many files."""
    import time

    now, own = time.monotonic(), os.fstat(folder)
    here = (own.st_dev, own.st_ino)
    if now < _swept.get(here, float("-inf")) + SWEEP:
        return
    _swept[here] = now
    with os.scandir(folder) as names:
        found = [entry.name for entry in names if _is_temporary(entry.name)]
    for name in found:
        try:
            _remove_unused(folder, name)
        except OSError:
            continue  # not ours to remove, and harmless


def _is_temporary(name: str) -> bool:
    process, _, chance = name.removeprefix(TEMPORARY).partition("-")
    return name.startswith(TEMPORARY) and process.isdecimal() and len(chance) == 2 * RANDOM


def _remove_unused(folder: int, name: str) -> None:
    """Its writer holds a lock on it while it lives, on whatever host."""
    file = os.open(name, _READ, dir_fd=folder)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode) and _lock(file):
            _remove(folder, name)
    finally:
        os.close(file)


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
