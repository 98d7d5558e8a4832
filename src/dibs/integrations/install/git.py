"""`dibs setup git`: installs, checks and removes the hooks of a repository, and reports on them to `dibs doctor`.

There are three ways, and all keep existing hooks working:

- files: git's own hooks folder. An existing hook is kept beside ours, which runs it first.
- path: `core.hooksPath` names another folder. Ours replaces it, and forwards every hook to it.
- config: from git 2.54 on, hooks are entries of the configuration, side by side.

All work trees of a clone share them.
"""

from __future__ import annotations

import os
from os.path import abspath, dirname, exists, isdir, join, lexists, realpath

from dibs import git_runner
from dibs.domain.refusals import bad_argument, refused
from dibs.domain.values import Value
from dibs.integrations.install import CHANGED, INSTALLED, MISSING, hook_scripts
from dibs.integrations.install.file_changes import FileChanges, is_same
from dibs.integrations.install.manifest import Entry, Manifest, digest, read
from dibs.safe_files import lines
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dibs.board.locate import Repository

FILES, PATH, CONFIG = "files", "path", "config"
CONFIGURED_HOOKS = (2, 54)
"""The first version of git with hooks in its configuration."""
OWN = "dibs-hooks"
"""Our folder in the common git directory, for the ways `path` and `config`."""
MANIFEST = "dibs-hooks.json"
HOOKS_PATH = "core.hooksPath"
MODE = 0o755
LEGACY = ".legacy"
"""Suffix under which the `pre-commit` tool keeps and runs the hook that it found."""


class State(Value):
    """The state of one hook, with a note."""

    hook: str
    state: str
    note: str = ""


