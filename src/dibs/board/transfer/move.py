"""Transfer a whole board: move, backup, restore.

A move copies while writes are blocked, verifies the copy in its own transaction, and only then
fences the source, in one commit. Before that commit the source is the board; after it, the copy is:
the first client that follows the source's forwarding record confirms its arrival. Each move has its
own move token in that record: an older record that leads to the same place activates no copy.
"""

from __future__ import annotations

import os
import shutil
from os.path import abspath, exists, join, samefile

from dibs.board.execute import carry_out, facts_for, register
from dibs.board.identity import caller_of
from dibs.board.locate import copier, is_folder, store_at_address, store_to
from dibs.board.retry import ReadableBoard
from dibs.board.transfer.scratch import new_file, scratch_directory
from dibs.board.verify import verified
from dibs.domain import commands as c
from dibs.domain.decide import decide
from dibs.domain.events.board import ClockSet, EpochRaised
from dibs.domain.facts import NO_EVIDENCE, Evidence
from dibs.domain.refusals import Refusal, Refused, bad_argument, refused
from dibs.domain.values import Duration, Value, later
from dibs.storage import errors
from dibs.storage.copy import id_of
from dibs.storage.sqlite.store import FILE, SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome
    from dibs.storage.copy import Snapshot
    from dibs.storage.postgres.store import PostgresStore
    from dibs.storage.queries import BoardRow
    from dibs.storage.store import Store
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

    Progress = Callable[[int, int], None]

SQLITE = b"SQLite format 3\0"


class TransferReport(Value):
    """Report of a transfer: source, target, counts, and by how much times were shifted."""

    uid: str
    source: str
    target: str
    rows: int
    events: int
    tasks: int
    shifted: Duration = Duration(0)
    epoch: int = 0
    role: str = ""
    """The role with which all clients will follow a moved board: it is in the
    address, which every client reads.
    """


def transfer_report(board: BoardRow, source: str, target: str, rows: int = 0) -> TransferReport:
    return TransferReport(board.uid, source, target, rows, board.seq, board.tasks)


# Moving.


def move(
    board: Board, to: str, who: Identity, progress: Progress | None = None, *, dry: bool = False
) -> TransferReport:
    """Moves the board to `to`. Safe to run again after an interruption at any point."""
    board.follow_if_moved()
    source, target = board.store, target_of(board, to)
    if source.where == target.where:  # an earlier run was interrupted after its last step
        with board.read() as tx:
            return transfer_report(tx.board, source.where, target.where)
    word = os.urandom(16).hex()
    moved = _move(board, source, target, who, progress, word, dry=dry)
    if not dry:
        copier(target).activate_copy(target, moved.uid, word)
    return moved


def target_of(board: Board, to: str) -> Store:
    """The store to move to. Its address must be valid for a forwarding record,
    where every client reads it.
    """
    machine, settings = board.store.machine, board.settings
    if is_folder(to):
        return store_to(abspath(to), machine, settings)
    from dibs.storage.address import parse_untrusted

    return store_at_address(parse_untrusted(to, "the address"), machine, settings)


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
) -> TransferReport:
    with copier(source).locked_snapshot(source) as (seen, tx):
        arrival = c.MoveBoard(f"moved from {source.where}")
        authorise(tx, board, who, arrival)
        require_sound_ledger(tx, source.where)
        total = seen.count()
        report = transfer_report(seen.board, source.where, target.where, total).but(
            role=role_in(target)
        )
        if dry:
            copier(target).check_free(target, seen.board.uid)
            return report
        accept(board, target)
        outcomes: list[Outcome] = []

        def finish(there: WriteTransaction) -> None:
            # Copying takes time on both clocks: each was read together with this machine's own.
            former = later(seen.now, Duration(source.machine.boottime() - seen.read_at))
            outcomes.append(decided(there, board, who, arrival, Evidence(former_clock=former)))
            there.arriving_from(source.where, word)
            there.finish()
            require_sound_ledger(there, target.where)

        copier(target).receive(target, seen, finish, counted(progress, total))
        tx.fence(target.where, word)
        tx.finish()
    return report.but(shifted=shift_in(outcomes))


def accept(board: Board, target: Store) -> None:
    """A person moves the board there, so this user's clients may follow: recorded before any is forwarded."""
    if target.remote:
        board.user.accept(target.where)


def counted(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done, total)


def authorise(tx: ReadTransaction, board: Board, who: Identity, command: c.Command) -> None:
    """Raises `Refused` before anything is copied, if the caller may not do this to the board."""
    caller, _ = caller_of(tx, who, board.settings)
    decision = decide(facts_for(tx, caller, command, board.settings))
    if decision.refusal is not None:
        raise Refused(decision.refusal)


def decided(
    there: WriteTransaction,
    board: Board,
    who: Identity,
    command: c.Command,
    evidence: Evidence = NO_EVIDENCE,
) -> Outcome:
    """Decides the command in the transaction of the copy, and writes its events there."""
    caller, is_new = caller_of(there, who, board.settings)
    if is_new:
        register(there, caller)
    outcome = carry_out(there, caller, command, board.settings, evidence)
    if isinstance(outcome, Refusal):
        raise Refused(outcome)
    return outcome


def shift_in(outcomes: list[Outcome]) -> Duration:
    """By how much the clock changed."""
    found = (event.by for one in outcomes for event in one.events if isinstance(event, ClockSet))
    return next(found, Duration(0))


def epoch_in(outcomes: list[Outcome]) -> int:
    """The epoch that a restore began."""
    events = (event for one in outcomes for event in one.events)
    return next(event.epoch for event in events if isinstance(event, EpochRaised))


