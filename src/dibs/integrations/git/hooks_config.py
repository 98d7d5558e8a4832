"""Edits a repository's git configuration for hooks, and restores it byte for byte."""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board.file_changes import PRIVATE, content
from dibs.domain.refusals import refused
from dibs.git_runner import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dibs.board.file_changes import FileChanges
    from dibs.board.locate import Repository

HOOKS_PATH = "core.hooksPath"
BEFORE, AFTER, PREVIOUS = "config.before", "config.after", "hooks-path"


class Configuration:
    """The configuration file shared by all work trees of a clone. A backup is kept in our folder."""

    def __init__(self, repository: Repository, folder: str) -> None:
        self.file = join(repository.common_dir, "config")
        self._folder = folder
        self._start = repository.worktree or repository.common_dir

    def _git(self, *words: str) -> tuple[int, str]:
        """Runs `git config` as seen from the work tree, ignoring the environment of a hook."""
        status, out = config(*words, folder=self._start)
        return status, os.fsdecode(out).rstrip("\n")

    def _has(self, section: str) -> bool:
        return self._git("--local", "--get", f"{section}.event")[0] == 0

    def hooks_path(self) -> str:
        """The effective hooks folder, from any configuration file; "" for git's default."""
        return self._git("--type=path", "--get", HOOKS_PATH)[1]

    def previous(self) -> str:
        """The hooks folder that ours forwards to."""
        return read(join(self._folder, PREVIOUS)).decode("utf-8", "surrogateescape")

    def remember(self, previous: str, files: FileChanges) -> None:
        """Backs up the configuration before the first change."""
        files.write(join(self._folder, BEFORE), read(self.file), PRIVATE)
        stated = previous.encode("utf-8", "surrogateescape")
        files.write(join(self._folder, PREVIOUS), stated, PRIVATE)

    def take_path(self, files: FileChanges) -> None:
        """Points `core.hooksPath` to our folder."""
        if self._git("--local", "--get", HOOKS_PATH)[1] != self._folder:
            self._change([(HOOKS_PATH, self._folder)], files)

    def _change(self, lines: Sequence[tuple[str, ...]], files: FileChanges) -> None:
        """Applies the changes, and records the whole resulting file."""
        before = read(self.file)
        after = self._edited(before, lines)
        files.write(join(self._folder, AFTER), after, PRIVATE)
        self._replace(before, after, files)

    def _replace(self, before: bytes, after: bytes, files: FileChanges) -> None:
        file = os.path.realpath(self.file)
        if exists(f"{file}.lock"):
            raise refused("busy", f"{file}.lock is there: another git changes the configuration")
        files.write(file, after, seen=before)

    def _edited(self, text: bytes, changes: Iterable[tuple[str, ...]]) -> bytes:
        """Edits a private copy with git itself; private, as the file may contain passwords."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="dibs-config-") as folder:
            copy = join(folder, "config")
            with open(copy, "wb") as file:
                file.write(text)
            for words in changes:
                status, _ = self._git("--file", copy, *words)
                if status != 0:
                    what = f"git could not change {self.file} ({' '.join(words)}: {status})"
                    raise refused("storage_failed", f"{what}; nothing was changed", path=self.file)
            return read(copy)

    # Hooks in the configuration.

    def hook(self, name: str, path: str) -> tuple[tuple[str, str], ...]:
        """The entries for one hook. Its name must not be that of an event."""
        from shlex import quote

        return ((f"hook.dibs-{name}.event", name), (f"hook.dibs-{name}.command", quote(path)))

    def has_hook(self, name: str, path: str) -> bool:
        return all(self._git("--get", key)[1] == value for key, value in self.hook(name, path))

    def set_hooks(self, paths: Mapping[str, str], files: FileChanges) -> None:
        missing = {name: path for name, path in paths.items() if not self.has_hook(name, path)}
        lines = [line for name, path in missing.items() for line in self.hook(name, path)]
        if lines:
            self._change([("--replace-all", *line) for line in lines], files)

    # Restoring.

    def restore(self, names: Iterable[str], files: FileChanges) -> None:
        """Restores the backup if nobody else changed the file since; else removes only our entries."""
        before, after = join(self._folder, BEFORE), join(self._folder, AFTER)
        now = read(self.file)
        if exists(before) and exists(after) and now == read(after):
            self._replace(now, read(before), files)
            return
        changes: list[tuple[str, ...]] = []
        if self._git("--local", "--get", HOOKS_PATH)[1] == self._folder:
            status, stated = self._git("--file", before, "--get", HOOKS_PATH)
            changes.append((HOOKS_PATH, stated) if status == 0 else ("--unset", HOOKS_PATH))
        sections = (f"hook.dibs-{name}" for name in names)
        changes += [("--remove-section", one) for one in sections if self._has(one)]
        if changes:
            self._replace(now, self._edited(now, changes), files)


def read(path: str) -> bytes:
    return content(path) or b""
