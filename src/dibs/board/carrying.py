"""A whole board to a file of JSON lines, and back: for keeping, reading and mending with other tools.

What comes back follows the rule of a restore (`moving`): the same board, its ledger, notes, tokens and
requests; every lease ends, tokens begin higher, one person answers for it. Settings stay where they are.
"""

from __future__ import annotations

import os
from os.path import abspath, basename, join

from dibs.board.epochs import BATCH, RESTORE, begin_epoch
from dibs.board.moving import (
    Moved,
    authorise,
    carried,
    counted,
    known_there,
    sound,
    unchanged,
)
from dibs.board.passing import new_file, passing_folder, written_badly
from dibs.board.places import copier
from dibs.core import board_events
from dibs.core import commands as c
from dibs.core.instants import Duration, Instant, between
from dibs.core.refusals import Refused, bad_argument
from dibs.stores import faults
from dibs.stores.jsonl import Lines, NotAnExport, write
from dibs.stores.sqlite import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, TypeVar

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.moving import Progress
    from dibs.stores.copying import Snapshot
    from dibs.stores.store import Store
    from dibs.stores.transaction import ReadTransaction, WriteTransaction

    T = TypeVar("T")

OWN_FAULTS = ("disk_full", "read_only", "newer_schema")
"""What goes wrong with the place where a file is looked at, not with the file; or says itself why."""


# Exporting.


def export(board: Board, path: str, progress: Progress | None = None) -> Moved:
    """The board as it is now, as lines of JSON: complete, synced and sound, or no file at all."""
    with new_file(path, "an export") as file:
        report = export_to(board, file, progress)
    return report.but(target=abspath(path))


def export_to(board: Board, file: IO[bytes], progress: Progress | None = None) -> Moved:
    """The same to a stream that is open."""
    board.settle()
    source = board.store
    with copier(source).looking(source) as (seen, tx):
        sound(tx, source.where)
        report = carried(seen.board, source.where, "", seen.count())
        write(seen, file, counted(progress, report.rows))
    if progress is not None:
        progress(report.rows, report.rows)
    return report


# Importing.


def import_board(
    board: Board,
    path: str,
    who: Identity,
    reason: str = "",
    progress: Progress | None = None,
    stream: IO[bytes] | None = None,
) -> Moved:
    """An export becomes the board in a place that has none; every lease ends, tokens begin higher.

    It is read from `stream`, if one is given; `path` is then only what that is called.

    The lines are first made a board of their own, apart, and verified there: the place is not touched
    by a file that is cut off, changed, or something else.
    """
    reason = reason or f"imported from {basename(path)}"
    if stream is None and not os.path.isfile(path):
        raise bad_argument(f"there is no file {path}")
    has_none(board.store)
    source = path if stream else abspath(path)
    with passing_folder() as folder:
        file = path if stream is None else kept(stream, join(folder, "lines"))
        copy = SqliteStore(join(folder, "copy"), machine=board.store.machine)
        try:
            total = set_up(copy, file, path, progress)
            with copy.read() as tx:
                authorise(tx, board, who, c.RestoreBoard(reason))
                check_uid_is_new(board.store, tx.board.uid)
            with copier(copy).snapshot(copy) as seen:
                seen.settings = settings_at(board.store)
                done = _import(board, seen, who, reason, source, second_half(progress, total))
        finally:
            copy.close()
    if progress is not None:
        progress(total, total)
    return done


def has_none(store: Store) -> None:
    """Refuses a place that has a board, or had one: nothing is written over, no way is lost."""
    try:
        with store.read() as tx:
            uid = tx.board.uid
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return
    raise faults.board_exists(store.where, uid)


def check_uid_is_new(store: Store, uid: str) -> None:
    """A board is once in a database, whatever its name there, and though it has moved on."""
    if isinstance(store, SqliteStore):
        return
    try:
        known = store.boards()  # type: ignore[attr-defined]
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return
    if any(there == uid for _, there, *_ in known):
        raise faults.board_exists(store.where, uid)


def kept(stream: IO[bytes], path: str) -> str:
    """What can be read once only, as a file: its lines are read twice."""
    import shutil

    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise written_badly(path, error) from None
    return path


def set_up(copy: SqliteStore, file: str, path: str, progress: Progress | None) -> int:
    """The lines as a board that is sound; says how many rows. What is none, or is not sound, is refused."""
    try:
        with open(file, "rb") as opened:
            lines = Lines(opened)
            total = lines.count()
            copier(copy).receive(copy, lines, unchanged, first_half(progress, total))
        with copy.read() as tx:
            sound(tx, path)
        for finding in copy.health():
            if finding.what in ("integrity", "references") and finding.level != "ok":
                raise bad_argument(f"{finding.what}: {finding.found}")
    except Refused as problem:
        if problem.code in OWN_FAULTS:
            raise
        raise not_usable(path, problem) from None
    except (NotAnExport, OSError) as problem:
        raise not_usable(path, problem) from None
    return total


def not_usable(path: str, problem: Exception) -> Refused:
    return bad_argument(f"{path} is no export that can be used: {problem}")


def settings_at(store: Store) -> str:
    """Those that stand beside the place already: an import brings none, and takes none away."""
    if isinstance(store, SqliteStore):
        return str(copier(store).settings_of(store.folder))
    return ""


def _import(
    board: Board,
    seen: Snapshot,
    who: Identity,
    reason: str,
    path: str,
    progress: Callable[[int], None] | None,
) -> Moved:
    target = board.store
    report = carried(seen.board, path, target.where, seen.count())
    changes: list[tuple[Duration, int]] = []

    def finish(there: WriteTransaction) -> None:
        caller = known_there(there, board, who)
        by = min(between(latest(there), there.now), Duration(0))
        if by:  # the clock here is behind: instants fall only at a clock event
            there.shift_leases(by)
            clock = board_events.ClockSet(by=by, reason=f"imported from {basename(path)}")
            there.append_to_board(clock, caller)
        changes.append((by, begin_epoch(there, caller, RESTORE, reason=reason)))
        there.is_here()
        there.finish()
        there.board = there.board.but(floor=there.now)  # as it was written just now
        sound(there, target.where)

    copier(target).receive(target, seen, finish, progress)
    [(by, epoch)] = changes
    return report.but(shifted=by, epoch=epoch)


def latest(tx: ReadTransaction) -> Instant:
    """Of all instants that a board knows: a renewal on a server does not raise the floor."""
    renewed = (task.lease.renewed for task in tx.tasks_held(BATCH) if task.lease)
    return max((tx.board.floor, *renewed))


# Progress: the rows pass twice.


def first_half(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done // 2, total)


def second_half(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress((total + done) // 2, total)
