"""The read side: queries on a board, each answered from one consistent read transaction."""

from __future__ import annotations

from dibs.board.execute import Board, facts_for
from dibs.board.facts.task import found
from dibs.board.identity import Identity, caller_of
from dibs.board.outcome import actors_named
from dibs.board.ownership import ownership_at
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.events import tasks as e
from dibs.domain.guards import refusal_of
from dibs.domain.ledger import Entry
from dibs.domain.model import (
    NOWHERE,
    Actor,
    ActorId,
    Allowance,
    EndedLease,
    KeptNote,
    LoggedRefusal,
    Place,
    Task,
    TaskKey,
    Token,
    folded_name,
)
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import Instant, Value, iso
from dibs.domain.verbs import WORKABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dibs.domain.model import Linked, State
    from dibs.storage.transaction import ReadTransaction


class TaskView(Value):
    """One task with its notes, leases, dependencies, receipts and allowances."""

    task: Task
    now: Instant
    actors: Mapping[ActorId, Actor]
    notes: tuple[KeptNote, ...] = ()
    ended: tuple[EndedLease, ...] = ()
    place: Place = NOWHERE
    """Where its work is: the place of its lease, or of its last one."""
    after: tuple[Linked, ...] = ()
    before: tuple[Linked, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    redactions: Mapping[int, Redaction] = {}
    """By the number of the event that added the note."""

    allowed: tuple[tuple[Allowance, Actor], ...] = ()
    """The paths of it that a person has allowed others to touch now, and whom."""

    @property
    def url(self) -> str:
        """The link to the original request, from its first delivery."""
        return self.receipts[0].url if self.receipts else ""


class Redaction(Value):
    """Who removed the text of a note, when and why."""

    by: ActorId
    at: Instant
    reason: str


class Receipt(Value):
    """One delivery of the request behind a task. Of its payload only a digest is stored."""

    at: Instant
    digest: str
    delivery: str
    url: str = ""
    differs: bool = False


class Listing(Value):
    """A page of tasks, and whether there are more."""

    tasks: tuple[Task, ...]
    now: Instant
    actors: Mapping[ActorId, Actor]
    more: bool


class Owner(Value):
    """Who owned a task at one instant."""

    task: Task
    at: Instant
    actor: Actor | None = None
    session: str | None = None
    token: Token | None = None
    since: Instant | None = None
    expired: bool = False


class LogLine(Value):
    """An event with its task's key and its actor."""

    entry: Entry
    key: str
    actor: Actor
    actors: Mapping[ActorId, Actor]
    """All actors: the event's facts may name others."""


class Log(Value):
    lines: tuple[LogLine, ...]
    actors: Mapping[ActorId, Actor]
    now: Instant
    more: bool


class LogFilter(Value):
    """Which events a log shows. All given conditions must hold."""

    task: TaskKey | None = None
    actor: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    forced: bool = False


def show(board: Board, key: TaskKey) -> TaskView:
    with board.read() as tx:
        task = found(tx, key)
        notes, ended = tuple(tx.notes(task.id)), tuple(tx.ended_leases(task.id))
        lease = task.lease
        named = actors_named(tx, task)
        redactions = redactions_of(tx, task) if not all(note.text for note in notes) else {}
        ids = {note.actor for note in notes} | {lease.actor for lease in ended}
        for actor_id in ids | {one.by for one in redactions.values()}:
            named.setdefault(actor_id, tx.actor(actor_id))
        place = lease.place if lease else NOWHERE
        if lease is None and ended:
            place = Place(ended[-1].host, ended[-1].worktree, ended[-1].branch)
        after, before = tuple(tx.dependencies(task.id)), tuple(tx.dependants(task.id))
        receipts = tuple(receipt(one) for one in tx.receipts_of(task.id)) if task.channel else ()
        allowed = [one for one in tx.allowances() if one.task == task.key] if task.scope else []
        return TaskView(
            *(task, tx.now, named, notes, ended, place, after, before, receipts, redactions),
            allowed=tuple((one, tx.actor(one.actor)) for one in allowed),
        )


def redactions_of(tx: ReadTransaction, task: Task) -> dict[int, Redaction]:
    return {
        of: Redaction(entry.actor, entry.at, entry.event.named()["reason"])
        for of, entry in tx.redactions(task.id).items()
    }


def receipt(entry: Entry) -> Receipt:
    facts = entry.event.named()
    return Receipt(
        entry.at,
        facts["digest"],
        facts["delivery"],
        facts.get("url", ""),
        facts.get("differs", False),
    )


def task_by_key(board: Board, key: TaskKey) -> Task:
    with board.read() as tx:
        return found(tx, key)


def has_task(board: Board, key: TaskKey) -> bool:
    with board.read() as tx:
        return tx.task(key) is not None


def listing(
    board: Board,
    states: tuple[State, ...],
    wanted: Callable[[ReadTransaction, Task], bool],
    limit: int,
) -> Listing:
    """Tasks in these states that pass `wanted`, by priority, then age."""
    with board.read() as tx:
        chosen: list[Task] = []
        for state in states:
            chosen += first_that_fit(tx, state, wanted, limit + 1)
        chosen.sort(key=lambda task: (states.index(task.state), task.terms.priority, task.id))
        shown = tuple(chosen[:limit])
        named: dict[ActorId, Actor] = {}
        for task in shown:
            for actor_id in people_of(task):
                if actor_id not in named:
                    named[actor_id] = tx.actor(actor_id)
        return Listing(shown, tx.now, named, len(chosen) > limit)


def first_that_fit(
    tx: ReadTransaction,
    state: State,
    wanted: Callable[[ReadTransaction, Task], bool],
    number: int,
) -> list[Task]:
    reach = number
    while True:
        page = tx.tasks_in(state, reach)
        fit = [task for task in page if wanted(tx, task)]
        if len(fit) >= number or len(page) < reach:
            return fit[:number]
        reach *= 10


def is_any(_tx: ReadTransaction, _task: Task) -> bool:
    return True


def is_free(tx: ReadTransaction, task: Task, *, of_the_dead: bool = False) -> bool:
    """Whether somebody could claim it now. `of_the_dead`: assume that its holder is dead."""
    lease = task.lease
    if task.parked_by is not None or task.state not in WORKABLE or task.waits_on:
        return False
    if task.item is not None and (task.item.gate or task.item.locked):
        return False
    return task.assignee is None if lease is None else of_the_dead or not lease.live(tx.now)


def ready(board: Board, limit: int) -> Listing:
    """The tasks that `next` would offer, in its order."""
    with board.read() as tx:
        found = tx.tasks_ready(limit + 1)
        named = {who: tx.actor(who) for task in found for who in people_of(task)}
        return Listing(tuple(found[:limit]), tx.now, named, len(found) > limit)


def is_free_for(board: Board, who: Identity) -> Callable[[ReadTransaction, Task], bool]:
    """A filter: whether a claim by this caller would be accepted now and is not already its own lease."""

    def wanted(tx: ReadTransaction, task: Task) -> bool:
        caller, _ = caller_of(tx, who, board.settings)
        command = c.Claim(task.key)
        facts = facts_for(tx, caller, command, board.settings)
        own = task.lease is not None and task.lease.held_by(caller)
        return not own and refusal_of(facts) is None

    return wanted


def people_of(task: Task) -> set[ActorId]:
    ids = {task.creator, task.assignee, task.author, task.preferred, task.parked_by}
    ids |= {task.lease.actor} if task.lease else set()
    return {actor_id for actor_id in ids if actor_id is not None}


def held_by(board: Board, who: Identity) -> list[Task]:
    """The tasks that one session holds."""
    with board.read() as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        return [] if is_new else tx.tasks_held_by(caller.actor.id, caller.holding_session)


def lost_by(board: Board, who: Identity) -> list[TaskKey]:
    """The tasks whose leases were taken from one session and whose loss it has not acknowledged."""
    with board.read() as tx:
        caller, _ = caller_of(tx, who, board.settings)
        return tx.tasks_lost_by(caller.actor.id, caller.holding_session)


def now(board: Board) -> Instant:
    with board.read() as tx:
        return tx.now


def uid(board: Board) -> str:
    with board.read() as tx:
        return tx.board.uid


def aliases(board: Board, actor: Actor) -> tuple[str, ...]:
    with board.read() as tx:
        return tx.aliases(actor)


def actors(board: Board) -> tuple[list[Actor], dict[ActorId, list[str]]]:
    """All actors, with their aliases."""
    with board.read() as tx:
        everybody = list(tx.actors().values())
        names = tx.names()
        return everybody, {
            actor.id: [name for name in names.get(actor.id, []) if name != actor.name]
            for actor in everybody
        }


# Ownership history.


def who(board: Board, key: TaskKey, at: Instant | None = None) -> Owner:
    """Who owned the task at `at`, from the events in which its leases began, expired and ended."""
    with board.read() as tx:
        task = found(tx, key)
        instant = tx.now if at is None else at
        if instant > tx.now:
            raise bad_argument(f"{iso(instant)} is in the future: nobody owns anything then yet")
        found_at = ownership_at(instant, tx.events_of(task.id), tx.clock_events(), task)
        if found_at is None:
            return Owner(task, instant)
        return Owner(
            task,
            instant,
            tx.actor(found_at.actor),
            found_at.session_at(instant),
            found_at.token,
            found_at.since,
            expired=found_at.expired_at(instant),
        )


# The ledger.


def log(board: Board, wanted: LogFilter, limit: int) -> Log:
    """Events, oldest first: the last `limit` that match the filter."""
    with board.read() as tx:
        everybody = tx.actors()
        actor = tx.actor_named(wanted.actor) if wanted.actor else None
        if wanted.actor and actor is None:
            raise Refused(refusals.unknown_actor(wanted.actor))
        if wanted.task:
            task = found(tx, wanted.task)
            entries: Iterator[Entry] = reversed(list(tx.events_of(task.id)))
        else:
            entries = tx.events_backwards()
        chosen: list[Entry] = []
        for entry in entries:
            if fits(entry, wanted, actor):
                chosen.append(entry)
                if len(chosen) > limit:
                    break
        lines = lines_of(tx, chosen[:limit][::-1], everybody)
        return Log(lines, everybody, tx.now, len(chosen) > limit)


def lines_of(
    tx: ReadTransaction, entries: list[Entry], everybody: Mapping[ActorId, Actor]
) -> tuple[LogLine, ...]:
    keys = tx.keys_of({entry.task for entry in entries if entry.task is not None})
    return tuple(
        LogLine(entry, keys[entry.task] if entry.task else "", everybody[entry.actor], everybody)
        for entry in entries
    )


def fits(entry: Entry, wanted: LogFilter, actor: Actor | None) -> bool:
    return (
        (actor is None or entry.actor == actor.id)
        and (wanted.since is None or entry.at >= wanted.since)
        and (wanted.until is None or entry.at <= wanted.until)
        and (not wanted.forced or is_forced(entry))
    )


def is_forced(entry: Entry) -> bool:
    """Whether a person overrode another's lease, an assignment, a gate or the limit of attempts."""
    if entry.verb == e.Forced.verb:
        return True
    if entry.verb in (e.Reset.verb, e.Retried.verb):
        return bool(entry.event.named()["forced"])
    if entry.verb not in (e.Dropped.verb, e.Unassigned.verb) or not entry.event.takes:
        return False
    ending: e.Ending | None = entry.event.named()["ending"]
    return ending is not None and ending.actor != entry.actor and not ending.late


def refused_log(board: Board, wanted: LogFilter, limit: int) -> tuple[list[LoggedRefusal], bool]:
    """Logged refusals, oldest first: the last `limit` that match the filter."""
    with board.read() as tx:
        names = names_of(tx, wanted.actor) if wanted.actor else set()
        chosen: list[LoggedRefusal] = []
        for line in tx.refusals_backwards():
            if (
                (wanted.task is None or line.task.casefold() == wanted.task.casefold())
                and (not names or folded_name(line.actor) in names)
                and (wanted.since is None or line.at >= wanted.since)
                and (wanted.until is None or line.at <= wanted.until)
            ):
                chosen.append(line)
                if len(chosen) > limit:
                    break
        return list(reversed(chosen[:limit])), len(chosen) > limit


def names_of(tx: ReadTransaction, name: str) -> set[str]:
    """Every name and alias under which an actor may have been refused."""
    actor = tx.actor_named(name)
    names = (name, actor.name, *tx.aliases(actor)) if actor else (name,)
    return {folded_name(each) for each in names}
