"""A whole board from one place to another: a move, a backup, a restore.

A move copies while nobody writes, verifies the copy in its own transaction, and only then fences the
source, in one commit. Before that commit the source is the board; after it, the copy is: whoever
follows the source's forwarding record first says that the copy has arrived. Each move has a word of its own,
which stands in that record: an earlier record that leads to the same place wakes no copy.
"""

from __future__ import annotations

import os
import shutil
from os.path import abspath, exists, join, samefile

from dibs.board.callers import caller_of, register
from dibs.board.epochs import RESTORE, begin_epoch
from dibs.board.passing import new_file, passing_folder
from dibs.board.persist import Opened
from dibs.board.places import copier, is_folder, store_at_address, store_to
from dibs.board.upkeep import verified
from dibs.core import board_events
from dibs.core import commands as c
from dibs.core.decide import decide
from dibs.core.facts import Facts
from dibs.core.instants import Duration
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.core.values import Value
from dibs.stores import faults
from dibs.stores.copying import id_of
from dibs.stores.sqlite import FILE, SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.core.model import Caller
    from dibs.stores.copying import Snapshot
    from dibs.stores.postgres import PostgresStore
    from dibs.stores.store import Store
    from dibs.stores.transaction import BoardRow, ReadTransaction, WriteTransaction

    Progress = Callable[[int, int], None]


class Moved(Value):
    """What was carried, from where to where, and by how much times were shifted."""

    uid: str
    source: str
    target: str
    rows: int
    events: int
    tasks: int
    shifted: Duration = Duration(0)
    epoch: int = 0
    role: str = ""
    """As whom everybody will follow a moved board: the address names it, and every client reads that."""


def carried(board: BoardRow, source: str, target: str, rows: int = 0) -> Moved:
    return Moved(board.uid, source, target, rows, board.seq, board.tasks)


def scrub(board: Board) -> tuple[str, ...]:
    """Overwrites what the store has left of what was removed; says what it could not reach."""
    store = board.store
    left = copier(store).scrub(store) if isinstance(store, SqliteStore) else ""
    return (left,) if left else ()


# Moving.


def move(
    board: Board, to: str, who: Identity, progress: Progress | None = None, *, dry: bool = False
) -> Moved:
    """Carries the board to `to`. Interrupted at any instant, it can be run again."""
    board.settle()
    source, target = board.store, target_of(board, to)
    if source.where == target.where:  # an earlier run was cut off behind its last step
        with board.read() as tx:
            return carried(tx.board, source.where, target.where)
    word = os.urandom(16).hex()
    moved = _move(board, source, target, who, progress, word, dry=dry)
    if not dry:
        copier(target).arrive(target, moved.uid, word)
    return moved


def target_of(board: Board, to: str) -> Store:
    """The store to move to. Every client will read its address from the record: it must hold to the rules."""
    machine, settings = board.store.machine, board.settings
    if is_folder(to):
        return store_to(abspath(to), machine, settings)
    from dibs.stores.address import parse_kept

    return store_at_address(parse_kept(to, "the address"), machine, settings)


def role_in(target: Store) -> str:
    return "" if isinstance(target, SqliteStore) else target.address.user  # type: ignore[attr-defined]


def _move(
    board: Board,
    source: Store,
    target: Store,
    who: Identity,
    progress: Progress | None,
    word: str,
    *,
    dry: bool,
) -> Moved:
    with copier(source).fenced(source) as (seen, tx):
        authorise(tx, board, who, c.MoveBoard())
        sound(tx, source.where)
        total = seen.count()
        report = carried(seen.board, source.where, target.where, total).but(role=role_in(target))
        if dry:
            copier(target).check_free(target, seen.board.uid)
            return report
        accept(board, target)
        shifted: list[Duration] = []

        def finish(there: WriteTransaction) -> None:
            # Copying takes its time, on both clocks: each was read beside this machine's own.
            by = Duration(there.now - seen.now - (source.machine.boottime() - seen.read_at))
            shifted.append(by)
            caller = known_there(there, board, who)
            there.shift_leases(by)
            there.append_to_board(
                board_events.ClockSet(by=by, reason=f"moved from {source.where}"), caller
            )
            there.arriving_from(source.where, word)
            there.finish()
            sound(there, target.where)

        copier(target).receive(target, seen, finish, counted(progress, total))
        tx.fence(target.where, word)
        tx.finish()
    return report.but(shifted=shifted[0])


def accept(board: Board, target: Store) -> None:
    """A person moves the board there: this user's clients may follow. Said before anybody is led there."""
    if target.remote:
        board.user.accept(target.where)


def counted(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done, total)


def authorise(tx: ReadTransaction, board: Board, who: Identity, command: c.Command) -> Caller:
    """The caller, if it may do this to the board."""
    caller, _ = caller_of(tx, who, board.settings)
    decision = decide(Facts(caller, board.settings.rules, tx.board.epoch), command, tx.now)
    if decision.refusal is not None:
        raise Refused(decision.refusal)
    return caller


def known_there(tx: WriteTransaction, board: Board, who: Identity) -> Caller:
    caller, is_new = caller_of(tx, who, board.settings)
    if is_new:
        register(tx, caller)
    return caller


def sound(tx: ReadTransaction, where: str) -> None:
    """Refuses to carry, or to have carried, what its ledger does not prove."""
    found = verified(tx).faults
    if found:
        raise refused("corrupt", f"the board in {where} is not sound: {found[0]}", path=where)


# Backups.


