"""The backlogs of one root, as the board sees them: read before a command, written after its commit."""

from __future__ import annotations

import os
from os.path import basename, join

from dibs.backlogs import files
from dibs.backlogs.diff import compare_item, diff_context
from dibs.backlogs.formats.words import key_of
from dibs.backlogs.index import Index, is_named
from dibs.backlogs.item import APART, Item, Problem, ref_apart
from dibs.backlogs.items import items_in
from dibs.backlogs.missing import as_gone, reason_text
from dibs.backlogs.writeback import SHOWN, is_behind, records_of, write
from dibs.board.outcome import task_events
from dibs.domain import commands as c
from dibs.domain.events import tasks as e
from dibs.domain.facts import DeathEvidence
from dibs.domain.model import AGENT, ItemFile, Task, TaskId, TaskKey
from dibs.domain.refusals import Refused, refused
from dibs.safe_files import Unreadable
from dibs.storage.sqlite.write_lock import acquire_write_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dibs.backlogs.diff import DiffContext, Verdict
    from dibs.backlogs.item import Dialect
    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome
    from dibs.storage.sqlite.write_lock import WriteLock
    from dibs.storage.transaction import ReadTransaction

LOCK = "backlog.lock"
LOCK_WAIT = 10.0
LOOKS = 20
"""How many ready tasks are compared with their files, until one can be started."""

COMPARED = 10
"""How often an item is compared again with a task that others keep changing."""

HOLDS = "what the board knows of it holds"
HELD_AT_MOST = 10_000
ENDED = "session ended"


