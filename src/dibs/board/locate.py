"""Locate the board, and choose the store that opens it: a SQLite file or a server.

Starts no process: git's own files say where the shared git directory is.
"""

from __future__ import annotations

import os
from os.path import abspath, dirname, exists, isdir, isfile, join

from dibs.board.settings import Settings, from_text, load, personal
from dibs.board.user_config import User, folder_in
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import SECOND, Value
from dibs.safe_files import foreign, lines
from dibs.storage.errors import cannot_follow_move, driver_missing, not_accepted, unaccepted_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from dibs.machine import Machine
    from dibs.storage.address import Address
    from dibs.storage.errors import BoardMoved
    from dibs.storage.store import Store

FOLDER_IN_GIT = "dibs"
FOLDER_OUTSIDE = ".dibs"
ON_SERVER = "on-server"
"""A marker file beside the board: it is on a server, and the user's own folder says on which one."""

LEFT_BY_A_BOARD = ("board.db", "settings.toml", "board.id", ON_SERVER)


class Repository(Value):
    """A git repository: the current work tree, its git directory, and the shared one."""

    worktree: str
    git_dir: str
    common_dir: str
    foreign: str = ""
    """Why nothing of it may be read: it belongs to another user."""

    def branch(self) -> str:
        """The branch that is checked out, or the commit of a detached HEAD."""
        head = _first_line(join(self.git_dir, "HEAD"))
        return head.removeprefix("ref: refs/heads/")

    def ignores_case(self) -> bool:
        """Whether git detected a case-insensitive file system when it created the repository."""
        found = _core_setting(join(self.common_dir, "config"), "ignorecase")
        return found is not None and found.lower() in ("", "true", "yes", "on", "1")


class Place(Value):
    """The folder of the board, and the repository around the current directory."""

    folder: str
    repository: Repository | None = None
    url: str = ""
    """The address of a board on a server, if the environment gives one."""
    user: User = User()
    """The user's own configuration."""

    @property
    def server(self) -> str:
        """The address of the board, if it is on a server: from the environment,
        else from the user's configuration.
        """
        return self.url or self.user.url_of(self.folder)

    def check_ours(self) -> None:
        """Refuses files of another user before reading any of them."""
        if self.repository is not None and self.repository.foreign:
            path = self.repository.worktree or self.repository.git_dir
            what = f"the repository {path} is not used: {self.repository.foreign}"
            raise refused("foreign_repository", what, path=path)
        why = foreign(self.folder)
        if why:
            from dibs.safe_files import unsafe_storage

            raise unsafe_storage(self.folder, why)


def locate(start: str, environment: Mapping[str, str]) -> Place:
    """The place of the board as seen from `start`; the board may not exist yet."""
    repository, user = find_repository(start), User(folder_in(environment))
    stated, url = environment.get("DIBS_BOARD"), environment.get("DIBS_URL", "")
    if stated:
        if url:
            raise bad_argument("DIBS_BOARD and DIBS_URL are both set: one board at a time")
        if not os.path.isabs(stated):
            raise bad_argument(f"DIBS_BOARD is {quoted(stated)}; it is an absolute path")
        return Place(stated, repository, user=user)
    if repository is not None:
        return Place(join(repository.common_dir, FOLDER_IN_GIT), repository, url, user)
    outside = _upwards(start, FOLDER_OUTSIDE)
    return Place(join(outside or abspath(start), FOLDER_OUTSIDE), None, url, user)


def is_expected(place: Place, environment: Mapping[str, str]) -> bool:
    """Whether a missing board is an error: somebody names it, or files of it are left."""
    if environment.get("DIBS_BOARD"):
        return True
    return any(exists(join(place.folder, name)) for name in LEFT_BY_A_BOARD)


def find_repository(start: str) -> Repository | None:
    """The repository around a folder. A bare one inside a work tree does not count:
    it may be committed there.
    """
    worktree = _work_tree(start)
    if not worktree:
        bare = _bare(start)
        return None if bare is None else Repository("", bare, bare, foreign_in(bare))
    git_dir = join(worktree, ".git")
    if why := foreign_in(worktree, git_dir):
        return Repository(worktree, git_dir, git_dir, why)
    if isfile(git_dir):
        pointer = _first_line(git_dir).removeprefix("gitdir: ")
        git_dir = os.path.normpath(join(worktree, pointer))
        if not pointer or not isdir(git_dir):
            where = pointer or "nothing"
            raise bad_argument(f"{join(worktree, '.git')} points to {where}, which is not there")
    if why := foreign_in(worktree, git_dir):
        return Repository(worktree, git_dir, git_dir, why)
    common = _common_dir(git_dir)
    return Repository(worktree, git_dir, common, foreign_in(worktree, common))


