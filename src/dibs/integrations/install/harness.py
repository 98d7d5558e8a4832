"""Installs, checks and removes our hooks in the files of a harness, and reports on them to `dibs doctor`.

Changes are planned first (contents before and after), then applied together with the manifest. Nothing of others
is overwritten, and removal leaves nothing behind.
"""

from __future__ import annotations

import os
import sys
from os.path import abspath, basename, dirname, exists, expanduser, isabs, isdir, join, realpath

from dibs.board.identity import harness_of
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import Value
from dibs.harness_table import FLAT, HARNESSES, TIMEOUT, Harness
from dibs.integrations.install import (
    CHANGED,
    INSTALLED,
    LEVELS,
    MISSING,
    PROJECT,
    USER,
    json_edit,
    text_edit,
)
from dibs.integrations.install.file_changes import FileChanges
from dibs.integrations.install.json_edit import HOOKS
from dibs.integrations.install.manifest import Entry, Manifest, digest
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from dibs.board.locate import Place

OWN_NAME = "dibs"
"""A file without this word contains nothing of ours, even if it cannot be parsed."""
IMPORTS = "@AGENTS.md"
SHARED = "AGENTS.md"
NO_RECORD = (
    "dibs has no record of what it created here, so it removes its own lines only:"
    " an empty list, section or file may remain"
)


