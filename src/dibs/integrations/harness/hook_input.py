"""Parses hook events of a harness (one JSON object; unknown fields are ignored): who acts, on which files.

The files of an edit may belong to several boards, and each has several names: links, hard links, spellings.
"""

from __future__ import annotations

import os
from os.path import abspath, basename, dirname, isabs, isdir, join

from dibs.board.identity import identify_in_hook
from dibs.board.locate import FOLDER_OUTSIDE, Repository, is_expected, locate
from dibs.domain.jsontext import read
from dibs.domain.values import Value
from dibs.harness_table import END, PATCH, STOP, Harness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from dibs.board.identity import Identity
    from dibs.board.locate import Place

ENTRIES_MAX = 50_000
"""Limit on files and folders visited, since an agent waits: about 0.2 s."""

FILES_OF_A_PATCH = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class HookEvent(Value):
    """One event: its meaning to us, and its data."""

    harness: Harness
    event: str
    means: str
    data: Mapping[str, Any]

    @property
    def session(self) -> str:
        return self._first(self.harness.session_fields)

    @property
    def subagent(self) -> str:
        return self._first(self.harness.subagent_fields)

    def text(self, field: str) -> str:
        """A string field; "" if it is missing or of another type."""
        value = self.data.get(field)
        return value if isinstance(value, str) else ""

    def _first(self, fields: tuple[str, ...]) -> str:
        return next(filter(None, map(self.text, fields)), "")

    @property
    def has_background_work(self) -> bool:
        """Whether background tasks are running: then the leases are still needed."""
        return self.means in (STOP, END) and bool(self.data.get("background_tasks"))

    def folders(self, environment: Mapping[str, str]) -> list[str]:
        """The working folders of the agent, one or several. They need not be roots of work trees."""
        roots = self.data.get("workspace_roots")
        around = environment.get("CLAUDE_PROJECT_DIR", "")
        for named in ([self.text("cwd")], roots if isinstance(roots, list) else [], [around]):
            found = [one for one in named if is_folder(one)]
            if found:
                return found
        return [os.getcwd()]

    def paths(self) -> list[str]:
        """The files that the tool is about to change, as it names them."""
        given = self.data.get("tool_input")
        fields = self.harness.edits.get(self.text("tool_name"), ())
        if not isinstance(given, dict):
            return []
        found: list[str] = []
        for field in fields:
            value = given.get(field)
            if PATCH in fields:
                found += files_of_patch(value)
            elif isinstance(value, str):
                found.append(value)
        return [path for path in map(sound, dict.fromkeys(found)) if is_path(path)]


def parse_event(harness: Harness, text: str) -> HookEvent | None:
    """Parses the event; `None` if it is not a JSON object. `means` is "" if it has no meaning to us."""
    data = data_in(text.removeprefix("\ufeff"))
    if not isinstance(data, dict):
        return None
    event = data.get("hook_event_name")
    event = event if isinstance(event, str) else ""
    found = HookEvent(harness, event, harness.meaning(event), data)
    return found.but(means="") if is_of_another(found) else found


def data_in(text: str) -> object:
    """The parsed JSON; `None` if it is invalid."""
    try:
        return read(text)
    except ValueError:
        return parse_with_long_integers(text)


