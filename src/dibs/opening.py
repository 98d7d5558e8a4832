"""The composition root: a place, its settings and its store become a board."""

from __future__ import annotations

import os
from os.path import exists, join, lexists

from dibs.board.bounded import lines
from dibs.board.locate import Place, locate
from dibs.board.persist import Opened, persist
from dibs.board.places import load_at, settings_in, store_at
from dibs.board.settings import STRICT, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    from dibs.backlogs.backlog import Backlog
    from dibs.board.execute import Board
    from dibs.core.instants import Duration
    from dibs.machine import Machine

    Kind = TypeVar("Kind", bound=Opened)


def open_board(
    start: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    machine: Machine | None = None,
) -> Board:
    """The board of the repository around `start` (else the current directory)."""
    place = locate(start or os.getcwd(), os.environ if environment is None else environment)
    return open_at(place, machine)


def open_at(
    place: Place,
    machine: Machine | None = None,
    wait: Duration | None = None,
    deadline: float | None = None,
) -> Board:
    """`wait`: how long for a server that is away, if not for as long as the settings say.
    `deadline`: by `time.monotonic()`, when a server is waited for no more, whatever is asked of it.
    """
    from dibs.board.execute import Board

    return _open(Board, place, machine, wait, deadline)


def look_at(place: Place, deadline: float | None = None) -> Opened:
    """The board to look at: what changes it is not loaded."""
    return _open(Opened, place, None, None, deadline)


def _open(
    kind: type[Kind],
    place: Place,
    machine: Machine | None,
    wait: Duration | None,
    deadline: float | None,
) -> Kind:
    settings = load_at(place)
    board = kind(store_at(place, settings, machine), settings, user=place.user)
    if deadline is not None:
        board.store.deadline = deadline
    board.settings = persist(board, lambda: settings_in(board.store, settings, place.user), wait)
    return in_repository(board, place)


def place_of(place: Place) -> Board:
    """A board that may not be there: nothing is read but what stands beside it."""
    from dibs.board.execute import Board

    settings = load_at(place)
    return Board(store_at(place, settings), settings, user=place.user)


def another(board: Board) -> Board:
    """The same board through a connection of its own."""
    from dibs.board.execute import Board

    other = Board(board.store.another(), board.settings, board.backlog, board.user)
    other.repository = board.repository
    return other


def create_at(place: Place, machine: Machine | None = None, uid: str = "") -> tuple[Board, bool]:
    """The board, made if it was not there, with this id if one is given; and whether it was made."""
    from dibs.board.execute import Board
    from dibs.board.known import fresh_uid

    settings = load_at(place)
    board = Board(store_at(place, settings, machine), settings, user=place.user)
    own = uid or fresh_uid()
    made = persist(board, lambda: board.store.create(own))
    board.settings = persist(board, lambda: settings_in(board.store, settings, place.user))
    return in_repository(board, place), made


def settings_now(place: Place, board: Board) -> Settings:
    """Read anew, wherever they are kept: a store asks its server once."""
    fresh = another(board)
    try:
        return persist(fresh, lambda: settings_in(fresh.store, load_at(place), place.user))
    finally:
        fresh.store.close()


def in_repository(board: Kind, place: Place) -> Kind:
    """The board with what the repository around it says: how it takes case, its areas, its backlogs."""
    board.repository = place.repository
    if board.settings.ignore_case is None and place.repository is not None:
        board.settings = board.settings.but(ignore_case=place.repository.ignores_case())
    return with_areas(with_backlog(board, place), place)


def with_areas(board: Kind, place: Place) -> Kind:
    """`dibs.toml` may name areas; the board's own settings come first."""
    committed, unread = committed_areas(place, board.settings)
    if committed or unread:
        areas = {**committed, **board.settings.areas}
        board.settings = board.settings.but(areas=areas, areas_unread=unread)
    return board


