"""Chooses the acting lease: which of the session's tasks a commit is for."""

from __future__ import annotations

from dibs.domain.scopes.access import COMMIT, work_for
from dibs.domain.scopes.index import ScopeIndex
from dibs.domain.scopes.overlap import TooManySteps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.domain.model import Task
    from dibs.domain.scopes.policy import ScopePolicy

TASK = "DIBS_TASK"
"""The variable that names the current task; `dibs run` sets it."""


def acting(
    mine: Sequence[Task], paths: Sequence[str], ground: ScopePolicy, environment: Mapping[str, str]
) -> Task | None:
    """The only task held; else the one whose scope covers all paths; else the one that DIBS_TASK names.

    Else the only one without a scope, if no scope covers the paths.
    """
    if len(mine) == 1:
        return mine[0]
    fitting = covering(mine, paths, ground)
    if len(fitting) == 1:
        return fitting[0]
    named = [task for task in mine if task.key == environment.get(TASK)]
    if named:
        return named[0]
    free = [task for task in mine if not task.scope]
    return free[0] if len(free) == 1 and not fitting else None


def covering(mine: Sequence[Task], paths: Sequence[str], ground: ScopePolicy) -> list[Task]:
    """Tasks whose scope covers every path."""
    if not paths:
        return []
    scopes = (ground.patterns(task.scope) for task in mine)
    reserved = ScopeIndex(scopes, fold=ground.fold, work=work_for(COMMIT))
    left = set(range(len(mine)))
    try:
        for path in paths:
            left &= set(reserved.of(path))
    except TooManySteps:
        return []  # fall back to DIBS_TASK, or none
    return [mine[place] for place in sorted(left)]
