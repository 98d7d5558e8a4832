"""File systems with blocks smaller than a memory page, such as an ext4 of a few megabytes.

SQLite maps the WAL index into memory, and allocates one byte in each page of it. The rest of the page may
have no block yet; if the disk is full when it is first written, the kernel kills the process with SIGBUS.
So we check for free space before the index is created, and then allocate all its blocks.
"""

from __future__ import annotations

import os
from errno import ENOSPC

ROOM = 64 << 10
"""Bytes: one segment of the index, for a thousand pages of the WAL, and as much again."""

KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE: allocates blocks without growing the file."""


def check_room(folder: str) -> None:
    """Raises the error of a full disk if there is too little space."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < ROOM:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def allocate(path: str) -> None:
    """Allocates all blocks of the index through SQLite's own descriptor.

    Closing a descriptor of our own would drop the locks that this process holds on the file.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    for descriptor in descriptors_of(path):
        size = ctypes.c_long(os.fstat(descriptor).st_size)
        failed = library.fallocate(descriptor, KEEP_SIZE, ctypes.c_long(0), size)
        if failed and ctypes.get_errno() == ENOSPC:
            raise OSError(ENOSPC, os.strerror(ENOSPC))


def descriptors_of(path: str) -> list[int]:
    """The descriptors of this process for the file."""
    try:
        wanted, known = os.stat(path), os.listdir("/proc/self/fd")
    except FileNotFoundError:
        return []
    return [number for number in map(int, known) if leads_to(number, wanted)]


def leads_to(descriptor: int, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), wanted)
    except OSError:  # closed meanwhile
        return False
