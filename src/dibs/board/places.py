"""Which store a place has: a file, or a board on a server; and the settings that hold for it."""

from __future__ import annotations

from os.path import exists, join

from dibs.board.locate import Place
from dibs.board.settings import Settings, from_text, load, personal
from dibs.core.instants import SECOND
from dibs.core.refusals import Refused
from dibs.stores.faults import driver_missing, lost_on_the_way, not_accepted, unaccepted_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.board.user import User
    from dibs.machine import Machine
    from dibs.stores.address import Address
    from dibs.stores.faults import Moved
    from dibs.stores.store import Store


def load_at(place: Place) -> Settings:
    """What is known before the board is opened: the settings beside it, and on which server it is."""
    place.check_ours()
    settings = load(place.folder)
    url = "" if place.url else place.server
    if place.url or url == settings.proposed.get("url"):
        left = {name: value for name, value in settings.proposed.items() if name != "url"}
        settings = settings.but(proposed=left)
    return settings.but(url=url)


def store_at(place: Place, settings: Settings, machine: Machine | None = None) -> Store:
    """A server's board if the environment or the user's configuration gives an address; else a file.

    An address that only a file beside the board states is not followed: nobody has accepted it.
    """
    if place.url:
        from dibs.stores.address import parse

        return store_at_address(parse(place.url), machine, settings)
    if settings.url:
        from dibs.stores.address import parse_kept

        where = f"{place.user.servers_file}: the url"
        return store_at_address(parse_kept(settings.url, where), machine, settings)
    if "url" in settings.proposed and not exists(join(place.folder, "board.db")):
        raise unaccepted_server(settings.proposed_in, settings.proposed["url"])
    return store_to(place.folder, machine, settings)


def store_to(where: str, machine: Machine | None, settings: Settings) -> Store:
    """A folder, or an address, as a person states it."""
    if is_folder(where):
        from dibs.stores.sqlite import SqliteStore

        return SqliteStore(where, machine=machine, wait=settings.write_wait / SECOND)
    from dibs.stores.address import parse

    return store_at_address(parse(where, "this"), machine, settings)


def is_folder(where: str) -> bool:
    scheme = where.partition(":")[0]
    return scheme == where or not scheme.isalpha()


def store_of_record(moved: Moved, source: Store, settings: Settings, user: User) -> Store:
    """Where a forwarding record leads: to a folder, within the same database, or to an accepted server."""
    where = str(moved.refusal.facts["to"])
    if is_folder(where):
        return store_to(where, source.machine, settings)
    from dibs.stores.address import parse, parse_kept

    try:
        if source.remote and parse(where).url == source.address.to_keep().url:  # type: ignore[attr-defined]
            return source.another(parse(where).board)  # type: ignore[call-arg]
        address = parse_kept(where, "the address")
    except Refused as problem:
        raise lost_on_the_way(moved, f"which is not followed: {problem}") from None
    if not user.accepts(str(address)):
        raise not_accepted(moved)
    return store_at_address(address, source.machine, settings)


def store_at_address(address: Address, machine: Machine | None, settings: Settings) -> Store:
    try:
        from dibs.stores.postgres import PostgresStore
    except ImportError:
        raise driver_missing(str(address)) from None
    return PostgresStore(address, machine=machine, wait=settings.write_wait / SECOND)


def settings_in(store: Store, local: Settings, user: User) -> Settings:
    """Those that a server keeps, for all machines alike, or those beside the file; and the user's own."""
    stated = store.stated_settings()
    settings = local
    if stated is not None:
        settings = from_text(stated, store.where).but(url=local.url)
    return personal(settings, user, board_id(store)) if user.has_boards else settings


def board_id(store: Store) -> str:
    """Which board it is; "" if there is none."""
    try:
        with store.read() as tx:
            return tx.board.uid
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return ""


def copier(store: Store) -> Any:
    """The functions that carry a board out of this kind of store, and into it."""
    if not store.remote:
        from dibs.stores import sqlite_copy

        return sqlite_copy
    from dibs.stores import postgres_copy

    return postgres_copy