def backup(
    board: Board, path: str, progress: Progress | None = None, *, as_it_is: bool = False
) -> Moved:
    """The board as it is now, in one SQLite file, whatever it is kept in; `as_it_is`: sound or not."""
    with new_file(path, "a backup") as file:
        return _backup(board, file, abspath(path), progress, as_it_is=as_it_is)


def _backup(
    board: Board, file: IO[bytes], path: str, progress: Progress | None, *, as_it_is: bool
) -> Moved:
    board.settle()
    source = board.store
    with passing_folder() as folder:
        copy = SqliteStore(join(folder, "copy"), machine=source.machine)
        with copier(source).snapshot(source) as seen:
            total = seen.count()
            report = carried(seen.board, source.where, path, total)
            copier(copy).receive(copy, seen, unchanged, counted(progress, total))
        if not as_it_is:
            with copy.read() as tx:
                sound(tx, path)
        copier(copy).make_single(copy)
        with open(copy.path, "rb") as single:
            shutil.copyfileobj(single, file)
    return report


def unchanged(tx: WriteTransaction) -> None:
    """A backup is the board as it was, to the last row."""


# Restoring.


def restore(
    board: Board, path: str, who: Identity, reason: str, progress: Progress | None = None
) -> Moved:
    """The board as it was in the backup; every lease ends, and tokens begin higher."""
    if not os.path.isfile(path):
        raise bad_argument(f"there is no file {path}")
    target = board.store
    refuse_itself(target, path)
    with passing_folder() as folder:
        shutil.copyfile(path, join(folder, FILE))
        old = SqliteStore(folder, machine=target.machine)
        try:
            make_room(board, who, reason, uid_of(old, path))
            with copier(old).snapshot(old) as seen:
                return _restore(board, seen, who, reason, path, progress)
        finally:
            old.close()


def refuse_itself(target: Store, path: str) -> None:
    """The board's own file is not even opened here: closing it would drop the locks on it."""
    if isinstance(target, SqliteStore) and exists(target.path) and samefile(target.path, path):
        raise bad_argument(f"{path} is the board's own file, not a backup of it")


def uid_of(backup: SqliteStore, path: str) -> str:
    """Which board a backup is of; what is none, or is not sound, is refused."""
    try:
        copier(backup).check_backup(backup)
        with backup.read() as tx:
            sound(tx, path)
            return tx.board.uid
    except Refused as problem:
        if problem.code in ("newer_schema", "other_schema"):
            raise
        raise bad_argument(f"{path} is no backup that can be used: {problem}") from None


def make_room(board: Board, who: Identity, reason: str, uid: str) -> None:
    """What is there stays, beside the board: a sound one as a backup, a damaged one as it is."""
    try:
        with board.read() as tx:
            authorise(tx, board, who, c.RestoreBoard(reason))
            if tx.board.uid != uid:
                raise faults.board_exists(board.store.where, tx.board.uid)
            stamp = tx.now
    except Refused as problem:
        if problem.code == "corrupt" and isinstance(board.store, SqliteStore):
            copier(board.store).put_aside(board.store)
        elif problem.code != "no_board":
            raise
        refuse_a_second(board, uid)
        return
    if isinstance(board.store, SqliteStore):
        backup(board, join(board.store.folder, f"before-restore-{stamp}.db"), as_it_is=True)


def refuse_a_second(board: Board, uid: str) -> None:
    """A board that is in use is not begun again, as far as its former names in the same database lead to it."""
    target = board.store
    if isinstance(target, SqliteStore):
        return
    for former in former_places(target, uid):  # type: ignore[arg-type]  # what is no file is a server
        live = found_from(former, board)
        if live:
            raise faults.in_use(target.where, former.where, live, uid)


def former_places(target: PostgresStore, uid: str) -> list[PostgresStore]:
    """Names in a database from which a board has gone elsewhere."""
    try:
        boards = target.boards()
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return []
    return [
        target.another(name)
        for name, there, _, _, moved_to, arriving in boards
        if id_of(there) == uid and moved_to and not arriving
    ]


def found_from(former: Store, board: Board) -> str:
    """Where a former place of a board leads to, if the board is found there."""
    opened = Opened(former, board.settings, user=board.user)
    try:
        with opened.read():
            return opened.store.where
    except Refused as problem:
        if problem.code != "board_moved":
            raise
        return ""
    finally:
        opened.store.close()


def _restore(
    board: Board, seen: Snapshot, who: Identity, reason: str, path: str, progress: Progress | None
) -> Moved:
    target, total = board.store, seen.count()
    known = highest_epoch(board)
    report = carried(seen.board, abspath(path), target.where, total)
    epochs: list[int] = []

    def finish(there: WriteTransaction) -> None:
        authorise(there, board, who, c.RestoreBoard(reason))
        caller = known_there(there, board, who)
        epochs.append(begin_epoch(there, caller, RESTORE, known, reason))
        there.is_here()
        there.finish()
        sound(there, target.where)

    copier(target).receive(target, seen, finish, counted(progress, total), replace=True)
    return report.but(epoch=epochs[0])


def highest_epoch(board: Board) -> int:
    """Of the board that is replaced, if there is one that can be read."""
    try:
        with board.store.read() as tx:
            return max(tx.board.epoch, tx.highest().epoch)
    except Refused:
        return 0


def restore_in_place(board: Board, who: Identity, reason: str) -> Moved:
    """The server was restored to an earlier point, and nothing else shows it: leases end."""
    board.settle()
    with board.store.write("restore") as tx:
        authorise(tx, board, who, c.RestoreBoard(reason))
        caller = known_there(tx, board, who)
        epoch = begin_epoch(tx, caller, RESTORE, reason=reason)
        tx.finish()
    where = board.store.where
    return carried(tx.board, where, where).but(epoch=epoch)
