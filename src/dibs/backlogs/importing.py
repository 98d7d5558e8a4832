"""Import: what another tool exported becomes tasks, once. Nothing is written back."""

from __future__ import annotations

from dibs.backlogs.cycles import broken_cycles
from dibs.backlogs.item import Item, Problem
from dibs.backlogs.words import key_of
from dibs.core import commands as c
from dibs.core.model import BLOCKED, IN_PROGRESS, OPEN, Listed, Task, TaskKey
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.core.model import State

    Progress = Callable[[int, int], None]

BATCH = 200


class Imported(Value):
    """What an import found and did."""

    items: int
    added: int
    known: int
    problems: tuple[Problem, ...]


def import_items(
    board: Board,
    who: Identity,
    items: list[Item],
    progress: Progress | None = None,
    *,
    check: bool = False,
) -> Imported:
    """New tasks for origins that are new. What is there already stays, and a difference is told."""
    after, problems = broken_cycles(items)
    with board.read() as tx:
        there = {item.ref: tx.task_of_origin(item.channel, item.ref) for item in items}
    new = [item for item in items if there[item.ref] is None]
    for item in items:
        task = there[item.ref]
        if task is not None:
            problems += differences(item, task)
    if not check:
        with_rows = taken_in(board, who, [first_of(item) for item in new], progress)
        assert with_rows <= len(new), "each is taken in once"
        waits = [item for item in new if after[item.ref]]
        problems += depend(board, who, waits, after, {item.id: item.ref for item in items})
    return Imported(len(items), len(new), len(items) - len(new), tuple(problems))


def first_of(item: Item) -> Listed:
    """A claim of another tool is no lease here: who had it is noted. What waits is not begun yet."""
    state: State | None = None if item.state == IN_PROGRESS else item.state
    note = f"{item.channel} said {item.said}" + (f", by {item.owner}" if item.owner else "")
    if item.gate and item.state == OPEN:
        state, note = BLOCKED, item.gate
    return Listed(
        channel=item.channel,
        ref=item.ref,
        key=key_of(item.id)[0],
        title=item.title,
        priority=item.priority,
        item=None,
        state=state,
        note=note if item.state == IN_PROGRESS or state == BLOCKED else "",
    )


def taken_in(
    board: Board, who: Identity, listed: list[Listed], progress: Progress | None = None
) -> int:
    for start in range(0, len(listed), BATCH):
        board.execute(who, c.Sync(tuple(listed[start : start + BATCH])))
        if progress is not None:
            progress(min(start + BATCH, len(listed)), len(listed))
    return len(listed)


def depend(
    board: Board,
    who: Identity,
    items: list[Item],
    after: dict[str, tuple[str, ...]],
    refs: dict[str, str],
) -> list[Problem]:
    """What each waits for, now that all are there; what is not among them is told."""
    problems, listed = [], []
    with board.read() as tx:

        def key(item: Item, id_: str) -> TaskKey | None:
            task = tx.task_of_origin(item.channel, refs.get(id_, id_))
            return task.key if task else None

        for item in items:
            task = tx.task_of_origin(item.channel, item.ref)
            assert task is not None, "taken in before"
            keys = {id_: key(item, id_) for id_ in after[item.ref]}
            missing = [id_ for id_, found in keys.items() if found is None]
            if missing:
                what = f"it waits for {', '.join(missing)}, which is not there"
                problems.append(Problem(item.path or item.id, what, "that is left out", item.line))
            on = tuple(found for found in keys.values() if found is not None)
            listed.append(as_it_is(task).but(after=on))
    taken_in(board, who, [one for one in listed if one.after])
    return problems


def as_it_is(task: Task) -> Listed:
    terms = task.terms
    assert task.channel is not None, "it has an origin"
    assert task.origin_ask_ref is not None, "it has an origin"
    return Listed(
        task.channel, task.origin_ask_ref, task.key, terms.title, terms.priority, task.item
    )


def differences(item: Item, task: Task) -> list[Problem]:
    """What is not the same any more: the task stays as it is."""
    told = []
    if item.title != task.terms.title:
        told.append("title")
    if item.state not in (task.state, OPEN, IN_PROGRESS):
        told.append(f"state ({item.said})")
    if not told:
        return []
    what = f"{task.key} is there already, with another {' and '.join(told)}"
    return [Problem(item.path or item.id, what, "the task stays as it is", item.line)]
