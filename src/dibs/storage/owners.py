"""Ownership checks: refuse files and folders of another user before reading them."""

from __future__ import annotations

import os
import stat

from dibs.domain.refusals import refused
from dibs.storage import errors

READ_MAX = 2**20
"""Size limit of a settings file, in bytes."""


def is_ours(uid: int) -> bool:
    """Whether the uid is our own or, under sudo, that of the user who called it. git has the same rule."""
    own = os.geteuid()
    return uid == own or (own == 0 and os.environ.get("SUDO_UID") == str(uid))


def foreign(path: str) -> str:
    """Why `path` must not be read: it, or its link target, belongs to another user. Else ""."""
    for look in (os.lstat, os.stat):
        try:
            owner = look(path).st_uid
        except (OSError, ValueError):  # missing, unreachable or not a path: nothing is read
            continue
        if not is_ours(owner):
            return f"belongs to another user (uid {owner})"
    return ""


def check(path: str) -> None:
    why = foreign(path)
    if why:
        raise errors.unsafe_storage(path, why)


def check_private(folder: str) -> None:
    """Refuses a folder of another user, or one that others can write to; a missing folder is fine."""
    check(folder)
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise errors.unsafe_storage(folder, "can be written by other users")


def replace(path: str, text: str) -> None:
    """Replaces a file in the board's folder, for its owner alone.

    An agent's sandbox may be able to write there too: no link in the way is followed.
    """
    part = f"{path}.{os.getpid()}"
    if os.path.lexists(part):  # left by a killed process, or planted
        os.unlink(part)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


def read(path: str) -> bytes | None:
    """The contents of a regular file of ours, of limited size; None if there is none.

    Checks the owner of the opened file: the path may point elsewhere a moment later.
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
            raise errors.unsafe_storage(path, f"belongs to another user (uid {found.st_uid})")
        text = os.read(descriptor, READ_MAX + 1)
    finally:
        os.close(descriptor)
    if len(text) > READ_MAX:
        raise refused("bad_setting", f"{path} has more than {READ_MAX} bytes")
    return text
