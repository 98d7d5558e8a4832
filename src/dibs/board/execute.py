"""The board: read, decide, write. Every change is one transaction."""

from __future__ import annotations

import os
from time import time_ns

from dibs.board.identity import Identity
from dibs.board.outcome import Outcome, actors_named
from dibs.board.persist import Reading, persist
from dibs.board.settings import Settings
from dibs.core import board_events, refusals
from dibs.core import commands as c
from dibs.core import events as e
from dibs.core.decide import Decision, decide
from dibs.core.evolve import renew
from dibs.core.facts import Facts, Left
from dibs.core.instants import Instant
from dibs.core.ledger import Entry
from dibs.core.model import (
    AGENT,
    HUMAN,
    Actor,
    ActorId,
    Caller,
    EndedLease,
    LoggedRefusal,
    Session,
    Task,
    TaskKey,
    Token,
)
from dibs.core.refusals import Refusal, Refused, refused
from dibs.stores.transaction import Request, folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.machine import Machine
    from dibs.stores.store import Question, Store
    from dibs.stores.transaction import ReadTransaction, WriteTransaction

    Ids = tuple[str | None, str | None]
    """A request id, and the same again if there may be an answer under it."""

TAKES_UP = (c.Claim, c.Start, c.Takeover)
BOARD_COMMANDS = (c.SetActor, c.SetClock)
BoardCommand = c.SetActor | c.SetClock


class LookFirst(Exception):  # noqa: N818 - not an error: a lease is about to be taken from somebody
    """What its holder left behind is looked up before the transaction, then it is tried again."""

    def __init__(self, token: Token, worktree: str) -> None:
        super().__init__(worktree)
        self.token = token
        self.worktree = worktree