def require_sound_ledger(tx: ReadTransaction, where: str) -> None:
    """Refuses a board, source or copy, that its ledger does not prove."""
    found = verified(tx).faults
    if found:
        raise refused("corrupt", f"the board in {where} is not sound: {found[0]}", path=where)


# Backups.


def backup(
    board: Board, path: str, progress: Progress | None = None, *, as_it_is: bool = False
) -> TransferReport:
    """Writes the board as it is now to one SQLite file, from either store;
    `as_it_is`: even if it is damaged.
    """
    with new_file(path, "a backup") as file:
        return _backup(board, file, abspath(path), progress, as_it_is=as_it_is)


def _backup(
    board: Board, file: IO[bytes], path: str, progress: Progress | None, *, as_it_is: bool
) -> TransferReport:
    board.follow_if_moved()
    source = board.store
    with scratch_directory() as folder:
        copy = SqliteStore(join(folder, "copy"), machine=source.machine)
        with copier(source).snapshot(source) as seen:
            total = seen.count()
            report = transfer_report(seen.board, source.where, path, total)
            copier(copy).receive(copy, seen, unchanged, counted(progress, total))
        if not as_it_is:
            with copy.read() as tx:
                require_sound_ledger(tx, path)
        copier(copy).make_single(copy)
        with open(copy.path, "rb") as single:
            shutil.copyfileobj(single, file)
    return report


def unchanged(tx: WriteTransaction) -> None:
    """Changes nothing: a backup is identical to the board, to the last row."""


# Restoring.


def restore(
    board: Board, path: str, who: Identity, reason: str, progress: Progress | None = None
) -> TransferReport:
    """Replaces the board by the backup; every lease ends, and a new epoch begins above all known tokens."""
    if not os.path.isfile(path):
        raise bad_argument(f"there is no file {path}")
    target = board.store
    refuse_itself(target, path)
    with scratch_directory() as folder:
        shutil.copyfile(path, join(folder, FILE))
        old = SqliteStore(folder, machine=target.machine)
        try:
            make_room(board, who, reason, uid_of(old, path))
            with copier(old).snapshot(old) as seen:
                return _restore(board, seen, who, reason, path, progress)
        finally:
            old.close()


def refuse_itself(target: Store, path: str) -> None:
    """Refuses the board's own file without opening it: closing it would drop the locks on it."""
    if isinstance(target, SqliteStore) and exists(target.path) and samefile(target.path, path):
        raise bad_argument(f"{path} is the board's own file, not a backup of it")


def uid_of(backup: SqliteStore, path: str) -> str:
    """The id of the board in a backup; refuses a file that is no backup, or a damaged one."""
    try:
        copier(backup).check_backup(backup)
        with backup.read() as tx:
            require_sound_ledger(tx, path)
            return tx.board.uid
    except Refused as problem:
        if problem.code in ("newer_schema", "other_schema"):
            raise
        if problem.code == "no_board" or not is_database(backup.path):
            raise bad_argument(f"{path} is not a dibs backup") from None
        raise bad_argument(f"{path} is not a backup that can be used: {problem}") from None


def is_database(path: str) -> bool:
    """Whether a file begins as every SQLite database does."""
    with open(path, "rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def make_room(board: Board, who: Identity, reason: str, uid: str) -> None:
    """Saves what is there beside the board: a sound one as a backup, a damaged one as it is."""
    try:
        with board.read() as tx:
            authorise(tx, board, who, c.RestoreBoard(reason))
            if tx.board.uid != uid:
                raise errors.board_exists(board.store.where, tx.board.uid)
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
    """Refuses to restore a board that is in use elsewhere, as far as forwarding
    records in this database show.
    """
    target = board.store
    if isinstance(target, SqliteStore):
        return
    for former in former_places(target, uid):  # type: ignore[arg-type]  # not SQLite: a server
        live = found_from(former, board)
        if live:
            raise errors.in_use(target.where, former.where, live, uid)


def former_places(target: PostgresStore, uid: str) -> list[PostgresStore]:
    """Names in a database from which a board has moved away."""
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
    """Where a former place of a board forwards to, if the board is found there."""
    opened = ReadableBoard(former, board.settings, user=board.user)
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
) -> TransferReport:
    target, total = board.store, seen.count()
    evidence = Evidence(known_epoch=highest_epoch(board))
    report = transfer_report(seen.board, abspath(path), target.where, total)
    outcomes: list[Outcome] = []

    def finish(there: WriteTransaction) -> None:
        outcomes.append(decided(there, board, who, c.RestoreBoard(reason), evidence))
        there.is_here()
        there.finish()
        require_sound_ledger(there, target.where)

    copier(target).receive(target, seen, finish, counted(progress, total), replace=True)
    return report.but(epoch=epoch_in(outcomes))


def highest_epoch(board: Board) -> int:
    """The highest epoch of the board that is replaced, or 0 if it cannot be read."""
    try:
        with board.store.read() as tx:
            return max(tx.board.epoch, tx.highest().epoch)
    except Refused:
        return 0


def restore_in_place(board: Board, who: Identity, reason: str) -> TransferReport:
    """For a server that was restored to an earlier point in time, which nothing
    else reveals: ends all leases.
    """
    board.follow_if_moved()
    outcome = board.execute(who, c.RestoreBoard(reason))
    where = board.store.where
    with board.read() as tx:
        return transfer_report(tx.board, where, where).but(epoch=epoch_in([outcome]))