def wrong_in_committed(place: Place, settings: Settings) -> list[str]:
    """What of `dibs.toml` is not followed."""
    root = settings.mirror_root or main_tree(place)
    if not root or not lexists(join(root, COMMITTED)):
        return []
    from dibs.backlogs.found import wrong_in

    return [str(problem) for problem in wrong_in(root)]


def committed_proposals(place: Place) -> dict[str, Any]:
    """What `dibs.toml` says that starts programs or names servers: it counts only once it is adopted."""
    root = main_tree(place)
    if not root or not exists(join(root, COMMITTED)):
        return {}
    from dibs.backlogs.found import read_file
    from dibs.board.settings import proposals

    return dict(proposals(read_file(root)[0]))


def committed_areas(place: Place, settings: Settings) -> tuple[dict[str, tuple[str, ...]], str]:
    """The areas that `dibs.toml` names; and what is wrong with the first that could not be read."""
    root = settings.mirror_root or main_tree(place)
    if not root or not lexists(join(root, COMMITTED)):
        return {}, ""
    from dibs.backlogs.found import stated_areas

    areas, wrong = stated_areas(root)
    return areas, f"{wrong[0].path}: {wrong[0].what}" if wrong else ""


# Backlogs that are files.


COMMITTED = "dibs.toml"


MARKS = (
    "_kano/backlog", ".claude/work-queue", ".wg", ".workgraph", "backlog/config.yml", COMMITTED,
)  # fmt: skip
"""Where one of these is, there may be a backlog; elsewhere nothing of it is loaded."""


def with_backlog(board: Kind, place: Place) -> Kind:
    """The board with the item files that belong to it. A kano backlog asks for explicit names."""
    board.backlog = backlog = backlog_at(place, board.settings)
    if backlog is not None and backlog.is_strict and not board.settings.identity:
        board.settings = board.settings.but(identity=STRICT)
    return board


def backlog_at(place: Place, settings: Settings) -> Backlog | None:
    """The item files that belong to a board: those of the main work tree, or where a setting says."""
    root = settings.mirror_root or main_tree(place)
    if not root or not any(exists(join(root, mark)) for mark in MARKS):
        return None
    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.found import dialects_at

    dialects = dialects_at(root)
    return Backlog(root, place.folder, dialects) if dialects else None


def backlog_here(place: Place) -> Backlog | None:
    """The item files that belong to a board which may not be there yet."""
    if not place.user.has_boards or not is_here(place):
        return backlog_at(place, load_at(place))
    board = look_at(place)
    try:
        return board.backlog  # type: ignore[return-value]  # an `Opened` has no other kind
    finally:
        board.store.close()


def main_tree(place: Place) -> str:
    """The main work tree of the repository; the folder around the board, where there is none."""
    repository = place.repository
    if repository is None:
        return os.path.dirname(place.folder)
    if os.path.basename(repository.common_dir) == ".git":
        return os.path.dirname(repository.common_dir)
    return repository.worktree if repository.git_dir == repository.common_dir else ""


KEPT, KEPT_MAX = "board.id", 1 << 10
"""A file beside the database: which board it is, if item files name it."""


def keep_uid(place: Place, uid: str) -> None:
    """So that a board whose database is lost can be built anew from its item files."""
    path = join(place.folder, KEPT)
    if kept(path) == uid:
        return
    os.makedirs(place.folder, mode=0o700, exist_ok=True)
    own = f"{path}.{os.getpid()}"
    with open(own, "w", encoding="utf-8") as file:
        file.write(f"{uid}\n")
    os.replace(own, path)


def kept_uid(place: Place) -> str:
    """The id of a board whose database is gone; nothing while it is there."""
    return "" if is_here(place) else kept(join(place.folder, KEPT))


def is_here(place: Place) -> bool:
    """Whether there is a database in the folder; what a server has is not asked."""
    return bool(place.server) or exists(join(place.folder, "board.db"))


def kept(path: str) -> str:
    return "".join(lines(path, KEPT_MAX)[:1]).strip()
