"""Change several files of other programs together: settings, hooks, instructions.

Every new content is first written beside its target, private from its first byte, and
synced. When all of it is on disk it is renamed into place. So a full or read-only disk
changes nothing, and after a kill each file has either its old or its new content.
"""

from __future__ import annotations

import errno
import os
import stat
from os.path import basename, dirname, isdir, join, lexists

from dibs.domain.refusals import Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import EllipsisType
    from typing import Self

PRIVATE, BY_UMASK = 0o600, 0o666
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""Errors of a file system that does not support hard links."""


class NotWritten(Refused):
    """A file could not be written; all files are unchanged."""


class FileChanges:
    """Planned file changes, applied at the end of the `with` block; on an error none is."""

    def __init__(self) -> None:
        self.planned: set[str] = set()
        """Paths that will exist."""
        self._checks: list[tuple[str, bytes | None]] = []
        self._steps: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            if error is None:
                self._commit()
        except BaseException:
            self._take_back()
            raise
        if error is not None:
            self._take_back()
        if isinstance(error, OSError):
            raise not_written(error) from None

    def _commit(self) -> None:
        for path, seen in self._checks:
            if content(path) != seen:
                raise NotWritten(
                    refused("busy", f"{path} was changed by another program meanwhile").refusal
                )
        try:
            for step in self._steps:
                step()
        except OSError as error:
            raise not_written(error) from None

    def _take_back(self) -> None:
        for undo in reversed(self._undo):
            try:
                undo()
            except OSError:  # replaced or in use by another program: it stays
                continue

    # Planning changes.

    def make_folder(self, path: str) -> None:
        """Creates a folder and its missing parents."""
        missing = []
        while not isdir(path):
            missing.append(path)
            path = dirname(path)
        for folder in reversed(missing):
            os.mkdir(folder)
            self._undo.append(lambda folder=folder: os.rmdir(folder))  # type: ignore[misc]

    def write(
        self,
        path: str,
        data: bytes,
        mode: int | None = None,
        *,
        seen: bytes | EllipsisType | None = ...,
    ) -> None:
        """Replaces the whole file, keeping its permissions unless `mode` is given.

        `seen`: the content from which the new one was made, `None` if there was no file; refuses if that
        has changed since.
        """
        remove_left_behind(path)
        rights = mode if mode is not None else rights_of(path)
        own = f"{path}.dibs-{os.getpid()}-{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(own, flags, BY_UMASK if rights is None else PRIVATE)
        self._undo.append(lambda: os.unlink(own))
        with open(file, "wb") as opened:
            opened.write(data)
            opened.flush()
            if rights is not None:
                os.fchmod(file, rights)
            os.fsync(file)
        if seen is not ...:
            self._checks.append((path, seen))
        self.planned.add(path)
        self._steps.append(lambda: os.replace(own, path))

    def second_name(self, path: str, other: str) -> None:
        """Adds a second name (hard link) for the same file; the file exists all the time."""
        self.planned.add(other)
        if is_same(path, other):
            return  # an interrupted run has done it
        try:
            os.link(path, other, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            self._steps.append(lambda: os.rename(path, other))
        else:
            self._undo.append(lambda: os.unlink(other))

    def rename(self, path: str, other: str) -> None:
        self._steps.append(lambda: os.replace(path, other))

    def remove(self, path: str) -> None:
        self._steps.append(lambda: os.unlink(path))

    def remove_if_empty(self, folder: str) -> None:
        self._steps.append(lambda: None if os.listdir(folder) else os.rmdir(folder))


def content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def rights_of(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def is_same(path: str, other: str) -> bool:
    return lexists(other) and os.path.samestat(os.lstat(path), os.lstat(other))


def remove_left_behind(path: str) -> None:
    """Removes temporary files that a killed process left beside this file."""
    start = f"{basename(path)}.dibs-"
    for name in os.listdir(dirname(path)):
        number = name.removeprefix(start).partition("-")[0]
        if name.startswith(start) and number.isdecimal() and not is_running(int(number)):
            os.unlink(join(dirname(path), name))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True


def not_written(error: OSError) -> NotWritten:
    code = "disk_full" if error.errno in FULL else "storage_failed"
    code = "read_only" if error.errno in FORBIDDEN else code
    path = os.fsdecode(error.filename or "")
    what = f"{path} cannot be written" if path else "a file cannot be written"
    why = os.strerror(error.errno or 0)
    return NotWritten(refused(code, f"{what}: {why}; nothing was changed", path=path).refusal)
