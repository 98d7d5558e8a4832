"""Which store a place has: a file, or a board on a server; and the settings that hold for it."""

from __future__ import annotations

from dibs.board.locate import Place
from dibs.board.settings import Settings, from_text
from dibs.core.instants import SECOND
from dibs.stores.faults import driver_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.machine import Machine
    from dibs.stores.store import Store


def store_at(place: Place, settings: Settings, machine: Machine | None = None) -> Store:
    """A server's board if an address is given, by the environment or the settings; else a file."""
    if place.url:
        return store_at_address(place.url, machine, settings, "DIBS_URL")
    if settings.url:
        return store_at_address(settings.url, machine, settings, "url in the settings")
    return store_to(place.folder, machine, settings)


def store_to(where: str, machine: Machine | None, settings: Settings) -> Store:
    """A folder, or an address: as a forwarding record or a person names it."""
    scheme = where.partition(":")[0]
    if scheme == where or not scheme.isalpha():
        from dibs.stores.sqlite import SqliteStore

        return SqliteStore(where, machine=machine, wait=settings.write_wait / SECOND)
    return store_at_address(where, machine, settings, "this")


def store_at_address(url: str, machine: Machine | None, settings: Settings, what: str) -> Store:
    from dibs.stores.address import parse

    address = parse(url, what)
    try:
        from dibs.stores.postgres import PostgresStore
    except ImportError:
        raise driver_missing(str(address)) from None
    return PostgresStore(address, machine=machine, wait=settings.write_wait / SECOND)


def settings_in(store: Store, local: Settings) -> Settings:
    """Those that a server keeps, for all machines alike; else those beside the file."""
    stated = store.stated_settings()
    return local if stated is None else from_text(stated, store.where)


def copier(store: Store) -> Any:
    """The functions that carry a board out of this kind of store, and into it."""
    if not store.remote:
        from dibs.stores import sqlite_copy

        return sqlite_copy
    from dibs.stores import postgres_copy

    return postgres_copy
