"""Numbered migrations: `0001_board.sql` and what follows, each in one transaction."""

from __future__ import annotations

import os
from os.path import join

from dibs.stores.queries import FOLDER


def migrations(database: str) -> dict[int, str]:
    """The number and the path of each migration, in their order."""
    folder = join(FOLDER, "migrations", database)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".sql"))
    return {int(name.partition("_")[0]): join(folder, name) for name in names}


def script(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
