"""The composition root: a place, its settings and its store become a board."""

from __future__ import annotations

import os

from dibs.board.execute import Board
from dibs.board.known import fresh_uid
from dibs.board.locate import Place, locate
from dibs.board.persist import persist
from dibs.board.settings import Settings, from_text, load
from dibs.core.instants import SECOND
from dibs.stores.faults import driver_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.machine import Machine
    from dibs.stores.store import Store


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
    board = Board(store_at(place, settings, machine), settings)
    board.settings = persist(board, lambda: settings_in(board.store, settings))
    return board


def place_of(place: Place) -> Board:
    """A board that may not be there: nothing is read but what stands beside it."""
    settings = load(place.folder)
    return Board(store_at(place, settings), settings)


def another(board: Board) -> Board:
    """The same board through a connection of its own."""
    return Board(board.store.another(), board.settings)


def create_at(place: Place, machine: Machine | None = None) -> tuple[Board, bool]:
    """The board, made if it was not there; and whether it was made."""
    settings = load(place.folder)
    store = store_at(place, settings, machine)
    made = store.create(fresh_uid())
    return Board(store, settings_in(store, settings)), made


def store_at(place: Place, settings: Settings, machine: Machine | None = None) -> Store:
    """A server's board if an address is given, by the environment or the settings; else a file."""
    url = place.url or settings.url
    if url:
        return store_at_address(url, machine, settings)
    return store_to(place.folder, machine, settings)


def store_to(where: str, machine: Machine | None, settings: Settings) -> Store:
    """A folder, or an address: as a forwarding record or a person names it."""
    scheme = where.partition(":")[0]
    if scheme == where or not scheme.isalpha():
        from dibs.stores.sqlite import SqliteStore

        return SqliteStore(where, machine=machine, wait=settings.write_wait / SECOND)
    return store_at_address(where, machine, settings, "this")


def store_at_address(
    url: str, machine: Machine | None, settings: Settings, what: str = "DIBS_URL"
) -> Store:
    from dibs.stores.address import parse

    address = parse(url, what)
    try:
        from dibs.stores.postgres import PostgresStore
    except ImportError:
        raise driver_missing(str(address)) from None
    return PostgresStore(address, machine=machine, wait=settings.write_wait / SECOND)


def settings_now(place: Place, board: Board) -> Settings:
    """Read anew, wherever they are kept: a store asks its server once."""
    fresh = another(board)
    try:
        return persist(fresh, lambda: settings_in(fresh.store, load(place.folder)))
    finally:
        fresh.store.close()


def settings_in(store: Store, local: Settings) -> Settings:
    """Those that a server keeps, for all machines alike; else those beside the file."""
    stated = store.stated_settings()
    return local if stated is None else from_text(stated, store.where)
