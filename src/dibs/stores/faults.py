"""What can go wrong with storage, as refusals with codes of their own. Nothing was changed."""

from __future__ import annotations

from dibs.core.checks import short
from dibs.core.refusals import Refused, refused
from dibs.stores.queries import NEWEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.refusals import Refusal
    from dibs.stores.transaction import BoardRow


class Interrupted(Refused):
    """It was cut off, or lost to another: it may be tried again with the same request id."""

    in_vain = False
    """Whether it was, for as long as the settings say."""


class Moved(Refused):
    """The board is elsewhere now."""

    def __init__(self, refusal: Refusal, word: str) -> None:
        super().__init__(refusal)
        self.word = word
        """With which whoever is sent there says that the board has arrived."""


def busy(path: str, blocker: str, seconds: float, lock: str = "its write lock") -> Refused:
    who = blocker or "another process"
    return refused(
        "busy",
        f"the board is busy: {who} has kept {lock} for more than {seconds:g} s",
        blocker=blocker or None,
        path=path,
    )


def disk_full(path: str) -> Refused:
    return refused("disk_full", f"the disk is full: {path}; nothing was changed", path=path)


def read_only(path: str) -> Refused:
    return refused("read_only", f"the board cannot be written: {path}", path=path)


def corrupt(path: str, detail: str) -> Refused:
    return refused("corrupt", f"the board's file is damaged: {path} ({detail})", path=path)


def storage_failed(path: str, detail: str) -> Refused:
    where = short(path, 200)
    return refused("storage_failed", f"the board cannot be used: {where} ({detail})", path=path)


def unsafe_storage(path: str, why: str) -> Refused:
    return refused("unsafe_storage", f"{path} {why}", path=path)


def network_file_system(path: str, kind: str) -> Refused:
    return refused(
        "network_file_system",
        f"{path} is on a file system of type {kind}, which cannot keep a board safely",
        path=path,
        file_system=kind,
    )


def too_new(path: str, found: int) -> None:
    """Refuses a schema that only a newer dibs knows."""
    if found > NEWEST:
        raise newer_schema(path, found, NEWEST)


def newer_schema(path: str, found: int, known: int) -> Refused:
    return refused(
        "newer_schema",
        f"{path} was written by a newer dibs (schema {found}; this one knows {known})",
        found=found,
        known=known,
    )


def other_schema(path: str, number: int, found: int, known: int) -> Refused:
    return refused(
        "other_schema",
        f"{path} was made by another dibs, with other tables (schema {number}, {found:08x}; "
        f"this one has {known:08x})",
        found=f"{found:08x}",
        known=f"{known:08x}",
    )


def no_board(path: str) -> Refused:
    return refused("no_board", f"there is no board in {path}", path=path)


def board_replaced(path: str, opened: str, found: str) -> Refused:
    return refused(
        "board_replaced",
        f"another board is in {path} now: {found}; this process opened {opened}, which is gone",
        path=path,
        opened=opened,
        found=found,
    )


def forked(pid: int) -> Refused:
    return refused(
        "forked", f"this board was opened by process {pid}: open it again after a fork", pid=pid
    )


UNKNOWN = "whether it was done is not known; ask again with the same request id, if you gave one; else look first"


def unreachable(
    where: str, detail: str, *, unknown: bool = False, how: str = "does not answer"
) -> Refused:
    message = f"the server {how}: {where} ({detail})" + (f": {UNKNOWN}" if unknown else "")
    return Interrupted(refused("unreachable", message, path=where, unknown=unknown).refusal)


def standby_silent(where: str) -> Refused:
    return unreachable(where, "its standby did not answer", unknown=True)


def bad_address(where: str) -> Refused:
    return refused("bad_argument", f"the address cannot be read by the driver: {where}")


