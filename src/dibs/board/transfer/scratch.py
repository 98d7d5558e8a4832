"""Scratch directories for transfers, and atomic creation of files."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from errno import ENOSPC
from fcntl import LOCK_EX, LOCK_NB, flock
from os.path import abspath, dirname, isdir, lexists

from dibs.domain.refusals import Refused, bad_argument
from dibs.storage import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

PREFIX = "dibs-scratch-"

PART, PART_END = ".dibs-", ".part"
"""Prefix and suffix of the name of a file that is not complete yet."""


@contextmanager
def scratch_directory() -> Iterator[str]:
    """A private scratch directory. A killed process leaves it behind with the
    board's data: later ones remove it.
    """
    remove_left_behind(tempfile.gettempdir(), PREFIX)
    folder, lock = make_locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def make_locked() -> tuple[str, int]:
    """A directory whose lock shows that it is in use; created again if it was
    removed before it was locked.
    """
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        flock(lock, LOCK_EX)
        if os.path.isdir(folder):
            return folder, lock
        os.close(lock)


def remove_left_behind(folder: str, prefix: str, suffix: str = "") -> None:
    """Removes our own scratch directories, or partial files, that a killed process left in a folder."""
    left: list[str] = []
    with suppress(OSError), os.scandir(folder) as found:
        left = [
            each.path
            for each in found
            if each.name.startswith(prefix) and each.name.endswith(suffix)
        ]
    for path in left:
        with suppress(OSError):
            remove_unused(path)


def remove_unused(path: str) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
        there = os.fstat(lock)
        if there.st_uid == os.geteuid():
            (shutil.rmtree if stat.S_ISDIR(there.st_mode) else os.remove)(path)
    finally:
        os.close(lock)


# Files.


@contextmanager
def new_file(path: str, what: str) -> Iterator[IO[bytes]]:
    """Creates a file at `path`, readable only by its owner, complete and synced; on error there is no file.

    It is written under a new, unguessable name in the same folder: no prepared link is followed. A killed
    process leaves it behind: the next one that creates a file in that folder removes it.
    """
    path = abspath(path)
    if lexists(path):
        raise bad_argument(f"{path} is there already: {what} overwrites nothing")
    if not isdir(dirname(path)):
        raise bad_argument(f"there is no folder {dirname(path)}")
    part = ""
    remove_left_behind(dirname(path), PART, PART_END)
    try:
        descriptor, part = locked_part(dirname(path))
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            publish(part, path, what)
    except OSError as error:
        raise written_badly(path, error) from None
    finally:
        if part:
            with suppress(FileNotFoundError):
                os.remove(part)


def locked_part(folder: str) -> tuple[int, str]:
    """A new file whose lock shows that it is in use; created again if it was removed before it was locked."""
    while True:
        descriptor, part = tempfile.mkstemp(prefix=PART, suffix=PART_END, dir=folder)
        with suppress(OSError):  # where files cannot be locked, nothing is removed either
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, part
        os.close(descriptor)


def publish(part: str, path: str, what: str) -> None:
    """Gives the file its name, unless another file has it by now."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise bad_argument(f"{path} is there already: {what} overwrites nothing") from None
    except OSError:  # a file system without hard links
        os.rename(part, path)
    folder = os.open(dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def written_badly(path: str, error: OSError) -> Refused:
    if error.errno == ENOSPC:
        return errors.disk_full(path)
    return errors.storage_failed(path, os.strerror(error.errno or 0))
