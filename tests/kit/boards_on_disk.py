"""A board with tasks on it, made and read in this process, for tests whose actors are processes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dibs.board.identity import Identity
from dibs.board.locate import Place
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import Terms
from dibs.opening import create_at, open_board


@contextlib.contextmanager
def opened(folder: Path):
    """The board around `folder`, closed at the end."""
    board = open_board(str(folder), environment={})
    try:
        yield board
    finally:
        board.store.close()


def board_with(folder: Path, tasks: int) -> list[str]:
    """Makes a board in `folder/.dibs`; the keys of its tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    board, _ = create_at(Place(str(folder / ".dibs")))
    ana = Identity("ana", True, "")
    keys = [board.execute(ana, c.Add(Terms(f"task {n}"))).task.key for n in range(tasks)]
    board.store.close()
    return keys


def ledger_of(folder: Path) -> tuple[list, tuple[str, ...]]:
    """Every event that is about a task, and what is wrong with the ledger."""
    with opened(folder) as board:
        faults = verify(board).faults
        with board.store.read() as tx:
            return [entry for entry in tx.events() if entry.task], faults
