"""Evidence that a decision needs from outside its transaction: worktrees, processes, deaths of holders.

A transaction that lacks some is left without a trace; the evidence is gathered, and the command decided anew.
"""

from __future__ import annotations

from dibs.domain.events.base import taken_by
from dibs.domain.facts import ClaimFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.retry import ReadableBoard
    from dibs.domain.decision import Decision
    from dibs.domain.events.base import Ending
    from dibs.domain.facts import Evidence, Facts
    from dibs.domain.model import KeptProcess


class EvidenceNeeded(Exception):  # noqa: N818 - not an error: the command is decided again
    """Raised to leave the transaction: a worktree or processes must be inspected first."""

    def __init__(
        self, worktree_of: Ending | None = None, kept: tuple[KeptProcess, ...] = ()
    ) -> None:
        super().__init__()
        self.worktree_of = worktree_of
        """The lease that is about to be taken from its holder."""
        self.kept = kept
        """Processes that the caller's session has recorded."""


def require_evidence(facts: Facts, decision: Decision, evidence: Evidence) -> None:
    """Raises `EvidenceNeeded` unless the decision has all that it depends on."""
    if isinstance(facts, ClaimFacts):
        own = facts.caller.behind and facts.caller.behind.process
        known = (own, *evidence.lives)
        unseen = tuple(kept for kept in facts.processes if kept.behind.process not in known)
        if unseen:
            raise EvidenceNeeded(kept=unseen)
    for event in decision.events:
        ending = taken_by(event)
        if evidence.left is None and ending and ending.worktree:
            raise EvidenceNeeded(worktree_of=ending)


def gather(
    board: ReadableBoard, needed: EvidenceNeeded, evidence: Evidence, *, ends_left: bool
) -> Evidence:
    """`ends_left`: also kills the orphan processes of a run that is gone, since another replaces it."""
    if needed.worktree_of is not None:
        from dibs.board.former_work import left_by

        left = left_by(needed.worktree_of, board.store.machine, board.repository)
        return evidence.but(left=left)
    from dibs.board.liveness import lives

    found = lives(board, needed.kept, ends_left=ends_left)
    return evidence.but(lives={**evidence.lives, **found})
