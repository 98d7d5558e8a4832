"""Which backlogs a repository has: by their folders, or where `dibs.toml` says that they are.

`dibs.toml` is committed, so anybody can edit it: it says where things are, and nothing else.
"""

from __future__ import annotations

import os
from os.path import exists, isabs, isdir, isfile, join, normpath

from dibs.core import checks
from dibs.core.refusals import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.backlogs.item import Dialect

FILE = "dibs.toml"
SESSION_STATE = "session_state"
FOLDERS = {
    "kano": "_kano/backlog",
    "wrk": ".claude/work-queue",
    "workgraph": ".wg",
    "backlog_md": "backlog",
}
OLDER = {"workgraph": ".workgraph"}
MARKS = {"workgraph": "graph.jsonl", "backlog_md": "config.yml"}
"""A file without which a folder of that name is something else."""


def dialects_at(root: str) -> tuple[Dialect, ...]:
    """The backlogs below a root, each with the dialect that reads it."""
    stated = stated_in(root)
    found: list[Dialect] = []
    for name in FOLDERS:
        folder = folder_of(root, name, stated)
        if folder is not None:
            found.append(dialect(root, name, folder, stated))
    return tuple(found)


def folder_of(root: str, name: str, stated: dict[str, str]) -> str | None:
    candidates = (stated[name],) if name in stated else (FOLDERS[name], OLDER.get(name, ""))
    for folder in filter(None, candidates):
        mark = MARKS.get(name)
        if exists(join(root, folder, mark)) if mark else isdir(join(root, folder)):
            return folder
    return None


def dialect(root: str, name: str, folder: str, stated: dict[str, str]) -> Dialect:
    """Only what is there is loaded."""
    if name == "kano":
        from dibs.backlogs.kano import Kano

        return Kano(folder)
    if name == "wrk":
        from dibs.backlogs.wrk import Wrk, running_sessions

        return Wrk(folder, running_sessions(root, stated.get(SESSION_STATE)))
    if name == "workgraph":
        from dibs.backlogs.workgraph import Workgraph

        return Workgraph.at(root, folder)
    from dibs.backlogs.backlog_md import BacklogMd

    return BacklogMd.at(root, folder)


def stated_in(root: str) -> dict[str, str]:
    """The table `backlogs` of `dibs.toml`. An unknown key is an error, a path that leads away too."""
    path = join(root, FILE)
    if not isfile(path):
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:
            stated: dict[str, Any] = tomllib.load(file)
    except (OSError, ValueError) as error:
        raise refused("bad_setting", f"{path} cannot be read: {checks.short(str(error))}") from None
    for key, value in stated.items():
        if key != "backlogs" or not isinstance(value, dict):
            known = "it may hold the table [backlogs]"
            raise refused("unknown_setting", f"{path}: {checks.quoted(key)}: {known}", setting=key)
    return {key: checked(path, key, value) for key, value in stated.get("backlogs", {}).items()}


def checked(path: str, key: str, value: object) -> str:
    known = (*FOLDERS, SESSION_STATE)
    if key not in known:
        what = f"{path}: there is no backlog {checks.quoted(key)}; there are {', '.join(known)}"
        raise refused("unknown_setting", what, setting=key, known=list(known))
    plain = normpath(value) if isinstance(value, str) else ""
    if not plain or isabs(plain) or plain.split(os.sep)[0] == "..":
        raise refused(
            "bad_setting", f"{path}: {key} is {value!r}; it is a path below the repository"
        )
    return plain