def _common_dir(git_dir: str) -> str:
    shared = _first_line(join(git_dir, "commondir"))
    return _real(join(git_dir, shared) if shared else git_dir)


def foreign_in(root: str, *paths: str) -> str:
    """Why a repository belongs to another user, unless the user's git configuration declares it safe."""
    for path in (root, *paths):
        why = foreign(path)
        if why:
            return "" if _is_safe_directory(root) else f"{path} {why}"
    return ""


def _is_safe_directory(root: str) -> bool:
    """Whether `safe.directory` lists it, where git reads that: not in the repository itself."""
    from dibs.git_runner import config

    names = {"*", root, os.path.realpath(root)}
    for scope in ("--global", "--system"):
        _, stated = config(scope, "--get-all", "safe.directory", folder="/")
        if any(line in names or _covers(line, root) for line in os.fsdecode(stated).splitlines()):
            return True
    return False


def _covers(line: str, root: str) -> bool:
    """`/srv/*` covers everything below `/srv`."""
    return line.endswith("/*") and root.startswith(line[:-1])


# Which folders are work trees. Anybody can write a `.git` file that points to somebody's git directory.


def _work_tree(start: str) -> str:
    """The nearest folder with a `.git` that its git directory confirms; else the nearest with any.

    So a `.git` that merely points somewhere cannot cut a folder out of the work tree around it.
    """
    nearest = folder = _upwards(start, ".git") or ""
    while folder and not _is_known(folder):
        folder = "" if folder == dirname(folder) else _upwards(dirname(folder), ".git") or ""
    return folder or nearest


def _is_known(worktree: str) -> bool:
    """Whether the `.git` of a folder is a git directory, or leads to one that points back.

    Files of another user are not read: they count as known, and are refused later.
    """
    dot = join(worktree, ".git")
    if foreign_in(worktree, dot):
        return True
    linked = os.path.lexists(join(dot, "commondir"))
    if isdir(dot) and not os.path.islink(dot) and not linked:
        return True
    git_dir = _leads_to(worktree)
    if foreign_in(worktree, git_dir):
        return True
    if os.path.lexists(join(git_dir, "commondir")):
        listed = join(_common_dir(git_dir), "worktrees")
        return dirname(git_dir) == listed and _is_same(_tree_of(git_dir), worktree)
    for file in ("config.worktree", "config"):
        stated = _core_setting(join(git_dir, file), "worktree")
        if stated:
            return _is_same(join(git_dir, stated), worktree)
    return False


def linked_trees(common_dir: str) -> Iterator[tuple[str, str]]:
    """The git directory and the folder of each linked work tree that a repository lists."""
    listed = join(common_dir, "worktrees")
    for name in sorted(os.listdir(listed)) if isdir(listed) else ():
        folder = _tree_of(join(listed, name))
        if folder:
            yield join(listed, name), folder


def opens_into(worktree: str, git_dir: str) -> bool:
    """Whether the `.git` of a folder is this git directory, or points to it."""
    return _leads_to(worktree) == _real(git_dir)


def _tree_of(git_dir: str) -> str:
    """The folder that the git directory of a linked work tree names; "" if none."""
    stated = _first_line(join(git_dir, "gitdir"))
    return dirname(join(git_dir, stated)) if stated else ""


def _leads_to(worktree: str) -> str:
    """The real path of `.git`, or of what it points to."""
    dot = join(worktree, ".git")
    pointer = _first_line(dot).removeprefix("gitdir: ") if isfile(dot) else ""
    return _real(join(worktree, pointer) if pointer else dot)


def _is_same(one: str, other: str) -> bool:
    return _real(one) == _real(other)


