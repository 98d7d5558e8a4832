"""The guard of refs: a session that lost its lease cannot move branches to new commits of its own."""

from __future__ import annotations

from dibs.board.path_access import check_paths
from dibs.domain.scopes.access import COMMIT
from dibs.git_runner import git
from dibs.integrations.git.changes import moved_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.domain.refusals import Refusal

BRANCHES = "refs/heads/"


def fence(board: Board, who: Identity | None, updates: Iterable[str]) -> Refusal | None:
    """Refuses only a session that lost a lease and holds none, and only commits that are new here.

    So fetch, fast-forward, reset, deletion, and everybody else's branches pass.
    """
    if who is None or not board.settings.fence_refs:
        return None
    moved = dict.fromkeys(new for new, ref in moved_to(updates) if ref.startswith(BRANCHES))
    if not moved:
        return None
    seen = check_paths(board, who, (), COMMIT)
    if not seen.verdict.lost or not any(brings_work(commit) for commit in moved):
        return None
    return seen.refusal


def brings_work(commit: str) -> bool:
    """Whether the commit is on no branch yet, local or remote.

    If git cannot tell, it does not count as new.
    """
    status, said = git("rev-list", "-n", "1", commit, "--not", "--branches", "--remotes")
    return status == 0 and bool(said.strip())
