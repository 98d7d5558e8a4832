"""Real repositories, and the real command as a real process."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from dibs.harness_table import KNOWN
from kit import forked
from kit.forked import DIBS, PATIENCE

NOT_INHERITED = {mark for harness in KNOWN for mark in (*harness.marks, harness.home)} | {
    "DIBS_AGENT", "DIBS_SESSION", "DIBS_BOARD", "DIBS_URL", "DIBS_DEBUG", "DIBS_RUN", "DIBS_TASK",
    "DIBS_TOKEN", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
}  # fmt: skip


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without anything that says who is calling, or where its home is."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    around = {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": home(),
        "XDG_CONFIG_HOME": f"{home()}/.config",
        "DIBS_HOOK_SECONDS": "60",  # a busy machine must not decide how a test ends
    }  # fmt: skip
    return kept | around | more


@functools.cache
def home() -> str:
    """An empty home for all processes of a test run: nothing is ever set up in a real one."""
    return folder_of_this_run("dibs-home-")


@functools.cache
def original() -> str:
    """A repository with a first commit and nothing else: every other one is a copy of it."""
    folder = Path(folder_of_this_run("dibs-original-"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return str(folder)


def folder_of_this_run(prefix: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return folder.name


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
        cwd=folder, env=clean_environment(), check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


class Ran:
    """What a process printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        return json.loads(self.err)["error"]


class Repo:
    """A folder in a git repository, and `dibs` run in it."""

    def __init__(self, folder: Path, url: str = "") -> None:
        """`url`: its board is on a server."""
        self.folder = folder
        self.around = {"DIBS_URL": url} if url else {}

    @classmethod
    def create(cls, folder: Path, url: str = "") -> Repo:
        shutil.copytree(original(), folder, symlinks=True)
        return cls(folder, url)

    def worktree(self, name: str) -> Repo:
        other = self.folder.parent / name
        git(self.folder, "worktree", "add", "-q", "-b", name, str(other))
        return Repo(other, self.around.get("DIBS_URL", ""))

    def environment(self, **more: str) -> dict[str, str]:
        """Of a process that is to find this board."""
        own = {"XDG_CONFIG_HOME": str(self.config.parent)}
        return clean_environment(**own | self.around | more)

    @property
    def config(self) -> Path:
        """The user's own configuration, for this repository and its work trees alone."""
        return self.folder.parent / ".config" / "dibs"

    def personal(self, uid: str, text: str) -> None:
        """What starts programs or names servers, as a person writes it to the user's own file."""
        file = self.config / "boards" / f"{uid}.toml"
        for folder in (self.config, file.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """The program as whoever types it starts it."""
        return subprocess.Popen(
            [DIBS, *arguments], cwd=self.folder, env=self.environment(**environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *arguments: str, fed: str = "", **environment: str) -> Ran:
        """A process that has ended; forked where nothing depends on how it starts."""
        around = self.environment(**environment)
        if forked.can_be_forked([*arguments], around):
            return Ran(*forked.run([*arguments], self.folder, around, fed))
        done = subprocess.run(
            [DIBS, *arguments], cwd=self.folder, env=around, input=fed, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str, **environment: str) -> Ran:
        ran = self.run(*arguments, **environment)
        assert ran.code == 0, (arguments, ran.code, ran.err)
        return ran

    def fails(self, code: int, *arguments: str, **environment: str) -> Ran:
        ran = self.run(*arguments, **environment)
        assert ran.code == code, (arguments, ran.code, ran.out, ran.err)
        return ran

    def json(self, *arguments: str):
        return self.ok(*arguments, "--json").json

    def add(self, title: str = "work", *options: str) -> str:
        return self.json("add", title, "--as", "founder", *options)["task"]["key"]

    def await_expiry(self, key: str, **environment: str) -> None:
        """Until the lease of a task has expired, as the board says; it is asked when that is due."""
        deadline = time.monotonic() + PATIENCE
        while True:
            task = self.ok("show", key, "--json", **environment).json["task"]
            if task["expired"] is not False:
                return
            assert time.monotonic() < deadline, f"{key} does not expire"
            left = datetime.fromisoformat(task["lease_expires_at"]) - datetime.now(UTC)
            time.sleep(min(max(left.total_seconds(), 0.01), 2))

    @property
    def database(self) -> Path:
        return self.folder / ".git" / "dibs" / "board.db"
