"""Finds other hard links of a file: the file system knows only their number, so folders are searched."""

from __future__ import annotations

import os

ENTRIES = 50_000
"""Limit on files and folders visited, since an agent waits: about 0.2 s."""


def names_below(folders: list[str], file: os.stat_result) -> list[str]:
    """Paths of the file below these folders, as far as the limit allows."""
    found: list[str] = []
    left = ENTRIES
    for folder in folders:  # grows while we iterate
        if left <= 0 or len(found) == file.st_nlink:
            break
        for entry in entries_of(folder):
            left -= 1
            if entry.is_dir(follow_symlinks=False):
                folders += [entry.path] if entry.name != ".git" else []
            elif entry.inode() == file.st_ino and is_same(entry, file):
                found.append(entry.path)
    return found


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_same(entry: os.DirEntry[str], file: os.stat_result) -> bool:
    try:
        return os.path.samestat(entry.stat(follow_symlinks=False), file)
    except OSError:
        return False
