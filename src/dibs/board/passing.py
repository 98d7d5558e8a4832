"""A folder for a copy of a board on its way, which is gone afterwards: at the latest with the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "dibs-passing-"


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