class Backlog:
    """Item files below `root`. `folder`: where the lock and the index are, beside the board."""

    def __init__(self, root: str, folder: str, dialects: tuple[Dialect, ...]) -> None:
        self.root = root
        self.folder = folder
        self.dialects = dialects
        self._index: Index | None = None
        self.written = 0
        """How many files were written."""

    @property
    def is_strict(self) -> bool:
        """Whether one of the backlogs requires everybody to identify themselves."""
        return self.dialect_of("kano") is not None

    def dialect_of(self, channel: str | None) -> Dialect | None:
        return next((one for one in self.dialects if one.channel == channel), None)

    def turn(self, board: Board, what: str) -> WriteLock:
        """The lock for writing files; its holder reads the board after acquiring it."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        return acquire_write_lock(join(self.folder, LOCK), what, LOCK_WAIT, board.store.machine)

    def index(self, tx: ReadTransaction) -> Index:
        """The index, cached until another process writes it."""
        board = f"{tx.board.uid} {tx.board.created}"
        if self._index is None or not self._index.is_current(board):
            self._index = Index(self.folder, board, self.root)
        return self._index

    # Before a command.

    def before(self, board: Board, who: Identity, command: c.Command) -> tuple[str, ...]:
        """Syncs the task's file before the command; searches the files for an unknown task."""
        if isinstance(command, c.Next):
            return self._look_at_offers(board, who, command)
        if not isinstance(command, c.TaskCommand):
            return ()
        with board.read() as tx:
            task = tx.task(command.task)
        if task is None:
            task = self.look_for(board, who, command.task)
        if task is None or task.item is None or not command.spec.reads_file:
            return ()
        return self.refresh(board, who, task)[1]

    def read(self, board: Board, who: Identity) -> str:
        """Syncs all changed files; returns a summary line if there was anything."""
        from dibs.backlogs.report import summary
        from dibs.backlogs.sync import sync

        return summary(sync(self, board, who))

    def look_for(self, board: Board, who: Identity, key: TaskKey) -> Task | None:
        """Finds a task that was not synced yet; the refusal says why, if its file does."""
        from dibs.backlogs.sync import sync

        report = sync(self, board, who)
        with board.read() as tx:
            task = tx.task(key)
        if task is None:
            for problem in report.problems:
                if basename(problem.path).casefold().startswith(key.casefold()):
                    raise refused("unknown_task", f"there is no task {key}: {problem}", task=key)
        return task

    def refresh(self, board: Board, who: Identity, task: Task) -> tuple[bool, tuple[str, ...]]:
        """Compares one task with its file: whether the task changed, and the messages."""
        dialect = self.dialect_of(task.channel)
        if dialect is None:
            return False, ()
        with board.read() as tx:
            item, problems = self.find(tx, dialect, task)
            if item is None:
                fault = f"{problems[0].path}: {problems[0].what}"
                listed = as_gone(task, f"its item file cannot be read: {fault}")
        if item is None and board.store.remote:  # another machine may have it
            return False, (f"the item file of {task.key} cannot be read: {fault}",)
        if item is None:
            if listed is not None:
                board.execute(who, c.Sync((listed,)))
            return listed is not None, ()
        for _ in range(COMPARED):
            with board.read() as tx:
                verdict = self.compare(tx, dialect, item, task.key)
            all_ = (*problems, *verdict.problems)
            said = tuple(str(problem) for problem in all_ if problem.warns)
            if verdict.listed is None:
                return False, said
            if not board.execute(who, c.Sync((verdict.listed,))).outdated:
                return True, said
        return False, said

    def compare(self, tx: ReadTransaction, dialect: Dialect, item: Item, key: TaskKey) -> Verdict:
        """Compares an item that was read before with the current state of its task."""
        task, ground = tx.task(key), self.ground(tx, dialect)
        assert task is not None, "a task is never deleted"
        return compare_item(without_cycle(tx, item, task, ground), task, key, ground)

    def _look_at_offers(self, board: Board, who: Identity, command: c.Next) -> tuple[str, ...]:
        """Checks by its file that the next ready task can be started; if there is none, syncs all files."""
        said: tuple[str, ...] = ()
        synced = False
        for _ in range(LOOKS):
            task = board.plan(who, command).task
            if task is None and not synced:
                self.read(board, who)
                synced = True
                continue
            if task is None or task.item is None:
                return said
            changed, more = self.refresh(board, who, task)
            said += more
            if not changed:
                return said
        return said

    # Finding.

    def ground(self, tx: ReadTransaction, dialect: Dialect) -> DiffContext:
        """What one item is compared with, from one snapshot of the board."""
        names = None if dialect.single else self.index(tx).names(dialect)

        def key(id_: str) -> TaskKey | None:
            ref = id_ if names is None else names.ref(id_) or id_
            task = tx.task_of_origin(dialect.channel, ref) or tx.task(key_of(id_)[0])
            return task.key if task is not None and task.channel == dialect.channel else None

        return diff_context(tx, dialect, key)

    def find(
        self, tx: ReadTransaction, dialect: Dialect, task: Task
    ) -> tuple[Item | None, list[Problem]]:
        """The item of a task, wherever its file is now; or what is wrong with its own file."""
        known = self.path_of(tx, dialect, task)
        fault: Problem | None = None
        likely: tuple[Item, list[Problem]] | None = None
        for path in self.candidates(dialect, task, known):
            try:
                data = files.read(self.root, path, dialect.largest).data
                items, problems = items_in(dialect, path, data, tx.now, only=task.origin_ask_ref)
            except FileNotFoundError:
                continue
            except (Unreadable, OSError) as error:
                if fault is None and (path == known or is_named(path, task.key)):
                    fault = Problem(path, reason_text(error), HOLDS)
                continue
            for item in items:
                if is_item_of(item, task, here=path == known):
                    found = item, [one for one in problems if one.line in (0, item.line)]
                    if path == known or is_certain(item, task):
                        return found
                    likely = likely or found
        return likely or (
            None,
            [fault or Problem(known or f"the item file of {task.key}", "it is not there", HOLDS)],
        )

    def path_of(self, tx: ReadTransaction, dialect: Dialect, task: Task) -> str | None:
        """Where its file was last."""
        if dialect.single:
            return next(iter(dialect.paths(self.root)), None)
        return self.index(tx).path_of(dialect.channel, task.origin_ask_ref or "")

    def candidates(self, dialect: Dialect, task: Task, known: str | None) -> Iterator[str]:
        """Where to look for it: its last path, then by name, then everywhere."""
        if known is not None:
            yield known
        paths = [path for path in dialect.paths(self.root) if path != known]
        named = [path for path in paths if is_named(path, task.key)]
        yield from named
        yield from (path for path in paths if path not in named)

    # After a command.

    def after(self, board: Board, who: Identity, outcome: Outcome) -> tuple[str, ...]:
        """Writes the changed tasks to their files. A later sync retries what cannot be written."""
        changed = {key for key, _, event in task_events(outcome) if isinstance(event, SHOWN)}
        task = outcome.task
        if not outcome.events and task is not None and task.lease is not None:
            changed.add(task.key)  # a renewal
        if not changed or outcome.replayed:
            return ()
        own = frozenset(entry.seq for entry in outcome.entries)
        try:
            return self.read_released(board, who, outcome) + self.show(board, changed, own)
        except (Refused, OSError) as error:
            return (
                f"the item file was not written ({reason_text(error)}); dibs sync does it later",
            )

    def read_released(self, board: Board, who: Identity, outcome: Outcome) -> tuple[str, ...]:
        """Syncs released items: the former holder may have written the result, which counts from now on."""
        keys = [key for key, _, event in task_events(outcome) if isinstance(event, e.Released)]
        if not keys:
            return ()
        with board.read() as tx:
            tasks = [task for key in keys if (task := tx.task(key)) and task.item]
        return tuple(line for task in tasks for line in self.refresh(board, who, task)[1])

    def show(
        self, board: Board, keys: set[TaskKey], own: frozenset[int] = frozenset()
    ) -> tuple[str, ...]:
        """Writes the current state of these tasks to their files."""
        with board.read() as tx:
            tasks = [task for key in sorted(keys) if (task := tx.task(key)) and task.item]
        if not tasks:
            return ()
        turn = self.turn(board, "item files")
        try:
            with board.read() as tx:
                return self.show_now(tx, [task.key for task in tasks], own)
        finally:
            turn.end()

    def show_now(
        self, tx: ReadTransaction, keys: list[TaskKey], own: frozenset[int]
    ) -> tuple[str, ...]:
        """As `show`, for a caller that holds the lock."""
        by_file, said = self.files_of(tx, keys)
        for path, dialect, tasks in by_file:
            wrote, problem = write(self.root, path, dialect, records_of(tx, tasks, own))
            self.written += wrote
            if problem:
                said.append(problem)
        return tuple(said)

    def behind(self, tx: ReadTransaction, keys: list[TaskKey]) -> set[str]:
        """The files that do not show the current state of these tasks."""
        by_file, _ = self.files_of(tx, keys)
        return {
            path
            for path, dialect, tasks in by_file
            if is_behind(self.root, path, dialect, records_of(tx, tasks))
        }

    def files_of(
        self, tx: ReadTransaction, keys: list[TaskKey]
    ) -> tuple[list[tuple[str, Dialect, list[Task]]], list[str]]:
        """The files of these tasks, and the tasks without one."""
        said: list[str] = []
        by_file: dict[tuple[str, str], tuple[str, Dialect, list[Task]]] = {}
        for key in keys:
            task = tx.task(key)
            dialect = self.dialect_of(task.channel if task else None)
            if task is None or dialect is None:
                continue
            item, problems = self.find(tx, dialect, task)
            if item is None:
                fault = problems[0]
                said.append(f"{key} was not written to its file: {fault.path}: {fault.what}")
                continue
            place = (dialect.channel, item.path)
            by_file.setdefault(place, (item.path, dialect, []))[2].append(task)
        return list(by_file.values()), said

    def paths(self, tx: ReadTransaction, tasks: Iterable[Task]) -> frozenset[str]:
        """Paths of the item files of these tasks, as far as the index knows them."""
        return frozenset(path for task in tasks if (path := self.item_path(tx, task)))

    def where(self, board: Board, task: Task | None) -> ItemFile | None:
        """The item file of a task, if it has one that can be read; in a graph, with its line."""
        dialect = self.dialect_of(task.channel) if task is not None and task.item else None
        if task is None or dialect is None:
            return None
        with board.read() as tx:
            if not dialect.single:
                path = self.path_of(tx, dialect, task)
                return None if path is None else ItemFile(self.root, path)
            item, _ = self.find(tx, dialect, task)
        return None if item is None else ItemFile(self.root, item.path, item.line)

    def item_path(self, tx: ReadTransaction, task: Task) -> str | None:
        """The item file of a task, as far as the index knows it."""
        dialect = self.dialect_of(task.channel) if task.item is not None else None
        return None if dialect is None else self.path_of(tx, dialect, task)

    # Dead sessions.

    def deaths(self, board: Board) -> Mapping[TaskId, DeathEvidence]:
        """Leases of agents whose session is not in the backlog's own list of running sessions."""
        dialect = self.dialect_of("wrk")
        if dialect is None or not dialect.knows_sessions:
            return {}
        found: dict[TaskId, DeathEvidence] = {}
        with board.read() as tx:
            for task in tx.tasks_held(HELD_AT_MOST):
                lease = task.lease
                if lease is None or not lease.session or task.channel != dialect.channel:
                    continue
                if tx.actor(lease.actor).kind == AGENT and dialect.is_dead(lease.session):
                    found[task.id] = DeathEvidence(task.token, lease.renewed, ENDED)
        return found


def is_item_of(item: Item, task: Task, *, here: bool) -> bool:
    """By its refs; if several items have its id, by its title, or by its place (`here`)."""
    origin = task.origin_ask_ref or ""
    apart = item.id if here else ref_apart(item.id, item.title)
    return origin in item.refs or (APART in origin and origin.startswith(apart))


def is_certain(item: Item, task: Task) -> bool:
    """Whether no other file can have a better claim to be this task's."""
    return item.ref != item.id or item.line > 0 or item.title == task.terms.title


def without_cycle(tx: ReadTransaction, item: Item, task: Task, ground: DiffContext) -> Item:
    """The item without dependencies that would close a cycle: a sync has cut and reported them."""

    def waits_for_it(id_: str) -> bool:
        key = ground.keys(id_)
        other = tx.task(key) if key is not None else None
        return other is not None and tx.is_upstream(task.id, other.id)

    return item.but(after=tuple(id_ for id_ in item.after if not waits_for_it(id_)))
