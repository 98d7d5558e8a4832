"""A holder gives its own verb again, because its answer was lost on the way. Pure."""

from __future__ import annotations

from dibs.core import events as e
from dibs.core.commands import REPEATED
from dibs.core.decide import Decision
from dibs.core.facts import Case
from dibs.core.guards import late_text
from dibs.core.ledger import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.model import Token


def repeats_itself(case: Case) -> bool:
    """The caller ended its last lease of the task by this verb, and nothing has moved the task since."""
    former, command = case.facts.former, case.command
    if former is None or former.lost or case.caller.is_child or command.verb not in REPEATED:
        return False
    stated: Token | None = command.named()["token"]
    if former.cause != command.verb or stated not in (None, former.token):
        return False
    return not any(event.moves for event in case.facts.since[1:])


def again(case: Case) -> Decision:
    """The same success as before. A text that it did not have then is kept as a note."""
    done, text = case.facts.since[0].named(), late_text(case)
    same = not text or digest_of(text) == done.get("note") or text == done.get("reason")
    return Decision(() if same else (e.Noted(text),), repeats=case.facts.since[0])
