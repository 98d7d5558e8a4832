"""Compares an item file with the board: what is new in the file, and where the file is stale.

A value that the row had earlier is stale: somebody checked out an old file, or nobody wrote the new
value.
Only a value that the row never had is new.
"""

from __future__ import annotations

from dibs.backlogs.formats.words import Words, stamp
from dibs.backlogs.item import PERSON, UNBOUND, Item, Pointer, Problem
from dibs.domain import checks
from dibs.domain.events import tasks as e
from dibs.domain.events.base import evolve
from dibs.domain.model import (
    AGENT,
    COMPLETE,
    FAILED,
    HUMAN,
    IN_PROGRESS,
    OPEN,
    BacklogItem,
    ItemSnapshot,
    StatedLease,
    Task,
    TaskKey,
)
from dibs.domain.refusals import Refused
from dibs.domain.values import Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dibs.backlogs.item import Dialect
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Actor, State, Token
    from dibs.storage.transaction import ReadTransaction

    Keys = Callable[[str], TaskKey | None]


class TaskHistory(Value):
    """A task after each of its events: its state, and the state word of its file."""

    states: tuple[tuple[State, str], ...] = ()
    scopes: frozenset[tuple[str, ...]] = frozenset()
    constraints: frozenset[tuple[str, ...]] = frozenset()

    def is_behind(self, words: Words, word: str) -> bool | None:
        """Whether the row has changed since it agreed with this word. None: it never agreed."""
        agreed = None
        for state, said in self.states:
            if said == word or words.agrees(word, state):
                agreed = state
                behind = False
            elif agreed is not None and state != agreed:
                behind = True
        return None if agreed is None else behind


def past_of(entries: Iterable[Entry]) -> TaskHistory:
    task: Task | None = None
    states: list[tuple[State, str]] = []
    scopes, constraints = set(), set()
    for entry in entries:
        event = entry.event
        if isinstance(event, e.Added):
            assert entry.task is not None, "a task's first event is its own"
            task = event.task(entry.task, entry.actor, entry.at)
            said = event.item.said if event.item else ""
        elif task is not None and isinstance(event, e.TaskEvent):
            task = evolve(task, event, entry.at)
            said = event.item.said if isinstance(event, e.Synced) and event.item else ""
        if task is not None:
            states.append((task.state, said))
            scopes.add(task.scope)
            constraints.add(task.terms.constraints)
    return TaskHistory(tuple(states), frozenset(scopes), frozenset(constraints))


class DiffContext(Value):
    """What an item is compared with: the board, its clock, and the mapping from ids to keys."""

    board: str
    epoch: int
    now: Instant
    keys: Keys
    past: Callable[[Task], TaskHistory]
    waits: Callable[[Task], frozenset[TaskKey]]
    words: Words
    actor: Callable[[str], Actor | None]
    """The actor with this name."""
    heals: bool = False


def diff_context(tx: ReadTransaction, dialect: Dialect, keys: Keys) -> DiffContext:
    """What items of a dialect are compared with, from one snapshot of the board."""
    return DiffContext(
        board=tx.board.uid,
        epoch=tx.board.epoch,
        now=tx.now,
        keys=keys,
        past=lambda task: past_of(tx.events_of(task.id)),
        waits=lambda task: frozenset(one.key for one in tx.dependencies(task.id)),
        words=dialect.words,
        actor=tx.actor_named,
        heals=dialect.heals,
    )


class Verdict(Value):
    """The result of a comparison: what to sync into the board, and whether to write the file."""

    listed: BacklogItem | None = None
    write: bool = False
    healed: bool = False
    problems: tuple[Problem, ...] = ()


def compare_item(item: Item, task: Task | None, key: TaskKey, ground: DiffContext) -> Verdict:
    """Compares one item with its task, if it has one yet."""
    judging = ItemDiff(item, task, key, ground)
    return judging.verdict()