def _real(path: str) -> str:
    """The path without links; unchanged if no file can have such a name."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _core_setting(path: str, name: str) -> str | None:
    """The last value of a setting in the section `core` of a file; includes are not followed."""
    section, found = "", None
    for line in _lines(path):
        text = line.strip()
        if text.startswith("["):
            section = text.partition("]")[0].lower()
        key, _, value = text.partition("=")
        if section == "[core" and key.strip().lower() == name:
            found = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    """A value without quotation marks, escapes and trailing comment."""
    out, quoted, escaped = "", False, False
    for char in value:
        if not (quoted or escaped) and char in "#;":
            break
        if not escaped and char in '"\\':
            quoted, escaped = quoted ^ (char == '"'), char == "\\"
            continue
        out, escaped = out + char, False
    return out if value.endswith('"') else out.rstrip()


def _upwards(start: str, name: str) -> str | None:
    """The nearest folder, from `start` upwards, that contains `name`."""
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
    return lines(path)


# The store of a place, and the settings that apply to it.


def load_at(place: Place) -> Settings:
    """The settings known before the board is opened: those beside it, and its server."""
    place.check_ours()
    settings = load(place.folder)
    url = "" if place.url else place.server
    if place.url or url == settings.proposed.get("url"):
        left = {name: value for name, value in settings.proposed.items() if name != "url"}
        settings = settings.but(proposed=left)
    return settings.but(url=url)


def store_at(place: Place, settings: Settings, machine: Machine | None = None) -> Store:
    """A PostgreSQL store if the environment or the user's configuration gives an address; else SQLite.

    An address that is only in a file beside the board is not used: nobody has accepted it.
    """
    if place.url:
        from dibs.storage.address import parse

        return store_at_address(parse(place.url), machine, settings)
    if settings.url:
        from dibs.storage.address import parse_untrusted

        where = f"{place.user.servers_file}: the url"
        return store_at_address(parse_untrusted(settings.url, where), machine, settings)
    if "url" in settings.proposed and not exists(join(place.folder, "board.db")):
        raise unaccepted_server(settings.proposed_in, settings.proposed["url"])
    return store_to(place.folder, machine, settings)


def store_to(where: str, machine: Machine | None, settings: Settings) -> Store:
    """The store of a folder or an address that a person typed."""
    if is_folder(where):
        from dibs.storage.sqlite.store import SqliteStore

        return SqliteStore(where, machine=machine, wait=settings.write_wait / SECOND)
    from dibs.storage.address import parse

    return store_at_address(parse(where, "this"), machine, settings)


def is_folder(where: str) -> bool:
    scheme = where.partition(":")[0]
    return scheme == where or not scheme.isalpha()


def store_of_record(moved: BoardMoved, source: Store, settings: Settings, user: User) -> Store:
    """The store that a forwarding record names: a folder, within the same database,
    or on an accepted server.
    """
    where = str(moved.refusal.facts["to"])
    if is_folder(where):
        return store_to(where, source.machine, settings)
    from dibs.storage.address import parse, parse_untrusted

    try:
        if source.remote and parse(where).url == source.address.to_keep().url:  # type: ignore[attr-defined]
            return source.another(parse(where).board)  # type: ignore[call-arg]
        address = parse_untrusted(where, "the address")
    except Refused as problem:
        raise cannot_follow_move(moved, f"which is not followed: {problem}") from None
    if not user.accepts(str(address)):
        raise not_accepted(moved)
    return store_at_address(address, source.machine, settings)


def store_at_address(address: Address, machine: Machine | None, settings: Settings) -> Store:
    try:
        from dibs.storage.postgres.store import PostgresStore
    except ImportError:
        raise driver_missing(str(address)) from None
    return PostgresStore(address, machine=machine, wait=settings.write_wait / SECOND)


def settings_in(store: Store, local: Settings, user: User) -> Settings:
    """The settings stored on the server for all machines, or those beside the file; plus the user's own."""
    stated = store.stated_settings()
    settings = local
    if stated is not None:
        settings = from_text(stated, store.where).but(url=local.url)
    return personal(settings, user, board_id(store)) if user.has_boards else settings


def board_id(store: Store) -> str:
    """The id of the board; "" if there is none."""
    try:
        with store.read() as tx:
            return tx.board.uid
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return ""


def copier(store: Store) -> Any:
    """The module that copies a board out of and into this kind of store."""
    if not store.remote:
        from dibs.storage.sqlite import copy as sqlite_copy

        return sqlite_copy
    from dibs.storage.postgres import copy as postgres_copy

    return postgres_copy


def scrub(store: Store) -> tuple[str, ...]:
    """Overwrites what the store still has of removed data; returns warnings about what it could not reach."""
    left = "" if store.remote else copier(store).scrub(store)
    return (left,) if left else ()


# Backlogs in files: the one list of where they are. It is here because every command looks for them.

BACKLOG_FOLDERS = {
    "kano": ("_kano/backlog",),
    "wrk": (".claude/work-queue",),
    "workgraph": (".wg", ".workgraph"),
    "backlog_md": ("backlog", ".backlog"),
    "taskmaster": (".taskmaster",),
}
"""The folders of each backlog, by its name in `dibs.toml`. The first that is there counts."""

BACKLOG_MARKS = {
    "workgraph": "graph.jsonl",
    "backlog_md": "config.yml",
    "taskmaster": "tasks/tasks.json",
}
"""A file that a backlog folder must contain; otherwise a folder of that name is something else."""

ROOT_CONFIG = "backlog.config.yml"
"""Where Backlog.md may have its configuration instead; it names the folder."""

COMMITTED = "dibs.toml"

BACKLOG_SIGNS = (
    *(
        f"{folder}/{BACKLOG_MARKS[name]}" if name in BACKLOG_MARKS else folder
        for name, folders in BACKLOG_FOLDERS.items()
        for folder in folders
    ),
    ROOT_CONFIG,
    COMMITTED,
)
"""Only where one of these exists may there be a backlog; elsewhere its code is not loaded."""
