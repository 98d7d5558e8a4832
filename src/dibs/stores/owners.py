"""Whose a file or folder is. What belongs to another user is refused before it is read."""

from __future__ import annotations

import os
import stat

from dibs.core.refusals import refused
from dibs.stores import faults

READ_MAX = 2**20
"""Bytes that are read of a settings file."""


def is_ours(uid: int) -> bool:
    """Our own; under sudo also the files of the user who called it. git decides the same way."""
    own = os.geteuid()
    return uid == own or (own == 0 and os.environ.get("SUDO_UID") == str(uid))


def foreign(path: str) -> str:
    """Why `path` must not be read: it, or what it links to, belongs to another user. Else ""."""
    for look in (os.lstat, os.stat):
        try:
            owner = look(path).st_uid
        except (OSError, ValueError):  # not there, out of reach, or no path: nothing of it is read
            continue
        if not is_ours(owner):
            return f"belongs to another user (uid {owner})"
    return ""


def check(path: str) -> None:
    why = foreign(path)
    if why:
        raise faults.unsafe_storage(path, why)


def check_private(folder: str) -> None:
    """A folder that is ours, and that nobody else can write to; one that is not there is fine."""
    check(folder)
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise faults.unsafe_storage(folder, "can be written by other users")


def read(path: str) -> bytes | None:
    """The contents of a regular file of ours, of limited size; None if there is none.

    The owner is that of the file that was opened: the name may lead elsewhere a moment later.
    """
    check(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise refused("bad_setting", f"{path} is not a file")
        if not is_ours(found.st_uid):
            raise faults.unsafe_storage(path, f"belongs to another user (uid {found.st_uid})")
        text = os.read(descriptor, READ_MAX + 1)
    finally:
        os.close(descriptor)
    if len(text) > READ_MAX:
        raise refused("bad_setting", f"{path} has more than {READ_MAX} bytes")
    return text
