"""Import: turns another tool's export into tasks, once. Nothing is written back."""

from __future__ import annotations

from dibs.backlogs.cycles import broken_cycles
from dibs.backlogs.formats.words import key_of
from dibs.backlogs.item import Item, Problem
from dibs.domain import commands as c
from dibs.domain.model import BLOCKED, IN_PROGRESS, OPEN, BacklogItem, Task, TaskKey
from dibs.domain.refusals import several
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.domain.model import State
    from dibs.storage.transaction import ReadTransaction

    Progress = Callable[[int, int], None]
    There = dict[str, Task | None]

BATCH = 200
SHOWN = 5
GITHUB, DIGITS = "github", "0123456789"
SAME, OWN = "they are taken for the same", "each is a task of its own"


class Imported(Value):
    """The result of an import."""

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
    update: bool = False,
) -> Imported:
    """Creates tasks for new origins. Existing tasks stay, and differences are reported.

    `update`: those that nobody holds become as their tool has them; each change is reported.
    """
    after, problems = broken_cycles(items)
    with board.read() as tx:
        there = {item.ref: tx.task_of_origin(item.channel, item.ref) for item in items}
        problems += known_by_number(tx, items, there)
        problems += known_with_url(tx, items, there)
    new = [item for item in items if there[item.ref] is None]
    for item in items:
        task = there[item.ref]
        if task is not None and not update:
            problems += differences(item, task)
    if update:
        changes = [
            one for item in items if (task := there[item.ref]) and (one := change(item, task))
        ]
        problems += [Problem(*told) for _, told in changes]
        if not check:
            taken_in(board, who, [listed for listed, _ in changes if listed is not None])
    if not check:
        with_rows = taken_in(board, who, [first_of(item) for item in new], progress)
        assert with_rows <= len(new), "each is taken in once"
        waits = [item for item in new if after[item.ref]]
        refs = {item.id: origin_of(item, there[item.ref]) for item in items}
        problems += depend(board, who, waits, after, refs)
    return Imported(len(items), len(new), len(items) - len(new), tuple(problems))


# A GitHub issue may have been imported without its url, and then only its number is known.


def known_by_number(tx: ReadTransaction, items: list[Item], there: There) -> list[Problem]:
    """Finds tasks that an import without urls created, and reports them.

    Only if all are of one repository, and the titles are equal: a number alone is ambiguous, and two
    tasks for
    one issue are better than one task for two issues.
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
        *summary_problem(issues, same, "came before without a url, and with this title", SAME),
        *summary_problem(
            issues, others, "may have come before without a url, with another title", OWN
        ),
    ]


def known_with_url(tx: ReadTransaction, items: list[Item], there: There) -> list[Problem]:
    """A number without a url may be of any repository: only reports possible matches."""
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
    return summary_problem(
        list(new.values()), maybe, "without a url may be what came before with one", OWN
    )


def summary_problem(items: list[Item], which: list[str], what: str, choice: str) -> list[Problem]:
    """One problem line for all of them."""
    if not which:
        return []
    return [Problem(items[0].path or GITHUB, f"{several(which, SHOWN)} {what}", choice)]


def place_of(ref: str) -> str:
    """The repository: `o/r` of `o/r#12`, or the part of a url before the number."""
    return ref.rstrip(DIGITS)[:-1].casefold()


def number_of(ref: str) -> str:
    """`#12` of a fully named issue; else ""."""
    before = ref.rstrip(DIGITS)
    is_issue = before.endswith(("#", "/issues/", "/pull/")) and before != "#"
    return f"#{ref[len(before) :]}" if is_issue else ""


def origin_of(item: Item, task: Task | None) -> str:
    return item.ref if task is None else task.origin_ask_ref or item.ref


def first_of(item: Item) -> BacklogItem:
    """A new task. Another tool's claim gives no lease: its holder is noted. Dependencies come later."""
    state: State | None = None if item.state == IN_PROGRESS else item.state
    note = f"{item.channel} said {item.said}" + (f", by {item.owner}" if item.owner else "")
    if item.gate and item.state == OPEN:
        state, note = BLOCKED, item.gate
    return BacklogItem(
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
    board: Board, who: Identity, listed: list[BacklogItem], progress: Progress | None = None
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
    """Adds the dependencies, now that all tasks exist; reports unknown ones."""
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


def as_it_is(task: Task) -> BacklogItem:
    terms = task.terms
    assert task.channel is not None, "it has an origin"
    assert task.origin_ask_ref is not None, "it has an origin"
    return BacklogItem(
        task.channel, task.origin_ask_ref, task.key, terms.title, terms.priority, task.item
    )


def change(item: Item, task: Task) -> tuple[BacklogItem | None, tuple[str, str, str]] | None:
    """What makes the task as its tool has it, and the report of that; None if it is so."""
    changed = []
    listed = as_it_is(task).but(title=item.title, priority=item.priority)
    if item.title != task.terms.title:
        changed.append("title")
    if item.priority != task.terms.priority:
        changed.append("priority")
    state = new_state(item, task)
    if state is not None:
        changed.append(f"state: {state}")
        listed = listed.but(state=state, note=f"{item.channel} says {item.gate or item.said}")
    if not changed:
        return None
    where, what = item.path or item.id, f"{task.key} differs in {', '.join(changed)}"
    if task.lease is not None:
        return None, (where, what, "somebody holds it, and it stays as it is")
    return listed, (where, what, "it is changed")


def new_state(item: Item, task: Task) -> State | None:
    """Its state there, if it is over or held back there; open again only if nobody has begun it here."""
    held_back = item.state == OPEN and bool(item.gate)
    there: State = BLOCKED if held_back else item.state
    if there in (task.state, IN_PROGRESS):
        return None
    if there == OPEN and (task.state != BLOCKED or task.token.number):
        return None
    if there == BLOCKED and task.state != OPEN:
        return None
    return there


def differences(item: Item, task: Task) -> list[Problem]:
    """Differences from the existing task, which stays as it is."""
    told = []
    if item.title != task.terms.title:
        told.append("title")
    if item.state not in (task.state, OPEN, IN_PROGRESS):
        told.append(f"state ({item.said})")
    if not told:
        return []
    what = f"{task.key} is there already, with another {' and '.join(told)}"
    return [Problem(item.path or item.id, what, "the task stays as it is", item.line)]
