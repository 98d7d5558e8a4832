"""Select the store of a place: SQLite file or server; and load the settings that apply to it."""

from __future__ import annotations

from os.path import exists, join

from dibs.board.locate import Place
from dibs.board.settings import Settings, from_text, load, personal
from dibs.domain.instants import SECOND
from dibs.domain.refusals import Refused
from dibs.storage.errors import cannot_follow_move, driver_missing, not_accepted, unaccepted_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.board.user_config import User
    from dibs.machine import Machine
    from dibs.storage.address import Address
    from dibs.storage.errors import BoardMoved
    from dibs.storage.store import Store


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
