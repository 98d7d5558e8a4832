"""Decides commands about the board itself: actors, clock, pause, settings, moves and restores. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Decision
from dibs.domain.facts import Case


def admin_command(_case: Case, _command: c.Command) -> Decision:
    """Admin commands: the board itself executes them; only the guards decide here."""
    return Decision()


pause = resume = set_actor = set_clock = set_settings = move_board = restore_board = admin_command
