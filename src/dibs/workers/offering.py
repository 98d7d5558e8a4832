"""`next`: sweeps, then claims what is offered first; and waits for work, if that is asked."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.core import commands as c
from dibs.core.instants import Duration
from dibs.core.refusals import Refusal, Refused
from dibs.workers.sweep import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome

IDLE = frozenset(("nothing_ready", "paused", "at_limit"))
"""Refusals that may be over in a moment."""


def next_task(
    board: Board,
    who: Identity,
    command: c.Next,
    wait: Duration | None = None,  # noqa: ARG001
    request_id: str | None = None,
) -> Outcome:
    """The claim of what is offered first."""
    sweep(board, who)
    try:
        return board.execute(who, command, request_id)
    except Refused as problem:
        raise explained(board, problem) from None


def explained(board: Board, problem: Refused) -> Refused:
    """Nothing ready: with a line of why."""
    if problem.code != "nothing_ready":
        return problem
    from dibs.board.waiting import idle

    why = idle(board)
    refusal = problem.refusal
    return Refused(
        Refusal(refusal.code, f"{refusal.message}: {why}", {**refusal.facts, "why": why})
    )