class Board:
    """What can be done with a board. One method for changes; `views` has the questions."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self._met: dict[str, ActorId] = {}
        """Who called before: what will be asked about them is known ahead."""

    def read(self) -> Reading:
        """A consistent look at the board, wherever it is."""
        return Reading(self)

    def settle(self) -> None:
        """Goes where the board is, before something that concerns its place."""
        with self.read():
            pass

    def execute(self, who: Identity, command: c.Command, request_id: str | None = None) -> Outcome:
        """Carries the command out, or raises `Refused`. The same request id: the same answer."""
        asked = request_id
        if asked is None and self.store.remote:
            asked = fresh_uid()  # what was lost on its way is asked for again
        tries = iter((request_id,))  # an id of our own cannot be known before the second try
        light = isinstance(command, c.Renew) and request_id is None
        return persist(
            self, lambda: self._execute(who, command, light, (asked, next(tries, asked)))
        )

    def _execute(self, who: Identity, command: c.Command, light: bool, ids: Ids) -> Outcome:
        outcome = self._renew(who, command) if light else None
        left = None
        while outcome is None:
            try:
                outcome = self._attempt(who, command, ids, left)
            except LookFirst as look:
                from dibs.board.left_behind import uncommitted

                left = Left(look.token, uncommitted(look.worktree))
        return outcome

    def _renew(self, who: Identity, command: c.Command) -> Outcome | None:
        """A renewal that is nothing else, if the store has a lighter way for it."""
        assert isinstance(command, c.Renew), command.verb
        light = self.store.renewal(command.task)
        if light is None:
            return None
        with light as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            if is_new or tx.new_home:
                return None
            facts = facts_for(tx, caller, command, self.settings, None)
            decision = decide(facts, command, tx.now)
            session = session_at(who, caller, decision)
            if decision.events or decision.refusal or (session and not tx.knows(session)):
                return None
            return write(tx, caller, facts, decision)

    def log_refusal(self, who: Identity, command: c.Command, refusal: Refusal) -> None:
        """A refusal that was found before the rules were asked, such as that of an impostor."""
        with self.store.write("log") as tx:
            tx.log_refusal(logged(tx.now, who, command, refusal))

    def _attempt(
        self, who: Identity, command: c.Command, ids: Ids, left: Left | None
    ) -> Outcome | None:
        """One transaction; nothing if it began a new epoch, in which to try again."""
        request_id, asked_before = ids
        ahead = questions(who, command, self._met.get(who.name), asked_before)
        with self.store.write(what(command), ahead) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            self._met[who.name] = caller.actor.id
            if tx.new_home:
                from dibs.board.epochs import begin_epoch

                if is_new:
                    register(tx, caller)
                begin_epoch(tx, caller, tx.new_home)
                tx.finish()
                return None
            known = replayed(tx, caller, command, asked_before)
            if known is not None:
                if self.store.remote:
                    tx.touch()
                return known
            facts = facts_for(tx, caller, command, self.settings, left)
            decision = decide(facts, command, tx.now)
            refusal = decision.refusal
            if refusal is not None:
                tx.log_refusal(logged(tx.now, who, command, refusal))
            if refusal is None or decision.events:
                look_first(decision, left, tx, self.store.machine)
                if is_new:
                    register(tx, caller)
                session = session_at(who, caller, decision)
                if session is not None:
                    tx.keep_session(session)
                outcome = (
                    self._administer(tx, caller, command)
                    if isinstance(command, BOARD_COMMANDS)
                    else write(tx, caller, facts, decision)
                )
                keep_answer(tx, command, request_id, outcome, refusal)
                tx.finish(changed=bool(decision.renews or request_id))
        if refusal is not None:
            raise Refused(refusal)
        return outcome

    # The board's own affairs.

    def _administer(self, tx: WriteTransaction, caller: Caller, command: BoardCommand) -> Outcome:
        if isinstance(command, c.SetActor):
            return self._set_actor(tx, caller, command)
        by = self.store.set_clock(tx)
        entry = tx.append_to_board(
            board_events.ClockSet(by=by, reason=command.reason.strip()), caller
        )
        return Outcome(caller, tx.now, entries=(entry,), actors={caller.actor.id: caller.actor})

    def _set_actor(self, tx: WriteTransaction, caller: Caller, command: c.SetActor) -> Outcome:
        """An unknown actor of a given kind is registered with these settings."""
        actor = tx.actor_named(command.actor)
        if actor is None:
            assert command.kind is not None, "an unknown actor without a kind was refused before"
            actor = newcomer(tx, command.actor, command.kind, self.settings)
            register(tx, caller, actor)
        changed, aliases = changed_actor(tx, actor, command)
        entries: tuple[Entry, ...] = ()
        if changed != actor or aliases != tx.aliases(actor):
            tx.change_actor(changed, aliases)
            entries = (
                tx.append_to_board(
                    board_events.ActorChanged(**changed.named(), aliases=aliases), caller
                ),
            )
        named = {changed.id: changed, caller.actor.id: caller.actor}
        return Outcome(caller, tx.now, None, entries, (), named, tx.skewed, actor=changed)


def questions(
    who: Identity, command: c.Command, actor: ActorId | None, request_id: str | None
) -> tuple[Question, ...]:
    """What a command asks first, whatever comes of it. A wrong guess costs nothing but itself."""
    ahead: list[Question] = []
    if isinstance(command, c.TaskCommand):
        ahead.append(("task_by_key", {"key": command.task}))
    if actor is None:
        ahead.append(("actor_by_name", {"folded": folded(who.name)}))
        return tuple(ahead)
    if request_id:
        ahead.append(("request", {"actor": actor, "id": request_id}))
    if isinstance(command, TAKES_UP) and who.place is not None:
        ahead.append(("session", {"actor": actor, "name": who.session}))
    return tuple(ahead)


# Who calls.


def caller_of(tx: ReadTransaction, who: Identity, settings: Settings) -> tuple[Caller, bool]:
    """The caller, and whether it is new: it is registered only if its command is accepted."""
    known = tx.actor_named(who.name)
    actor = known or newcomer(tx, who.name, HUMAN if who.person else AGENT, settings)
    if actor.is_human != who.person:
        option = "--as" if actor.is_human else "--agent"
        raise refused(
            "wrong_kind_of_name",
            f"{actor.name} is registered as {'a person' if actor.is_human else refusals.a(actor.kind)}",
            actor=actor.name,
            kind=actor.kind,
            option=option,
        )
    session = who.session
    if who.person and known is not None and session.partition("/")[0]:
        session = own_session(tx, known, session)
    return Caller(actor, session, who.harness), known is None


def own_session(tx: ReadTransaction, person: Actor, session: str) -> str:
    """A person who names herself as her session, by any of her names, means herself."""
    root, slash, child = session.partition("/")
    names = {folded(name) for name in (person.name, *tx.aliases(person))}
    return slash + child if folded(root) in names else session


def newcomer(tx: ReadTransaction, name: str, kind: Any, settings: Settings) -> Actor:
    return Actor(ActorId(tx.board.actors + 1), name, kind, settings.default_tier)


def register(tx: WriteTransaction, caller: Caller, actor: Actor | None = None) -> None:
    """The caller itself, or another that it names."""
    actor = actor or caller.actor
    tx.register(actor)
    event = board_events.ActorRegistered(
        id=actor.id, name=actor.name, kind=actor.kind, tier=actor.tier
    )
    tx.append_to_board(event, caller)


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


def session_at(who: Identity, caller: Caller, decision: Decision) -> Session | None:
    """Where the session works: worth knowing when it takes a task up, or has a process."""
    takes_up = any(isinstance(event, e.LeaseBegun | e.Bound) for event in decision.events)
    if who.place is None or caller.is_child or not (takes_up or who.place.process is not None):
        return None
    return who.place.but(actor=caller.actor.id, name=caller.session)


# What is written.


def write(tx: WriteTransaction, caller: Caller, facts: Facts, decision: Decision) -> Outcome:
    """The events and the row that they make, together."""
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
        task = renew(task, tx.now)
    if task is not None and task != facts.task and facts.task is not None:
        tx.save(task)
    named = actors_named(tx, task, decision.events)
    return Outcome(caller, tx.now, task, tuple(entries), decision.events, named, tx.skewed)


# What is known.


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


def look_first(
    decision: Decision, left: Left | None, tx: ReadTransaction, machine: Machine
) -> None:
    """Before a lease is taken from its holder: where its work lies, if that is on this host."""
    for event in decision.events:
        ending: e.Ending | None = getattr(event, "ending", None)
        if left is None and ending and event.takes and ending.worktree:
            session = tx.session(ending.actor, ending.session or "")
            if session and session.host == machine.host():
                raise LookFirst(ending.token, ending.worktree)


# What was asked before, and what is told of it.


def replayed(
    tx: ReadTransaction, caller: Caller, command: c.Command, request_id: str | None
) -> Outcome | None:
    if request_id is None:
        return None
    from dibs.board.requests import digest_of, replay

    known = tx.request(caller.actor.id, request_id)
    if known is None:
        return None
    return replay(tx, caller, known, digest_of(caller, command), request_id)


def keep_answer(
    tx: WriteTransaction,
    command: c.Command,
    request_id: str | None,
    outcome: Outcome,
    refusal: Refusal | None,
) -> None:
    if request_id is None:
        return
    from dibs.board.requests import answered, digest_of

    caller = outcome.caller
    request = Request(digest_of(caller, command), answered(outcome, refusal))
    tx.keep_request(caller.actor.id, request_id, request)


def logged(now: Instant, who: Identity, command: c.Command, refusal: Refusal) -> LoggedRefusal:
    return LoggedRefusal(
        id=0,
        at=now,
        verb=command.typed,
        task=getattr(command, "task", ""),
        actor=who.name,
        session=who.session,
        code=refusal.code,
        message=refusal.message,
    )


def what(command: c.Command) -> str:
    """The command as whoever waits for it is told."""
    return f"{command.typed} {getattr(command, 'task', '')}".strip()
