"""The board: read, decide, write. Every change is one transaction."""

from __future__ import annotations

import json
import os
from time import time_ns

from dibs.board import left_behind
from dibs.board.identity import Identity
from dibs.board.settings import Settings
from dibs.core import commands as c
from dibs.core import events as e
from dibs.core import ledger, refusals
from dibs.core.decide import Decision, decide
from dibs.core.facts import Facts, Left
from dibs.core.instants import Instant
from dibs.core.ledger import Entry
from dibs.core.model import (
    AGENT,
    HUMAN,
    Actor,
    ActorId,
    Caller,
    LoggedRefusal,
    Task,
    TaskKey,
    Token,
)
from dibs.core.refusals import Refusal, Refused, refused
from dibs.core.rights import RIGHTS
from dibs.core.values import Value
from dibs.stores.transaction import Request, folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.stores.sqlite import SqliteStore
    from dibs.stores.transaction import ReadTransaction, WriteTransaction


class Outcome(Value):
    """What a command led to: the task after it, its events, and who is named in them."""

    caller: Caller
    now: Instant
    task: Task | None = None
    entries: tuple[Entry, ...] = ()
    actors: Mapping[ActorId, Actor] = {}
    skewed: bool = False
    current: Task | None = None
    """The task as it is now, if the answer is an old one, given again for its request id."""

    @property
    def replayed(self) -> bool:
        return self.current is not None


class LookFirst(Exception):  # noqa: N818 - not an error: a lease is about to be taken from somebody
    """What its holder left behind is looked up before the transaction, then it is tried again."""

    def __init__(self, token: Token, worktree: str) -> None:
        super().__init__(worktree)
        self.token = token
        self.worktree = worktree


class Board:
    """What can be done with a board. One method for changes; `views` has the questions."""

    def __init__(self, store: SqliteStore, settings: Settings) -> None:
        self.store = store
        self.settings = settings

    def execute(self, who: Identity, command: c.Command, request_id: str | None = None) -> Outcome:
        """Carries the command out, or raises `Refused`. The same request id: the same answer."""
        try:
            return self._attempt(who, command, request_id, left=None)
        except LookFirst as look:
            left = Left(look.token, left_behind.uncommitted(look.worktree))
            return self._attempt(who, command, request_id, left)

    def _attempt(
        self, who: Identity, command: c.Command, request_id: str | None, left: Left | None
    ) -> Outcome:
        with self.store.write(what(command)) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            digest = ledger.digest_of(ledger.canonical([command.verb, ledger.plain(command)]))
            known = tx.request(caller.actor.id, request_id) if request_id else None
            if known is not None:
                return replay(tx, caller, known, digest, request_id or "")
            facts = facts_for(tx, caller, command, self.settings, left)
            decision = decide(facts, command, tx.now)
            if decision.refusal is not None and not decision.events:
                tx.log_refusal(logged(tx, caller, command, decision.refusal))
                outcome = Outcome(caller, tx.now)
            else:
                look_first(decision, left, tx, self.store.machine.host())
                outcome = self._write(tx, who, caller, facts, command, decision, is_new=is_new)
                if request_id:
                    answer = Request(digest, answered(outcome, decision.refusal))
                    tx.keep_request(caller.actor.id, request_id, answer)
                tx.finish()
        if decision.refusal is not None:
            raise Refused(decision.refusal)
        return outcome

    def _write(
        self,
        tx: WriteTransaction,
        who: Identity,
        caller: Caller,
        facts: Facts,
        command: c.Command,
        decision: Decision,
        *,
        is_new: bool,
    ) -> Outcome:
        if is_new:
            register(tx, caller)
        if who.place is not None and not caller.is_child:
            tx.keep_session(who.place.but(actor=caller.actor.id, name=caller.session))
        entries = []
        task = facts.task
        for event in decision.events:
            if isinstance(event, e.Added):
                task, entry = tx.add_task(event, caller)
                if event.key == facts.fresh_key:
                    tx.give_out_key(int(event.key.rpartition("-")[2]))
            else:
                assert task is not None, "a task's event comes after its task"
                assert isinstance(event, e.TaskEvent), event.verb
                task, entry = tx.append(task, event, caller)
            entries.append(entry)
        if decision.renews:
            assert task is not None, "only a task's lease is renewed"
            task = e.renew(task, tx.now)
        if task is not None and task != facts.task and facts.task is not None:
            tx.save(task)
        if decision.refusal is not None:
            tx.log_refusal(logged(tx, caller, command, decision.refusal))
        return Outcome(
            caller, tx.now, task, tuple(entries), actors_named(tx, task, entries), tx.skewed
        )

    # The board's own affairs.

    def set_actor(self, who: Identity, command: c.SetActor) -> Outcome:
        """A person changes an actor; an unknown one is registered with these settings."""
        with self.store.write(what(command)) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            check_right(caller, command)
            actor = tx.actor_named(command.actor)
            if is_new:
                register(tx, caller)
                if folded(command.actor) == folded(caller.actor.name):
                    actor = caller.actor
            if actor is None:
                actor = newcomer(tx, command.actor, command.kind or AGENT, self.settings)
                register(tx, caller, actor)
            changed, aliases = changed_actor(tx, actor, command)
            if changed != actor or aliases != tx.aliases(actor):
                tx.change_actor(changed, aliases)
                tx.append_to_board(e.ActorChanged(**changed.named(), aliases=aliases), caller)
            tx.finish()
            return Outcome(caller, tx.now, actors={changed.id: changed}, skewed=tx.skewed)

    def set_clock(self, who: Identity, command: c.SetClock) -> Outcome:
        """A person believes this machine's clock: the board's clock is set to it."""
        with self.store.write(what(command)) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            check_right(caller, command)
            if is_new:
                register(tx, caller)
            by = self.store.set_clock(tx)
            entry = tx.append_to_board(e.ClockSet(by=by, reason=command.reason.strip()), caller)
            tx.finish()
            return Outcome(caller, tx.now, entries=(entry,), actors={caller.actor.id: caller.actor})


