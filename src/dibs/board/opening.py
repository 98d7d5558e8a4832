"""The composition root: a place, its settings and its store become a board."""

from __future__ import annotations

import os

from dibs.board.execute import Board, fresh_uid
from dibs.board.locate import Place, locate
from dibs.board.settings import Settings, load
from dibs.core.instants import SECOND
from dibs.stores.sqlite import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.machine import Machine


def open_board(
    start: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    machine: Machine | None = None,
) -> Board:
    """The board of the repository around `start` (else the current directory)."""
    place = locate(start or os.getcwd(), os.environ if environment is None else environment)
    return open_at(place, machine)


def open_at(place: Place, machine: Machine | None = None) -> Board:
    settings = load(place.folder)
    return Board(store_at(place, settings, machine), settings)


def another(board: Board) -> Board:
    """The same board through a connection of its own."""
    return Board(board.store.another(), board.settings)


def create_at(place: Place, machine: Machine | None = None) -> tuple[Board, bool]:
    """The board, made if it was not there; and whether it was made."""
    settings = load(place.folder)
    store = store_at(place, settings, machine)
    made = store.create(fresh_uid())
    return Board(store, settings), made


def store_at(place: Place, settings: Settings, machine: Machine | None) -> SqliteStore:
    return SqliteStore(place.folder, machine=machine, wait=settings.write_wait / SECOND)
