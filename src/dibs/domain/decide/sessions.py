"""Decides commands about sessions: none is in the ledger, and none is refused. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Decision
from dibs.domain.facts import SessionFacts
from dibs.domain.model import Session


def register_session(facts: SessionFacts, command: c.RegisterSession) -> Decision:
    """A subagent is registered as its parent."""
    caller = facts.caller
    met = command.place.but(actor=caller.actor.id, name=caller.holding_session)
    return Decision(sessions=(met,))


def end_session(facts: SessionFacts, command: c.EndSession) -> Decision:
    """Its process no longer counts as its sign of life. What it holds only expires."""
    known = facts.known
    if known is None or known.process is None:
        return Decision()
    idle = (one for one in facts.siblings if one.name not in facts.holding)
    over = tuple(idle) if command.siblings else (known,)
    return Decision(sessions=tuple(one.but(process=None) for one in over))


def set_background(facts: SessionFacts, command: c.SetBackground) -> Decision:
    """An unknown actor holds nothing that its background work could need."""
    if not facts.is_registered:
        return Decision()
    caller = facts.caller
    session = facts.known or Session(caller.actor.id, caller.holding_session)
    return Decision(background=session.but(background=command.running))
