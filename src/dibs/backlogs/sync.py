"""Sync: reads item files into the board, and writes changes that the board owns to the files."""

from __future__ import annotations

import os
import time
from os.path import exists, getmtime, join

from dibs.backlogs import files
from dibs.backlogs.aliases import proposals
from dibs.backlogs.backlog import COMPARED
from dibs.backlogs.cycles import broken_cycles
from dibs.backlogs.diff import compare_item, diff_context
from dibs.backlogs.discover import wrong_in
from dibs.backlogs.formats.words import key_of
from dibs.backlogs.index import File, Names, in_order, noted
from dibs.backlogs.item import Item, Problem, ref_apart
from dibs.backlogs.items import items_in
from dibs.backlogs.missing import GONE, as_gone, missing, reason_text
from dibs.backlogs.report import NOTHING, Options, Report
from dibs.backlogs.writeback import SHOWN
from dibs.domain import commands as c
from dibs.domain.model import FINAL, BacklogItem, Task, TaskKey
from dibs.domain.refusals import refused
from dibs.domain.values import SECOND, Value
from dibs.machine import NANOSECONDS, wall_clock
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.diff import Verdict
    from dibs.backlogs.index import IndexedItem
    from dibs.backlogs.item import Dialect
    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.domain.events.base import Event
    from dibs.storage.transaction import ReadTransaction

    Progress = Callable[[int, int], None]

BATCH = 200
"""Items per transaction."""

GIT_WAIT, GIT_LOOK, GIT_STALE = 5.0, 0.05, 600.0
"""Seconds: how long to wait for git, the poll interval, and the age at which its lock is stale."""

NOT_YET = "what it waits for is being taken in"


def sync(backlog: Backlog, board: Board, who: Identity, options: Options = NOTHING) -> Report:
    """One pass over all files, one at a time. Lets a running git command finish first."""
    with board.read():  # refuses if there is no board, before creating anything beside it
        pass
    wait_for_git(backlog.root)
    turn = backlog.turn(board, "sync")
    try:
        return SyncPass(backlog, board, who, options).run()
    finally:
        turn.end()


def wait_for_git(root: str) -> None:
    """Waits for a checkout in progress, which has old and new files side by side."""
    lock = join(root, ".git", "index.lock")
    end = time.monotonic() + GIT_WAIT
    while exists(lock):
        try:
            if wall_clock() / SECOND - getmtime(lock) > GIT_STALE:
                return
        except OSError:
            continue
        if time.monotonic() > end:
            raise refused("busy", f"git is at work in {root}: {lock} is there")
        time.sleep(GIT_LOOK)


class Candidate(Value):
    """An item that was read, its task, and its key."""

    item: Item
    task: Task | None
    key: TaskKey


