"""Facts for commands about one task, read in the transaction of the decision."""

from __future__ import annotations

import os

from dibs.board.outcome import actors_named
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.events.base import Ending, taken_by
from dibs.domain.facts import (
    ClaimFacts,
    Evidence,
    Facts,
    LeftoverWork,
    ScopeReservation,
    TaskFacts,
    is_idle,
)
from dibs.domain.model import SWEPT, ActorId, Caller, EndedLease, Task, TaskId, TaskKey
from dibs.domain.refusals import Refused, refused
from dibs.domain.scopes.policy import OFF, WARN
from dibs.machine import wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from dibs.board.retry import ReadableBoard
    from dibs.domain.decision import Decision
    from dibs.domain.events.base import Event
    from dibs.domain.facts import ResetFacts
    from dibs.domain.model import KeptProcess
    from dibs.domain.scopes.overlap import StepBudget
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.transaction import ReadTransaction

    AnyTaskFacts = TypeVar("AnyTaskFacts", bound=TaskFacts)
    AnyScopedFacts = TypeVar("AnyScopedFacts", TaskFacts, ResetFacts)


def load_task(tx: ReadTransaction, basis: Facts, evidence: Evidence) -> TaskFacts:
    command = basis.command
    assert isinstance(command, c.TaskCommand), command.verb
    if isinstance(command, c.Block) and command.on:
        check_cause(tx, command.on)
    return facts_of_task(tx, basis, found(tx, command.task), evidence)


def found(tx: ReadTransaction, key: TaskKey) -> Task:
    task = tx.task(key)
    if task is None:
        raise Refused(refusals.unknown_task(key))
    return task


def facts_of_task(tx: ReadTransaction, basis: Facts, task: Task, evidence: Evidence) -> TaskFacts:
    """The facts about one task; those of a `ClaimFacts` too if the command may begin a stint."""
    caller, command = basis.caller, basis.command
    to: str = getattr(command, "to", "")
    former = former_lease(tx, task, caller)
    kind = ClaimFacts if command.spec.starts else TaskFacts
    facts = basis.but(actors=actors_named(tx, task)).widened(
        kind,
        task=task,
        receiver=tx.actor_named(to) if to else None,
        former=former,
        since=since(tx, task, former) if former and is_repeated(command, former) else (),
        idle=is_idle(task.lease, tx.now, basis.rules) and is_watched(tx, task),
        causes={one.key: one.state for one in tx.dependencies(task.id)} if task.waits_on else {},
        left=evidence.left,
        deaths=evidence.deaths,
    )
    if isinstance(facts, ClaimFacts):
        facts = with_claim(tx, facts, evidence)
    return with_rivals_of_scope(tx, facts)


def is_repeated(command: c.Command, former: EndedLease) -> bool:
    return command.spec.idempotent and former.cause == command.verb


def since(tx: ReadTransaction, task: Task, former: EndedLease) -> tuple[Event, ...]:
    """The event that ended a lease, and all later ones."""
    return tuple(entry.event for entry in tx.events_of(task.id) if entry.seq >= former.seq)


def with_claim(tx: ReadTransaction, facts: ClaimFacts, evidence: Evidence) -> ClaimFacts:
    """Adds what matters to whoever may begin a stint."""
    caller, task = facts.caller, facts.task
    facts = facts.but(lives=evidence.lives)
    if caller.actor.is_human:
        facts = facts.but(working=tuple(tx.tasks_worked_on_by(caller.actor.id)))
    if may_have_processes(task, caller):
        kept = tx.processes_behind(task.id, caller.actor.id, caller.holding_session)
        facts = facts.but(processes=tuple(kept))
    if task.lease is None and task.token.number:
        facts = with_swept_lease(tx, task, facts)
    return facts


def with_rivals_of_scope(tx: ReadTransaction, facts: AnyTaskFacts) -> AnyTaskFacts:
    """Adds who blocks the scope of the task, if the command needs it to be free."""
    caller, command, task = facts.caller, facts.command, facts.task
    scope = task.scope + getattr(command, "add", ())
    if not scope or not asks_for_scope(tx, facts, task, command):
        return facts
    actor = facts.subject.id
    session = None if facts.receiver else caller.holding_session
    if task.lease is not None and isinstance(command, c.Scope):
        actor, session = task.lease.actor, task.lease.session  # whoever asks, it is the holder's
    ground = facts.rules.ground
    rivals = rivals_of(tx, ground, tx.held_scopes(), task.id, scope, actor, session)
    scoped: AnyTaskFacts = with_rivals(tx, facts, rivals)  # type: ignore[assignment]
    return scoped


def may_have_processes(task: Task, caller: Caller) -> bool:
    """Whether former processes matter: not for a new claim without a process."""
    own = task.lease is not None and task.lease.held_by(caller)
    return own or (caller.behind is not None and task.token.number > 0)


def is_watched(tx: ReadTransaction, task: Task) -> bool:
    """Whether the hooks of a harness report what the holder does."""
    lease = task.lease
    session = tx.session(lease.actor, lease.session or "") if lease is not None else None
    return session is not None and session.watched


# Scopes.


def asks_for_scope(tx: ReadTransaction, facts: Facts, task: Task, command: c.Command) -> bool:
    """Whether the command needs the scope to be free: a new holder, a renewal after expiry, or more paths."""
    lease = task.lease
    own = (
        lease is not None
        and lease.actor == facts.caller.actor.id
        and (not lease.bound or lease.held_by(facts.caller))
    )
    if lease is not None and own and not isinstance(command, c.Handoff):
        return not (lease.live(tx.now) and lease.bound) or bool(getattr(command, "add", ()))
    more = isinstance(command, c.Scope) and lease is not None and lease.live(tx.now)
    return more or command.spec.takes


