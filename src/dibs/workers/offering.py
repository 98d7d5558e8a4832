"""`next`: sweeps, then claims what is offered first; and waits for work, if that is asked."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.watching import countdown, goes_on, pulse, wait_for_change
from dibs.core import commands as c
from dibs.core.instants import SECOND, Duration
from dibs.core.refusals import Refusal, Refused
from dibs.stores.faults import Interrupted
from dibs.workers.sweep import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.board.outcome import Outcome

IDLE = frozenset(("nothing_ready", "paused", "at_limit"))
"""Refusals that may be over in a moment."""

LOOK = 2.0
"""Seconds between two looks: a process dies, and a time comes, without a change of the board."""


def next_task(
    board: Board,
    who: Identity,
    command: c.Next,
    wait: Duration | None = None,
    request_id: str | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Outcome:
    """The claim of what is offered first; it may be some time until there is something.

    `enough`: whether whoever waits has had enough of it.
    """
    left = countdown(board, (wait or 0) / SECOND)
    try:
        return first_offered(board, who, command, left, request_id, enough)
    finally:
        board.store.hush()  # the work that begins now may be long, and reads no hints


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
            felt = pulse(board)
            sweep(board, who)
            last = left() <= 0 or enough()
            if not last and not is_something(board, who, command):
                wait_for_change(board, felt, min(left(), LOOK))
                continue
        except Interrupted:
            if not goes_on(left()) or enough():
                raise
            continue
        try:
            return board.execute(who, command, request_id)
        except Refused as problem:
            if problem.code not in IDLE or last:
                raise explained(board, problem) from None


def is_something(board: Board, who: Identity, command: c.Next) -> bool:
    """A look only: who waits writes nothing meanwhile."""
    refusal = board.plan(who, command).decision.refusal
    return refusal is None or refusal.code not in IDLE


def explained(board: Board, problem: Refused) -> Refused:
    """Nothing ready: with a line of why."""
    if problem.code != "nothing_ready":
        return problem
    from dibs.board.waiting import idle

    why, refusal = idle(board), problem.refusal
    facts = {**refusal.facts, "why": why}
    return Refused(Refusal(refusal.code, f"{refusal.message}: {why}", facts))
