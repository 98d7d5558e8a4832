"""Where the board is. Starts no process: git's own files say where the shared git directory is."""

from __future__ import annotations

import os
from os.path import abspath, dirname, exists, isdir, isfile, join

from dibs.core.checks import quoted
from dibs.core.refusals import bad_argument
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER_IN_GIT = "dibs"
FOLDER_OUTSIDE = ".dibs"
LEFT_BY_A_BOARD = ("board.db", "settings.toml", "board.id")


class Repository(Value):
    """A git repository: the work tree one stands in, its git directory, and the shared one."""

    worktree: str
    git_dir: str
    common_dir: str

    def branch(self) -> str:
        """The branch that is checked out, or the commit if there is none."""
        head = _first_line(join(self.git_dir, "HEAD"))
        return head.removeprefix("ref: refs/heads/")

    def ignores_case(self) -> bool:
        """Whether git found, when it made the repository, that its file system does."""
        section = ""
        for line in _lines(join(self.common_dir, "config")):
            text = line.partition("#")[0].strip().lower()
            if text.startswith("["):
                section = text
            elif section == "[core]" and text.partition("=")[0].strip() == "ignorecase":
                return text.partition("=")[2].strip() in ("", "true", "yes", "on", "1")
        return False


class Place(Value):
    """The folder of the board, and the repository around the current directory."""

    folder: str
    repository: Repository | None = None
    url: str = ""
    """The address of a board on a server, if the environment states one."""


def locate(start: str, environment: Mapping[str, str]) -> Place:
    """The place of the board as seen from `start`; the board may not be there yet."""
    repository = find_repository(start)
    stated, url = environment.get("DIBS_BOARD"), environment.get("DIBS_URL", "")
    if stated:
        if url:
            raise bad_argument("DIBS_BOARD and DIBS_URL are both set: one board at a time")
        if not os.path.isabs(stated):
            raise bad_argument(f"DIBS_BOARD is {quoted(stated)}; it is an absolute path")
        return Place(stated, repository)
    if repository is not None:
        return Place(join(repository.common_dir, FOLDER_IN_GIT), repository, url)
    outside = _upwards(start, FOLDER_OUTSIDE)
    return Place(join(outside or abspath(start), FOLDER_OUTSIDE), None, url)


def is_expected(place: Place, environment: Mapping[str, str]) -> bool:
    """Whether a board that is not there should be: somebody names it, or something of it is left."""
    if environment.get("DIBS_BOARD"):
        return True
    return any(exists(join(place.folder, name)) for name in LEFT_BY_A_BOARD)


def find_repository(start: str) -> Repository | None:
    worktree, bare = _upwards(start, ".git") or "", _bare(start) or ""
    git_dir = join(worktree, ".git")
    if len(bare) > len(worktree) and not (bare + os.sep).startswith(git_dir + os.sep):
        return Repository("", bare, bare)
    if not worktree:
        return None
    if isfile(git_dir):
        pointer = _first_line(git_dir).removeprefix("gitdir: ")
        git_dir = os.path.normpath(join(worktree, pointer))
        if not pointer or not isdir(git_dir):
            where = pointer or "nothing"
            raise bad_argument(f"{join(worktree, '.git')} points to {where}, which is not there")
    shared = _first_line(join(git_dir, "commondir"))
    common = os.path.normpath(join(git_dir, shared)) if shared else git_dir
    return Repository(worktree, git_dir, os.path.realpath(common))


def _upwards(start: str, name: str) -> str | None:
    """The nearest folder, from `start` upwards, that holds `name`."""
    folder = abspath(start)
    while True:
        if os.path.lexists(join(folder, name)):
            return folder
        if folder == dirname(folder):
            return None
        folder = dirname(folder)


def _bare(start: str) -> str | None:
    """A bare repository, or the inside of a git directory."""
    folder = abspath(start)
    while folder != dirname(folder):
        if isfile(join(folder, "HEAD")) and isdir(join(folder, "objects")):
            return folder
        folder = dirname(folder)
    return None


def _first_line(path: str) -> str:
    return next(iter(_lines(path)), "").strip()


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readlines()
    except OSError:
        return []
