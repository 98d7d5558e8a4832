"""Ownership checks: refuse files and folders of another user before reading them."""

from __future__ import annotations

import os
import stat

from dibs.storage import errors


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


def check_opened(path: str, found: os.stat_result) -> None:
    """Checks the owner of the opened file: the path may point elsewhere by now."""
    if not is_ours(found.st_uid):
        raise errors.unsafe_storage(path, f"belongs to another user (uid {found.st_uid})")


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
