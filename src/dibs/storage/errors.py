"""Storage failures as refusals with stable codes. Nothing was changed when one is raised."""

from __future__ import annotations

from dibs.domain.checks import short
from dibs.domain.refusals import Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.refusals import Refusal


class Interrupted(Refused):
    """Connection lost, server timed out, or a conflict with another transaction: retry with the same request id."""

    retries_exhausted = False
    """Whether it was retried for as long as the settings allow, and still failed."""


class BoardMoved(Refused):
    """The board moved to another place."""

    def __init__(self, refusal: Refusal, word: str) -> None:
        super().__init__(refusal)
        self.word = word
        """The move token: a client that follows the move presents it to activate the copy."""


def busy(path: str, blocker: str, seconds: float, lock: str = "its write lock") -> Refused:
    who = blocker or "another process"
    return refused(
        "busy",
        f"the board is busy: {who} has held {lock} for more than {seconds:g} s",
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
    where = shown_place(path)
    return refused("storage_failed", f"the board cannot be used: {where} ({detail})", path=path)


def network_file_system(path: str, kind: str) -> Refused:
    return refused(
        "network_file_system",
        f"{path} is on a file system of type {kind}, which cannot keep a board safely",
        path=path,
        file_system=kind,
    )


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
        f"{path} was created by another dibs, with other tables (schema {number}, {found:08x}; "
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


UNKNOWN = (
    "the outcome is unknown; repeat it with the same request id if you gave one, else check first"
)


def unreachable(
    where: str, detail: str, *, unknown: bool = False, how: str = "is unreachable"
) -> Refused:
    message = f"the server {how}: {where} ({detail})" + (f": {UNKNOWN}" if unknown else "")
    return Interrupted(refused("unreachable", message, path=where, unknown=unknown).refusal)


def not_replicated(where: str) -> Refused:
    return unreachable(where, "timed out waiting for its standby", unknown=True)


def bad_address(where: str) -> Refused:
    return refused("bad_argument", f"the driver cannot parse the address: {where}")


def login_failed(where: str, user: str, detail: str, *, before: bool = False) -> Refused:
    """Authentication failed. `before`: it succeeded earlier, so a password may be changing; retry."""
    message = f"login failed for {user or 'you'}: {where} ({detail})"
    problem = refused("not_let_in", message, path=where)
    return Interrupted(problem.refusal) if before else problem


def wrong_encoding(where: str, encoding: str) -> Refused:
    return refused(
        "wrong_encoding",
        f"the database has the encoding {encoding}; a board needs UTF8: {where}",
        path=where,
        encoding=encoding,
    )


def statement_pooler(where: str) -> Refused:
    message = f"the connection goes through a pooler in statement mode: {where}"
    return refused("statement_pooler", message, path=where)


def not_granted(where: str, detail: str) -> Refused:
    return refused("not_granted", f"the server denied permission: {where} ({detail})", path=where)


def foreign_schema(where: str, what: str) -> Refused:
    """The schema has objects of another owner, whose code would run with the rights of the board's users."""
    message = f"the schema of {where} is not safe to use: {what}"
    return refused("foreign_schema", message, path=where)


def unknown_role(where: str, role: str) -> Refused:
    return refused("bad_argument", f"there is no role {short(role, 60)} in {where}")


def servers_clock(where: str) -> Refused:
    return refused(
        "servers_clock", f"the clock of {where} is the server's own: set it there", path=where
    )


def board_moved(where: str, to: str, uid: str, word: str) -> Refused:
    message = f"the board is not in {where}; it is in {shown_place(to)}"
    return BoardMoved(refused("board_moved", message, path=where, to=to, board=uid).refusal, word)


def replaced(where: str, to: str, uid: str) -> Refused:
    message = f"{where} was replaced and is read-only; the board is in {shown_place(to)}"
    return refused("board_moved", message, path=where, to=to, board=uid)


def shown_place(to: str) -> str:
    """Where a record leads, for a message: whoever can write to the board can write any text there."""
    from dibs.domain.values import LONGEST, quoted
    from dibs.storage.address import is_address, without_password

    text = without_password(to) if is_address(to) else to
    is_plain = text.isprintable() and " " not in text and len(text) <= LONGEST
    return text if is_plain else quoted(text)


def cannot_follow_move(moved: BoardMoved, why: str) -> Refused:
    """The board's new place is known but cannot be followed."""
    refusal = moved.refusal
    return refused("board_moved", f"{refusal.message}, {why}", **refusal.facts)


def unaccepted_server(where: str, url: object) -> Refused:
    """A file names a server that no person has accepted on this machine."""
    shown = shown_address(url)
    message = f"{where} names a server that nobody has accepted on this machine, {shown}: it was not contacted"
    return refused("unaccepted_server", message, path=where, address=shown)


def not_accepted(moved: BoardMoved) -> Refused:
    """As `unaccepted_server`, for a server named by a forwarding record."""
    refusal = moved.refusal
    shown = shown_address(refusal.facts["to"])
    why = "a server that nobody has accepted on this machine: it was not contacted"
    facts = {**refusal.facts, "address": shown}
    return refused("moved_to_unaccepted", f"{refusal.message}, {why}", **facts)


def shown_address(url: object) -> str:
    """The URL without secrets, or a placeholder if it cannot be parsed."""
    from dibs.storage.address import parse

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
        "driver_missing", f"{where} is on PostgreSQL, whose driver is not installed", path=where
    )
