"""Parses hook events of a harness (one JSON object; unknown fields are ignored), and who acts."""

from __future__ import annotations

import os
from os.path import isdir

from dibs.board.identity import Identity, harness_of
from dibs.domain import checks
from dibs.domain.jsontext import read
from dibs.domain.refusals import Refused
from dibs.domain.values import Value
from dibs.harnesses import END, PATCH, STOP, Harness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

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

    def said(self, field: str) -> str:
        """A string field; "" if it is missing or of another type."""
        value = self.data.get(field)
        return value if isinstance(value, str) else ""

    def _first(self, fields: tuple[str, ...]) -> str:
        return next(filter(None, map(self.said, fields)), "")

    @property
    def has_background_work(self) -> bool:
        """Whether background tasks are running: then the leases are still needed."""
        return self.means in (STOP, END) and bool(self.data.get("background_tasks"))

    def folders(self, environment: Mapping[str, str]) -> list[str]:
        """The working folders of the agent, one or several. They need not be roots of work trees."""
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
    """Who acts: DIBS_AGENT and DIBS_SESSION, else the harness and its session. `None` if unclear.

    A subagent acts under its parent's session. The harness states its own session, so this is no guess: it
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


def is_ours_to_end(event: HookEvent, environment: Mapping[str, str]) -> bool:
    """Whether our session ends with the harness's; one that somebody else named continues."""
    stated = environment.get("DIBS_SESSION")
    return (stated is None or stated == event.session) and not event.subagent
