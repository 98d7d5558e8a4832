"""What a pool of processes runs: a process that is spawned imports it by its name."""

from __future__ import annotations

from dibs import open_board


def claim(folder, around, session):
    """The answer to a claim of T-1; or its refusal, raised in the pool's process."""
    with open_board(folder, agent="codex", session=session, environment=around) as board:
        return board.claim("T-1")


def task(folder, around):
    with open_board(folder, agent="codex", session="s1", environment=around) as board:
        return board.show("T-1")
