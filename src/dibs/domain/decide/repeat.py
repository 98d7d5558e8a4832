"""Idempotent retries: a holder repeats its own verb after a lost response. Pure."""

from __future__ import annotations

from dibs.domain.commands import IDEMPOTENT_VERBS
from dibs.domain.decide.tasks import Decision
from dibs.domain.events import tasks as e
from dibs.domain.facts import Case
from dibs.domain.guards import late_text
from dibs.domain.ledger import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Token


def is_retry(case: Case) -> bool:
    """Whether the caller ended its last lease by this same verb, and the task has not moved since."""
    former, command = case.facts.former, case.command
    if (
        former is None
        or former.lost
        or case.caller.is_child
        or command.verb not in IDEMPOTENT_VERBS
    ):
        return False
    stated: Token | None = command.named()["token"]
    if former.cause != command.verb or stated not in (None, former.token):
        return False
    return not any(event.moves for event in case.facts.since[1:])


def retry_result(case: Case) -> Decision:
    """The same success as before. A text that was not in the first command is kept as a note."""
    done, text = case.facts.since[0].named(), late_text(case)
    same = not text or digest_of(text) == done.get("note") or text == done.get("reason")
    return Decision(() if same else (e.Noted(text),), repeats=case.facts.since[0])
