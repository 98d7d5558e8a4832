"""Explain why nobody works on a task (`why`: the chain down to the cause), and the status of the board."""

from __future__ import annotations

from dibs.board.execute import Board
from dibs.board.facts.queue import unmet, who_paused
from dibs.board.facts.task import found, rivals_of
from dibs.board.liveness import check_liveness
from dibs.board.queries import first_that_fit
from dibs.domain.checks import short
from dibs.domain.events import tasks as e
from dibs.domain.model import (
    AGENT,
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    OPEN,
    REVIEW,
    SERVICE,
    Actor,
    ActorId,
    KeptNote,
    Task,
    TaskId,
    TaskKey,
)
from dibs.domain.refusals import holder_label, shown
from dibs.domain.scopes.policy import BLOCK
from dibs.domain.values import Instant, Value, between, brief, rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.domain.facts import DeathEvidence
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.transaction import ReadTransaction

SHOWN = 20
"""How many waiting tasks per state a status shows."""

SHOWN_HELD = 100
"""How many held tasks it shows."""

SWEEP = "dibs sweep"

LINE = 100
"""How many characters of a note are shown on a line."""

STEPS = 50
"""The maximum length of a chain of causes."""


class Waiting(Value):
    """A task that nobody works on, the reason, and the command that helps."""

    task: Task
    why: str
    helps: str = ""


class Held(Value):
    """A held task, and the problem with its lease, if any, with the command that helps."""

    task: Task
    wrong: str = ""
    helps: str = ""


class LateNote(Value):
    """A former holder's result, which was refused and stored as a note."""

    key: TaskKey
    note: KeptNote


class Status(Value):
    """A summary of the board."""

    uid: str
    now: Instant
    counts: Mapping[str, int]
    actors: Mapping[ActorId, Actor]
    held: tuple[Held, ...]
    waiting: tuple[Waiting, ...]
    paused: str = ""
    more: bool = False
    skewed: bool = False
    late: tuple[LateNote, ...] = ()


class Step(Value):
    """One step of the chain from a task to the cause of its waiting."""

    depth: int
    task: Task
    why: str
    helps: str = ""


# The status of the board.


def status(board: Board) -> Status:
    deaths, ground = check_liveness(board).deaths, board.settings.rules.ground
    with board.read() as tx:
        held = tx.tasks_held(SHOWN_HELD + 1)
        more = len(held) > SHOWN_HELD
        waiting: list[Waiting] = []
        for state in (OPEN, BLOCKED, REVIEW, FAILED):
            page = first_that_fit(tx, state, waits, SHOWN + 1)
            waiting += [why_it_waits(tx, task, ground) for task in page[:SHOWN]]
            more = more or len(page) > SHOWN
        return Status(
            tx.board.uid,
            tx.now,
            tx.counts(),
            tx.actors(),
            tuple(held_status(tx, task, deaths.get(task.id)) for task in held[:SHOWN_HELD]),
            tuple(waiting),
            who_paused(tx),
            more,
            tx.skewed,
            late_ones(tx),
        )


def late_ones(tx: ReadTransaction) -> tuple[LateNote, ...]:
    """Results of former holders after which nobody else has acted on their tasks."""
    found = tx.late_notes(SHOWN)
    keys = tx.keys_of({task for task, _ in found})
    return tuple(LateNote(keys[task], note) for task, note in found)


def waits(_tx: ReadTransaction, task: Task) -> bool:
    """Whether nobody works on it, or it is blocked."""
    return task.lease is None or task.state == BLOCKED


def held_status(tx: ReadTransaction, task: Task, death: DeathEvidence | None) -> Held:
    """The state of a lease: one without a living holder is a cause of waiting, too."""
    lease = task.lease
    assert lease is not None, "called only for held tasks"
    if death is not None and death.token == task.token:
        return Held(task, f"stale: {death.cause}", SWEEP)
    if lease.live(tx.now):
        return Held(task)
    since = rough_duration(between(lease.expires, tx.now))
    word = "suspect" if lease.suspect is not None else "stale"
    helps = f"dibs takeover {task.key}" if lease.bound else f"dibs show {task.key}"
    return Held(task, f"{word}: expired {since} ago", helps)


