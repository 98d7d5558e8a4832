"""Import: what another tool exported becomes tasks, once. Nothing is written back."""

from __future__ import annotations

from dibs.backlogs.cycles import broken_cycles
from dibs.backlogs.item import Item, Problem
from dibs.backlogs.words import key_of
from dibs.core import commands as c
from dibs.core.model import BLOCKED, IN_PROGRESS, OPEN, Listed, Task, TaskKey
from dibs.core.refusals import several
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.core.model import State
    from dibs.stores.transaction import ReadTransaction

    Progress = Callable[[int, int], None]
    There = dict[str, Task | None]

BATCH = 200
SHOWN = 5
GITHUB, DIGITS = "github", "0123456789"
SAME, OWN = "they are taken for the same", "each is a task of its own"


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
        problems += known_by_number(tx, items, there)
        problems += known_with_url(tx, items, there)
    new = [item for item in items if there[item.ref] is None]
    for item in items:
        task = there[item.ref]
        if task is not None:
            problems += differences(item, task)
    if not check:
        with_rows = taken_in(board, who, [first_of(item) for item in new], progress)
        assert with_rows <= len(new), "each is taken in once"
        waits = [item for item in new if after[item.ref]]
        refs = {item.id: origin_of(item, there[item.ref]) for item in items}
        problems += depend(board, who, waits, after, refs)
    return Imported(len(items), len(new), len(items) - len(new), tuple(problems))


# An issue of GitHub may have come without its url, and then it is known by its number alone.


def known_by_number(tx: ReadTransaction, items: list[Item], there: There) -> list[Problem]:
    """Finds those that an import without urls made tasks of, and says so.

    Only if all are of one repository, and with the title that the task has: a number alone is no name,
    and rather is one issue two tasks than two issues one.
    """
    same, others = [], []
    issues = [item for item in items if item.channel == GITHUB and item.ref[0] != "#"]
    one_place = len({place_of(item.ref) for item in issues}) == 1
    for item in issues if one_place else []:
        task = tx.task_of_origin(GITHUB, number_of(item.ref)) if there[item.ref] is None else None
        if task is not None and task.terms.title == item.title:
            there[item.ref] = task
            same.append(f"{item.ref} ({task.key})")
        elif task is not None:
            others.append(f"{item.ref} ({task.key})")
    return [
        *told(issues, same, "came before without a url, and with this title", SAME),
        *told(issues, others, "may have come before without a url, with another title", OWN),
    ]


def known_with_url(tx: ReadTransaction, items: list[Item], there: There) -> list[Problem]:
    """A number without a url may be any repository's: what it may be is said, and no more."""
    new = {
        item.ref: item
        for item in items
        if item.channel == GITHUB and item.ref[0] == "#" and there[item.ref] is None
    }
    tasks = tx.tasks_of(GITHUB) if new else ()
    maybe = [
        f"{number} ({task.key})"
        for task in tasks
        if (number := number_of(task.origin_ask_ref or "")) in new
    ]
    return told(list(new.values()), maybe, "without a url may be what came before with one", OWN)


def told(items: list[Item], which: list[str], what: str, choice: str) -> list[Problem]:
    """One line for all of them."""
    if not which:
        return []
    return [Problem(items[0].path or GITHUB, f"{several(which, SHOWN)} {what}", choice)]


def place_of(ref: str) -> str:
    """The repository: `o/r` of `o/r#12`, and what stands before the number of a url."""
    return ref.rstrip(DIGITS)[:-1].casefold()


def number_of(ref: str) -> str:
    """`#12`, of an issue that is named in full; of anything else nothing."""
    before = ref.rstrip(DIGITS)
    is_issue = before.endswith(("#", "/issues/", "/pull/")) and before != "#"
    return f"#{ref[len(before) :]}" if is_issue else ""


def origin_of(item: Item, task: Task | None) -> str:
    return item.ref if task is None else task.origin_ask_ref or item.ref


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