class GitHooksSetup:
    """The hooks of one repository."""

    def __init__(
        self, repository: Repository, python: str, version: tuple[int, ...] | None = None
    ) -> None:
        self.repository = repository
        self.python = python
        self.source = stated_source(os.environ.get("PYTHONPATH", ""))
        self.version = git_version() if version is None else version
        self.folder = join(repository.common_dir, "hooks")
        self.own = join(repository.common_dir, OWN)
        self.hooks = hook_scripts.WORK if repository.worktree else hook_scripts.SHARED
        self.manifest = Manifest(join(repository.common_dir, MANIFEST), repository.common_dir)
        self.config = Configuration(repository, self.own, self.manifest)
        self.stated = self.config.hooks_path()
        """The effective `core.hooksPath`; "" if unset."""

    @property
    def way(self) -> str:
        """How hooks are, or would be, installed. A working installation keeps its way."""
        is_elsewhere = bool(self.stated) and not self.is_own_or_gits(self.stated)
        if any(self.places(name) for name in self.hooks) and not is_elsewhere:
            return PATH if self.is_ours(self.stated) else FILES
        if self.is_ours(self.stated):
            return PATH
        if self.version >= CONFIGURED_HOOKS:
            return CONFIG
        return PATH if is_elsewhere else FILES

    def is_ours(self, folder: str) -> bool:
        return bool(folder) and realpath(self.absolute(folder)) == realpath(self.own)

    def is_own_or_gits(self, folder: str) -> bool:
        return self.is_ours(folder) or realpath(self.absolute(folder)) == realpath(self.folder)

    def absolute(self, folder: str) -> str:
        """The absolute path of a folder, which git resolves from the root of the work tree."""
        return abspath(join(self.repository.worktree or self.repository.common_dir, folder))

    # State.

    def places(self, name: str) -> list[str]:
        """Our files for a hook in git's own folder, even if other tools renamed them."""
        try:
            there = sorted(os.listdir(self.folder))
        except OSError:
            return []
        paths = [join(self.folder, each) for each in there if each.startswith(name)]
        return [path for path in paths if hook_scripts.is_ours(text_of(path), name)]

    def states(self) -> list[State]:
        """The state of each hook."""
        return [self.state(name) for name in self.hooks]

    def state(self, name: str) -> State:
        way = self.way
        if way == FILES:
            return self.state_of_file(name)
        path = join(self.own, name)
        text = text_of(path)
        is_in = self.is_ours(self.stated) if way == PATH else self.config.has_hook(name, path)
        if not is_in:
            hidden = (
                f"shadowed by core.hooksPath, which is {self.stated}" if self.places(name) else ""
            )
            return State(name, MISSING, hidden)
        if not text or not os.access(path, os.X_OK):
            return State(name, MISSING, path)
        return judged(name, text, self.text(name, way), path)

    def state_of_file(self, name: str) -> State:
        top = join(self.folder, name)
        behind = f"{top}{LEGACY}"
        here = self.places(name)
        path = top if top in here else behind if behind in here and runs_legacy(top) else ""
        if not path:
            note = "another hook is there, and does not run it" if lexists(top) else ""
            return State(name, MISSING, note)
        if not os.access(path, os.X_OK):
            return State(name, CHANGED, f"{path} cannot be run")
        found = text_of(path)
        wanted = self.text(name, FILES, hook_scripts.kept_by(found))
        note = path if path == top else f"{path}, behind another hook"
        return judged(name, found, wanted, note)

    # Installation.

    def text(self, name: str, way: str, kept: str = "") -> str:
        does = self.hooks.get(name, hook_scripts.PASS)
        if way == CONFIG:
            return self.shim(name, does, "''")
        if way == PATH:
            before = self.forwards_to() if self.is_ours(self.stated) else self.stated
            return self.shim(name, does, hook_scripts.quoted(f"{before}/{name}"))
        return self.shim(name, does, hook_scripts.beside(kept) if kept else "''")

    def forwards_to(self) -> str:
        """The hooks folder that ours forwards to, as our hooks state it; "" if they are gone."""
        texts = ((name, text_of(join(self.own, name))) for name in self.hooks)
        return next(
            filter(None, (hook_scripts.forwards_to(text, name) for name, text in texts)), ""
        )

    def shim(self, name: str, does: str, before: str) -> str:
        return hook_scripts.shim(name, does, before, self.python, self.source)

    def planned(self) -> Iterator[tuple[str, str]]:
        """Yields each file that would be written, with its text; for the configuration, the entries."""
        way = self.way
        if way == FILES:
            for name in self.hooks:
                path, kept = self.target(name)
                yield path, self.text(name, way, kept)
            return
        for name in self.names(way):
            yield join(self.own, name), self.text(name, way)
        if way == PATH:
            yield self.config.file, f"core.hooksPath = {self.own}\n"
        else:
            settings = (self.config.hook(name, join(self.own, name)) for name in self.hooks)
            lines = (f"{key} = {value}\n" for each in settings for key, value in each)
            yield self.config.file, "".join(lines)

    def names(self, way: str) -> tuple[str, ...]:
        return (*self.hooks, *(hook_scripts.OTHERS if way == PATH else ()))

    def target(self, name: str) -> tuple[str, str]:
        """The path for our hook in git's folder, and the name of the hook that it is chained to."""
        top = join(self.folder, name)
        here = self.places(name)
        if top in here:
            return top, hook_scripts.kept_by(text_of(top))
        if f"{top}{LEGACY}" in here and runs_legacy(top):
            return f"{top}{LEGACY}", hook_scripts.kept_by(text_of(f"{top}{LEGACY}"))
        return top, self.free_name(name) if lexists(top) else ""

    def free_name(
        self, name: str, end: str = hook_scripts.CHAINED, files: FileChanges | None = None
    ) -> str:
        """An unused name beside a hook. After an interrupted installation the same name is found again."""
        number = 1
        while True:
            found = hook_scripts.chained(name, number, end)
            path = join(self.folder, found)
            planned = files is not None and path in files.planned
            if not planned and (not lexists(path) or is_same(join(self.folder, name), path)):
                return found
            number += 1

    def install(self) -> None:
        with FileChanges() as files:
            self.stage(files)

    def stage(self, files: FileChanges) -> None:
        """Stages what is missing or outdated: the manifest, the hooks, then the configuration."""
        way = self.way
        if way == FILES:
            if not isdir(self.folder):
                self.manifest.put(Entry(self.folder, None, made_folder=True))
                self.manifest.stage(files)
                files.make_folder(self.folder)
            for name in self.hooks:
                self.put(name, files)
            return
        if way == PATH:
            changed = self.config.with_path()
        else:
            changed = self.config.with_hooks({name: join(self.own, name) for name in self.hooks})
        self.manifest.stage(files)
        files.make_folder(self.own)
        for name in self.names(way):
            path = join(self.own, name)
            self.write(path, self.text(name, way) + hook_scripts.added_to(text_of(path)), files)
        self.config.stage(changed, files)

    def put(self, name: str, files: FileChanges) -> None:
        path, kept = self.target(name)
        text = self.text(name, FILES, kept) + hook_scripts.added_to(text_of(path))
        if text_of(path) == text and os.access(path, os.X_OK):
            return
        if lexists(path) and not hook_scripts.is_ours(text_of(path), name):
            files.second_name(path, join(self.folder, kept))
        self.write(path, text, files)

    def write(self, path: str, text: str, files: FileChanges, mode: int = MODE) -> None:
        files.write(path, encoded(text), mode)

    # Removal.

    def remove(self) -> list[str]:
        with FileChanges() as files:
            return self.stage_removal(files)

    def stage_removal(self, files: FileChanges) -> list[str]:
        """Stages the removal of everything of ours, however installed; returns what is removed."""
        gone = []
        for name in {**hook_scripts.WORK, **hook_scripts.SHARED}:
            for path in self.places(name):
                kept = hook_scripts.kept_by(text_of(path))
                before = join(self.folder, kept) if kept else ""
                saved = self.save_added(name, path, files)
                if before and lexists(before):
                    files.rename(before, path)
                else:
                    files.remove(path)
                gone += [path, *saved]
        if self.manifest.entry(self.folder) is not None and isdir(self.folder):
            files.remove_if_empty(self.folder)
        if isdir(self.own):
            names = (*hook_scripts.WORK, *hook_scripts.SHARED)
            self.config.stage(self.config.without_ours(names, self.forwards_to()), files)
            for each in sorted(os.listdir(self.own)):
                gone += self.save_added(each, join(self.own, each), files)
                files.remove(join(self.own, each))
            files.remove_if_empty(self.own)
            gone.append(self.own)
        for mark in marks(self.repository):
            files.remove(mark)
        self.manifest.entries.clear()
        self.manifest.stage(files)
        return gone

    def save_added(self, name: str, path: str, files: FileChanges) -> list[str]:
        """Keeps what somebody added below our hook in a file beside it; returns a line that says so."""
        added = hook_scripts.added_to(text_of(path))
        if not added.strip():
            return []
        kept = join(self.folder, self.free_name(name, hook_scripts.ADDED, files))
        files.make_folder(self.folder)
        self.write(kept, added, files, mode=0o644)
        return [f"the text that was added below {path}: it is in {kept} now"]


