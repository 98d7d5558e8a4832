"""All files that dibs creates in the folder of a board: only these may be deleted with it.

A board may be in a folder that a person chose, with files of others in it. So a
file is deleted only if its name is in this table, it is a plain file or folder
(links are neither followed nor removed), and it belongs to the caller.
"""

from __future__ import annotations

import os
import stat
from os.path import join

from dibs.domain.values import Value
from dibs.safe_files import unsafe_storage
from dibs.storage import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

FILES = (
    r"settings\.toml(\.old|\.\d+)?",  # a restore keeps the previous ones
    r"board\.id(\.\d+)?",  # with a number: being written
    r"backlog-index\.json(\.\d+)?",
    r"backlog\.lock",
    r"before-restore-\d+\.db(\.part)?",
    r"on-server(\.\d+)?",
    r"board\.db\.damaged-\d+(-wal|-shm)?",
    r"board\.db-(wal|shm|journal)",
    r"write\.lock",
    r"board\.db",
)
"""In order of deletion. The database is the last: until then the board is found,
and deleting it can be repeated.
"""

FOLDERS = {
    "dispatch": (
        r"dispatch-[0-9a-f]+\.log",  # of a worker
        r"[A-Za-z][\w.-]*-\d+\.\d+\.log",  # of a run: KEY-TOKEN
        r"notified-[0-9a-f-]+",
        r"notify\.log",
    ),
    r"\.dibs-\w{8}": (),  # a move tests whether a folder can be created
}
"""Folders beside the database, each with its files. A folder is deleted when it is empty."""


class Contents(Value):
    """The contents of a board's folder, by names relative to it."""

    folder: str
    ours: tuple[str, ...]
    """Files and folders that dibs created, in the order in which they can be deleted."""
    others: tuple[str, ...]
    """Everything else; of a folder only its name."""


def contents(folder: str) -> Contents:
    """Lists the folder; refused if it is a link, or belongs to another user."""
    with Folder(folder) as top:
        if os.fstat(top.descriptor).st_uid != os.geteuid():
            raise unsafe_storage(folder, "belongs to another user")
        ours: list[str] = []
        for pattern, files in FOLDERS.items():
            for name in top.matching(pattern, stat.S_ISDIR):
                with Folder(name, top.descriptor) as inner:
                    found = [one for file in files for one in inner.matching(file, stat.S_ISREG)]
                    ours += [join(name, one) for one in found]
                    ours += [name] if len(found) == len(inner.names()) else []
        for pattern in FILES:
            ours += top.matching(pattern, stat.S_ISREG)
        others = [name for name in top.names() if name not in ours]
    return Contents(folder, tuple(ours), tuple(others))


def delete(found: Contents) -> bool:
    """Deletes our files, then the folder if it is empty; returns whether the folder is gone."""
    try:
        with Folder(found.folder) as top:
            for name in found.ours:
                inner, _, last = name.rpartition(os.sep)
                if inner:
                    with Folder(inner, top.descriptor) as below:
                        below.remove(last)
                else:
                    top.remove(last)
            if top.names():
                return False
        os.rmdir(found.folder)
    except OSError as error:
        raise errors.storage_failed(found.folder, os.strerror(error.errno or 0)) from None
    return True


class Folder:
    """An open folder: operations stay in it even if its path is replaced by a link meanwhile."""

    def __init__(self, path: str, within: int | None = None) -> None:
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self.descriptor = os.open(path, flags, dir_fd=within)
        except NotADirectoryError:  # the kernel's error for a link, too
            raise unsafe_storage(path, "is not a folder, or a symbolic link to one") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.descriptor))

    def matching(self, pattern: str, is_kind: Callable[[int], bool]) -> list[str]:
        """The caller's own files (or folders) whose whole name matches."""
        import re

        return [
            name
            for name in self.names()
            if re.fullmatch(pattern, name)
            and is_kind((found := self.look(name)).st_mode)
            and found.st_uid == os.geteuid()
        ]

    def look(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Removes it. It may be gone already: SQLite removes files when its last reader closes."""
        try:
            if stat.S_ISDIR(self.look(name).st_mode):
                os.rmdir(name, dir_fd=self.descriptor)
            else:
                os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return
