"""Facts for commands about one task, read in the transaction of the decision;
`facts_for` serves all commands.
"""

from __future__ import annotations

import os

from dibs.board.outcome import actors_named
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.events.base import Ending
from dibs.domain.facts import DeathEvidence, Facts, LeftoverWork, ScopeReservation, is_idle
from dibs.domain.model import SWEPT, ActorId, Caller, EndedLease, Task, TaskId, TaskKey, folded_name
from dibs.domain.refusals import Refused, refused
from dibs.domain.scopes.policy import OFF, WARN
from dibs.domain.values import Value
from dibs.machine import wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.domain.model import Process
    from dibs.domain.scopes.overlap import StepBudget
    from dibs.domain.scopes.policy import ScopePolicy
    from dibs.storage.transaction import ReadTransaction


class Evidence(Value):
    """What was inspected before the transaction (processes, worktrees): it may be stale, but not undone."""

    left: LeftoverWork | None = None
    deaths: Mapping[TaskId, DeathEvidence] = {}
    living: frozenset[TaskId] = frozenset()
    lives: Mapping[Process, bool | None] = {}
    """Whether the processes that the caller's own session stated for the task are alive."""


NO_EVIDENCE = Evidence()


def facts_for(
    tx: ReadTransaction,
    caller: Caller,
    command: c.Command,
    settings: Settings,
    seen: Evidence = NO_EVIDENCE,
) -> Facts:
    facts = Facts(
        caller,
        settings.rules,
        tx.board.epoch,
        left=seen.left,
        deaths=seen.deaths,
        living=seen.living,
        lives=seen.lives,
    )
    kind = command.spec.facts
    if isinstance(command, c.TaskCommand) and kind != "stint":
        return facts_for_task(tx, facts, command)
    if isinstance(command, c.Add):
        return facts_for_add(tx, facts, command, settings.key_prefix)
    if isinstance(command, c.Intake):
        from dibs.board.facts.intake import facts_for_intake

        return facts_for_intake(tx, facts, command, settings.key_prefix)
    if isinstance(command, c.Sync):
        from dibs.board.facts.sync import facts_for_sync

        return facts_for_sync(tx, facts, command, settings)
    if isinstance(command, c.SetActor):
        own = folded_name(command.actor) == folded_name(caller.actor.name)
        return facts.but(receiver=caller.actor if own else tx.actor_named(command.actor))
    if kind in ("board", "clock"):
        return facts
    if kind in ("next", "reset", "sweep"):
        from dibs.board.facts.queue import facts_for_many

        return facts_for_many(tx, facts, command)
    assert isinstance(command, c.AddStint | c.AmendStint | c.ReportUsage | c.Approve | c.Reopen)
    from dibs.board.facts.stints import facts_for_time

    return facts_for_time(tx, facts, command)


def facts_for_task(tx: ReadTransaction, facts: Facts, command: c.TaskCommand) -> Facts:
    task = found(tx, command.task)
    if isinstance(command, c.Block) and command.on:
        check_cause(tx, command.on)
    facts = facts_of_task(tx, facts, task, command)
    if command.spec.facts not in ("task", "claim"):
        from dibs.board.facts.queue import widened

        return widened(tx, facts, task, command)
    return facts


def found(tx: ReadTransaction, key: TaskKey) -> Task:
    task = tx.task(key)
    if task is None:
        raise Refused(refusals.unknown_task(key))
    return task