class Configuration:
    """The configuration file that all work trees of a clone share. git itself edits a copy of it."""

    def __init__(self, repository: Repository, own: str, manifest: Manifest) -> None:
        self.file = join(repository.common_dir, "config")
        self._own = own
        self._start = repository.worktree or repository.common_dir
        self._manifest = manifest

    def _git(self, *words: str) -> tuple[int, str]:
        """Runs `git config` as seen from the work tree, ignoring the environment of a hook."""
        status, out = git_runner.config(*words, folder=self._start)
        return status, os.fsdecode(out).rstrip("\n")

    def hooks_path(self) -> str:
        """The effective hooks folder, from any configuration file; "" for git's default."""
        return self._git("--type=path", "--get", HOOKS_PATH)[1]

    def _local_path(self) -> str:
        return self._git("--local", "--get", HOOKS_PATH)[1]

    def hook(self, name: str, path: str) -> tuple[tuple[str, str], ...]:
        """The entries for one hook. Its name must not be that of an event."""
        from shlex import quote

        return ((f"hook.dibs-{name}.event", name), (f"hook.dibs-{name}.command", quote(path)))

    def has_hook(self, name: str, path: str) -> bool:
        return all(self._git("--get", key)[1] == value for key, value in self.hook(name, path))

    # Each of these returns the new text of the file.

    def with_path(self) -> str:
        """Points `core.hooksPath` to our folder."""
        there = self._local_path()
        if there == self._own:
            return self._text()
        return self._recorded([(HOOKS_PATH, self._own)], (there,) if there else ())

    def with_hooks(self, paths: Mapping[str, str]) -> str:
        missing = {name: path for name, path in paths.items() if not self.has_hook(name, path)}
        entries = [entry for name, path in missing.items() for entry in self.hook(name, path)]
        if not entries:
            return self._text()
        return self._recorded([("--replace-all", *entry) for entry in entries], ())

    def _recorded(self, changes: Sequence[tuple[str, ...]], previous: tuple[str, ...]) -> str:
        """Puts the change into the manifest; the first content stays recorded until someone else edits."""
        now, known = self._text(), self._manifest.entry(self.file)
        after = self._edited(now, changes)
        if known is not None and known.is_unchanged(now):
            record = known.but(after=digest(after))
        else:
            record = Entry(self.file, now, digest(after), added=previous)
        self._manifest.put(record)
        return after

    def without_ours(self, names: Iterable[str], forwards_to: str) -> str:
        """The recorded content if nobody else changed the file since; else the file without our entries."""
        now, known = self._text(), self._manifest.entry(self.file)
        if known is not None and known.is_unchanged(now):
            return known.before or ""
        changes: list[tuple[str, ...]] = []
        if self._local_path() == self._own:
            previous = "".join(known.added) if known is not None else self._unrecorded(forwards_to)
            changes.append((HOOKS_PATH, previous) if previous else ("--unset", HOOKS_PATH))
        sections = (f"hook.dibs-{name}" for name in names)
        changes += [("--remove-section", one) for one in sections if self._has(one)]
        return self._edited(now, changes) if changes else now

    def _unrecorded(self, forwards_to: str) -> str:
        """The path to set if there is no record: where our hooks forward to, unless git finds that anyway."""
        scopes = self._git("--type=path", "--show-scope", "--get-all", HOOKS_PATH)[1].splitlines()
        others = [
            path for scope, _, path in (one.partition("\t") for one in scopes) if scope != "local"
        ]
        return "" if others[-1:] == [forwards_to] else forwards_to

    def _has(self, section: str) -> bool:
        return self._git("--local", "--get", f"{section}.event")[0] == 0

    def _text(self) -> str:
        return read(self.file) or ""

    def stage(self, after: str, files: FileChanges) -> None:
        before, file = self._text(), realpath(self.file)
        if before == after:
            return
        if exists(f"{file}.lock"):
            raise refused("busy", f"{file}.lock exists: another git changes the configuration")
        files.write(file, encoded(after), seen=encoded(before))

    def _edited(self, text: str, changes: Iterable[tuple[str, ...]]) -> str:
        """Edits a private copy with git itself; private, as the file may contain passwords."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="dibs-config-") as folder:
            copy = join(folder, "config")
            with open(copy, "wb") as file:
                file.write(encoded(text))
            for words in changes:
                status, _ = self._git("--file", copy, *words)
                if status != 0:
                    what = f"git could not change {self.file} ({' '.join(words)}: {status})"
                    raise refused("storage_failed", f"{what}; nothing was changed", path=self.file)
            return read(copy) or ""


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def setup_of(repository: Repository | None, python: str) -> GitHooksSetup:
    if repository is None:
        raise bad_argument("dibs setup git needs a git repository around the current directory")
    return GitHooksSetup(repository, python)


def judged(name: str, found: str, wanted: str, note: str) -> State:
    """The state of an existing hook. Text added below its end is not run, so it changes nothing."""
    if found == wanted:
        return State(name, INSTALLED, note)
    added = hook_scripts.added_to(found)
    if not added or found != wanted + added:
        return State(name, CHANGED, note)
    return State(name, INSTALLED, f"{note}; the text below its end is not run")


def stated_source(search: str) -> str:
    """The source folder of dibs if PYTHONPATH contains it: hooks ignore that variable, so it is recorded."""
    own = dirname(dirname(abspath(git_runner.__file__)))
    return own if own in map(abspath, filter(None, search.split(os.pathsep))) else ""


def git_version() -> tuple[int, ...]:
    """The leading numbers of `git --version`."""
    found = []
    for word in git_runner.line("--version").removeprefix("git version ").split("."):
        if not word.isdigit():
            break
        found.append(int(word))
    return tuple(found)


def runs_legacy(path: str) -> bool:
    """Whether a hook is of the `pre-commit` tool, and so runs the `.legacy` hook."""
    text = text_of(path)
    return "hook-impl" in text or LEGACY in text


def marks(repository: Repository) -> list[str]:
    """Files that our hooks keep while a message is being written, in each work tree."""
    trees = join(repository.common_dir, "worktrees")
    folders = [join(trees, name) for name in os.listdir(trees)] if isdir(trees) else []
    paths = [join(each, "COMMIT_EDITMSG.dibs") for each in (repository.common_dir, *folders)]
    return [path for path in paths if exists(path)]


def text_of(path: str) -> str:
    return "\n".join(lines(path))


def doctor_findings(repository: Repository | None, python: str) -> list[Finding]:
    """No findings outside a repository. Hooks that were never installed are a note, not an error."""
    if repository is None:
        return []
    setup = GitHooksSetup(repository, python)
    states, problem = setup.states(), setup.manifest.problem
    lost = [Finding("git hooks manifest", problem, "wrong")] if problem else []
    if all(each.state == INSTALLED for each in states):
        names = ", ".join(each.hook for each in states)
        return [Finding("git hooks", f"{INSTALLED}: {names}"), *lost]
    if all(each == each.but(state=MISSING, note="") for each in states):
        return [Finding("git hooks", "none is set up: dibs setup git", "note"), *lost]
    wrong = [
        f"{each.hook} is {each.state}" + (f" ({each.note})" if each.note else "")
        for each in states
        if each.state != INSTALLED
    ]
    text = f"{'; '.join(wrong)}; dibs setup git repairs it"
    return [Finding("git hooks", text, "wrong"), *lost]
