"""Decides a command: facts in, which say who asks for what and when; events or a refusal out. Pure.

The registry (`domain/verbs.py`) names the guards of each verb, of which the first that fails gives the refusal, and
the function that runs when all of them pass. That function is in the module of its kind, loaded on demand.
"""

from __future__ import annotations

from dibs.domain import guards
from dibs.domain.decision import Decision
from dibs.domain.events.base import Noted
from dibs.domain.facts import ClaimFacts, Facts, TaskFacts
from dibs.domain.ledger import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Token
    from dibs.domain.refusals import Refusal


def decide(facts: Facts) -> Decision:
    """The events that follow from the command, or its refusal."""
    if isinstance(facts, TaskFacts) and is_retry(facts):
        return retry_result(facts)
    refusal = guards.refusal_of(facts)
    if refusal is not None:
        return deny(facts, refusal)
    command = facts.command
    decision: Decision = guards.named(command.spec.act)(facts, command)
    claimed = decision.chosen or facts
    if not isinstance(claimed, ClaimFacts) or not claimed.working:
        return decision
    from dibs.domain.decide.stints import one_at_a_time

    return one_at_a_time(claimed, decision)


def deny(facts: Facts, refusal: Refusal) -> Decision:
    """The refusal; a former holder's report is kept as a late note."""
    if refusal.code in ("lease_lost", "token_ahead") and isinstance(facts, TaskFacts):
        text = guards.late_text(facts) if guards.keeps_a_late_note(facts) else ""
        late = (Noted(text, late=facts.command.verb),) if text else ()
        return Decision(late, refusal=refusal)
    return Decision(refusal=refusal)


# A holder repeats its own verb after a lost response.


def is_retry(facts: TaskFacts) -> bool:
    """Whether the caller ended its last lease by this same verb, and the task has not moved since."""
    former, command = facts.former, facts.command
    if (
        former is None
        or not facts.since
        or former.lost
        or facts.caller.is_child
        or not command.spec.idempotent
    ):
        return False
    stated: Token | None = command.named()["token"]
    if former.cause != command.verb or stated not in (None, former.token):
        return False
    return not any(event.moves for event in facts.since[1:])


def retry_result(facts: TaskFacts) -> Decision:
    """The same success as before. A text that was not in the first command is kept as a note."""
    done, text = facts.since[0].named(), guards.late_text(facts)
    same = not text or digest_of(text) == done.get("note") or text == done.get("reason")
    return Decision(() if same else (Noted(text),), repeats=facts.since[0])