class PlannedChange(Value):
    """Planned contents of a file; `None` means that it does not exist."""

    path: str
    before: str | None
    after: str | None
    record: Entry | None = None
    """The new entry of the manifest; `None`: the file leaves the manifest."""
    with_folder: bool = False
    note: str = ""

    @property
    def changes(self) -> bool:
        """Whether the file itself changes; else only the manifest does."""
        return self.before != self.after


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
    """The setup of a harness for a user (`own`) or a project (`root`)."""

    harness: Harness
    level: str
    own: str
    """The harness's folder of this user."""
    root: str
    dibs: str
    """Absolute path of the installed command."""
    manifest: Manifest
    board: str = ""
    """The folder of the board in use, if it is a file board."""

    @property
    def settings(self) -> str:
        if self.level == USER:
            return join(self.own, self.harness.file)
        return self.inside(join(self.root, self.harness.folder, self.harness.file))

    def inside(self, path: str) -> str:
        """Returns a project file's path; refuses one whose symbolic links lead out of the project."""
        real, root = realpath(path), realpath(self.root)
        if not real.startswith(root.rstrip(os.sep) + os.sep):
            raise bad_argument(
                f"{path} leads out of the repository, to {real}; the file is unchanged"
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
        """The file that makes the board writable in the harness's sandbox; else "".

        Always the user's file, never a project's: the path is valid on this machine only.
        """
        return join(self.own, self.harness.sandbox) if self.harness.sandbox else ""

    # Planning.

    def planned(self) -> list[PlannedChange]:
        """Changes to install."""
        return [change for change in (plan() for _, plan, _ in self._parts()) if change.changes]

    def planned_or_by_hand(self) -> tuple[list[PlannedChange], list[ByHand]]:
        """Changes to install, and snippets to add by hand to files that we cannot edit."""
        changes, by_hand = [], []
        for path, plan, snippet in self._parts():
            try:
                changes.append(plan())
            except Refused as problem:
                by_hand.append(ByHand(path, str(problem), snippet()))
        return [change for change in changes if change.changes], by_hand

    def _parts(self) -> Iterator[tuple[str, Callable[[], PlannedChange], Callable[[], str]]]:
        """Yields each file, a function that plans its change, and one that renders our snippet."""
        yield self.settings, self._plan_hooks, self._hooks_snippet
        if self.level == PROJECT:
            yield self.instructions, self._plan_instructions, lambda: text_edit.section("\n")
        if self.sandbox and self.board:
            yield self.sandbox, self._plan_sandbox, lambda: text_edit.table_with(self.board)

    def _hooks_snippet(self) -> str:
        style = json_edit.Style("\n", json_edit.UNIT)
        return style.written({HOOKS: {event: [item] for event, item in self.wanted()}}, 0) + "\n"

    def _plan_hooks(self) -> PlannedChange:
        path, before = self.settings, text_edit.read(self.settings)
        if self.is_whole(before):
            return PlannedChange(path, before, before)
        cleared = before if json_edit.is_blank(before) else self._without_hooks(before or "")
        wanted = list(self.wanted())
        if cleared is None or json_edit.is_blank(cleared):
            members: dict[str, Any] = {"version": 1} if self.harness.layout == FLAT else {}
            members[HOOKS] = {event: [item] for event, item in wanted}
            return self._change(path, before, cleared, json_edit.new_text(members, cleared))
        style, after = json_edit.Style.of(cleared), cleared
        for event, item in wanted:
            after = json_edit.with_item(after, path, (HOOKS, event), item, style)
        return self._change(path, before, cleared, after)

    def _plan_instructions(self) -> PlannedChange:
        path = self.instructions
        before, record = text_edit.read(path), self.manifest.entry(path)
        after = text_edit.with_section(before, path)
        if before == after:
            return PlannedChange(path, before, after)
        if before is not None and text_edit.section_in(before, path) is not None:
            if record is None:
                return PlannedChange(path, before, after)
            cleared = self._original(path, before, text_edit.without_section)
        else:
            cleared = before
        return self._change(path, before, cleared, after)

    def _plan_sandbox(self) -> PlannedChange:
        path, before = self.sandbox, text_edit.read(self.sandbox)
        roots, record = (
            text_edit.roots_in(before or "", path, self.board),
            self.manifest.entry(path),
        )
        if self.board in roots:
            return PlannedChange(path, before, before)
        cleared = before
        if before is not None:
            cleared = self._original(path, before, text_edit.without_roots)
        others = [one for one in record.added if one in roots] if record is not None else []
        added = (self.board, *others)
        after = text_edit.with_roots(cleared, added, path)
        return self._change(path, before, cleared, after, added)

    def _change(
        self,
        path: str,
        before: str | None,
        cleared: str | None,
        after: str,
        added: tuple[str, ...] = (),
    ) -> PlannedChange:
        """The change with its record. `cleared`: the content without anything of ours."""
        known = self.manifest.entry(path)
        made_folder = known.made_folder if known is not None else not isdir(dirname(path))
        record = Entry(realpath(path), cleared, digest(after), made_folder, added)
        return PlannedChange(path, before, after, record)

    def planned_removal(self) -> list[PlannedChange]:
        """Changes to remove everything of ours, also from the manifest."""
        parts = [(self.settings, self._without_hooks)]
        if self.level == PROJECT and not any(self._sharing()):
            path = self.instructions
            parts.append((path, lambda text: self._original(path, text, text_edit.without_section)))
        if self.level == USER and self.sandbox:
            parts.append((self.sandbox, self._without_sandbox))
        found = [self._removal(path, remove) for path, remove in parts]
        return [one for one in found if one.changes or self.manifest.entry(one.path) is not None]

    def _removal(self, path: str, remove: Callable[[str], str | None]) -> PlannedChange:
        before, record = text_edit.read(path), self.manifest.entry(path)
        is_ours = before is not None and (OWN_NAME in before or record is not None)
        after = remove(before) if before is not None and is_ours else before
        note = NO_RECORD if record is None and before != after else ""
        made_folder = after is None and record is not None and record.made_folder
        return PlannedChange(path, before, after, with_folder=made_folder, note=note)

    def _without_hooks(self, text: str) -> str | None:
        if json_edit.is_blank(text):
            return text

        def remove(text: str, path: str, record: Entry | None) -> str | None:
            return json_edit.without(text, path, self.is_ours, record)

        return self._original(self.settings, text, remove)

    def _without_sandbox(self, text: str) -> str | None:
        return self._original(self.sandbox, text, text_edit.without_roots)

    def _original(
        self, path: str, text: str, remove: Callable[[str, str, Entry | None], str | None]
    ) -> str | None:
        """The recorded content if nobody changed the file since; else what `remove` leaves of it."""
        record = self.manifest.entry(path)
        if record is not None and record.is_unchanged(text):
            return record.before
        return remove(text, path, record)

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
            state = INSTALLED if self.is_whole(text) else CHANGED
        found = [SetupFinding(self.settings, HOOKS, state)]
        if self.level == PROJECT:
            path = self.instructions
            now = text_edit.read(path)
            is_there = now is not None and text_edit.section_in(now, path) is not None
            same = now is not None and text_edit.with_section(now, path) == now
            state = INSTALLED if is_there and same else CHANGED if is_there else MISSING
            found.append(SetupFinding(path, "instructions", state))
        if self.sandbox and self.board:
            roots = text_edit.roots_in(text_edit.read(self.sandbox) or "", self.sandbox)
            state = INSTALLED if self.board in roots else MISSING
            found.append(SetupFinding(self.sandbox, "writable folder", state))
        return found

    def lost_records(self, found: Iterable[SetupFinding]) -> list[str]:
        """What to say of parts that are installed, and not in the manifest."""
        return [
            f"{one.path}: {NO_RECORD}"
            for one in found
            if one.state != MISSING
            and one.path != self.sandbox
            and self.manifest.entry(one.path) is None
        ]

    def unrecorded_folder(self) -> str:
        """What to say at removal of the board's folder in the sandbox file, if dibs did not record adding it."""
        text = text_edit.read(self.sandbox) if self.sandbox and self.board else None
        if text is None or OWN_NAME not in text or self.manifest.entry(self.sandbox) is not None:
            return ""
        if self.board not in text_edit.roots_in(text, self.sandbox):
            return ""
        return f"{self.board} in {self.sandbox}: dibs has no record of adding it"

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
        words = words_of(handler)
        is_dibs = bool(words) and basename(words[0]) == "dibs"
        return is_dibs and words[1:] == ["hook", self.harness.name]

    def calls_existing_dibs(self) -> bool:
        """Whether every hook calls a program that exists."""
        items = self.ours_in(text_edit.read(self.settings))
        handlers = (one for _, item in items for one in json_edit.handlers_in(item))
        return all(exists(words_of(one)[0]) for one in handlers if self.is_ours(one))

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
        from shlex import join as join_words

        harness = self.harness
        words = [self.dibs, "hook", harness.name]
        called: Mapping[str, Any] = (
            {"command": words[0], "args": words[1:]}
            if harness.argument_lists
            else {"command": join_words(words)}
        )
        kind = {} if harness.layout == FLAT else {"type": "command"}
        later = {"async": True} if in_background else {}
        return {**kind, **called, "timeout": TIMEOUT * harness.timeout_second, **later}


def words_of(handler: Mapping[str, Any]) -> list[str]:
    """The words of a handler's command line."""
    from shlex import split

    given = handler.get("args")
    if isinstance(given, list):
        return [handler["command"], *given]
    try:
        return split(handler["command"])
    except ValueError:
        return []


def user_folder(harness: Harness, environment: Mapping[str, str]) -> str:
    """The harness's folder of this user: where its variable says, else in the home folder."""
    stated = environment.get(harness.home, "")
    if isabs(stated):
        return stated
    home = expanduser("~")
    if not isabs(home):
        raise bad_argument("your home folder is not known: set HOME")
    return join(home, harness.folder)


def setup_of(place: Place, name: str, level: str, manifest: Manifest) -> HarnessSetup:
    """The setup of a harness on this machine, for the board and the work tree of a place."""
    harness, repository = HARNESSES[name], place.repository
    root = repository.worktree if repository is not None else ""
    if level == PROJECT and not root:
        raise bad_argument("--project needs a git repository around the current directory")
    own = user_folder(harness, os.environ)
    return HarnessSetup(harness, level, own, root, installed_dibs(), manifest, board_folder(place))


def installed_dibs() -> str:
    """The absolute path of the dibs command: hooks need no PATH lookup, and run no shim in front of it."""
    beside = join(dirname(sys.executable), "dibs")
    return beside if exists(beside) else abspath(sys.argv[0])


def board_folder(place: Place) -> str:
    """The folder of a file board that exists; else ""."""
    is_file = not place.server and exists(join(place.folder, "board.db"))
    return place.folder if is_file else ""


def is_found(harness: Harness, environment: Mapping[str, str]) -> bool:
    """Whether a harness is on this machine: its program in PATH, or its folder in the home folder."""
    if isdir(user_folder(harness, environment)):
        return True
    folders = [folder for folder in environment.get("PATH", "").split(os.pathsep) if folder]
    return any(exists(join(folder, name)) for folder in folders for name in harness.binaries)


# Applying changes.


def install(changes: list[PlannedChange], manifest: Manifest) -> None:
    """Applies all changes, or none."""
    with FileChanges() as files:
        stage_install(changes, manifest, files)


def stage_install(changes: list[PlannedChange], manifest: Manifest, files: FileChanges) -> None:
    """Stages the manifest, then the changes."""
    for change in changes:
        if change.record is not None:
            manifest.put(change.record)
    manifest.stage(files)
    stage(changes, files)


def remove(changes: list[PlannedChange], manifest: Manifest) -> None:
    """Removes all, or nothing."""
    with FileChanges() as files:
        stage_removal(changes, manifest, files)


def stage_removal(changes: list[PlannedChange], manifest: Manifest, files: FileChanges) -> None:
    """Stages the changes, then the manifest."""
    stage(changes, files)
    for change in changes:
        manifest.drop(change.path)
    manifest.stage(files)


def stage(changes: Iterable[PlannedChange], files: FileChanges) -> None:
    """A symbolic link is kept: its target is changed."""
    for change in changes:
        if not change.changes:
            continue
        real = realpath(change.path)
        if change.after is not None:
            files.make_folder(dirname(real))
            seen = None if change.before is None else change.before.encode()
            files.write(real, change.after.encode(), seen=seen)
            continue
        files.remove(real)
        if change.with_folder:
            files.remove_if_empty(dirname(change.path))


# Findings of `dibs doctor`.


def doctor_findings(place: Place, environment: Mapping[str, str]) -> list[Finding]:
    """Installation, trust, sandbox access: for this user, and for the work tree of the place."""
    manifest = Manifest.of_user(environment)
    in_tree = place.repository is not None and bool(place.repository.worktree)
    levels = LEVELS if in_tree else (USER,)
    setups = [setup_of(place, name, level, manifest) for name in HARNESSES for level in levels]
    found = [Finding("install manifest", manifest.problem, "wrong")] if manifest.problem else []
    found += [finding for setup in setups for finding in setup_findings(setup)]
    if not found:
        found = [Finding("harnesses", "none is set up: dibs setup", "note")]
    return [*found, *sandbox_findings(board_folder(place), environment)]


def setup_findings(setup: HarnessSetup) -> Iterator[Finding]:
    """Findings about one setup; none if it was never installed."""
    name = setup.harness.name
    try:
        if not any(setup.ours_in(text_edit.read(setup.settings))):
            return
        found = setup.findings()
        hooks, *rest = found
        state = hooks.state if setup.calls_existing_dibs() else "calls a dibs that does not exist"
        level = "ok" if state == INSTALLED else "wrong"
        yield Finding(f"{name} hooks", f"{state}: {hooks.path}", level)
        for part in rest:
            level = "ok" if part.state == INSTALLED else "note"
            yield Finding(f"{name} {part.what}", f"{part.state}: {part.path}", level)
        for text in setup.lost_records(found):
            yield Finding(f"{name} record", text, "note")
        if setup.harness.trust:
            yield Finding(f"{name} trust", setup.harness.trust, "note")
    except Refused as problem:
        yield Finding(f"{name} hooks", str(problem), "wrong" if setup.level == USER else "note")


def sandbox_findings(board: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Inside a harness: whether its sandbox lets us write to the board."""
    mark = harness_of(environment)
    if not mark:
        return
    if board and not os.access(board, os.W_OK):
        why = f"the sandbox does not allow writing to {board}; dibs setup codex allows it"
        yield Finding("sandbox", why, "wrong")
    else:
        yield Finding("sandbox", f"{mark} is set, and the board can be written to")