# Who calls.


def caller_of(tx: ReadTransaction, who: Identity, settings: Settings) -> tuple[Caller, bool]:
    """The caller, and whether it is new: it is registered only if its command is accepted."""
    known = tx.actor_named(who.name)
    actor = known or newcomer(tx, who.name, HUMAN if who.person else AGENT, settings)
    if actor.is_human != who.person:
        option = "--as" if actor.is_human else "--agent"
        raise refused(
            "wrong_kind_of_name",
            f"{actor.name} is registered as {'a person' if actor.is_human else 'an ' + actor.kind}",
            actor=actor.name,
            kind=actor.kind,
            option=option,
        )
    return Caller(actor, who.session, who.harness), known is None


def newcomer(tx: ReadTransaction, name: str, kind: Any, settings: Settings) -> Actor:
    return Actor(ActorId(tx.board.actors + 1), name, kind, settings.default_tier)


def register(tx: WriteTransaction, caller: Caller, actor: Actor | None = None) -> None:
    """The caller itself, or another that it names."""
    actor = actor or caller.actor
    tx.register(actor)
    event = e.ActorRegistered(id=actor.id, name=actor.name, kind=actor.kind, tier=actor.tier)
    tx.append_to_board(event, caller)


def check_right(caller: Caller, command: c.SetActor | c.SetClock) -> None:
    right, about = RIGHTS[command.verb], getattr(command, "actor", "the board")
    if not caller.is_person:
        refusal = refusals.people_only(command.verb, about, caller.actor, caller.in_harness)
        raise Refused(refusal)
    if right.reason and not getattr(command, "reason", "").strip():
        raise Refused(refusals.reason_missing(command.verb, about))


def changed_actor(
    tx: ReadTransaction, actor: Actor, command: c.SetActor
) -> tuple[Actor, tuple[str, ...]]:
    """The actor with its new settings, and its aliases. A former name stays as an alias."""
    wanted = {f: v for f, v in command.named().items() if f in Actor.fields and v is not None}
    changed = actor.but(**wanted)
    aliases = dict.fromkeys((*tx.aliases(actor), *command.add_aliases))
    if changed.name != actor.name:
        aliases[actor.name] = None
    dropped = {folded(name) for name in (*command.remove_aliases, changed.name)}
    kept = tuple(sorted((name for name in aliases if folded(name) not in dropped), key=folded))
    for name in (changed.name, *kept):
        other = tx.actor_named(name)
        if other is not None and other.id != actor.id:
            raise refused("name_taken", f"{name} is a name of {other.name}", actor=other.name)
    return changed, kept


