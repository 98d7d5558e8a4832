"""Decides a command: facts, command and instant in; events or a refusal out. Pure.

The registry (`domain/verbs.py`) names the guards of each verb, of which the first that fails gives the refusal, and
the function that runs when all of them pass. That function is in the module of its kind, loaded on demand.
"""

from __future__ import annotations

from dibs.domain import guards
from dibs.domain.decision import Decision
from dibs.domain.events.base import Noted
from dibs.domain.facts import Case, Facts
from dibs.domain.ledger import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.domain.commands import Command
    from dibs.domain.guards import Guard
    from dibs.domain.instants import Instant
    from dibs.domain.model import Token
    from dibs.domain.refusals import Refusal


def decide(facts: Facts, command: Command, now: Instant) -> Decision:
    """The events that follow from the command, or its refusal."""
    case = Case(facts, command, now)
    if is_retry(case):
        return retry_result(case)
    refusal = refusal_of(case)
    if refusal is not None:
        return deny(case, refusal)
    decision: Decision = named(command.spec.act)(case, command)
    if not facts.working:
        return decision
    from dibs.domain.decide.stints import one_at_a_time

    return one_at_a_time(case, decision)


def refusal_of(case: Case) -> Refusal | None:
    """The refusal of the first guard that fails; `None` if all pass."""
    for guard in guards_of(case):
        refusal = guard(case)
        if refusal is not None:
            return refusal
    return None


def guards_of(case: Case) -> list[Guard]:
    spec = case.command.spec
    own = bool(spec.own_guards) and (case.holds or case.may_bind)
    return [named(name) for name in (spec.own_guards if own else spec.guards)]


def named(name: str) -> Any:
    """The function that the registry names: `module.function` in this package, or a guard."""
    module, dot, function = name.rpartition(".")
    if not dot:
        return getattr(guards, function)
    # `__import__` instead of `importlib`, which would be imported for this alone.
    return getattr(__import__(f"{__name__}.{module}", fromlist=(function,)), function)


def deny(case: Case, refusal: Refusal) -> Decision:
    """The refusal; a former holder's report is kept as a late note."""
    if refusal.code in ("lease_lost", "token_ahead") and guards.keeps_a_late_note(case):
        late = Noted(guards.late_text(case), late=case.command.verb)
        return Decision((late,), refusal=refusal)
    return Decision(refusal=refusal)


# A holder repeats its own verb after a lost response.


def is_retry(case: Case) -> bool:
    """Whether the caller ended its last lease by this same verb, and the task has not moved since."""
    former, command = case.facts.former, case.command
    if (
        former is None
        or not case.facts.since
        or former.lost
        or case.caller.is_child
        or not command.spec.idempotent
    ):
        return False
    stated: Token | None = command.named()["token"]
    if former.cause != command.verb or stated not in (None, former.token):
        return False
    return not any(event.moves for event in case.facts.since[1:])


def retry_result(case: Case) -> Decision:
    """The same success as before. A text that was not in the first command is kept as a note."""
    done, text = case.facts.since[0].named(), guards.late_text(case)
    same = not text or digest_of(text) == done.get("note") or text == done.get("reason")
    return Decision(() if same else (Noted(text),), repeats=case.facts.since[0])
