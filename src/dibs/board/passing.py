"""What a copy of a board needs on its way: a folder that is gone afterwards, a file that is whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from errno import ENOSPC
from fcntl import LOCK_EX, LOCK_NB, flock
from os.path import abspath, dirname, isdir, lexists

from dibs.core.refusals import Refused, bad_argument
from dibs.stores import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

PREFIX = "dibs-passing-"

PART = ".dibs-"
"""How the name of a file begins that is on its way to become another one."""


@contextmanager
def passing_folder() -> Iterator[str]:
    """A private one. Who is killed leaves it behind, and with it all that the board says: others tidy up."""
    remove_left_behind()
    folder, lock = make_locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def make_locked() -> tuple[str, int]:
    """A folder whose lock shows that somebody uses it; made anew if it was tidied up before it was locked."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        flock(lock, LOCK_EX)
        if os.path.isdir(folder):
            return folder, lock
        os.close(lock)


def remove_left_behind() -> None:
    """What is ours, and nobody uses."""
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


# A file.


@contextmanager
def new_file(path: str, what: str) -> Iterator[IO[bytes]]:
    """A file at `path` that only its owner may read, with all that is written here, synced; or none.

    It is written under a name that nobody can guess, and made there: no link that waits is followed.
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
    """Gives a file its name, unless another one has it by now."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise bad_argument(f"{path} is there already: {what} overwrites nothing") from None
    except OSError:  # a file system that has no links
        os.rename(part, path)
    folder = os.open(dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def written_badly(path: str, error: OSError) -> Refused:
    if error.errno == ENOSPC:
        return faults.disk_full(path)
    return faults.storage_failed(path, os.strerror(error.errno or 0))