def why_it_waits(tx: ReadTransaction, task: Task, ground: ScopePolicy) -> Waiting:
    reason = next(reasons(tx, task, ground))
    return Waiting(task, reason.why, reason.helps)


# One task.


class Reason(Value):
    why: str
    helps: str = ""
    cause: TaskKey | None = None
    """The task that it waits for."""


def why(board: Board, key: TaskKey) -> tuple[list[Step], Instant]:
    """The chain from a task down to its causes, each with the command that helps."""
    deaths = check_liveness(board).deaths
    ground = board.settings.rules.ground
    with board.read() as tx:
        return list(chain(tx, found(tx, key), deaths, ground, 0, set())), tx.now


def chain(
    tx: ReadTransaction,
    task: Task,
    deaths: Mapping[TaskId, DeathEvidence],
    ground: ScopePolicy,
    depth: int,
    seen: set[TaskId],
) -> Iterator[Step]:
    seen.add(task.id)
    held = None if task.lease is None else held_status(tx, task, deaths.get(task.id))
    if held is not None and held.helps == SWEEP:
        who = holder_label(tx.actor(e.lease_of(task).actor), e.lease_of(task))
        yield Step(depth, task, f"held by {who}, {held.wrong}", held.helps)
        return
    for reason in reasons(tx, task, ground):
        yield Step(depth, task, reason.why, reason.helps)
        cause = tx.task(reason.cause) if reason.cause else None
        if cause is not None and cause.id not in seen and len(seen) < STEPS:
            yield from chain(tx, cause, deaths, ground, depth + 1, seen)


def reasons(tx: ReadTransaction, task: Task, ground: ScopePolicy) -> Iterator[Reason]:
    """Why nobody works on a task, or who does; at least one reason."""
    if task.state != OPEN or task.lease is not None:
        yield standing(tx, task)
        return
    barred = list(reasons_not_offered(tx, task, ground))
    yield from barred
    if not barred:
        yield Reason("ready", f"dibs claim {task.key}")


def standing(tx: ReadTransaction, task: Task) -> Reason:
    """The reason that its state or its lease gives."""
    lease, key = task.lease, task.key
    if task.state == BLOCKED:
        on = f"on {task.blocked_on}: " if task.blocked_on else ""
        why = f"blocked {on}{briefly(tx.last_note(task.id, e.Blocked.verb))}"
        return Reason(why, f"dibs unblock {key}")
    if lease is not None:
        who = holder_label(tx.actor(lease.actor), lease)
        verb = "held by" if lease.bound else "assigned to"
        if lease.live(tx.now):
            until = brief(lease.expires, tx.now)
            return Reason(f"{verb} {who} until {until}", f"dibs wait {key} --for complete")
        since = rough_duration(between(lease.expires, tx.now))
        return Reason(f"{verb} {who}, stale: expired {since} ago", f"dibs takeover {key}")
    if task.state == REVIEW:
        author = tx.actor(task.author).name if task.author else "somebody"
        return Reason(f"waits for a review of {author}'s work", f"dibs accept {key}")
    if task.state == FAILED:
        note = tx.last_note(task.id, e.Failed.verb) or tx.last_note(task.id, e.Released.verb)
        used = task.attempts >= task.terms.max_attempts
        tried = f"{task.attempts} of {task.terms.max_attempts} attempts used"
        return Reason(
            f"failed ({tried}): {briefly(note)}",
            f"dibs show {key}" if used else f"dibs retry {key}",
        )
    return Reason(shown(task.state), "" if task.state == COMPLETE else f"dibs show {key}")


def briefly(note: str) -> str:
    """The first line of a note, shortened."""
    return short(next(iter(note.splitlines()), ""), LINE)


