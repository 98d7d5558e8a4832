"""How a file is, for `doctor`: the library, the journal, where it lies, who may read it, what is in it."""

from __future__ import annotations

import os
import stat

import apsw

from dibs.stores.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.machine import Machine

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
FULL = 2

SAFE_SQLITE = (3, 51, 3)
"""Before this version a WAL database can lose changes under many processes."""


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
    damage = "; ".join(line for line in integrity if line != "ok")
    broken = len(list(connection.execute("PRAGMA foreign_key_check")))
    return (
        check("sqlite", version, fine=version_tuple(version) >= SAFE_SQLITE),
        check(
            "journal",
            f"{journal}, synchronous {synchronous}",
            fine=(journal, synchronous) == ("wal", FULL),
        ),
        Finding("schema", str(connection.pragma("user_version"))),
        check("file system", kind or "unknown", fine=kind, level="note"),
        check("modes", f"{folder_mode:o} and {file_mode:o}", fine=not exposed),
        check("integrity", damage or "sound", fine=not damage, damage=True),
        check("references", f"{broken} broken", fine=not broken),
    )


def version_tuple(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
