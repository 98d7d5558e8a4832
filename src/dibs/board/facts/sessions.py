"""Facts for commands about sessions."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.facts import Facts, SessionFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Session
    from dibs.storage.transaction import ReadTransaction


def load_session(tx: ReadTransaction, basis: Facts) -> SessionFacts:
    command, caller = basis.command, basis.caller
    if isinstance(command, c.RegisterSession):
        return basis.widened(SessionFacts)
    registered = tx.actor_named(caller.actor.name) is not None
    known = tx.session(caller.actor.id, caller.holding_session) if registered else None
    facts = basis.widened(SessionFacts, is_registered=registered, known=known)
    if known is None or not (isinstance(command, c.EndSession) and command.siblings):
        return facts
    siblings = siblings_of(tx, known)
    holding = (one.name for one in siblings if tx.tasks_held_by(one.actor, one.name))
    return facts.but(siblings=siblings, holding=frozenset(holding))


def siblings_of(tx: ReadTransaction, known: Session) -> tuple[Session, ...]:
    process = known.process
    if process is None:
        return ()
    found = tx.sessions_of_process(process.boot, process.namespace, process.pid)
    return tuple(one for one in found if one.actor == known.actor and one != known)
