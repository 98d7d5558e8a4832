"""Boards on a server: list them, grant access, store settings."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.settings import check_one, from_text, is_personal, leaves
from dibs.board.toml_files import parse
from dibs.domain import commands as c
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import Value
from dibs.storage.queries import ARRIVED, ARRIVING
from dibs.storage.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.identity import Identity
    from dibs.storage.postgres.store import PostgresStore
    from dibs.storage.store import Store


class ServerBoard(Value):
    """A board of a database, and whether it has moved."""

    name: str
    uid: str
    tasks: int
    events: int
    state: str = ""


def all_boards(board: Board) -> list[ServerBoard]:
    """The boards of this database; on a server, even if this board itself does not exist."""
    try:
        board.follow_if_moved()
    except Refused as problem:
        gone = problem.code in ("board_moved", "moved_to_unaccepted")  # the list says where it went
        if not gone and (problem.code != "no_board" or not board.store.remote):
            raise
    store = board.store
    if isinstance(store, SqliteStore):
        with board.read() as tx:
            return [ServerBoard(store.where, tx.board.uid, tx.board.tasks, tx.board.seq)]
    return [
        ServerBoard(name, uid, tasks, events, state_of(moved_to, arriving))
        for name, uid, tasks, events, moved_to, arriving in on_server(store).boards()
    ]


def state_of(moved_to: str, arriving: int) -> str:
    if arriving == ARRIVED:
        return ""
    if arriving == ARRIVING:
        return f"has not arrived from {moved_to}"
    return f"moved to {moved_to}" if moved_to else ""


def grant(board: Board, role: str) -> None:
    """Grants a role the rights that dibs needs, and no more."""
    server(board).grant(role)


def load_settings(board: Board, text: str, who: Identity, file: str) -> None:
    """Stores the settings of a board on a server, for all machines; `file` is where they were read from."""
    server(board)  # refuses if the board is not on one
    settings = from_text(text, file)
    check_proposals(text, file)
    board.execute(who, c.SetSettings(text))
    board.settings = settings


def check_proposals(text: str, file: str) -> None:
    """Checks settings that start programs: they are proposals to everybody, and
    must be valid. Refuses `url`.
    """
    for key, value in leaves(parse(text, file)):
        if key == "url":
            what = f"{file}: url says where a board is: dibs config url ADDRESS, in each clone"
            raise refused("bad_setting", what, setting=key)
        if is_personal(key):
            check_one(file, key, value)


def server(board: Board) -> PostgresStore:
    board.follow_if_moved()
    return on_server(board.store)


def on_server(store: Store) -> PostgresStore:
    if isinstance(store, SqliteStore):
        raise bad_argument(f"{store.where} is a file: this is for boards on a server")
    return store  # type: ignore[return-value]
