"""Who may do what, as data: a command without the required right or reason is refused."""

from __future__ import annotations

from dibs.domain.facts import Case
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Right(Value):
    """What a verb requires of its caller: always, or only if `when` is true."""

    verb: str
    people_only: bool = False
    reason: bool = False
    when: Callable[[Case], bool] | None = None
    in_words: str = "always"

    def applies(self, case: Case) -> bool:
        return self.when is None or self.when(case)


def ends_a_live_lease_of_another(case: Case) -> bool:
    return case.another_is_live


def ends_a_lease_of_another(case: Case) -> bool:
    return case.another_holds


def interrupts_somebody(case: Case) -> bool:
    return bool(case.interrupted)


def is_forced(case: Case) -> bool:
    return bool(case.command.named()["force"])


RIGHTS = {
    right.verb: right
    for right in (
        Right("force", people_only=True, reason=True),
        Right("add_stint", people_only=True, reason=True),
        Right("amend_stint", people_only=True, reason=True),
        Right("redact", people_only=True, reason=True),
        Right("allow", people_only=True, reason=True),
        Right("approve", people_only=True),
        Right("reopen", people_only=True, reason=True),
        Right("set_actor", people_only=True),
        Right("set_clock", people_only=True, reason=True),
        Right("set_settings", people_only=True),
        Right("move_board", people_only=True),
        Right("restore_board", people_only=True, reason=True),
        Right(
            "unassign",
            people_only=True,
            reason=True,
            when=ends_a_live_lease_of_another,
            in_words="when it ends another's live lease",
        ),
        Right(
            "drop",
            people_only=True,
            reason=True,
            when=ends_a_lease_of_another,
            in_words="when another's lease has not ended",
        ),
        Right(
            "reset",
            people_only=True,
            reason=True,
            when=interrupts_somebody,
            in_words="when it ends another's live lease",
        ),
        Right(
            "retry",
            people_only=True,
            reason=True,
            when=is_forced,
            in_words="when it is forced",
        ),
        Right("block", reason=True),
        Right("fail", reason=True),
        Right("reject", reason=True),
    )
}

PARENT_ONLY = ("stop", "block", "submit", "complete", "fail", "release", "handoff", "drop")
"""Verbs that end the parent session's work; its subagents may not use them."""