def facts_of_task(tx: ReadTransaction, facts: Facts, task: Task, command: c.Command) -> Facts:
    caller, lease = facts.caller, task.lease
    to: str = getattr(command, "to", "")
    facts = facts.but(
        task=task,
        actors=actors_named(tx, task),
        receiver=tx.actor_named(to) if to else None,
        former=former_lease(tx, task, caller),
    )
    former = facts.former
    if former is not None and command.spec.idempotent and former.cause == command.verb:
        entries = tx.events_of(task.id)
        since = tuple(entry.event for entry in entries if entry.seq >= former.seq)
        facts = facts.but(since=since)
    if is_idle(lease, tx.now, facts.rules):
        facts = facts.but(idle=is_watched(tx, task))
    if caller.actor.is_human and command.spec.starts:
        facts = facts.but(working=tuple(tx.tasks_worked_on_by(caller.actor.id)))
    if command.spec.starts and may_have_processes(task, caller):
        kept = tx.processes_behind(task.id, caller.actor.id, caller.holding_session)
        facts = facts.but(processes=tuple(kept))
    if task.waits_on:
        facts = facts.but(causes={one.key: one.state for one in tx.dependencies(task.id)})
    if lease is None and task.token.number and command.spec.takes:
        facts = with_swept_lease(tx, task, facts)
    scope = task.scope + getattr(command, "add", ())
    if scope and asks_for_scope(tx, facts, task, command):
        actor = (facts.receiver or caller.actor).id
        session = None if facts.receiver else caller.holding_session
        if lease is not None and isinstance(command, c.Scope):
            actor, session = lease.actor, lease.session  # whoever asks, it is the holder's scope
        ground = facts.rules.ground
        rivals = rivals_of(tx, ground, tx.held_scopes(), task.id, scope, actor, session)
        return with_rivals(tx, facts, rivals)
    return facts


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


def with_rivals(tx: ReadTransaction, facts: Facts, rivals: tuple[ScopeReservation, ...]) -> Facts:
    named = {rival.actor: tx.actor(rival.actor) for rival in rivals}
    facts = facts.but(actors={**facts.actors, **named})
    warns = facts.rules.ground.conflict == WARN
    return facts.but(beside=rivals) if warns else facts.but(rivals=rivals)


# Former holders.


def with_swept_lease(tx: ReadTransaction, task: Task, facts: Facts) -> Facts:
    """Adds the lease that a sweep ended, if nobody has held the task since: it says where the work is."""
    last = tx.last_ended_lease(task.id)
    if last is None or last.cause not in SWEPT or last.session is None:
        return facts
    seen = facts.left
    left = seen if seen is not None and seen.token == last.token else LeftoverWork(last.token)
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


def facts_for_add(tx: ReadTransaction, facts: Facts, command: c.Add, prefix: str) -> Facts:
    if command.after:
        from dibs.board.facts.queue import causes_of

        causes = causes_of(tx, command.after)
        facts = facts.but(on=tuple(causes), causes={key: one.state for key, one in causes.items()})
    known = of_request(tx, command)
    if known is not None:
        return facts.but(task=known, first=first_digest(tx, known))
    if command.key is not None:
        taken = tx.task(command.key) is not None
        return facts.but(fresh_uid=fresh_uid(), key_is_taken=taken)
    return facts.but(fresh_uid=fresh_uid(), fresh_key=fresh_key(tx, prefix))


def of_request(tx: ReadTransaction, ask: c.Add) -> Task | None:
    """The task that a request already has, whatever its state."""
    if ask.channel is None:
        return None
    found = (tx.task_of_origin(ask.channel, ref) for ref in ask.refs)
    return next((task for task in found if task is not None), None)


def first_digest(tx: ReadTransaction, task: Task) -> str:
    """The digest of the payload with which the request first arrived."""
    digest: str = getattr(tx.first_event(task.id), "digest", "")
    return digest


def fresh_key(tx: ReadTransaction, prefix: str) -> TaskKey:
    """The next number that was never issued nor used by an imported key."""
    number = tx.board.keys + 1
    while tx.task(TaskKey(f"{prefix}-{number}")) is not None:
        number += 1
    return TaskKey(f"{prefix}-{number}")


def fresh_uid() -> str:
    """A UUIDv7: milliseconds, then random bits."""
    bits = (wall_clock() // 1_000) << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
