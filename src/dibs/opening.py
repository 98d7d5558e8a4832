"""Composition root: builds a board from its location, settings and store."""

from __future__ import annotations

import os
from os.path import exists, join, lexists

from dibs.board.locate import (
    BACKLOG_SIGNS,
    COMMITTED,
    Place,
    load_at,
    locate,
    settings_in,
    store_at,
)
from dibs.board.retry import ReadableBoard, retry_on_disconnect
from dibs.board.settings import STRICT, Settings
from dibs.safe_files import lines, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    from dibs.backlogs.backlog import Backlog
    from dibs.board.execute import Board
    from dibs.domain.values import Duration
    from dibs.machine import Machine

    Kind = TypeVar("Kind", bound=ReadableBoard)


def open_board(
    start: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    machine: Machine | None = None,
) -> Board:
    """Opens the board of the repository around `start` (default: the current directory)."""
    place = locate(start or os.getcwd(), os.environ if environment is None else environment)
    return open_at(place, machine)


def open_at(
    place: Place,
    machine: Machine | None = None,
    wait: Duration | None = None,
    deadline: float | None = None,
) -> Board:
    """`wait`: how long to retry an unreachable server; by default as long as the
    settings allow. `deadline`: by `time.monotonic()`, when every wait for a server ends.
    """
    from dibs.board.execute import Board

    return _open(Board, place, machine, wait, deadline)


def open_read_only(place: Place, deadline: float | None = None) -> ReadableBoard:
    """Opens the board for reading only: the code for changes is not loaded."""
    return _open(ReadableBoard, place, None, None, deadline)


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
    board.settings = retry_on_disconnect(
        board, lambda: settings_in(board.store, settings, place.user), wait
    )
    return in_repository(board, place)


def place_of(place: Place) -> Board:
    """A board that may not exist: reads only the settings file beside it."""
    from dibs.board.execute import Board

    settings = load_at(place)
    return Board(store_at(place, settings), settings, user=place.user)


def second_connection(board: Board) -> Board:
    """The same board over a second connection."""
    from dibs.board.execute import Board

    other = Board(board.store.another(), board.settings, board.backlog, board.user)
    other.repository = board.repository
    return other


def create_at(place: Place, machine: Machine | None = None, uid: str = "") -> tuple[Board, bool]:
    """Opens the board, creating it if needed (with id `uid` if given); also returns
    whether it was created.
    """
    from dibs.board.execute import Board
    from dibs.board.facts.task import fresh_uid

    settings = load_at(place)
    board = Board(store_at(place, settings, machine), settings, user=place.user)
    own = uid or fresh_uid()
    made = retry_on_disconnect(board, lambda: board.store.create(own))
    board.settings = retry_on_disconnect(
        board, lambda: settings_in(board.store, settings, place.user)
    )
    return in_repository(board, place), made


def settings_now(place: Place, board: Board) -> Settings:
    """Reads the settings again, wherever they are stored, over a new connection: a
    store queries its server once.
    """
    fresh = second_connection(board)
    try:
        return retry_on_disconnect(
            fresh, lambda: settings_in(fresh.store, load_at(place), place.user)
        )
    finally:
        fresh.store.close()


def in_repository(board: Kind, place: Place) -> Kind:
    """Adds what the repository determines: case sensitivity, areas and backlogs."""
    board.repository = place.repository
    if board.settings.ignore_case is None and place.repository is not None:
        board.settings = board.settings.but(ignore_case=place.repository.ignores_case())
    return with_areas(with_backlog(board, place), place)


def with_areas(board: Kind, place: Place) -> Kind:
    """Adds the areas that `dibs.toml` names; the board's own settings have precedence."""
    committed, unread = committed_areas(place, board.settings)
    if committed or unread:
        areas = {**committed, **board.settings.areas}
        board.settings = board.settings.but(areas=areas, areas_unread=unread)
    return board


def wrong_in_committed(place: Place, settings: Settings) -> list[str]:
    """The problems in `dibs.toml`: what of it is ignored."""
    root = settings.mirror_root or main_tree(place)
    if not root or not lexists(join(root, COMMITTED)):
        return []
    from dibs.backlogs.discover import wrong_in

    return [str(problem) for problem in wrong_in(root)]


def committed_proposals(place: Place) -> dict[str, Any]:
    """Entries of `dibs.toml` that start programs or name servers: they have no
    effect until a user adopts them.
    """
    root = main_tree(place)
    if not root or not exists(join(root, COMMITTED)):
        return {}
    from dibs.backlogs.discover import read_file
    from dibs.board.settings import proposals

    return dict(proposals(read_file(root)[0]))


def committed_areas(place: Place, settings: Settings) -> tuple[dict[str, tuple[str, ...]], str]:
    """The areas that `dibs.toml` names, and the first problem in reading them, or ""."""
    root = settings.mirror_root or main_tree(place)
    if not root or not lexists(join(root, COMMITTED)):
        return {}, ""
    from dibs.backlogs.discover import stated_areas

    areas, wrong = stated_areas(root)
    return areas, f"{wrong[0].path}: {wrong[0].what}" if wrong else ""


# Backlogs of item files.


def with_backlog(board: Kind, place: Place) -> Kind:
    """Adds the backlog of item files. A kano backlog requires explicit names: strict identity."""
    board.backlog = backlog = backlog_at(place, board.settings)
    if backlog is not None and backlog.is_strict and not board.settings.identity:
        board.settings = board.settings.but(identity=STRICT)
    return board


def backlog_at(place: Place, settings: Settings) -> Backlog | None:
    """The backlog that belongs to a board: in the main work tree, or where the setting says."""
    root = settings.mirror_root or main_tree(place)
    if not root or not any(exists(join(root, mark)) for mark in BACKLOG_SIGNS):
        return None
    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.discover import dialects_at

    dialects = dialects_at(root)
    return Backlog(root, place.folder, dialects) if dialects else None


def backlog_here(place: Place) -> Backlog | None:
    """The backlog of a board that may not exist yet."""
    if not place.user.has_boards or not has_database(place):
        return backlog_at(place, load_at(place))
    board = open_read_only(place)
    try:
        return board.backlog  # type: ignore[return-value]  # an opened board has no other kind
    finally:
        board.store.close()


def main_tree(place: Place) -> str:
    """The main work tree of the repository; without a repository, the folder around the board."""
    repository = place.repository
    if repository is None:
        return os.path.dirname(place.folder)
    if os.path.basename(repository.common_dir) == ".git":
        return os.path.dirname(repository.common_dir)
    return repository.worktree if repository.git_dir == repository.common_dir else ""


KEPT, KEPT_MAX = "board.id", 1 << 10
"""A file beside the database with the id of the board, if item files refer to it."""


def keep_uid(place: Place, uid: str) -> None:
    """Stores the board id, so that a board with a lost database can be rebuilt from its item files."""
    path = join(place.folder, KEPT)
    if kept(path) == uid:
        return
    os.makedirs(place.folder, mode=0o700, exist_ok=True)
    replace(path, f"{uid}\n")


def kept_uid(place: Place) -> str:
    """The id of a board whose database is lost; "" while the database exists."""
    return "" if has_database(place) else kept(join(place.folder, KEPT))


def has_database(place: Place) -> bool:
    """Whether the folder has a database, or the board is on a server (which is not contacted)."""
    return bool(place.server) or exists(join(place.folder, "board.db"))


def kept(path: str) -> str:
    return "".join(lines(path, KEPT_MAX)[:1]).strip()
