"""All boards of a database, who may use them, and the settings that a server keeps for one."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.moving import authorise
from dibs.board.settings import check_one, from_text, is_personal, leaves
from dibs.board.toml_files import parse
from dibs.core import commands as c
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.core.values import Value
from dibs.stores.sqlite import SqliteStore
from dibs.stores.transaction import ARRIVED, ARRIVING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.identity import Identity
    from dibs.stores.postgres import PostgresStore
    from dibs.stores.store import Store


class Known(Value):
    """A board, and what became of it."""

    name: str
    uid: str
    tasks: int
    events: int
    state: str = ""


def all_boards(board: Board) -> list[Known]:
    """Of the board's database; on a server, whether it is there itself or not."""
    try:
        board.settle()
    except Refused as problem:
        gone = problem.code in ("board_moved", "moved_to_unaccepted")  # the list says where to
        if not gone and (problem.code != "no_board" or not board.store.remote):
            raise
    store = board.store
    if isinstance(store, SqliteStore):
        with board.read() as tx:
            return [Known(store.where, tx.board.uid, tx.board.tasks, tx.board.seq)]
    return [
        Known(name, uid, tasks, events, state_of(moved_to, arriving))
        for name, uid, tasks, events, moved_to, arriving in on_server(store).boards()
    ]


def state_of(moved_to: str, arriving: int) -> str:
    if arriving == ARRIVED:
        return ""
    if arriving == ARRIVING:
        return f"has not arrived from {moved_to}"
    return f"moved to {moved_to}" if moved_to else ""


def grant(board: Board, role: str) -> None:
    """The rights that dibs needs, and no more."""
    server(board).grant(role)


def load_settings(board: Board, text: str, who: Identity, file: str) -> None:
    """The settings of a board on a server, for all machines alike; they were read from a file."""
    store = server(board)
    settings = from_text(text, file)
    check_proposals(text, file)
    with store.write("config") as tx:
        authorise(tx, board, who, c.SetSettings())
    store.save_settings(text)
    board.settings = settings


def check_proposals(text: str, file: str) -> None:
    """What starts programs is a proposal to everybody, and must be right; where the board is, none."""
    for key, value in leaves(parse(text, file)):
        if key == "url":
            what = f"{file}: url says where a board is: dibs config url ADDRESS, in each clone"
            raise refused("bad_setting", what, setting=key)
        if is_personal(key):
            check_one(file, key, value)


def server(board: Board) -> PostgresStore:
    board.settle()
    return on_server(board.store)


def on_server(store: Store) -> PostgresStore:
    if isinstance(store, SqliteStore):
        raise bad_argument(f"{store.where} is a file: this is for boards on a server")
    return store  # type: ignore[return-value]