class SyncPass:
    """One pass."""

    def __init__(
        self, backlog: Backlog, board: Board, who: Identity | None, options: Options
    ) -> None:
        """`who` is not needed for a dry run."""
        self.backlog, self.board, self.who, self.options = backlog, board, who, options
        self.problems: list[Problem] = wrong_in(backlog.root)
        self.fresh: dict[str, list[Item]] = {}
        self.files: dict[str, File] = {}
        self.added = self.changed = self.brought_back = 0
        self.done = self.total = 0
        self.shows: set[TaskKey] = set()
        self.gone: set[TaskKey] = set()
        self.unwritten = 0
        self.healed: list[Item] = []
        self.adopted: list[str] = []
        self.writes: set[str] = set()
        """Files that would be written for items not on the board yet."""
        self.entries = 0
        self.outdated: set[str] = set()
        """Refs of items whose tasks changed after the comparison."""

    def run(self) -> Report:
        with self.board.read() as tx:
            self.index = self.backlog.index(tx)
            began = tx.board.seq
            self.behind = self.changed_tasks(tx)
        for dialect in self.backlog.dialects:
            self.scan(dialect)
        for dialect in self.backlog.dialects:
            self.tell_apart(dialect)
            self.take_in(dialect)
            self.take_out(dialect)
        written = self.write()
        if not self.options.check:
            self.keep(began)
        return Report(
            files=len(self.files),
            items=sum(len(file.items) for file in self.files.values()),
            read=len(self.fresh),
            added=self.added,
            changed=self.changed,
            written=written,
            brought_back=self.brought_back,
            adopted=tuple(self.adopted),
            healed=tuple(f"{item.id} ({item.owner or 'nobody'})" for item in self.healed),
            unwritten=self.unwritten,
            problems=tuple(self.problems),
            proposals=self.names(),
            skipped=self.skipped(),
            finished=self.finished(),
        )

    def skipped(self) -> tuple[Problem, ...]:
        if not self.options.everything:
            return ()
        return tuple(
            Problem(path, why, "it is not a task")
            for dialect in self.backlog.dialects
            for path, why in dialect.skipped(self.backlog.root)
        )

    def finished(self) -> tuple[str, ...]:
        if not self.options.everything:
            return ()
        return tuple(
            f"{item.path}: {item.id} is {item.state}"
            for items in self.fresh.values()
            for item in items
            if item.state in FINAL
        )

    # Reading.

    def scan(self, dialect: Dialect) -> None:
        """Reads the files that have changed."""
        with self.board.read() as tx:
            now = tx.now
        for path in dialect.paths(self.backlog.root):
            known = None if self.options.everything else self.index.files.get(path)
            try:
                there = os.stat(join(self.backlog.root, path))
                print_ = (there.st_mtime_ns, there.st_ctime_ns, there.st_size, there.st_ino)
                if known is not None and known.is_as(print_, now):
                    self.files[path] = known
                    continue
                read_at = wall_clock() * NANOSECONDS
                seen = files.read(self.backlog.root, path, dialect.largest)
                items, problems = items_in(
                    dialect, path, seen.data, now, strict=self.options.strict
                )
            except (Unreadable, OSError) as error:
                self.unreadable(path, error)
                continue
            self.problems += problems
            self.fresh[path] = items
            print_ = (seen.mtime_ns, seen.ctime_ns, seen.size, seen.inode)
            again = read_again_at(items, problems)
            self.files[path] = File(print_, read_at, tuple(map(noted, items)), again)

    def unreadable(self, path: str, error: Exception) -> None:
        if self.options.strict:
            raise refused("bad_argument", f"{path} cannot be read: {reason_text(error)}")
        line = getattr(error, "line", 0)
        self.problems.append(Problem(path, reason_text(error), "it is not a task", line))

    def all_noted(self, dialect: Dialect) -> list[tuple[str, IndexedItem]]:
        return [
            (path, one)
            for path, file in self.files.items()
            for one in file.items
            if one.channel == dialect.channel
        ]

    def leave_out_attachments(self, dialect: Dialect) -> None:
        """A file that is only named after an item which another file is goes with that item."""
        noted = self.all_noted(dialect)
        ids = {one.id.casefold(): path for path, one in noted if not one.by_name}
        for path, one in noted:
            if one.by_name and one.id.casefold() in ids:
                self.files[path] = self.files[path].but(items=())
                self.fresh.pop(path, None)
                what = f"it has no id, and {ids[one.id.casefold()]} is {one.id}"
                self.problems = [problem for problem in self.problems if problem.path != path]
                self.problems.append(Problem(path, what, "it is not a task"))

    def tell_apart(self, dialect: Dialect) -> None:
        """Gives items their own refs whose id another item with another title has too."""
        by_id: dict[str, list[tuple[str, IndexedItem]]] = {}
        for path, one in self.all_noted(dialect):
            if one.title and len(one.refs) == 1:
                by_id.setdefault(one.id, []).append((path, one))
        for id_, places in by_id.items():
            if len(places) > 1 and len({ref_apart(id_, one.title) for _, one in places}) > 1:
                for path, ref in self.refs_apart(dialect, id_, places).items():
                    self.rename(path, id_, ref)

    def refs_apart(
        self, dialect: Dialect, id_: str, places: list[tuple[str, IndexedItem]]
    ) -> dict[str, str]:
        """The ref of each file: as it was; else the first title keeps the id as its ref."""
        known = {
            path: one.ref
            for path, _ in places
            for one in (self.index.files[path].items if path in self.index.files else ())
            if one.id == id_
        }
        titles = {path: one.title for path, one in places}
        with self.board.read() as tx:
            task = tx.task_of_origin(dialect.channel, id_)
        first = [title for path, title in titles.items() if known.get(path) == id_]
        first += [task.terms.title] if task is not None else []
        first += [titles[path] for path in sorted(titles)]
        own = ref_apart(id_, next(title for title in first if title in titles.values()))
        apart = {path: ref_apart(id_, title) for path, title in titles.items()}
        return {
            path: known.get(path) or (id_ if apart[path] == own else apart[path]) for path in titles
        }

    def rename(self, path: str, id_: str, ref: str) -> None:
        file = self.files[path]
        renamed = tuple(one.but(ref=ref) if one.id == id_ else one for one in file.items)
        self.files[path] = file.but(items=renamed)
        if path in self.fresh:
            items = self.fresh[path]
            self.fresh[path] = [i.but(ref=ref) if i.id == id_ else i for i in items]

    def chosen(self, dialect: Dialect) -> dict[str, str]:
        """The file that counts for each ref, if there are several."""
        by_ref: dict[str, list[tuple[str, IndexedItem]]] = {}
        for path, one in self.all_noted(dialect):
            by_ref.setdefault(one.ref, []).append((path, one))
        counts: dict[str, str] = {}
        for ref, places in by_ref.items():
            first, *others = [path for path, _ in in_order(places)]
            counts[ref] = first
            for path in others:
                what = f"it is the same item as {first} ({ref})"
                self.problems.append(Problem(path, what, f"{first} counts"))
        return counts

    # Syncing into the board.

    def take_in(self, dialect: Dialect) -> None:
        """Syncs what is new in the files: first the items, then their dependencies."""
        self.leave_out_attachments(dialect)
        counts = self.chosen(dialect)
        fresh = [
            item
            for path, items in self.fresh.items()
            for item in items
            if item.channel == dialect.channel and counts[item.ref] == path
        ]
        if not fresh:
            return
        fresh = self.without_cycles(dialect, fresh, counts)
        with self.board.read() as tx:
            self.load(tx, dialect, len(fresh))
            verdicts = [(self.candidate(item), self.judged(tx, dialect, item)) for item in fresh]
        self.total += sum(verdict.listed is not None for _, verdict in verdicts)
        new = [(one, verdict) for one, verdict in verdicts if one.task is None]
        new.sort(key=lambda each: (each[0].item.order is None, each[0].item.order or 0))
        known = [v.listed for one, v in verdicts if one.task is not None and v.listed]
        if self.options.check:
            self.added += len(new)
            self.changed += len(known)
        else:
            before = self.changed
            self.execute([first_of(verdict) for _, verdict in new])
            with self.board.read() as tx:
                self.load(tx, dialect, len(fresh))
                second = [self.again(one, verdict) for one, verdict in new if one.item.after]
            self.execute(second)
            self.changed = before  # they are new, not changed
            self.execute(known)
            self.compare_again(dialect, fresh)
        self.doubled_ids(verdicts)
        self.after_judging(verdicts)

    def take_out(self, dialect: Dialect) -> None:
        """Gates the tasks of missing files: they stay, and nobody starts them.

        On a server another machine may have the file: then missing files are not reported.
        """
        if self.board.store.remote:
            return
        there = {ref for _, one in self.all_noted(dialect) for ref in one.refs}
        before = None
        if self.index.files and not self.options.everything:
            before = {one.ref for _, one in self.index.items() if one.channel == dialect.channel}
        with self.board.read() as tx:
            gone = missing(tx, dialect.channel, before, there)
        self.gone |= {task.key for task in gone}
        listed = [one for task in gone if (one := as_gone(task))]
        if self.options.check:
            self.changed += len(listed)
        else:
            self.execute(listed)
        self.problems += [
            Problem(
                dialect.channel, f"{task.key}: {GONE}", "its task stays, and nobody can start it"
            )
            for task in gone
        ]

    def after_judging(self, verdicts: list[tuple[Candidate, Verdict]]) -> None:
        for one, verdict in verdicts:
            self.problems += verdict.problems
            task = self.row_of(one.item)
            if verdict.healed:
                self.healed.append(one.item)
            stated = verdict.listed.lease if verdict.listed is not None else None
            if stated is not None and stated.token is None:
                self.adopted.append(f"{one.item.id} ({stated.actor})")
            if verdict.write or stated is not None:
                self.writes.add(one.item.path)
                self.shows |= {task.key} if task is not None else set()

    def load(self, tx: ReadTransaction, dialect: Dialect, many: int) -> None:
        """Loads the tasks of this backlog by ref: all at once, if many are needed."""
        self.rows: dict[str, Task] = {}
        self.names_in = Names(dialect, (one for _, one in self.all_noted(dialect)))
        if many > BATCH:
            self.rows = {task.origin_ask_ref or "": task for task in tx.tasks_of(dialect.channel)}
            return
        wanted = {ref for items in self.fresh.values() for item in items for ref in item.refs}
        named = (id_ for items in self.fresh.values() for item in items for id_ in item.after)
        wanted |= {ref for id_ in named if (ref := self.names_in.ref(id_)) is not None}
        for ref in wanted:
            task = tx.task_of_origin(dialect.channel, ref)
            if task is not None:
                self.rows[ref] = task

    def row_of(self, item: Item) -> Task | None:
        return next((self.rows[ref] for ref in item.refs if ref in self.rows), None)

    def candidate(self, item: Item) -> Candidate:
        task = self.row_of(item)
        key, as_it_is = key_of(item.id)
        if task is None and not as_it_is:
            what = f"its id {item.id!r} cannot be a key"
            self.problems.append(Problem(item.path, what, f"its task is {key}", item.line))
        if task is not None and not task.key.casefold().startswith(key.casefold()):
            what = f"its id is {item.id} now"
            self.problems.append(Problem(item.path, what, f"its task keeps the key {task.key}"))
        return Candidate(item, task, task.key if task else key)

    def judged(self, tx: ReadTransaction, dialect: Dialect, item: Item) -> Verdict:
        task = self.row_of(item)
        key = task.key if task else key_of(item.id)[0]
        return compare_item(item, task, key, diff_context(tx, dialect, self.key_of_id))

    def key_of_id(self, id_: str) -> TaskKey | None:
        """The key of the task with an id that a file names, or the key that it will have."""
        ref = self.names_in.ref(id_)
        if ref is None:
            return None
        task = self.rows.get(ref)
        return task.key if task is not None else key_of(id_)[0]

    def again(self, one: Candidate, verdict: Verdict) -> BacklogItem:
        """A new task with its dependencies, now that they exist."""
        assert verdict.listed is not None, "what is new is listed"
        keys = (self.key_of_id(id_) for id_ in one.item.after)
        after = tuple(dict.fromkeys(key for key in keys if key is not None))
        plain = verdict.listed.but(state=None, note="", lease=None, scope=None, constraints=None)
        return plain.but(after=after, token=None, compared_with=None)

    def without_cycles(
        self, dialect: Dialect, fresh: list[Item], counts: dict[str, str]
    ) -> list[Item]:
        if not any(item.after for item in fresh):
            return fresh
        noted = self.all_noted(dialect)
        names = Names(dialect, (one for _, one in noted))
        everything = [
            Item(dialect.channel, one.ref, one.id, path, "", "open", "").but(
                after=tuple(map(names.plain, one.after))
            )
            for path, one in noted
            if counts[one.ref] == path
        ]
        after, problems = broken_cycles(everything)
        self.problems += problems
        return [item.but(after=after[item.ref]) for item in fresh]

    def doubled_ids(self, verdicts: list[tuple[Candidate, Verdict]]) -> None:
        """Different items with one id: the first keeps the key, the others get a suffix."""
        seen: dict[str, str] = {}
        for one, _ in verdicts:
            first = seen.setdefault(one.item.id.casefold(), one.item.path)
            if first != one.item.path:
                what = f"another item, {first}, has the same id {one.item.id}"
                task = self.rows.get(one.item.ref)
                choice = f"its task is {task.key}" if task else "it gets a key of its own"
                self.problems.append(Problem(one.item.path, what, choice))

    def compare_again(self, dialect: Dialect, fresh: list[Item]) -> None:
        """Compares items again whose tasks changed meanwhile; the next sync handles the rest."""
        for _ in range(COMPARED):
            refs, self.outdated = self.outdated, set()
            again = [item for item in fresh if item.ref in refs]
            if not again:
                return
            with self.board.read() as tx:
                self.load(tx, dialect, len(fresh))
                news = [self.judged(tx, dialect, item).listed for item in again]
            self.execute([listed for listed in news if listed is not None])
        for item in fresh:
            if item.ref in self.outdated:
                self.files[item.path] = self.files[item.path].but(again=1)
        self.outdated = set()

    def execute(self, listed: list[BacklogItem]) -> None:
        for start in range(0, len(listed), BATCH):
            batch = tuple(listed[start : start + BATCH])
            assert self.who is not None, "who takes something in is somebody"
            outcome = self.board.execute(self.who, c.Sync(batch))
            self.entries += len(outcome.entries)
            self.outdated |= set(outcome.outdated)
            verbs = [entry.verb for entry in outcome.entries]
            self.added += verbs.count("added")
            self.brought_back += verbs.count("brought_back")
            self.changed += verbs.count("synced")
            self.done += len(batch)
            if self.options.progress is not None:
                self.options.progress(min(self.done, self.total), self.total)

    # Writing.

    def changed_tasks(self, tx: ReadTransaction) -> set[TaskKey]:
        """Tasks that changed on the board since the last sync."""
        if not self.index.seq or self.index.seq >= tx.board.seq:
            return set()
        shown = {kind.verb for kind in SHOWN_VERBS}
        found = {
            entry.task
            for entry in tx.events_since(self.index.seq)
            if entry.task is not None and entry.verb in shown
        }
        return set(tx.keys_of(found).values())

    def write(self) -> int:
        """Writes files that are stale, and those of changed tasks; returns how many."""
        shows = (self.shows | self.behind) - self.gone
        if self.options.check:
            with self.board.read() as tx:
                return len(self.writes | self.backlog.behind(tx, sorted(shows)))
        if not shows:
            return 0
        before = self.backlog.written
        with self.board.read() as tx:
            said = self.backlog.show_now(tx, sorted(shows), frozenset())
        self.unwritten = len(said)
        self.problems += [Problem("written", line, "the next sync tries again") for line in said]
        return self.backlog.written - before

    def keep(self, began: int) -> None:
        """Stores the state of the files. Written files are read once more by the next sync."""
        with self.board.read() as tx:
            ended = tx.board.seq
        self.index.files = self.files
        self.index.seq = ended if ended - began <= self.entries + self.registered(began) else began
        os.makedirs(self.backlog.folder, mode=0o700, exist_ok=True)
        self.index.save()

    def registered(self, began: int) -> int:
        """The number of events outside tasks that the sync itself may have made."""
        with self.board.read() as tx:
            return sum(entry.task is None for entry in tx.events_since(began))

    def names(self) -> tuple[str, ...]:
        owners = {item.owner for items in self.fresh.values() for item in items if item.owner}
        if not owners:
            return ()
        with self.board.read() as tx:
            known = [name for names in tx.names().values() for name in names]
        return proposals(owners, known)


def first_of(verdict: Verdict) -> BacklogItem:
    """A new task before its dependencies exist: gated, so that nobody starts it meanwhile."""
    listed = verdict.listed
    assert listed is not None, "what is new is listed"
    if not listed.after or listed.item is None:
        return listed.but(after=None)
    return listed.but(after=None, item=listed.item.but(gate=NOT_YET))


def read_again_at(items: list[Item], problems: list[Problem]) -> int:
    """From when on a file means something else though nobody changes it; 0: never.

    A file with problems is read each time: they are reported until somebody solves them.
    """
    if problems or any(item.lock is not None or item.is_claimed for item in items):
        return 1
    return min((item.begin for item in items if item.begin is not None and item.gate), default=0)


def kinds(shown: tuple[type[Event], ...]) -> Iterator[type[Event]]:
    for kind in shown:
        yield kind
        yield from kinds(tuple(kind.__subclasses__()))


SHOWN_VERBS = [kind for kind in kinds(SHOWN) if "verb" in vars(kind)]
