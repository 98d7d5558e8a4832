"""`next`: sweeps, then claims the first ready task; optionally waits for work."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.watch import change_counter, countdown, keeps_waiting, wait_for_change
from dibs.domain import commands as c
from dibs.domain.refusals import Refusal, Refused
from dibs.domain.values import SECOND, Duration
from dibs.storage.errors import Interrupted
from dibs.workers.sweep import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.board.outcome import Outcome

IDLE = frozenset(("nothing_ready", "paused", "at_limit"))
"""Temporary refusals."""

POLL_SECONDS = 2.0
"""Poll interval in seconds: a process can die, and a time can come, without a change of the board."""


def next_task(
    board: Board,
    who: Identity,
    command: c.Next,
    wait: Duration | None = None,
    request_id: str | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Claims the first ready task, waiting for one if `wait` is given.

    `enough`: whether the caller wants to stop waiting.
    """
    left = countdown(board, (wait or 0) / SECOND)
    try:
        return first_offered(board, who, command, left, request_id, enough)
    finally:
        board.store.unlisten()  # the work may be long, and reads no notifications


def first_offered(
    board: Board,
    who: Identity,
    command: c.Next,
    left: Callable[[], float],
    request_id: str | None,
    enough: Callable[[], bool],
) -> Outcome:
    while True:
        try:
            counter = change_counter(board)
            sweep(board, who)
            last = left() <= 0 or enough()
            if not last and not has_ready_task(board, who, command):
                wait_for_change(board, counter, min(left(), POLL_SECONDS))
                continue
        except Interrupted:
            if not keeps_waiting(left()) or enough():
                raise
            continue
        try:
            return board.execute(who, command, request_id)
        except Refused as problem:
            if problem.code not in IDLE or last:
                raise explained(board, problem) from None


def has_ready_task(board: Board, who: Identity, command: c.Next) -> bool:
    """Whether a task is ready; read-only, so waiting writes nothing."""
    refusal = board.plan(who, command).decision.refusal
    return refusal is None or refusal.code not in IDLE


def explained(board: Board, problem: Refused) -> Refused:
    """Adds a line that says why nothing is ready."""
    if problem.code != "nothing_ready":
        return problem
    from dibs.board.explain import idle

    why, refusal = idle(board), problem.refusal
    facts = {**refusal.facts, "why": why}
    return Refused(Refusal(refusal.code, f"{refusal.message}: {why}", facts))