def rivals_of(
    tx: ReadTransaction,
    ground: ScopePolicy,
    held: list[ScopeReservation],
    task: TaskId,
    scope: tuple[str, ...],
    actor: ActorId,
    session: str | None,
    work: StepBudget | None = None,
) -> tuple[ScopeReservation, ...]:
    """Live leases of other sessions that overlap this scope. With `session` None,
    every session of the actor counts as its own.

    Each distinct scope is compared once. If a comparison cannot be decided, it counts as overlapping.
    """
    if ground.conflict == OFF:
        return ()
    from dibs.domain.scopes.overlap import StepBudget, TooManySteps

    overlaps = ground.overlaps_with(scope, work or StepBudget())
    rivals = [one for one in held if one.task != task and one.bars(actor, session, tx.now)]
    verdicts: dict[tuple[str, ...], bool] = {}
    doubts: dict[tuple[str, ...], str] = {}
    for one in dict.fromkeys(rival.scope for rival in rivals):
        try:
            verdicts[one] = overlaps(one)
        except TooManySteps:
            doubts[one] = refusals.TOO_LONG
        else:
            unknown = [] if verdicts[one] else ground.unknown(scope + one)
            if unknown:
                doubts[one] = refusals.areas_unknown(ground.unread, unknown).message
    certain = [rival for rival in rivals if verdicts.get(rival.scope)]
    return (*certain, *(one.but(doubt=doubts[one.scope]) for one in rivals if one.scope in doubts))


def with_rivals(
    tx: ReadTransaction, facts: AnyScopedFacts, rivals: tuple[ScopeReservation, ...]
) -> AnyScopedFacts:
    named = {rival.actor: tx.actor(rival.actor) for rival in rivals}
    facts = facts.but(actors={**facts.actors, **named})
    warns = facts.rules.ground.conflict == WARN
    return facts.but(beside=rivals) if warns else facts.but(rivals=rivals)


# Former holders.


def with_swept_lease(tx: ReadTransaction, task: Task, facts: ClaimFacts) -> ClaimFacts:
    """Adds the lease that a sweep ended, if nobody has held the task since: it says where the work is."""
    last = tx.last_ended_lease(task.id)
    if last is None or last.cause not in SWEPT or last.session is None:
        return facts
    inspected = facts.left
    left = (
        inspected
        if inspected is not None and inspected.token == last.token
        else LeftoverWork(last.token)
    )
    swept = Ending(
        token=last.token,
        actor=last.actor,
        session=last.session,
        acquired=last.acquired,
        renewed=last.renewed,
        expires=last.expires,
        renewals=last.renewals,
        late=last.ended > last.expires,
        host=last.host,
        worktree=last.worktree,
        branch=last.branch,
        uncommitted=left.uncommitted,
        not_looked_at=left.not_looked_at,
    )
    return facts.but(swept=swept, why_swept=last.cause)


def former_lease(tx: ReadTransaction, task: Task, caller: Caller) -> EndedLease | None:
    """The last lease that the caller's session lost or gave up, if it holds none now."""
    never_held = task.token.number == 0
    if never_held or (task.lease is not None and task.lease.held_by(caller)):
        return None
    return tx.last_lease_of(task.id, caller.actor.id, caller.holding_session)


def check_cause(tx: ReadTransaction, on: str) -> None:
    if tx.actor_named(on) is None and tx.task(TaskKey(on)) is None:
        raise refused(
            "bad_argument", f"{on} is neither a task nor an actor: what does it wait for?"
        )


def fresh_uid() -> str:
    """A UUIDv7: milliseconds, then random bits."""
    bits = (wall_clock() // 1_000) << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


# Evidence from outside the transaction: worktrees, processes, deaths of holders. A transaction that lacks some
# is left without a trace; the evidence is gathered, and the command decided anew.


class EvidenceNeeded(Exception):  # noqa: N818 - not an error: the command is decided again
    """Raised to leave the transaction: a worktree or processes must be inspected first."""

    def __init__(
        self,
        worktree_of: Ending | None = None,
        task: TaskKey | None = None,
        kept: tuple[KeptProcess, ...] = (),
    ) -> None:
        super().__init__()
        self.worktree_of, self.task = worktree_of, task
        """The lease that is about to be taken from its holder, and its task."""
        self.kept = kept
        """Processes that the caller's session has recorded."""


def require_evidence(facts: Facts, decision: Decision, evidence: Evidence) -> None:
    """Raises `EvidenceNeeded` unless the decision has all that it depends on."""
    if isinstance(facts, ClaimFacts):
        own = facts.caller.behind and facts.caller.behind.process
        known = (own, *evidence.lives)
        unseen = tuple(kept for kept in facts.processes if kept.behind.process not in known)
        if unseen:
            raise EvidenceNeeded(kept=unseen)
    for event in decision.events:
        ending = taken_by(event)
        if evidence.left is None and ending and ending.worktree:
            task = getattr(decision.chosen or facts, "task", None)
            raise EvidenceNeeded(worktree_of=ending, task=task and task.key)


def gather(
    board: ReadableBoard, needed: EvidenceNeeded, evidence: Evidence, *, ends_left: bool
) -> Evidence:
    """`ends_left`: also kills the orphan processes of a run that is gone, since another replaces it."""
    if needed.worktree_of is not None:
        from dibs.board.former_work import left_by
        from dibs.board.liveness import kill_orphans_of_dead

        if needed.task is not None:  # a run that is gone must not go on for its former holder
            kill_orphans_of_dead(board, needed.task)
        left = left_by(needed.worktree_of, board.store.machine, board.repository)
        return evidence.but(left=left)
    from dibs.board.liveness import lives

    found = lives(board, needed.kept, ends_left=ends_left)
    return evidence.but(lives={**evidence.lives, **found})
