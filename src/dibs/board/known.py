"""What is known: the facts of a decision, read in its own transaction."""

from __future__ import annotations

import os
from time import time_ns

from dibs.board.outcome import actors_named
from dibs.board.settings import Settings
from dibs.core import commands as c
from dibs.core import refusals
from dibs.core.facts import Facts, Left
from dibs.core.model import Caller, EndedLease, Task, TaskKey
from dibs.core.refusals import Refused, refused
from dibs.stores.transaction import folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.stores.transaction import ReadTransaction


def facts_for(
    tx: ReadTransaction, caller: Caller, command: c.Command, settings: Settings, left: Left | None
) -> Facts:
    facts = Facts(caller, settings.rules, tx.board.epoch, left=left)
    if isinstance(command, c.Add):
        return facts_for_add(tx, facts, command, settings.key_prefix)
    if isinstance(command, c.SetActor):
        own = folded(command.actor) == folded(caller.actor.name)
        return facts.but(receiver=caller.actor if own else tx.actor_named(command.actor))
    if isinstance(command, c.SetClock):
        return facts
    assert isinstance(command, c.TaskCommand), command.verb
    task = tx.task(command.task)
    if task is None:
        raise Refused(refusals.unknown_task(command.task))
    if isinstance(command, c.Block) and command.on:
        check_cause(tx, command.on)
    lease = task.lease
    to: str = getattr(command, "to", "")
    another = lease is not None and lease.bound and not lease.held_by(caller)
    return facts.but(
        task=task,
        actors=actors_named(tx, task),
        receiver=tx.actor_named(to) if to else None,
        former=former_lease(tx, task, caller),
        holder_session=tx.session(lease.actor, lease.session or "") if lease and another else None,
    )


def former_lease(tx: ReadTransaction, task: Task, caller: Caller) -> EndedLease | None:
    """The last lease that the caller's session had and lost or gave up, if it holds none now."""
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
    known = None
    if command.channel is not None and command.origin_ask_ref is not None:
        known = tx.task_of_origin(command.channel, command.origin_ask_ref)
    if command.key is not None:
        taken = tx.task(command.key) is not None
        return facts.but(task=known, fresh_uid=fresh_uid(), key_is_taken=taken)
    return facts.but(task=known, fresh_uid=fresh_uid(), fresh_key=fresh_key(tx, prefix))


def fresh_key(tx: ReadTransaction, prefix: str) -> TaskKey:
    """The next number that was never given out, nor taken by an imported key."""
    number = tx.board.keys + 1
    while tx.task(TaskKey(f"{prefix}-{number}")) is not None:
        number += 1
    return TaskKey(f"{prefix}-{number}")


def fresh_uid() -> str:
    """A UUIDv7: the time in milliseconds, then chance."""
    bits = (time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    digits = f"{bits:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