def parse_with_long_integers(text: str) -> object:
    """Parses JSON with integers longer than Python converts: no number matters to us."""
    import json

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return json.loads(text, parse_int=len, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def is_of_another(found: HookEvent) -> bool:
    """Whether it is a Cursor event in a hook of another harness: Cursor runs those of Claude Code too."""
    return found.harness.name != "cursor" and "cursor_version" in found.data


def files_of_patch(value: object) -> Iterator[str]:
    """The files that a patch for `apply_patch` adds, changes, deletes or moves to.

    Lines are split as Codex does: at line feeds only, and surrounding white space is ignored.
    """
    words = value if isinstance(value, list) else [value]
    for word in words:
        for line in word.split("\n") if isinstance(word, str) else ():
            bare = line.strip()
            for head in FILES_OF_A_PATCH:
                if bare.startswith(head):
                    yield bare.removeprefix(head)


def sound(path: str) -> str:
    """Replaces lone surrogates by U+FFFD, as the program that writes the file will."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in path)
    return path


def is_path(path: str) -> bool:
    """Whether the operating system could open it."""
    try:
        return bool(path) and "\0" not in path and bool(os.fsencode(path))
    except UnicodeEncodeError:
        return False


def is_folder(path: object) -> bool:
    return isinstance(path, str) and is_path(path) and isdir(path)


# Identity.


def actor_in(event: HookEvent, environment: Mapping[str, str]) -> Identity | None:
    return identify_in_hook(event.harness, event.session, event.subagent, environment)


def is_ours_to_end(event: HookEvent, environment: Mapping[str, str]) -> bool:
    """Whether our session ends with the harness's; one that somebody else named continues."""
    stated = environment.get("DIBS_SESSION")
    return (stated is None or stated == event.session) and not event.subagent


# The boards of edited files.


def may_be_board(place: Place, environment: Mapping[str, str]) -> bool:
    """Cheap check (only whether files exist) before opening a board."""
    if place.url or is_expected(place, environment):
        return True
    from dibs.integrations.unreadable import is_board_expected

    return is_board_expected(place, environment)


def by_place(
    paths: Iterable[str], starts: Sequence[str], environment: Mapping[str, str]
) -> dict[Place, list[list[str]]]:
    """Maps each board to its files, in all their forms; skips places without a board.

    A relative path may start in any of the folders. Targets of links count too.
    """
    found: dict[Place, list[list[str]]] = {}
    for full in (one for path in paths for one in whole(path, starts)):
        own = places_to(full, environment)
        around = (place for start in starts for place in places_of(start, environment))
        for name in (full, *more_names(full, (*own, *around))):
            for place in own if name == full else places_to(name, environment):
                ground = root_of(place)
                if ground is not None and may_be_board(place, environment):
                    from dibs.board.path_access import forms

                    found.setdefault(place, []).append(forms(name, "", ground))
    return found


def places_to(full: str, environment: Mapping[str, str]) -> list[Place]:
    """The places of all boards that a file may belong to, for each reading of its path."""
    from dibs.board.path_access import spellings

    folders = dict.fromkeys(nearest(dirname(one)) for one in spellings(full))
    return list(dict.fromkeys(place for one in folders for place in places_of(one, environment)))


def more_names(full: str, places: Iterable[Place]) -> list[str]:
    """Other hard links to the same file, in the work trees of these places."""
    try:
        file = os.stat(full)
    except (OSError, ValueError):
        return []
    if file.st_nlink == 1 or isdir(full):
        return []
    roots = dict.fromkeys(one.worktree for one in map(root_of, places) if one is not None)
    return [name for name in hard_links_below(list(roots), file) if name != full]


def whole(path: str, starts: Sequence[str]) -> list[str]:
    """The absolute paths of `path`: from each start folder, and from home if it begins with `~`."""
    if isabs(path):
        return [path]
    home = os.path.expanduser(path)
    return [join(abspath(start), path) for start in starts] + ([home] if isabs(home) else [])


def first_of(starts: Sequence[str], environment: Mapping[str, str]) -> Place:
    """The place of the first folder that may have a board; else of the first folder."""
    places = [locate(start, environment) for start in starts]
    return next((one for one in places if may_be_board(one, environment)), places[0])


def places_of(folder: str, environment: Mapping[str, str]) -> Iterator[Place]:
    """The place of a folder's board, then those of enclosing repositories (submodules, nested ones).

    A work tree nested in another one of the same repository yields only itself.
    """
    place = locate(folder, environment)
    yield place
    seen: set[str] = set()
    while place.repository is not None:
        seen.add(place.repository.common_dir)
        place = locate(dirname(place.repository.worktree or place.repository.git_dir), environment)
        if place.repository is not None and place.repository.common_dir not in seen:
            yield place


def root_of(place: Place) -> Repository | None:
    """The root that paths are relative to: the work tree; outside git, the folder around the board."""
    if place.repository is not None:
        return place.repository if place.repository.worktree else None
    around, name = dirname(place.folder), basename(place.folder)
    return Repository(around, "", "") if name == FOLDER_OUTSIDE else None


def nearest(folder: str) -> str:
    """The folder, or its nearest existing parent."""
    while not isdir(folder) and folder != dirname(folder):
        folder = dirname(folder)
    return folder


# Hard links: the file system knows only their number, so folders are searched.


def hard_links_below(folders: list[str], file: os.stat_result) -> list[str]:
    """Paths of the file below these folders, as far as the limit allows."""
    found: list[str] = []
    left = ENTRIES_MAX
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
