"""Puts our hooks into the files of a harness, looks at them, takes them out again.

Everything is planned first: what each file holds now, and what it is to hold. Nothing is overwritten,
and nothing is left behind.
"""

from __future__ import annotations

import os
from os.path import basename, dirname, exists, isdir, join, realpath

from dibs.board.file_changes import FileChanges
from dibs.core.refusals import Refused, bad_argument
from dibs.core.values import Value
from dibs.harness import jsonfile, textfile
from dibs.harness.table import FLAT, HARNESSES, TIMEOUT, Harness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

USER, PROJECT = "user", "project"
INSTALLED, MISSING, OTHER = "installed", "missing", "changed"
HOOKS = "hooks"
OWN_NAME = "dibs"
"""A file without this in it has nothing of ours, whatever else is wrong with it."""
IMPORTS = "@AGENTS.md"
SHARED = "AGENTS.md"


class Change(Value):
    """What one file is to hold. Nothing: it is to be gone."""

    path: str
    before: str | None
    after: str | None
    with_folder: bool = False


class ByHand(Value):
    """What a person has to put into a file, and why we do not."""

    path: str
    why: str
    text: str


class Finding(Value):
    """How it stands with one part of a setup."""

    path: str
    what: str
    state: str


class Setup(Value):
    """One harness at one level: of a person (`home`), or of a project (`root`)."""

    harness: Harness
    level: str
    home: str
    root: str
    dibs: str
    """The installed command, by its whole path."""
    board: str = ""
    """The folder of the board that is used here, if that is a file."""

    @property
    def settings(self) -> str:
        if self.level == USER:
            return join(self.home, self.harness.folder, self.harness.file)
        return self.inside(join(self.root, self.harness.folder, self.harness.file))

    def inside(self, path: str) -> str:
        """A project's file. A link in it could lead anywhere: out of the project none is followed."""
        real, root = realpath(path), realpath(self.root)
        if not real.startswith(root.rstrip(os.sep) + os.sep):
            raise bad_argument(
                f"{path} leads out of the repository, to {real}; it is left as it is"
            )
        return path

    @property
    def instructions(self) -> str:
        """The file that its model reads: where that only takes in another one, the other."""
        own = self.inside(join(self.root, self.harness.instructions))
        if self.harness.instructions != SHARED:
            lines = (textfile.read(own) or "").splitlines()
            if any(line.strip() == IMPORTS for line in lines):
                return self.inside(join(self.root, SHARED))
        return own

    @property
    def sandbox(self) -> str:
        """Where a folder is let be written: it is this machine's, so never a project's file."""
        is_codex = self.harness.name == "codex" and bool(self.board)
        return join(self.home, self.harness.folder, "config.toml") if is_codex else ""

    # What is to be done.

    def planned(self) -> list[Change]:
        """The files as they are to be; only those that are to change."""
        found = [make() for _, make, _ in self._parts()]
        return [change for change in found if change.before != change.after]

    def shown(self) -> tuple[list[Change], list[ByHand]]:
        """What would be written; and what a person has to put into files that we do not change."""
        changes, by_hand = [], []
        for path, make, piece in self._parts():
            try:
                changes.append(make())
            except Refused as problem:
                by_hand.append(ByHand(path, str(problem), piece()))
        return [change for change in changes if change.before != change.after], by_hand

    def _parts(self) -> Iterator[tuple[str, Callable[[], Change], Callable[[], str]]]:
        """Each file, what it is to be, and our piece of it alone."""
        yield self.settings, self._hooks, self._piece
        if self.level == PROJECT:
            yield self.instructions, self._instructed, lambda: textfile.section("\n")
        if self.sandbox:
            yield self.sandbox, self._let_in, lambda: textfile.table_with(self.board)

    def _piece(self) -> str:
        style = jsonfile.Style("\n", jsonfile.UNIT)
        return style.written({HOOKS: {event: [item] for event, item in self.wanted()}}, 0) + "\n"

    def _instructed(self) -> Change:
        path = self.instructions
        before = textfile.read(path)
        return Change(path, before, textfile.with_section(before, path))

    def _let_in(self) -> Change:
        before = textfile.read(self.sandbox)
        return Change(self.sandbox, before, textfile.with_root(before, self.board, self.sandbox))

    def _hooks(self) -> Change:
        path, before = self.settings, textfile.read(self.settings)
        if self.is_whole(before):
            return Change(path, before, before)
        cleared = before if jsonfile.is_blank(before) else self._without(before or "")
        wanted = list(self.wanted())
        if cleared is None or jsonfile.is_blank(cleared):
            every: dict[str, Any] = {"version": 1} if self.harness.layout == FLAT else {}
            every[HOOKS] = {event: [item] for event, item in wanted}
            in_folder = not isdir(dirname(path))
            in_folder = in_folder or (before is not None and jsonfile.is_in_folder(before))
            return Change(path, before, jsonfile.made(every, cleared, in_folder=in_folder))
        style = jsonfile.Style.of(cleared)
        for event, item in wanted:
            cleared = jsonfile.with_item(cleared, path, (HOOKS, event), item, style)
        return Change(path, before, cleared)

    def unplanned(self) -> list[Change]:
        """The files as they were without us; only those that are to change."""
        found = []
        before = textfile.read(self.settings)
        if before is not None and OWN_NAME in before:
            gone = jsonfile.is_in_folder(before)
            found.append(Change(self.settings, before, self._without(before), gone))
        if self.level == PROJECT and not any(self._sharing()):
            path = self.instructions
            before = textfile.read(path)
            if before is not None:
                found.append(Change(path, before, textfile.without_section(before, path)))
        if self.harness.name == "codex":
            path = join(self.home, self.harness.folder, "config.toml")
            before = textfile.read(path)
            if before is not None and OWN_NAME in before and self.level == USER:
                found.append(Change(path, before, textfile.without_roots(before, path)))
        return [change for change in found if change.before != change.after]

    def _without(self, text: str) -> str | None:
        return jsonfile.without(text, self.settings, HOOKS, self.is_ours, ("version",))

    def _sharing(self) -> Iterator[bool]:
        """Other harnesses of the project that read the same instructions."""
        for other in HARNESSES.values():
            setup = self.but(harness=other)
            if other != self.harness and realpath(setup.instructions) == realpath(
                self.instructions
            ):
                yield any(setup.ours_in(textfile.read(setup.settings)))

    # How it stands.

    def findings(self) -> list[Finding]:
        """Refused, if the settings cannot be read: what is missing there nobody knows."""
        text = textfile.read(self.settings)
        if text is not None and not jsonfile.is_blank(text):
            jsonfile.parsed(text, self.settings)
        state = MISSING
        if any(self.ours_in(text)):
            state = INSTALLED if self.is_whole(text) else OTHER
        found = [Finding(self.settings, HOOKS, state)]
        if self.level == PROJECT:
            path = self.instructions
            now = textfile.read(path)
            is_there = now is not None and textfile.section_in(now, path) is not None
            same = now is not None and textfile.with_section(now, path) == now
            state = INSTALLED if is_there and same else OTHER if is_there else MISSING
            found.append(Finding(path, "instructions", state))
        if self.sandbox:
            roots = textfile.roots_in(textfile.read(self.sandbox) or "", self.sandbox)
            state = INSTALLED if self.board in roots else MISSING
            found.append(Finding(self.sandbox, "writable folder", state))
        return found

    def is_whole(self, text: str | None) -> bool:
        """Whether exactly what is wanted stands there, once."""
        return sorted(map(repr, self.ours_in(text))) == sorted(map(repr, self.wanted()))

    def ours_in(self, text: str | None) -> Iterator[tuple[str, Any]]:
        """Our groups or handlers, with their events."""
        if text is None or OWN_NAME not in text:
            return
        lists = jsonfile.parsed(text, self.settings).value.get(HOOKS)
        for event, items in lists.items() if isinstance(lists, dict) else ():
            for item in items if isinstance(items, list) else ():
                if any(map(self.is_ours, jsonfile.handlers_in(item))):
                    yield event, item

    def is_ours(self, handler: Any) -> bool:
        """Whether a handler calls us, by whatever path."""
        if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
            return False
        command, given = handler["command"], handler.get("args")
        words = [command, *given] if isinstance(given, list) else words_of(command)
        is_dibs = bool(words) and basename(words[0]) == "dibs"
        return is_dibs and words[1:] == ["hook", self.harness.name]

    # What is written.

    def wanted(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """For each event, the item of its list."""
        harness = self.harness
        for hook in harness.hooks:
            handler = self.handler(aside=hook.aside and harness.aside)
            matcher = {"matcher": hook.matcher} if hook.matcher else {}
            flat = harness.layout == FLAT
            yield hook.event, {**handler, **matcher} if flat else {**matcher, HOOKS: [handler]}

    def handler(self, *, aside: bool) -> dict[str, Any]:
        harness = self.harness
        words = [self.dibs, "hook", harness.name]
        called: Mapping[str, Any] = (
            {"command": words[0], "args": words[1:]}
            if harness.words
            else {"command": joined(words)}
        )
        kind = {} if harness.layout == FLAT else {"type": "command"}
        later = {"async": True} if aside else {}
        return {**kind, **called, "timeout": TIMEOUT * harness.second, **later}


def words_of(command: str) -> list[str]:
    from shlex import split

    try:
        return split(command)
    except ValueError:
        return []


def joined(words: list[str]) -> str:
    from shlex import join as join_words

    return join_words(words)


def apply(changes: list[Change]) -> None:
    """All of them, or none."""
    with FileChanges() as files:
        stage(changes, files)


def stage(changes: list[Change], files: FileChanges) -> None:
    """A link stays a link: the file that it leads to is changed."""
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
    """Whether a harness is on this machine: its program, or its folder at home."""
    if isdir(join(home, harness.folder)):
        return True
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return any(exists(join(folder, name)) for folder in folders for name in harness.binaries)
