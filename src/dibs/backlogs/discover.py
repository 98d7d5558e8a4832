"""Finds the backlogs of a repository: by their folders, or where `dibs.toml` places them.

`dibs.toml` is committed, so anybody can edit it: it can only set paths.
"""

from __future__ import annotations

import os
from os.path import exists, isabs, isdir, join, lexists, normpath, samefile

from dibs.backlogs.item import Problem
from dibs.board.locate import BACKLOG_FOLDERS as FOLDERS
from dibs.board.locate import BACKLOG_MARKS as MARKS
from dibs.board.locate import COMMITTED as FILE
from dibs.board.locate import ROOT_CONFIG
from dibs.board.settings import PERSONAL, areas_of
from dibs.domain import checks
from dibs.domain.model import STATES
from dibs.domain.refusals import Refused
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.backlogs.item import Dialect
    from dibs.domain.model import State

LEFT = "it is not followed"
SESSION_STATE = "session_state"
OWN_WORDS = ("kano", "wrk", "backlog_md")
"""Backlogs whose states people name; the words of other tools are fixed."""

EMPTY: dict[str, Any] = {}


def dialects_at(root: str) -> tuple[Dialect, ...]:
    """The backlogs below a root, each with its dialect."""
    stated = read_stated(root)[0]
    found: list[Dialect] = []
    for name in FOLDERS:
        folder = folder_of(root, name, stated.paths)
        if folder is not None:
            one = dialect(root, name, folder, stated)
            if name in stated.words:
                one.words = one.words.extended(stated.words[name])
            found.append(one)
    return tuple(found)


def folder_of(root: str, name: str, stated: Mapping[str, str]) -> str | None:
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


def dialect(root: str, name: str, folder: str, stated: Stated) -> Dialect:
    """Imports only the dialect that is needed."""
    if name == "kano":
        from dibs.backlogs.formats.kano import Kano

        return Kano(folder, stated.offer)
    if name == "wrk":
        from dibs.backlogs.formats.wrk import Wrk, running_sessions

        return Wrk(folder, running_sessions(root, stated.paths.get(SESSION_STATE)))
    if name == "workgraph":
        from dibs.backlogs.formats.workgraph import Workgraph

        return Workgraph.at(root, folder)
    if name == "taskmaster":
        from dibs.backlogs.formats.taskmaster import Taskmaster

        return Taskmaster(folder)
    from dibs.backlogs.formats.backlog_md import BacklogMd

    return BacklogMd.at(root, folder, ROOT_CONFIG)


def wrong_in(root: str) -> list[Problem]:
    """Ignored parts of `dibs.toml`, and backlogs ignored because the same tool has two.

    They stop nobody, since anybody can write that file.
    """
    stated, wrong = read_stated(root)
    return wrong + [
        two for name in FOLDERS if name not in stated.paths for two in both_of(root, name)
    ]


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
    from dibs.safe_files import Unreadable, toml

    try:
        return toml(files.read(root, FILE).data), []
    except (OSError, Unreadable) as error:
        return {}, [Problem(FILE, f"it cannot be read: {checks.short(reason_text(error))}", LEFT)]


class Stated(Value):
    """The table `backlogs` of `dibs.toml`: where backlogs are, what they offer, and their own words."""

    paths: Mapping[str, str] = EMPTY
    offer: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, State]] = EMPTY


def read_stated(root: str) -> tuple[Stated, list[Problem]]:
    stated, wrong = read_file(root)
    wrong += checked_areas(stated)[1]
    stated.pop("areas", None)
    backlogs = stated.pop("backlogs", {})
    wrong += [Problem(FILE, not_followed(key), LEFT) for key in stated]
    if not isinstance(backlogs, dict):
        return Stated(), [*wrong, Problem(FILE, "backlogs is a table: [backlogs]", LEFT)]
    found, told = Stated(), []
    for name, value in backlogs.items():
        table = value if isinstance(value, dict) and name in FOLDERS else {"path": value}
        for key, each in table.items():
            problem = wrong_value(name, key, each)
            told += [problem] if problem else []
            found = found if problem else with_value(found, name, key, each)
    return found, wrong + [Problem(FILE, problem, LEFT) for problem in told]


def with_value(stated: Stated, name: str, key: str, value: Any) -> Stated:
    if key == "path":
        return stated.but(paths={**stated.paths, name: normpath(value)})
    if key == "offer":
        return stated.but(offer=tuple(value))
    return stated.but(words={**stated.words, name: value})


def wrong_value(name: str, key: str, value: object) -> str:
    """What is wrong with one key of a backlog, or ""."""
    if key == "path":
        return wrong_path(name, value)
    if key == "offer" and name == "kano":
        listed = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return "" if listed else f"{name}.offer is {short(value)}; it is a list of types"
    if key == "words" and name in OWN_WORDS:
        known = isinstance(value, dict) and all(state in STATES for state in value.values())
        return (
            "" if known else f"{name}.words is {short(value)}; it maps words to {', '.join(STATES)}"
        )
    return f"there is no {name}.{checks.quoted(key)}"


def short(value: object) -> str:
    return checks.short(repr(value), 40)


def not_followed(key: str) -> str:
    """Why a key other than `areas` and `backlogs` is ignored."""
    if any(one.partition(".")[0] == key for one in PERSONAL):
        why = "programs and servers are only read from your own configuration"
        return f"{key}: {why}; to adopt it: dibs config --adopt"
    return f"{checks.quoted(key)} is neither [areas] nor [backlogs]"


def wrong_path(key: str, value: object) -> str:
    """What is wrong with one line of the table, or ""."""
    known = (*FOLDERS, SESSION_STATE)
    if key not in known:
        return f"there is no backlog {checks.quoted(key)}; there are {', '.join(known)}"
    plain = normpath(value) if isinstance(value, str) and value else ""
    if not plain or "\0" in plain or isabs(plain) or plain.split(os.sep)[0] == "..":
        return f"{key} is {short(value)}; it is a path below the repository"
    return ""
