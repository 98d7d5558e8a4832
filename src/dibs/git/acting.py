"""Which of the tasks that a session holds a commit is for."""

from __future__ import annotations

from dibs.core.guarding import COMMIT, work_for
from dibs.core.reserved import Reserved
from dibs.core.scopes import TooManySteps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.core.ground import Ground
    from dibs.core.model import Task

TASK = "DIBS_TASK"
"""The variable that names the task one works on; `dibs run` sets it."""


def acting(
    mine: Sequence[Task], paths: Sequence[str], ground: Ground, environment: Mapping[str, str]
) -> Task | None:
    """The one whose scope has all paths; else the one that is named; else the only one."""
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


def covering(mine: Sequence[Task], paths: Sequence[str], ground: Ground) -> list[Task]:
    """Tasks with a scope in which every path lies."""
    if not paths:
        return []
    scopes = (ground.patterns(task.scope) for task in mine)
    reserved = Reserved(scopes, fold=ground.fold, work=work_for(COMMIT))
    left = set(range(len(mine)))
    try:
        for path in paths:
            left &= set(reserved.of(path))
    except TooManySteps:
        return []  # then the task that is named counts, or none
    return [mine[place] for place in sorted(left)]
