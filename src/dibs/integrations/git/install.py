"""`dibs setup git`: installs, checks and removes the hooks of a repository.

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
from dibs.board.file_changes import FileChanges, is_same
from dibs.board.limited_files import lines
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value
from dibs.integrations.git import hook_scripts
from dibs.integrations.git.hooks_config import Configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.locate import Repository

FILES, PATH, CONFIG = "files", "path", "config"
INSTALLED, MISSING, CHANGED = "installed", "missing", "changed"
CONFIGURED_HOOKS = (2, 54)
"""The first version of git with hooks in its configuration."""
OWN = "dibs-hooks"
"""Our folder in the common git directory, for the ways `path` and `config`."""
MADE = ".made-by-dibs"
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
        self.config = Configuration(repository, self.own)
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
            note = "a hook is there that does not lead to it" if lexists(top) else ""
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
            before = self.config.previous() if self.is_ours(self.stated) else self.stated
            return self.shim(name, does, hook_scripts.quoted(f"{before}/{name}"))
        return self.shim(name, does, hook_scripts.beside(kept) if kept else "''")

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
            said = "".join(f"{key} = {value}\n" for each in settings for key, value in each)
            yield self.config.file, said

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
        """Stages what is missing or outdated."""
        way = self.way
        if way == FILES:
            self.make_folder(files)
            for name in self.hooks:
                self.put(name, files)
            return
        files.make_folder(self.own)
        if way == PATH and not self.is_ours(self.stated):
            self.config.remember(self.stated, files)
        elif way == CONFIG and not any(
            self.config.has_hook(n, join(self.own, n)) for n in self.hooks
        ):
            self.config.remember("", files)
        for name in self.names(way):
            path = join(self.own, name)
            self.write(path, self.text(name, way) + hook_scripts.added_to(text_of(path)), files)
        if way == PATH:
            self.config.take_path(files)
        else:
            self.config.set_hooks({name: join(self.own, name) for name in self.hooks}, files)

    def make_folder(self, files: FileChanges) -> None:
        if not isdir(self.folder):
            files.make_folder(self.folder)
            files.write(join(self.folder, MADE), b"", MODE)

    def put(self, name: str, files: FileChanges) -> None:
        path, kept = self.target(name)
        text = self.text(name, FILES, kept) + hook_scripts.added_to(text_of(path))
        if text_of(path) == text and os.access(path, os.X_OK):
            return
        if lexists(path) and not hook_scripts.is_ours(text_of(path), name):
            files.second_name(path, join(self.folder, kept))
        self.write(path, text, files)

    def write(self, path: str, text: str, files: FileChanges, mode: int = MODE) -> None:
        files.write(path, text.encode("utf-8", "surrogateescape"), mode)

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
        if exists(join(self.folder, MADE)):
            files.remove(join(self.folder, MADE))
            files.remove_if_empty(self.folder)
        if isdir(self.own):
            self.config.restore(tuple(hook_scripts.WORK) + tuple(hook_scripts.SHARED), files)
            for each in sorted(os.listdir(self.own)):
                gone += self.save_added(each, join(self.own, each), files)
                files.remove(join(self.own, each))
            files.remove_if_empty(self.own)
            gone.append(self.own)
        for mark in marks(self.repository):
            files.remove(mark)
        return gone

    def save_added(self, name: str, path: str, files: FileChanges) -> list[str]:
        """Keeps what somebody added below our hook in a file beside it; returns a line that says so."""
        added = hook_scripts.added_to(text_of(path))
        if not added.strip():
            return []
        kept = join(self.folder, self.free_name(name, hook_scripts.ADDED, files))
        files.make_folder(self.folder)
        self.write(kept, added, files, mode=0o644)
        return [f"what was added below {path}, which is kept in {kept}"]


def setup_of(repository: Repository | None, python: str) -> GitHooksSetup:
    if repository is None:
        raise bad_argument("there is no git repository here whose hooks could be set up")
    return GitHooksSetup(repository, python)


def judged(name: str, found: str, wanted: str, note: str) -> State:
    """The state of an existing hook. Text added below its end is not run, so it changes nothing."""
    if found == wanted:
        return State(name, INSTALLED, note)
    added = hook_scripts.added_to(found)
    if not added or found != wanted + added:
        return State(name, CHANGED, note)
    return State(name, INSTALLED, f"{note}; what was added below its end is not run")


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