# What is known.


def facts_for(
    tx: ReadTransaction, caller: Caller, command: c.Command, settings: Settings, left: Left | None
) -> Facts:
    facts = Facts(caller, settings.rules, tx.board.epoch, left=left)
    if isinstance(command, c.Add):
        return facts_for_add(tx, facts, command, settings.key_prefix)
    assert isinstance(command, c.TaskCommand)
    task = tx.task(command.task)
    if task is None:
        raise Refused(refusals.unknown_task(command.task))
    lease = task.lease
    to: str = getattr(command, "to", "")
    another = lease is not None and not lease.held_by(caller)
    return facts.but(
        task=task,
        actors=actors_named(tx, task),
        receiver=tx.actor_named(to) if to else None,
        former=tx.last_lease_of(task.id, caller.actor.id, caller.holding_session),
        holder_session=tx.session(lease.actor, lease.session or "") if lease and another else None,
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


def actors_named(
    tx: ReadTransaction, task: Task | None, entries: tuple[Entry, ...] | list[Entry] = ()
) -> dict[ActorId, Actor]:
    """Everybody whom a task and its events name."""
    ids = {entry.actor for entry in entries}
    for entry in entries:
        ending = getattr(entry.event, "ending", None)
        ids |= {ending.actor} if ending else set()
    if task is not None:
        ids |= {task.assignee, task.author, task.preferred, task.parked_by, task.creator}  # type: ignore[arg-type]
        ids |= {task.lease.actor} if task.lease else set()
    return {actor_id: tx.actor(actor_id) for actor_id in ids if actor_id is not None}


def look_first(decision: Decision, left: Left | None, tx: ReadTransaction, host: str) -> None:
    """Before a lease is taken from its holder: where its work lies, if that is on this host."""
    for event in decision.events:
        ending: e.Ending | None = getattr(event, "ending", None)
        if left is None and ending and event.takes and ending.worktree:
            session = tx.session(ending.actor, ending.session or "")
            if session and session.host == host:
                raise LookFirst(ending.token, ending.worktree)


# What was asked before.


def answered(outcome: Outcome, refusal: Refusal | None) -> str:
    entries = outcome.entries
    return ledger.canonical(
        {
            "task": ledger.plain(outcome.task),
            "now": outcome.now,
            "first": entries[0].seq if entries else 0,
            "count": len(entries),
            "refusal": ledger.plain(refusal),
        }
    )


def replay(
    tx: ReadTransaction,
    caller: Caller,
    known: Request,
    digest: str,
    request_id: str,
) -> Outcome:
    """The same answer as the first time, with the task as it is now beside it."""
    if known.digest != digest:
        raise Refused(refusals.request_reused(request_id))
    answer = json.loads(known.answer)
    if answer["refusal"]:
        raise Refused(Refusal(**answer["refusal"]))
    task: Task = ledger.build(Task, answer["task"])
    entries = tx.entries(answer["first"], answer["count"])
    current = tx.task(task.key)
    named = actors_named(tx, task, entries) | actors_named(tx, current)
    return Outcome(caller, answer["now"], task, tuple(entries), named, tx.skewed, current)


def logged(
    tx: WriteTransaction, caller: Caller, command: c.Command, refusal: Refusal
) -> LoggedRefusal:
    return LoggedRefusal(
        id=0,
        at=tx.now,
        verb=command.verb,
        task=getattr(command, "task", ""),
        actor=caller.actor.name,
        session=caller.session,
        code=refusal.code,
        message=refusal.message,
    )


def what(command: c.Command) -> str:
    """The command as whoever waits for it is told."""
    return f"{command.verb} {getattr(command, 'task', '')}".strip()
