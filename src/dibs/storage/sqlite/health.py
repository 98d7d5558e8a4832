"""Checks of a file for `doctor`: SQLite version, journal, file system, permissions, contents."""

from __future__ import annotations

import os
import stat

import apsw

from dibs.domain.checks import short
from dibs.storage.queries import migrations, plain
from dibs.storage.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.machine import Machine

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
FULL = 2

SAFE_SQLITE = (3, 51, 3)
"""Earlier versions can lose changes in WAL mode with many processes."""


def examine(
    connection: apsw.Connection, machine: Machine, folder: str, path: str
) -> tuple[Finding, ...]:
    version = apsw.sqlite_lib_version()
    journal, synchronous = connection.pragma("journal_mode"), connection.pragma("synchronous")
    kind = machine.file_system(folder)
    folder_mode = stat.S_IMODE(os.stat(folder).st_mode)
    file_mode = stat.S_IMODE(os.stat(path).st_mode)
    exposed = (folder_mode & ~PRIVATE_FOLDER) | (file_mode & ~PRIVATE_FILE)
    integrity = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    if missing := -os.stat(path).st_size % connection.pragma("page_size"):
        integrity.append(f"bytes missing at the end of the file: {missing}")  # read as zeros
    damage = "; ".join(line for line in integrity if line != "ok")
    strangers = foreign_parts(connection)
    schema = str(connection.pragma("user_version"))
    schema += f"; not of dibs: {', '.join(map(short, strangers))}" if strangers else ""
    broken = len(list(connection.execute("PRAGMA foreign_key_check")))
    return (
        check("sqlite", version, fine=version_tuple(version) >= SAFE_SQLITE),
        check(
            "journal",
            f"{journal}, synchronous {synchronous}",
            fine=(journal, synchronous) == ("wal", FULL),
        ),
        check("schema", schema, fine=not strangers),
        check("file system", kind or "unknown", fine=kind, level="note"),
        check("modes", f"{folder_mode:o} and {file_mode:o}", fine=not exposed),
        check("integrity", damage or "sound", fine=not damage, damage=True),
        check("references", f"{broken} broken", fine=not broken),
    )


def foreign_parts(connection: apsw.Connection) -> list[str]:
    """Objects that differ from the schema: a trigger would run, a view would show false data."""
    own = apsw.Connection(":memory:")
    for number, texts in migrations("sqlite").items():
        if number <= connection.pragma("user_version"):
            own.execute("\n".join(texts))
    return sorted(f"{kind} {name}" for kind, name, _ in parts(connection) ^ parts(own))


def parts(connection: apsw.Connection) -> set[tuple[str, str, str]]:
    """Tables, indexes, views and triggers: names and definitions."""
    found = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_schema")
    return {(kind, name, plain(text)) for kind, name, text in found}


def version_tuple(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
