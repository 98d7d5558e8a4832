"""Repositories with guards in them, and sessions that work there with the real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kit.repositories import Ran, Repo, clean_environment, git

PERSON = {
    "GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.org",
}  # fmt: skip


def agent(session: str, name: str = "codex") -> dict[str, str]:
    """What the environment of an agent's shell says."""
    return {"DIBS_AGENT": name, "DIBS_SESSION": session}


ONE, TWO, THREE = agent("s1"), agent("s2", "claude"), agent("s3", "gemini")


class Tree(Repo):
    """A work tree, and who works in it."""

    def __init__(self, folder: Path, who: dict[str, str] | None = None, url: str = "") -> None:
        super().__init__(folder, url)
        self.around = self.around | (who or {})

    @classmethod
    def at(cls, folder: Path, who: dict[str, str] | None = None) -> Tree:
        """An empty repository."""
        folder.mkdir(parents=True)
        subprocess.run(
            ["git", "init", "-q", "-b", "main", str(folder)], env=clean_environment(), check=True
        )
        return cls(folder, who)

    def by(self, who: dict[str, str]) -> Tree:
        """The same folder, and somebody else in it."""
        return Tree(self.folder, self.board_of() | who)

    def board_of(self) -> dict[str, str]:
        """What the environment says of the board."""
        return {
            name: self.around[name] for name in ("DIBS_URL", "DIBS_BOARD") if name in self.around
        }

    def beside(self, name: str, who: dict[str, str]) -> Tree:
        """One more work tree of the same clone, on a branch of its own."""
        self.git("worktree", "add", "-q", "-b", name, str(self.folder.parent / name))
        return Tree(self.folder.parent / name, self.board_of() | who)

    def try_git(self, *arguments: str, fed: str | None = None, **environment: str) -> Ran:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=self.environment(**PERSON | environment),
            input=fed, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def git(self, *arguments: str, **environment: str) -> str:
        ran = self.try_git(*arguments, **environment)
        assert ran.code == 0, (arguments, ran.code, ran.out, ran.err)
        return ran.out

    def git_fails(self, *arguments: str, **environment: str) -> str:
        """What it complains of."""
        ran = self.try_git(*arguments, **environment)
        assert ran.code != 0, (arguments, ran.out, ran.err)
        return ran.err

    def write(self, *paths: str, text: str = "text\n") -> None:
        """Writes files, and stages them."""
        for path in paths:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        self.git("add", "--", *paths)

    def commit(self, *paths: str, text: str = "text\n", message: str = "change") -> str:
        """Writes files, commits them, and gives the commit."""
        self.write(*paths, text=text)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def cannot_commit(self, *paths: str, text: str = "text\n") -> str:
        self.write(*paths, text=text)
        return self.git_fails("commit", "-q", "-m", "change")

    def trailers(self, commit: str = "HEAD") -> list[str]:
        shown = self.git("log", "-1", "--format=%(trailers:only)", commit)
        return [line for line in shown.splitlines() if line]

    def message(self, commit: str = "HEAD") -> str:
        return self.git("log", "-1", "--format=%B", commit).rstrip("\n")

    def task(self, *scope: str) -> str:
        return self.add("work", *(word for path in scope for word in ("--scope", path)))

    def settings(self, text: str) -> None:
        (self.folder / ".git" / "dibs" / "settings.toml").write_text(text)


def taken_over(tree: Tree, key: str) -> None:
    """A person takes a task from its holder."""
    tree.by({}).ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")


def clone(shared: Tree, name: str, who: dict[str, str]) -> Tree:
    """Somebody's clone, whose hooks ask the board of the shared repository."""
    folder = shared.folder.parent / name
    git(shared.folder.parent, "clone", "-q", str(shared.folder), str(folder))
    tree = Tree(folder, who | {"DIBS_BOARD": str(shared.folder / "dibs")})
    tree.ok("setup", "git")
    return tree
