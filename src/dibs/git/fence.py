"""The fence on branches: a session that lost its lease moves none of them to work of its own."""

from __future__ import annotations

from dibs.board.guarding import look
from dibs.core.guarding import COMMIT
from dibs.git.changes import moved_to
from dibs.git_runner import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.core.refusals import Refusal

BRANCHES = "refs/heads/"


def fence(board: Board, who: Identity | None, updates: Iterable[str]) -> Refusal | None:
    """Refused only to who lost a lease and holds none, and only what brings commits made here.

    So a fetch, a fast-forward, a reset, a deletion, and everybody else's branches go through.
    """
    if who is None or not board.settings.fence_refs:
        return None
    moved = dict.fromkeys(new for new, ref in moved_to(updates) if ref.startswith(BRANCHES))
    if not moved:
        return None
    seen = look(board, who, (), COMMIT)
    if not seen.verdict.lost or not any(brings_work(commit) for commit in moved):
        return None
    return seen.refusal


def brings_work(commit: str) -> bool:
    """Whether it leads to a commit that is on no branch yet, neither here nor elsewhere.

    What git cannot tell stops nobody.
    """
    status, said = git("rev-list", "-n", "1", commit, "--not", "--branches", "--remotes")
    return status == 0 and bool(said.strip())
