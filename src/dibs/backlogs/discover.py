"""Finds the backlogs of a repository: by their folders, or where `dibs.toml` places them.

`dibs.toml` is committed, so anybody can edit it: it can only set paths.
"""

from __future__ import annotations

import os
from os.path import exists, isabs, isdir, join, lexists, normpath, samefile

from dibs.backlogs.item import Problem
from dibs.backlogs.places import FILE, FOLDERS, MARKS, ROOT_CONFIG
from dibs.board.settings import PERSONAL, areas_of
from dibs.domain import checks
from dibs.domain.refusals import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.backlogs.item import Dialect

LEFT = "it is not followed"
SESSION_STATE = "session_state"


def dialects_at(root: str) -> tuple[Dialect, ...]:
    """The backlogs below a root, each with its dialect."""
    stated = stated_in(root)
    found: list[Dialect] = []
    for name in FOLDERS:
        folder = folder_of(root, name, stated)
        if folder is not None:
            found.append(dialect(root, name, folder, stated))
    return tuple(found)


def folder_of(root: str, name: str, stated: dict[str, str]) -> str | None:
    candidates = (stated[name],) if name in stated else FOLDERS[name]
    for folder in candidates:
        mark = MARKS.get(name)
        if exists(join(root, folder, mark)) if mark else isdir(join(root, folder)):
            return folder
    if name == "backlog_md" and exists(join(root, ROOT_CONFIG)):
        from dibs.backlogs.formats.backlog_md import directory_in

        folder = stated.get(name) or directory_in(root, ROOT_CONFIG)
        return folder if not wrong_path(name, folder) and isdir(join(root, folder)) else None
    return None


def dialect(root: str, name: str, folder: str, stated: dict[str, str]) -> Dialect:
    """Imports only the dialect that is needed."""
    if name == "kano":
        from dibs.backlogs.formats.kano import Kano

        return Kano(folder)
    if name == "wrk":
        from dibs.backlogs.formats.wrk import Wrk, running_sessions

        return Wrk(folder, running_sessions(root, stated.get(SESSION_STATE)))
    if name == "workgraph":
        from dibs.backlogs.formats.workgraph import Workgraph

        return Workgraph.at(root, folder)
    from dibs.backlogs.formats.backlog_md import BacklogMd

    return BacklogMd.at(root, folder, ROOT_CONFIG)


def stated_in(root: str) -> dict[str, str]:
    """Paths of backlogs from the table `backlogs` of `dibs.toml`."""
    return read_stated(root)[0]


def wrong_in(root: str) -> list[Problem]:
    """Ignored parts of `dibs.toml`, and backlogs ignored because the same tool has two.

    They stop nobody, since anybody can write that file.
    """
    stated, wrong = read_stated(root)
    return wrong + [two for name in FOLDERS if name not in stated for two in both_of(root, name)]


def both_of(root: str, name: str) -> list[Problem]:
    """A problem if a backlog has two folders."""
    if len(FOLDERS[name]) == 1:
        return []
    (newer, older), mark = FOLDERS[name], MARKS[name]
    places = [join(root, folder, mark) for folder in (newer, older)]
    if not all(map(exists, places)) or samefile(*places):
        return []
    what = f"{newer} has a {mark} too"
    return [Problem(join(older, mark), what, f"{newer} counts, and this one is not read")]


def stated_areas(root: str) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Paths of areas from the table `areas` of `dibs.toml`; invalid ones are skipped and reported."""
    stated, unread = read_file(root)
    areas, wrong = checked_areas(stated)
    return areas, unread + wrong


def checked_areas(stated: dict[str, Any]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    areas = stated.get("areas", {})
    if not isinstance(areas, dict):
        return {}, [Problem(FILE, "areas is a table: [areas]", LEFT)]
    found: dict[str, tuple[str, ...]] = {}
    wrong: list[Problem] = []
    for name, globs in areas.items():
        try:
            found |= areas_of(FILE, {name: globs})
        except Refused as problem:
            wrong.append(Problem(FILE, str(problem).removeprefix(f"{FILE}: "), LEFT))
    return found, wrong


def read_file(root: str) -> tuple[dict[str, Any], list[Problem]]:
    if not lexists(join(root, FILE)):
        return {}, []
    from dibs.backlogs import files
    from dibs.backlogs.missing import reason_text
    from dibs.board.limited_files import Unreadable, toml

    try:
        return toml(files.read(root, FILE).data), []
    except (OSError, Unreadable) as error:
        return {}, [Problem(FILE, f"it cannot be read: {checks.short(reason_text(error))}", LEFT)]


def read_stated(root: str) -> tuple[dict[str, str], list[Problem]]:
    stated, wrong = read_file(root)
    wrong += checked_areas(stated)[1]
    stated.pop("areas", None)
    backlogs = stated.pop("backlogs", {})
    wrong += [Problem(FILE, not_followed(key), LEFT) for key in stated]
    if not isinstance(backlogs, dict):
        return {}, [*wrong, Problem(FILE, "backlogs is a table: [backlogs]", LEFT)]
    paths: dict[str, str] = {}
    for key, value in backlogs.items():
        problem = wrong_path(key, value)
        if problem:
            wrong.append(Problem(FILE, problem, LEFT))
        else:
            paths[key] = normpath(value)
    return paths, wrong


def not_followed(key: str) -> str:
    """Why a key other than `areas` and `backlogs` is ignored."""
    if any(one.partition(".")[0] == key for one in PERSONAL):
        why = "what starts programs or names servers counts only in your own configuration"
        return f"{key}: {why}; to take it over: dibs config --adopt"
    return f"{checks.quoted(key)} is neither [areas] nor [backlogs]"


def wrong_path(key: str, value: object) -> str:
    """What is wrong with one line of the table, or ""."""
    known = (*FOLDERS, SESSION_STATE)
    if key not in known:
        return f"there is no backlog {checks.quoted(key)}; there are {', '.join(known)}"
    plain = normpath(value) if isinstance(value, str) and value else ""
    if not plain or "\0" in plain or isabs(plain) or plain.split(os.sep)[0] == "..":
        return f"{key} is {checks.short(repr(value), 40)}; it is a path below the repository"
    return ""
