"""A disk with blocks smaller than a page of memory, such as an ext4 of a few megabytes.

SQLite maps the index of its log into memory, and makes sure of one byte in each page of it. The rest of
the page may have no block yet; if there is none left when it is first written, the system ends the
process with SIGBUS. So there is room before the index is made, and then all of it gets its blocks.
"""

from __future__ import annotations

import os
from errno import ENOSPC

ROOM = 64 << 10
"""Bytes: one part of the index for a thousand pages of the log, and as much again."""

KEEP_SIZE = 1
"""Blocks are given to what the file holds; it does not grow."""


def check_room(folder: str) -> None:
    """Raises what a full disk would."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < ROOM:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def allocate(path: str) -> None:
    """Gives the index all its blocks, by the descriptor that SQLite has of it.

    One of our own would do harm: closing it would drop the locks that this process has on the file.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    for descriptor in descriptors_of(path):
        size = ctypes.c_long(os.fstat(descriptor).st_size)
        failed = library.fallocate(descriptor, KEEP_SIZE, ctypes.c_long(0), size)
        if failed and ctypes.get_errno() == ENOSPC:
            raise OSError(ENOSPC, os.strerror(ENOSPC))


def descriptors_of(path: str) -> list[int]:
    """Those of this process that lead to the file."""
    try:
        wanted, known = os.stat(path), os.listdir("/proc/self/fd")
    except FileNotFoundError:
        return []
    return [number for number in map(int, known) if leads_to(number, wanted)]


def leads_to(descriptor: int, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), wanted)
    except OSError:  # it is closed by now
        return False