class ItemDiff:
    """One comparison."""

    def __init__(self, item: Item, task: Task | None, key: TaskKey, ground: DiffContext) -> None:
        self.item, self.task, self.key, self.ground = item, task, key, ground
        self.problems: list[Problem] = []
        self.pointer = self.own_pointer()
        self.worker = self.at_work()

    def verdict(self) -> Verdict:
        item, task = self.item, self.task
        said, state, note = self.of_state()
        healed = self.heals(state)
        if healed:
            said = self.ground.words.writes[OPEN]  # as it is written now
        listed = BacklogItem(
            channel=item.channel,
            ref=item.ref,
            also=item.refs[1:],
            key=self.key,
            uid=item.uid,
            title=item.title,
            priority=item.priority,
            item=ItemSnapshot(said, self.gate(), self.locked()),
            scope=self.scope(),
            constraints=self.constraints(),
            state=state,
            after=self.after(),
            note=note,
            lease=self.lease(),
            token=self.lost_token(),
            compared_with=0 if task is None else task.events,
        )
        return Verdict(
            listed=listed if task is None or self.is_news(listed, task) else None,
            write=healed or self.is_behind(),
            healed=healed,
            problems=tuple(self.problems),
        )

    def tell(self, what: str, choice: str, *, warns: bool = False) -> None:
        self.problems.append(Problem(self.item.path, what, choice, self.item.line, warns))

    # Ownership.

    def own_pointer(self) -> Pointer | None:
        pointer = self.item.pointer
        if pointer is None or pointer.board == self.ground.board:
            return pointer
        held = f", held by {pointer.actor}" if pointer.held else ""
        if self.is_held_elsewhere():
            held = (
                f", where {pointer.actor} holds it until {stamp(self.item.expires or Instant(0))}"
            )
        what = f"it names another board, {pointer.board}{held}"
        self.tell(what, "that is not followed", warns=self.is_held_elsewhere())
        return None

    def is_held_elsewhere(self) -> bool:
        """Whether the file names a live lease of another board: a second clone has its own board."""
        pointer, until = self.item.pointer, self.item.expires
        other = pointer is not None and pointer.held and pointer.board != self.ground.board
        return other and until is not None and until >= self.ground.now

    def is_lost(self) -> bool:
        """Whether the file has a higher token than the task: the board lost its record of it."""
        if self.pointer is None:
            return False
        known = (0, 0) if self.task is None else tuple(self.task.token)
        return tuple(self.pointer.token) > known

    def lost_token(self) -> Token | None:
        """That token, if the board could still issue it again."""
        if self.pointer is None or not self.is_lost():
            return None
        return self.pointer.token if self.pointer.token.epoch >= self.ground.epoch else None

    def at_work(self) -> Actor | None:
        """Who works on it by the file alone, if the board knows them. People are never presumed dead."""
        item, task = self.item, self.task
        free = task is None or (task.lease is None and task.state == OPEN)
        if not item.is_claimed or not free or item.lock is not None:
            return None
        named = (self.ground.actor(name) for name in item.owner.split(", "))
        known = [actor for actor in named if actor is not None]
        people = [actor for actor in known if actor.is_human]
        return next(iter(people or ([] if item.gone else known)), None)

    def is_in_question(self) -> bool:
        """Whether somebody unknown to the board works on it, according to the file alone."""
        item, task = self.item, self.task
        free = task is None or (task.lease is None and task.state == OPEN)
        claimed = item.is_claimed and item.lock is None and not item.gone
        return claimed and free and self.worker is None

    def lease(self) -> StatedLease | None:
        """A live lease that only the file knows, or one for the actor at work there."""
        pointer, until, worker = self.pointer, self.item.expires, self.worker
        if worker is not None:
            return StatedLease(worker.name, worker.kind, "" if worker.is_human else None)
        if pointer is None or not pointer.held or not self.is_lost():
            return None
        if until is None or until < self.ground.now or self.item.state not in (OPEN, IN_PROGRESS):
            return None
        session = {PERSON: "", UNBOUND: None}.get(pointer.session, pointer.session)
        return StatedLease(
            actor=pointer.actor,
            kind=HUMAN if pointer.session == PERSON else AGENT,
            session=session,
            ttl=pointer.ttl,
            token=pointer.token,
            started=self.item.state == IN_PROGRESS,
        )

    def locked(self) -> str:
        lock = self.item.lock
        if lock is None and self.is_in_question():
            self.ask()
            return f"{self.item.owner} (its file says {self.item.said})"
        if lock is None:
            return ""
        if lock.problem or lock.since is None:
            return f"{lock.holder} ({lock.problem or 'since when is unknown'})"
        return f"{lock.holder} since {stamp(lock.since)}"

    def ask(self) -> None:
        who = self.item.owner
        self.tell(
            f"it says {self.item.said} by {who}, whom nobody has registered: is {who} at work on it?",
            f"nobody else begins it; dibs actor set {who} --kind human (or agent) makes it {who}'s",
        )

    # State.

    def of_state(self) -> tuple[str, State | None, str]:
        """The word to store, the state to sync, and a note of who had it."""
        item, task = self.item, self.task
        if task is None:
            return item.said, None if item.state == IN_PROGRESS else item.state, self.had_it()
        kept = task.item.said if task.item else item.said
        if self.worker is not None or self.is_in_question():
            return item.said, None, ""
        if self.ground.words.agrees(item.said, task.state):
            return (item.said if item.state == OPEN else kept), None, ""
        if self.behind_on_state() is not None and not self.is_lost():
            return kept, None, ""
        if task.lease is not None:
            self.tell(
                f"it says {item.said}, and somebody holds {task.key}",
                "the board decides, until it is free",
            )
            return kept, None, ""
        return item.said, None if item.state == IN_PROGRESS else item.state, self.had_it()

    def had_it(self) -> str:
        item = self.item
        if item.state != IN_PROGRESS or self.lease() is not None or item.lock is not None:
            return ""
        if self.is_in_question():
            return ""
        who = f" by {item.owner}" if item.owner else ""
        if not self.ground.heals and not self.is_held_elsewhere():
            self.tell(f"it says {item.said}{who}, and nobody is at work on it", "it is open here")
        return f"its file says {item.said}{who}, and no live lease stands behind that"

    def behind_on_state(self) -> bool | None:
        assert self.task is not None, "asked only of a known task"
        return self.ground.past(self.task).is_behind(self.ground.words, self.item.said)

    def heals(self, state: State | None) -> bool:
        """Whether a claim in the file that no lease backs is corrected in the file too."""
        item, task = self.item, self.task
        claimed = item.owner != "" and item.state in (OPEN, IN_PROGRESS)
        person = self.ground.actor(item.owner)
        if self.is_held_elsewhere() or (person is not None and person.is_human):
            return False
        stale = claimed and item.lock is None and self.lease() is None and not self.is_in_question()
        free = task is None or (task.lease is None and task.state == OPEN)
        return self.ground.heals and stale and free and state in (None, OPEN)

    def is_behind(self) -> bool:
        """Whether the file lacks a change that the board owns."""
        item, task = self.item, self.task
        if task is None or self.is_lost() or self.worker is not None or self.is_in_question():
            return False
        if not self.ground.words.agrees(item.said, task.state):
            behind = bool(self.behind_on_state())
            if behind and item.state == OPEN and task.state in (COMPLETE, FAILED):
                self.tell(
                    f"it says {item.said}, as before {task.key} was {task.state}",
                    "the file is brought up to date; dibs reset or retry opens it again",
                )
            return behind
        if task.lease is None and not task.token.number:
            return False
        pointer = self.pointer
        if pointer is None or pointer.token != task.token:
            return item.pointer is None or self.pointer is not None or task.lease is not None
        return pointer.held != (task.lease is not None)

    # Text.

    def gate(self) -> str:
        missing = [id_ for id_ in self.item.after if self.ground.keys(id_) is None]
        if not missing:
            return self.item.gate
        self.tell(f"it waits for {', '.join(missing)}, which is not there", "it cannot be started")
        lost = f"it waits for {', '.join(missing)}, which is not there"
        return f"{self.item.gate}; {lost}" if self.item.gate else lost

    def after(self) -> tuple[TaskKey, ...] | None:
        keys = (self.ground.keys(id_) for id_ in self.item.after)
        return tuple(dict.fromkeys(key for key in keys if key is not None and key != self.key))

    def scope(self) -> tuple[str, ...] | None:
        try:
            stated = checks.scope(self.item.scope)
        except Refused as problem:
            self.tell(str(problem), "its scope is left out")
            return None
        task = self.task
        if task is None:
            return stated
        news = stated != task.scope and task.lease is None
        return stated if news and stated not in self.ground.past(task).scopes else None

    def constraints(self) -> tuple[str, ...] | None:
        stated, task = self.item.constraints, self.task
        if task is None:
            return stated
        news = stated != task.terms.constraints and task.lease is None
        return stated if news and stated not in self.ground.past(task).constraints else None

    def is_news(self, listed: BacklogItem, task: Task) -> bool:
        terms = task.terms
        return (
            (listed.title, listed.priority, listed.item) != (terms.title, terms.priority, task.item)
            or listed.scope is not None
            or listed.constraints is not None
            or listed.state is not None
            or bool(listed.note)
            or listed.lease is not None
            or listed.token is not None
            or frozenset(listed.after or ()) != self.ground.waits(task)
        )
