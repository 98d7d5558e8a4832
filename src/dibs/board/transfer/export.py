"""Export a board to a file of JSON lines, and import it: to archive, read and repair it with other tools.

An import follows the rule of a restore (`move.py`): the same board, with its ledger, notes, tokens and
requests; every lease ends, a new epoch begins, one person is responsible. Settings are not transferred.
"""

from __future__ import annotations

import os
from os.path import abspath, basename, join

from dibs.board.facts.board import EVERY_LEASE
from dibs.board.locate import copier
from dibs.board.transfer.move import (
    TransferReport,
    authorise,
    counted,
    decided,
    epoch_in,
    require_sound_ledger,
    shift_in,
    transfer_report,
    unchanged,
)
from dibs.board.transfer.scratch import new_file, scratch_directory, written_badly
from dibs.domain import commands as c
from dibs.domain.facts import Evidence
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import Instant
from dibs.storage import errors
from dibs.storage.jsonl import Lines, NotAnExport, write
from dibs.storage.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, TypeVar

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome
    from dibs.board.transfer.move import Progress
    from dibs.storage.copy import Snapshot
    from dibs.storage.store import Store
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

    T = TypeVar("T")

OWN_FAULTS = ("disk_full", "read_only", "newer_schema")
"""Errors of the place where the file is unpacked, not of the file; or errors that explain themselves."""


# Exporting.


def export(board: Board, path: str, progress: Progress | None = None) -> TransferReport:
    """Exports the board as JSON lines: a complete, synced and verified file, or none at all."""
    with new_file(path, "an export") as file:
        report = export_to(board, file, progress)
    return report.but(target=abspath(path))


def export_to(board: Board, file: IO[bytes], progress: Progress | None = None) -> TransferReport:
    """The same to an open stream."""
    board.follow_if_moved()
    source = board.store
    with copier(source).snapshot_with_transaction(source) as (seen, tx):
        require_sound_ledger(tx, source.where)
        report = transfer_report(seen.board, source.where, "", seen.count())
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
) -> TransferReport:
    """Imports an export as the board in a place that has none; every lease ends, a new epoch begins.

    Reads from `stream`, if given; `path` is then only its name in messages.

    The lines first become a board in a scratch directory and are verified there: a
    truncated, changed or wrong file does not touch the target.
    """
    reason = reason or f"imported from {basename(path)}"
    if stream is None and not os.path.isfile(path):
        raise bad_argument(f"there is no file {path}")
    has_none(board.store)
    source = path if stream else abspath(path)
    with scratch_directory() as folder:
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
    """Refuses a place that has or had a board: nothing is overwritten, and no forwarding record is lost."""
    try:
        with store.read() as tx:
            uid = tx.board.uid
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return
    raise errors.board_exists(store.where, uid)


def check_uid_is_new(store: Store, uid: str) -> None:
    """Refuses a board that is already in the database, under any name, even if it has moved away."""
    if isinstance(store, SqliteStore):
        return
    try:
        known = store.boards()  # type: ignore[attr-defined]
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return
    if any(there == uid for _, there, *_ in known):
        raise errors.board_exists(store.where, uid)


def kept(stream: IO[bytes], path: str) -> str:
    """Saves a stream that can be read only once to a file: its lines are read twice."""
    import shutil

    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise written_badly(path, error) from None
    return path


def set_up(copy: SqliteStore, file: str, path: str, progress: Progress | None) -> int:
    """Loads the lines into a scratch board and verifies it; returns the number of
    rows. Refuses other files.
    """
    try:
        with open(file, "rb") as opened:
            lines = Lines(opened)
            total = lines.count()
            copier(copy).receive(copy, lines, unchanged, first_half(progress, total))
        with copy.read() as tx:
            require_sound_ledger(tx, path)
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
    return bad_argument(f"{path} is not an export that can be used: {problem}")


def settings_at(store: Store) -> str:
    """The settings that are already at the target: an import neither brings nor removes any."""
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
) -> TransferReport:
    target = board.store
    report = transfer_report(seen.board, path, target.where, seen.count())
    outcomes: list[Outcome] = []

    def finish(there: WriteTransaction) -> None:
        former = latest(there)
        if former > there.now:  # the clock here is behind: instants may fall only at a clock event
            arrival = c.MoveBoard(f"imported from {basename(path)}")
            outcomes.append(decided(there, board, who, arrival, Evidence(former_clock=former)))
        outcomes.append(decided(there, board, who, c.RestoreBoard(reason)))
        there.is_here()
        there.finish()
        there.board = there.board.but(floor=there.now)  # as written just now
        require_sound_ledger(there, target.where)

    copier(target).receive(target, seen, finish, progress)
    return report.but(shifted=shift_in(outcomes), epoch=epoch_in(outcomes))


def latest(tx: ReadTransaction) -> Instant:
    """The latest instant of a board, including leases: a renewal on a server does not raise the floor."""
    renewed = (task.lease.renewed for task in tx.tasks_held(EVERY_LEASE) if task.lease)
    return max((tx.board.floor, *renewed))


# Progress: each row is copied twice.


def first_half(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(done // 2, total)


def second_half(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress((total + done) // 2, total)