def not_let_in(where: str, user: str, detail: str, *, before: bool = False) -> Refused:
    """`before`: it did let in who asks; somebody may be changing a password, so it is tried again."""
    message = f"the server did not let {user or 'you'} in: {where} ({detail})"
    problem = refused("not_let_in", message, path=where)
    return Interrupted(problem.refusal) if before else problem


def wrong_encoding(where: str, encoding: str) -> Refused:
    return refused(
        "wrong_encoding",
        f"the database has the encoding {encoding}, and a board needs UTF8: {where}",
        path=where,
        encoding=encoding,
    )


def statement_pooler(where: str) -> Refused:
    message = (
        f"a pooler stands in front of the server that lends a session for one statement: {where}"
    )
    return refused("statement_pooler", message, path=where)


def not_granted(where: str, detail: str) -> Refused:
    return refused("not_granted", f"the server does not allow it: {where} ({detail})", path=where)


def foreign_schema(where: str, what: str) -> Refused:
    """Somebody else's code would run with the rights of whoever uses the board."""
    message = f"the schema of {where} is not safe to use: {what}"
    return refused("foreign_schema", message, path=where)


def unknown_role(where: str, role: str) -> Refused:
    return refused("bad_argument", f"there is no role {short(role, 60)} in {where}")


def servers_clock(where: str) -> Refused:
    return refused(
        "servers_clock", f"the clock of {where} is the server's own: it is set there", path=where
    )


def board_moved(where: str, to: str, uid: str, word: str) -> Refused:
    message = f"the board is not in {where}; it is in {to}"
    return Moved(refused("board_moved", message, path=where, to=to, board=uid).refusal, word)


def replaced(where: str, to: str, uid: str) -> Refused:
    message = f"{where} was replaced: it can be read, and takes no changes; the board is in {to}"
    return refused("board_moved", message, path=where, to=to, board=uid)


def lost_on_the_way(moved: Moved, why: str) -> Refused:
    """Where it went is known, and cannot be followed: nobody is led further."""
    refusal = moved.refusal
    return refused("board_moved", f"{refusal.message}, {why}", **refusal.facts)


def unaccepted_server(where: str, url: object) -> Refused:
    """A file names a server, and no person has accepted it on this machine."""
    shown = shown_address(url)
    message = f"{where} names a server that nobody has accepted on this machine, {shown}: it was not contacted"
    return refused("unaccepted_server", message, path=where, address=shown)


def not_accepted(moved: Moved) -> Refused:
    """The same of a server that a forwarding record leads to."""
    refusal = moved.refusal
    shown = shown_address(refusal.facts["to"])
    why = "a server that nobody has accepted on this machine: it was not contacted"
    facts = {**refusal.facts, "address": shown}
    return refused("moved_to_unaccepted", f"{refusal.message}, {why}", **facts)


def shown_address(url: object) -> str:
    """As it may be shown: without a secret, and not at all if it cannot be read."""
    from dibs.stores.address import parse

    try:
        return str(parse(str(url)))
    except Refused:
        return "ADDRESS"


def board_exists(where: str, uid: str) -> Refused:
    return refused(
        "board_exists", f"there is a board in {where} already: {uid}", path=where, board=uid
    )


def in_this_database(where: str, there: str, uid: str) -> Refused:
    message = f"the board {uid} cannot be in {where}: it is in this database already, {there}"
    return refused("in_this_database", message, path=where, there=there, board=uid)


def in_use(where: str, there: str, live: str, uid: str) -> Refused:
    message = (
        f"the board {uid} cannot be in {where}: it is in use in {live}, to which {there} leads"
    )
    return refused("in_this_database", message, path=where, there=there, board=uid)


def driver_missing(where: str) -> Refused:
    return refused(
        "driver_missing", f"{where} is on PostgreSQL, and its driver is not installed", path=where
    )


def moved_away(board: BoardRow, where: str) -> None:
    """Refuses a board that is not here any more, or not here yet; its place is told."""
    if board.is_elsewhere:
        raise board_moved(where, board.moved_to, board.uid, board.ticket)