def reasons_not_offered(tx: ReadTransaction, task: Task, ground: ScopePolicy) -> Iterator[Reason]:
    """What keeps an open, unheld task from being offered."""
    if not tx.is_ready(task.id):
        yield from bars(tx, task)
    yield from scope_bars(tx, task, ground)
    if not any(may_do(actor, task) for actor in tx.actors().values()):
        yield Reason(f"nobody is registered for it: {wanted(task)}", "dibs actor list")
    if paused := who_paused(tx):
        yield Reason(f"paused by {paused}", "dibs dispatch --resume")


def bars(tx: ReadTransaction, task: Task) -> Iterator[Reason]:
    """What keeps an open, unheld task from being ready."""
    key = task.key
    for cause in unmet(tx, task):
        helps = f"dibs why {cause.key}"
        if cause.state == DROPPED and task.item is None:
            helps = f"dibs depend {key} --not-on {cause.key}"
        elif cause.state == DROPPED:
            helps = "take it out of its item file, then: dibs sync"
        yield Reason(f"waits for {cause.key} ({shown(cause.state)})", helps, cause.key)
    yield from bars_of_the_file(task)
    if task.parked_by is not None:
        yield Reason(f"parked by {tx.actor(task.parked_by).name}", f"dibs unpark {key}")
    if task.assignee is not None:
        yield Reason(f"assigned to {tx.actor(task.assignee).name}", f"dibs unassign {key}")
    yield from later_ones(tx, task)


def bars_of_the_file(task: Task) -> Iterator[Reason]:
    """What its item file says against it, if it has one."""
    item = task.item
    if item is not None and item.gate:
        yield Reason(f"its file blocks it: {item.gate}", f"dibs show {task.key}")
    if item is not None and item.locked:
        yield Reason(f"its file says that it is locked by {item.locked}", f"dibs show {task.key}")


def later_ones(tx: ReadTransaction, task: Task) -> Iterator[Reason]:
    """Times that it must wait for."""
    words = {"not before": task.terms.not_before, "failed; next attempt at": task.rests_until}
    for word, until in words.items():
        if until is not None and until > tx.now:
            yield Reason(f"{word} {brief(until, tx.now)}", f"dibs claim {task.key}")


def scope_bars(tx: ReadTransaction, task: Task, ground: ScopePolicy) -> Iterator[Reason]:
    if not task.scope or ground.conflict != BLOCK:
        return
    held = tx.held_scopes()
    for rival in rivals_of(tx, ground, held, task.id, task.scope, ActorId(0), "")[:1]:
        holder, helps = tx.actor(rival.actor).name, f"dibs wait {rival.key} --for free"
        yield Reason(f"its scope is held by {rival.key} ({holder})", helps)


def may_do(actor: Actor, task: Task) -> bool:
    terms = task.terms
    kind = AGENT if actor.kind == SERVICE else actor.kind
    return (
        terms.audience in ("any", kind)
        and actor.tier >= terms.tier
        and set(terms.capabilities) <= set(actor.capabilities)
    )


def wanted(task: Task) -> str:
    terms = task.terms
    parts = [f"tier {terms.tier}"]
    parts += [f"for {terms.audience}"] if terms.audience != "any" else []
    parts += [f"needs {', '.join(terms.capabilities)}"] if terms.capabilities else []
    return ", ".join(parts)


# Nothing to do.


def idle(board: Board) -> str:
    """Why there is nothing to do, in one line."""
    with board.read() as tx:
        ready = tx.tasks_ready(1)
        counts = tx.counts()
        open_ones = first_that_fit(tx, OPEN, lambda _tx, _task: True, SHOWN)
    listed = [
        f"{count} {shown(state)}" for state, count in sorted(counts.items()) if state != COMPLETE
    ]
    if ready:
        return f"{ready[0].key} is ready, but not for you: dibs why {ready[0].key}"
    waiting = next((task for task in open_ones if task.lease is None), None)
    first = f"; {waiting.key} waits: dibs why {waiting.key}" if waiting else ""
    return (", ".join(listed) or "there are no open tasks") + first
