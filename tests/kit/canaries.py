"""Programs that leave a mark when they are run, in every place where git would start them."""

from __future__ import annotations

from pathlib import Path

from kit.repositories import Repo, git


class Canaries:
    """A folder of programs. `sang` lists those that somebody ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marks = folder / "sang"
        self._marks.mkdir(parents=True)

    def program(self, name: str, then: str = "exec cat") -> str:
        """Passes its input on, as a filter does, and leaves a mark."""
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n: > '{self._marks / name}'\n{then}\n")
        path.chmod(0o755)
        return str(path)

    @property
    def sang(self) -> list[str]:
        return sorted(path.name for path in self._marks.iterdir())

    def clear(self) -> None:
        for path in self._marks.iterdir():
            path.unlink()

    def configure(self, folder: Path, *scope: str) -> None:
        """Every setting by which a repository's configuration starts a program, and what uses it."""
        hooks = self._folder / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-index-change", "post-checkout", "reference-transaction"):
            hook = hooks / name
            hook.write_text(f"#!/bin/sh\n: > '{self._marks}/hook-{name}'\n")
            hook.chmod(0o755)
        settings = {
            "core.fsmonitor": self.program("fsmonitor"),
            "core.hooksPath": str(hooks),
            "hook.canary.command": self.program("config-hook"),
            "filter.plain.clean": self.program("clean"),
            "filter.plain.smudge": self.program("smudge"),
            "filter.plain.required": "true",
            "filter.one=two.clean": self.program("clean-equals"),
            "filter..clean": self.program("clean-unnamed"),
            "filter.long.process": self.program("process"),
            "diff.external": self.program("external-diff"),
            "diff.shown.textconv": self.program("textconv"),
            "diff.shown.command": self.program("diff-command"),
            "core.pager": self.program("pager"),
            "alias.status": f"!{self.program('alias')}",
            "credential.helper": self.program("credential"),
            "core.sshCommand": self.program("ssh"),
            "gpg.program": self.program("gpg"),
            "log.showSignature": "true",
        }
        for key, value in settings.items():
            git(folder, "config", *scope, key, value)
        git(folder, "config", *scope, "--add", "hook.canary.event", "post-index-change")

    FILTERED = ("a.plain", "b.equals", "c.unnamed", "d.long")

    def commit_filtered_files(self, folder: Path) -> None:
        """Before the filters are configured: files that each of them would be run for."""
        (folder / ".gitattributes").write_text(
            "*.plain filter=plain diff=shown\n*.equals filter=one=two\n"
            "*.unnamed filter=\n*.long filter=long\n"
        )
        for name in self.FILTERED:
            (folder / name).write_text("one\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "files that filters are for")

    def touch_filtered_files(self, folder: Path) -> None:
        """The same size, another content: git cannot tell without reading them."""
        for name in self.FILTERED:
            (folder / name).write_text("two\n")


def hostile_submodule(folder: Path, at: Path, canaries: Canaries) -> None:
    """A submodule whose own configuration starts programs, for a file that has changed."""
    inner = Repo.create(at)
    (at / ".gitattributes").write_text("* filter=inner\n")
    (at / "file").write_text("one\n")
    git(at, "add", ".")
    git(at, "commit", "-q", "-m", "a file that a filter is for")
    add = ("submodule", "add", "-q", str(inner.folder), "inner")
    git(folder, "-c", "protocol.file.allow=always", *add)
    git(folder, "commit", "-q", "-m", "a submodule")
    git(folder / "inner", "config", "core.fsmonitor", canaries.program("submodule-fsmonitor"))
    git(folder / "inner", "config", "filter.inner.clean", canaries.program("submodule-clean"))
    (folder / "inner" / "file").write_text("two\n")
