"""Installs, checks and removes our hooks in the files of a harness.

Changes are planned first (contents before and after), then applied together. Nothing of others is
overwritten, and removal leaves nothing behind.
"""

from __future__ import annotations

import os
from os.path import basename, dirname, exists, isdir, join, realpath

from dibs.board.file_changes import FileChanges
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import Value
from dibs.harnesses import FLAT, HARNESSES, TIMEOUT, Harness
from dibs.integrations.harness import json_edit, text_edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

USER, PROJECT = "user", "project"
INSTALLED, MISSING, OTHER = "installed", "missing", "changed"
HOOKS = "hooks"
OWN_NAME = "dibs"
"""A file without this word contains nothing of ours, even if it cannot be parsed."""
IMPORTS = "@AGENTS.md"
SHARED = "AGENTS.md"


class PlannedChange(Value):
    """Planned contents of a file; `None` means that it does not exist."""

    path: str
    before: str | None
    after: str | None
    with_folder: bool = False


class ByHand(Value):
    """A snippet that a person has to add to a file, and why we cannot."""

    path: str
    why: str
    text: str


class SetupFinding(Value):
    """The state of one part of a setup."""

    path: str
    what: str
    state: str


class HarnessSetup(Value):
    """The setup of a harness for a user (`home`) or a project (`root`)."""

    harness: Harness
    level: str
    home: str
    root: str
    dibs: str
    """Absolute path of the installed command."""
    board: str = ""
    """The folder of the board in use, if it is a file board."""

    @property
    def settings(self) -> str:
        if self.level == USER:
            return join(self.home, self.harness.folder, self.harness.file)
        return self.inside(join(self.root, self.harness.folder, self.harness.file))

    def inside(self, path: str) -> str:
        """Returns a project file's path; refuses one whose symbolic links lead out of the project."""
        real, root = realpath(path), realpath(self.root)
        if not real.startswith(root.rstrip(os.sep) + os.sep):
            raise bad_argument(
                f"{path} leads out of the repository, to {real}; it is left as it is"
            )
        return path

    @property
    def instructions(self) -> str:
        """The instructions file of its model; if that only imports AGENTS.md, the latter."""
        own = self.inside(join(self.root, self.harness.instructions))
        if self.harness.instructions != SHARED:
            lines = (text_edit.read(own) or "").splitlines()
            if any(line.strip() == IMPORTS for line in lines):
                return self.inside(join(self.root, SHARED))
        return own

    @property
    def sandbox(self) -> str:
        """The file that makes the board writable in Codex's sandbox; else "".

        Always the user's file, never a project's: the path is valid on this machine only.
        """
        is_codex = self.harness.name == "codex" and bool(self.board)
        return join(self.home, self.harness.folder, "config.toml") if is_codex else ""

    # Planning.

    def planned(self) -> list[PlannedChange]:
        """Changes to install."""
        found = [make() for _, make, _ in self._parts()]
        return [change for change in found if change.before != change.after]

    def shown(self) -> tuple[list[PlannedChange], list[ByHand]]:
        """Changes to install, and snippets to add by hand to files that we cannot edit."""
        changes, by_hand = [], []
        for path, make, piece in self._parts():
            try:
                changes.append(make())
            except Refused as problem:
                by_hand.append(ByHand(path, str(problem), piece()))
        return [change for change in changes if change.before != change.after], by_hand

    def _parts(self) -> Iterator[tuple[str, Callable[[], PlannedChange], Callable[[], str]]]:
        """Yields each file, a function that plans its change, and one that renders our snippet."""
        yield self.settings, self._hooks, self._piece
        if self.level == PROJECT:
            yield self.instructions, self._instructed, lambda: text_edit.section("\n")
        if self.sandbox:
            yield self.sandbox, self._let_in, lambda: text_edit.table_with(self.board)

    def _piece(self) -> str:
        style = json_edit.Style("\n", json_edit.UNIT)
        return style.written({HOOKS: {event: [item] for event, item in self.wanted()}}, 0) + "\n"

    def _instructed(self) -> PlannedChange:
        path = self.instructions
        before = text_edit.read(path)
        return PlannedChange(path, before, text_edit.with_section(before, path))

    def _let_in(self) -> PlannedChange:
        before = text_edit.read(self.sandbox)
        return PlannedChange(
            self.sandbox, before, text_edit.with_root(before, self.board, self.sandbox)
        )

    def _hooks(self) -> PlannedChange:
        path, before = self.settings, text_edit.read(self.settings)
        if self.is_whole(before):
            return PlannedChange(path, before, before)
        cleared = before if json_edit.is_blank(before) else self._without(before or "")
        wanted = list(self.wanted())
        if cleared is None or json_edit.is_blank(cleared):
            every: dict[str, Any] = {"version": 1} if self.harness.layout == FLAT else {}
            every[HOOKS] = {event: [item] for event, item in wanted}
            in_folder = not isdir(dirname(path))
            in_folder = in_folder or (before is not None and json_edit.is_in_folder(before))
            return PlannedChange(path, before, json_edit.made(every, cleared, in_folder=in_folder))
        style = json_edit.Style.of(cleared)
        for event, item in wanted:
            cleared = json_edit.with_item(cleared, path, (HOOKS, event), item, style)
        return PlannedChange(path, before, cleared)

    def planned_removal(self) -> list[PlannedChange]:
        """Changes to remove everything of ours."""
        found = []
        before = text_edit.read(self.settings)
        if before is not None and OWN_NAME in before:
            gone = json_edit.is_in_folder(before)
            found.append(PlannedChange(self.settings, before, self._without(before), gone))
        if self.level == PROJECT and not any(self._sharing()):
            path = self.instructions
            before = text_edit.read(path)
            if before is not None:
                found.append(PlannedChange(path, before, text_edit.without_section(before, path)))
        if self.harness.name == "codex":
            path = join(self.home, self.harness.folder, "config.toml")
            before = text_edit.read(path)
            if before is not None and OWN_NAME in before and self.level == USER:
                found.append(PlannedChange(path, before, text_edit.without_roots(before, path)))
        return [change for change in found if change.before != change.after]

    def _without(self, text: str) -> str | None:
        return json_edit.without(text, self.settings, HOOKS, self.is_ours, ("version",))

    def _sharing(self) -> Iterator[bool]:
        """For other harnesses of the project with the same instructions file: whether they are installed."""
        for other in HARNESSES.values():
            setup = self.but(harness=other)
            if other != self.harness and realpath(setup.instructions) == realpath(
                self.instructions
            ):
                yield any(setup.ours_in(text_edit.read(setup.settings)))

    # State.

    def findings(self) -> list[SetupFinding]:
        """The state of each part. Refuses if the settings file cannot be parsed."""
        text = text_edit.read(self.settings)
        if text is not None and not json_edit.is_blank(text):
            json_edit.parsed(text, self.settings)
        state = MISSING
        if any(self.ours_in(text)):
            state = INSTALLED if self.is_whole(text) else OTHER
        found = [SetupFinding(self.settings, HOOKS, state)]
        if self.level == PROJECT:
            path = self.instructions
            now = text_edit.read(path)
            is_there = now is not None and text_edit.section_in(now, path) is not None
            same = now is not None and text_edit.with_section(now, path) == now
            state = INSTALLED if is_there and same else OTHER if is_there else MISSING
            found.append(SetupFinding(path, "instructions", state))
        if self.sandbox:
            roots = text_edit.roots_in(text_edit.read(self.sandbox) or "", self.sandbox)
            state = INSTALLED if self.board in roots else MISSING
            found.append(SetupFinding(self.sandbox, "writable folder", state))
        return found

    def is_whole(self, text: str | None) -> bool:
        """Whether exactly the wanted hooks are installed, once each."""
        return sorted(map(repr, self.ours_in(text))) == sorted(map(repr, self.wanted()))

    def ours_in(self, text: str | None) -> Iterator[tuple[str, Any]]:
        """Our groups or handlers, with their events."""
        if text is None or OWN_NAME not in text:
            return
        lists = json_edit.parsed(text, self.settings).value.get(HOOKS)
        for event, items in lists.items() if isinstance(lists, dict) else ():
            for item in items if isinstance(items, list) else ():
                if any(map(self.is_ours, json_edit.handlers_in(item))):
                    yield event, item

    def is_ours(self, handler: Any) -> bool:
        """Whether a handler calls dibs, under any path."""
        if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
            return False
        command, given = handler["command"], handler.get("args")
        words = [command, *given] if isinstance(given, list) else words_of(command)
        is_dibs = bool(words) and basename(words[0]) == "dibs"
        return is_dibs and words[1:] == ["hook", self.harness.name]

    # Rendering.

    def wanted(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields each event with the item for its list."""
        harness = self.harness
        for hook in harness.hooks:
            handler = self.handler(in_background=hook.in_background and harness.background_hooks)
            matcher = {"matcher": hook.matcher} if hook.matcher else {}
            flat = harness.layout == FLAT
            yield hook.event, {**handler, **matcher} if flat else {**matcher, HOOKS: [handler]}

    def handler(self, *, in_background: bool) -> dict[str, Any]:
        harness = self.harness
        words = [self.dibs, "hook", harness.name]
        called: Mapping[str, Any] = (
            {"command": words[0], "args": words[1:]}
            if harness.argument_lists
            else {"command": joined(words)}
        )
        kind = {} if harness.layout == FLAT else {"type": "command"}
        later = {"async": True} if in_background else {}
        return {**kind, **called, "timeout": TIMEOUT * harness.timeout_second, **later}


def words_of(command: str) -> list[str]:
    from shlex import split

    try:
        return split(command)
    except ValueError:
        return []


def joined(words: list[str]) -> str:
    from shlex import join as join_words

    return join_words(words)


def apply(changes: list[PlannedChange]) -> None:
    """Applies all changes, or none."""
    with FileChanges() as files:
        stage(changes, files)


def stage(changes: list[PlannedChange], files: FileChanges) -> None:
    """Stages the changes. A symbolic link is kept: its target is changed."""
    for change in changes:
        real = realpath(change.path)
        if change.after is not None:
            files.make_folder(dirname(real))
            seen = None if change.before is None else change.before.encode()
            files.write(real, change.after.encode(), seen=seen)
            continue
        files.remove(real)
        if change.with_folder:
            files.remove_if_empty(dirname(change.path))


def is_found(harness: Harness, home: str, path: str) -> bool:
    """Whether a harness is on this machine: its program in PATH, or its folder in the home folder."""
    if isdir(join(home, harness.folder)):
        return True
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return any(exists(join(folder, name)) for folder in folders for name in harness.binaries)
