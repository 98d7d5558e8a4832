"""A repository's own configuration, as far as it says which hooks run; and back, byte for byte."""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.git_runner import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dibs.board.locate import Repository

HOOKS_PATH = "core.hooksPath"
BEFORE, AFTER, PREVIOUS = "config.before", "config.after", "hooks-path"


class Configuration:
    """The file that all work trees of a clone share. What it was before is kept in a folder of ours."""

    def __init__(self, repository: Repository, folder: str) -> None:
        self.file = join(repository.common_dir, "config")
        self._folder = folder
        self._start = repository.worktree or repository.common_dir

    def _git(self, *words: str) -> tuple[int, str]:
        """As seen from the work tree, though a hook may say otherwise."""
        status, out = config(*words, folder=self._start)
        return status, os.fsdecode(out).rstrip("\n")

    def hooks_path(self) -> str:
        """The folder of hooks that counts here, wherever that is stated; "" if git's own."""
        return self._git("--type=path", "--get", HOOKS_PATH)[1]

    def previous(self) -> str:
        """The folder whose hooks ours pass on to."""
        return read(join(self._folder, PREVIOUS)).decode("utf-8", "surrogateescape")

    def remember(self, previous: str) -> None:
        """Keeps what there is, before anything of it is changed."""
        write(join(self._folder, BEFORE), read(self.file))
        write(join(self._folder, PREVIOUS), previous.encode("utf-8", "surrogateescape"))

    def take_path(self) -> None:
        """Lets git look for hooks in our folder."""
        if self._git("--local", "--get", HOOKS_PATH)[1] != self._folder:
            self._git("--local", HOOKS_PATH, self._folder)
            self._changed()

    def _changed(self) -> None:
        write(join(self._folder, AFTER), read(self.file))

    # Hooks in the configuration itself.

    def hook(self, name: str, path: str) -> tuple[tuple[str, str], ...]:
        """What stands there for one hook. Its own name may not be that of an event."""
        from shlex import quote

        return ((f"hook.dibs-{name}.event", name), (f"hook.dibs-{name}.command", quote(path)))

    def has_hook(self, name: str, path: str) -> bool:
        return all(self._git("--get", key)[1] == value for key, value in self.hook(name, path))

    def set_hooks(self, paths: Mapping[str, str]) -> None:
        changed = False
        for name, path in paths.items():
            if not self.has_hook(name, path):
                for key, value in self.hook(name, path):
                    self._git("--local", "--replace-all", key, value)
                changed = True
        if changed:
            self._changed()

    # And back.

    def restore(self, names: Iterable[str]) -> None:
        """As it was, to the byte, if nobody else has changed it since; else without what is ours."""
        before, after = join(self._folder, BEFORE), join(self._folder, AFTER)
        if exists(before) and exists(after) and read(self.file) == read(after):
            write(self.file, read(before))
            return
        if self._git("--local", "--get", HOOKS_PATH)[1] == self._folder:
            status, stated = self._git("--file", before, "--get", HOOKS_PATH)
            if status == 0:
                self._git("--local", HOOKS_PATH, stated)
            else:
                self._git("--local", "--unset", HOOKS_PATH)
        for name in names:
            if self._git("--local", "--get", f"hook.dibs-{name}.event")[0] == 0:
                self._git("--local", "--remove-section", f"hook.dibs-{name}")


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write(path: str, text: bytes) -> None:
    """Whole or not at all, with the rights that the file had."""
    mode = os.stat(path).st_mode & 0o777 if exists(path) else 0o600
    own = f"{path}.{os.getpid()}"
    with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    os.chmod(own, mode)
    os.replace(own, path)
