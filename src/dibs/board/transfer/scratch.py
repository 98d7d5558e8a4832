"""Scratch directories for transfers, and atomic creation of files."""

from __future__ import annotations

import os
import shutil
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

PREFIX = "dibs-passing-"

PART = ".dibs-"
"""The name prefix of a temporary file that is renamed when it is complete."""


@contextmanager
def scratch_directory() -> Iterator[str]:
    """A private scratch directory. A killed process leaves it behind with the
    board's data: later ones remove it.
    """
    remove_left_behind()
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


def remove_left_behind() -> None:
    """Removes our own scratch directories that no process uses."""
    left: list[str] = []
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as found:
        left = [each.path for each in found if each.name.startswith(PREFIX)]
    for folder in left:
        with suppress(OSError):
            remove_unused(folder)


def remove_unused(folder: str) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
        if os.fstat(lock).st_uid == os.geteuid():
            shutil.rmtree(folder)
    finally:
        os.close(lock)


# Files.


@contextmanager
def new_file(path: str, what: str) -> Iterator[IO[bytes]]:
    """Creates a file at `path`, readable only by its owner, complete and synced; on error there is no file.

    It is written under a new, unguessable name in the same folder: no prepared link is followed.
    """
    path = abspath(path)
    if lexists(path):
        raise bad_argument(f"{path} is there already: {what} overwrites nothing")
    if not isdir(dirname(path)):
        raise bad_argument(f"there is no folder {dirname(path)}")
    part = ""
    try:
        descriptor, part = tempfile.mkstemp(prefix=PART, suffix=".part", dir=dirname(path))
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
