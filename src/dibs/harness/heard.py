"""What a harness said, and who it is: one JSON object, of which we take what we know and leave the rest."""

from __future__ import annotations

import os
from os.path import isdir

from dibs.board.identity import Identity, harness_of
from dibs.core import checks
from dibs.core.jsontext import read
from dibs.core.refusals import Refused
from dibs.core.values import Value
from dibs.harness.table import END, PATCH, STOP, Harness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FILES_OF_A_PATCH = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class Heard(Value):
    """One event: what it means to us, and what it carries."""

    harness: Harness
    event: str
    means: str
    data: Mapping[str, Any]

    @property
    def session(self) -> str:
        return self._first(self.harness.session)

    @property
    def subagent(self) -> str:
        return self._first(self.harness.agent)

    def said(self, field: str) -> str:
        """A field that holds a text; "" if it does not."""
        value = self.data.get(field)
        return value if isinstance(value, str) else ""

    def _first(self, fields: tuple[str, ...]) -> str:
        return next(filter(None, map(self.said, fields)), "")

    @property
    def works_on(self) -> bool:
        """Something goes on in the background: what is held is still needed."""
        return self.means in (STOP, END) and bool(self.data.get("background_tasks"))

    def folders(self, environment: Mapping[str, str]) -> list[str]:
        """Where the agent stands: one folder, or several that it has open. None need be a root."""
        roots = self.data.get("workspace_roots")
        around = environment.get("CLAUDE_PROJECT_DIR", "")
        for named in ([self.said("cwd")], roots if isinstance(roots, list) else [], [around]):
            found = [one for one in named if is_folder(one)]
            if found:
                return found
        return [os.getcwd()]

    def paths(self) -> list[str]:
        """The files that the tool is about to change, as it names them."""
        given = self.data.get("tool_input")
        fields = self.harness.edits.get(self.said("tool_name"), ())
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


def heard(harness: Harness, text: str) -> Heard | None:
    """The event, or nothing if it is not JSON or none that has a meaning to us."""
    data = data_in(text.removeprefix("\ufeff"))
    if not isinstance(data, dict):
        return None
    event = data.get("hook_event_name")
    event = event if isinstance(event, str) else ""
    found = Heard(harness, event, harness.meaning(event), data)
    return found.but(means="") if is_of_another(found) else found


def data_in(text: str) -> object:
    """What a text holds; nothing, if it is not JSON."""
    try:
        return read(text)
    except ValueError:
        return long_numbers_and_all(text)


def long_numbers_and_all(text: str) -> object:
    """The same, though a number in it has more digits than Python reads: no number matters to us."""
    import json

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return json.loads(text, parse_int=len, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def is_of_another(found: Heard) -> bool:
    """Cursor runs the hooks of Claude Code too, beside its own: those are left to its own."""
    return found.harness.name != "cursor" and "cursor_version" in found.data


def files_of_patch(value: object) -> Iterator[str]:
    """The files that a patch for `apply_patch` adds, changes, deletes or moves to.

    Lines are read as Codex reads them: they end with a line feed only, and space around them is nothing.
    """
    words = value if isinstance(value, list) else [value]
    for word in words:
        for line in word.split("\n") if isinstance(word, str) else ():
            bare = line.strip()
            for head in FILES_OF_A_PATCH:
                if bare.startswith(head):
                    yield bare.removeprefix(head)


def sound(path: str) -> str:
    """With a mark in the place of half a character, as who writes the file will have it."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in path)
    return path


def is_path(path: str) -> bool:
    """Whether the system could open it."""
    try:
        return bool(path) and "\0" not in path and bool(os.fsencode(path))
    except UnicodeEncodeError:
        return False


def is_folder(path: object) -> bool:
    return isinstance(path, str) and is_path(path) and isdir(path)


# Who acts.


def actor_in(event: Heard, environment: Mapping[str, str]) -> Identity | None:
    """Who acts: what was said explicitly, else the harness and its session. Nobody, if unclear.

    A subagent acts under its parent's session. What a harness says of its own session is no guess: it
    counts under strict identity too.
    """
    name, session = environment.get("DIBS_AGENT"), environment.get("DIBS_SESSION")
    session = session or event.session
    if event.subagent and "/" not in session:
        session = f"{session}/{event.subagent}"
    try:
        return Identity(
            checks.actor_name(event.harness.name if name is None else name),
            False,
            checks.session_name(session),
            harness_of(environment) or event.harness.title,
        )
    except Refused:
        return None


def is_ours_to_end(event: Heard, environment: Mapping[str, str]) -> bool:
    """Whether the session ends with the harness's: one that somebody else named goes on."""
    stated = environment.get("DIBS_SESSION")
    return (stated is None or stated == event.session) and not event.subagent
