"""Execute commands on a board: read facts, decide, write. Every change is one transaction."""

from __future__ import annotations

import os

from dibs.board.facts.task import EvidenceNeeded, gather, load_task, require_evidence
from dibs.board.identity import Identity, caller_of
from dibs.board.outcome import Outcome, actors_named
from dibs.board.retry import PendingRequest, ReadableBoard, retry_on_disconnect
from dibs.board.settings import Settings
from dibs.board.user_config import User
from dibs.domain import commands as c
from dibs.domain.decide import decide
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.events.base import lease_of, renew
from dibs.domain.facts import (
    NO_EVIDENCE,
    AddFacts,
    ClaimFacts,
    Evidence,
    Facts,
    IntakeFacts,
    ResetFacts,
    SyncFacts,
    TaskFacts,
)
from dibs.domain.ledger import Entry
from dibs.domain.model import (
    Actor,
    ActorId,
    Caller,
    LoggedRefusal,
    Session,
    Task,
    TaskKey,
    folded_key,
    folded_name,
)
from dibs.domain.refusals import Refusal, Refused
from dibs.domain.values import Instant, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board.retry import Backlog
    from dibs.domain.events.base import Event
    from dibs.domain.facts import DeathEvidence
    from dibs.domain.model import TaskId
    from dibs.storage.store import Question, Store
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

REBUILT = "rebuilt from files"
"""The reason recorded for a new epoch when item files contain tokens that the board does not."""


class Plan(Value):
    """The decision that a command would lead to now, with the facts behind it."""

    decision: Decision
    facts: Facts
    now: Instant

    @property
    def task(self) -> Task | None:
        """The task of the command, or the one that `next` would claim."""
        return task_of(self.decision.chosen or self.facts)


class Board(ReadableBoard):
    """A board that can be changed: `execute` is the one method for changes; reads
    are in `board/queries.py`.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        backlog: Backlog | None = None,
        user: User = User(),  # noqa: B008 - it is immutable
    ) -> None:
        super().__init__(store, settings, backlog, user)
        self._met: dict[str, ActorId] = {}
        """Actor ids of earlier callers, by name: allows their queries to be sent ahead, in one round trip."""

    def follow_if_moved(self) -> None:
        """Follows the board if it has moved, before an operation that depends on its location."""
        with self.read():
            pass

    def execute(self, who: Identity, command: c.Command, request_id: str | None = None) -> Outcome:
        """Executes the command, or raises `Refused`. Idempotent: the same request
        id gives the same answer.
        """
        backlog = None if isinstance(command, c.Sync) else self.backlog
        warnings = backlog.before(self, who, command) if backlog is not None else ()
        # On a server every change gets a request id, so that it can be retried safely after a lost
        # connection.
        own = request_id is None and self.store.remote and not command.spec.repeatable
        request = PendingRequest(os.urandom(12).hex() if own else request_id, own=own)
        outcome = retry_on_disconnect(self, lambda: self._decided(who, command, request))
        warnings += outcome.warnings
        if isinstance(command, c.Redact):
            from dibs.board.locate import scrub

            warnings += scrub(self.store)
        if backlog is not None:
            warnings += backlog.after(self, who, outcome)
        return outcome.but(warnings=warnings)

    def _decided(self, who: Identity, command: c.Command, request: PendingRequest) -> Outcome:
        """The outcome of the transaction that has all the evidence it needs."""
        is_plain = isinstance(command, c.Renew) and (request.own or request.id is None)
        outcome = self._renew(who, command) if is_plain else None
        evidence = self._first_evidence(command)
        while outcome is None:
            try:
                outcome = self._transact(who, command, request, evidence)
            except EvidenceNeeded as needed:
                evidence = gather(self, needed, evidence, ends_left=who.behind is not None)
            except Refused as problem:
                deaths = self._deaths_behind(who, command, problem, evidence)
                if not deaths:
                    raise
                evidence = evidence.but(deaths={**evidence.deaths, **deaths})
        return outcome

    def _transact(
        self, who: Identity, command: c.Command, request: PendingRequest, evidence: Evidence
    ) -> Outcome | None:
        """One transaction: replay, facts, decision, commit. `None` if it only began a new epoch."""
        ahead = prefetch_queries(who, command, self._met.get(who.name), request.before)
        with self.store.write(lock_label(command), ahead) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            self._met[who.name] = caller.actor.id
            if tx.new_home:
                start_new_epoch(tx, caller, tx.new_home, self.settings, is_new=is_new)
                tx.finish()
                return None
            known = replayed(tx, caller, command, request)
            if known is not None:
                if self.store.remote:
                    tx.touch()
                return known
            request.record_attempt(tx.board.seq)
            if isinstance(command, c.Sync):
                is_new = self._above_the_files(tx, caller, command, is_new=is_new)
            if isinstance(command, c.SetClock):
                evidence = evidence.but(wall=self.store.machine.wall())
            facts = facts_for(tx, caller, command, self.settings, evidence)
            decision = decide(facts)
            facts = decision.chosen or facts
            require_evidence(facts, decision, evidence)
            refusal = decision.refusal
            if refusal is not None:
                tx.log_refusal(logged(tx.now, who, command, refusal))
            if refusal is None or decision.events:
                newcomers = facts.newcomers if isinstance(facts, SyncFacts) else ()
                is_new = is_new and (bool(decision.sessions) or not command.spec.repeatable)
                for unknown in ((caller.actor,) if is_new else ()) + newcomers:
                    register(tx, caller, unknown)
                outcome = self._commit(tx, who, command, facts, decision, request)
        if refusal is not None:
            raise Refused(refusal)
        return outcome

    def _commit(
        self,
        tx: WriteTransaction,
        who: Identity,
        command: c.Command,
        facts: Facts,
        decision: Decision,
        request: PendingRequest,
    ) -> Outcome:
        """Writes the decision, and what is needed to replay the answer to a retry."""
        session = session_at(who, facts.caller, command, decision)
        for row in (session,) if session is not None else decision.sessions:
            tx.keep_session(row)
        if decision.background is not None:
            tx.set_background(decision.background)
        if request.own and leaves_trace(command, decision):
            tx.request_id = request.id
        outcome = write(tx, facts, decision, self.store)
        if request.id is not None and tx.request_id is None:
            from dibs.board.requests import keep_answer

            keep_answer(tx, command, request.id, outcome, decision.refusal)
        keep_processes(tx, facts, decision, outcome.task)
        tx.finish(changed=bool(decision.renews or request.id))
        return outcome

    # Evidence.

    def _first_evidence(self, command: c.Command) -> Evidence:
        """Which holders are dead, if the command depends on it; kills the orphan processes of the dead."""
        if not command.spec.checks_liveness:
            return NO_EVIDENCE
        from dibs.board.liveness import kill_orphans_of_dead

        return kill_orphans_of_dead(self)

    def _deaths_behind(
        self, who: Identity, command: c.Command, problem: Refused, evidence: Evidence
    ) -> Mapping[TaskId, DeathEvidence]:
        """The deaths behind a refusal, if a dead holder blocks the command and was not known as such."""
        if not command.spec.ends_the_dead:
            return {}
        from dibs.board.liveness import check_liveness, kill_orphans_of_dead

        if problem.code == "held" and not evidence.deaths:
            return kill_orphans_of_dead(self, command.named()["task"]).deaths
        if problem.code != "scope_held":
            return {}
        deaths = check_liveness(self).deaths
        with self.read() as tx:
            rival = tx.task(TaskKey(str(problem.refusal.facts["other"])))
        if rival is None or rival.id not in deaths or rival.id in evidence.deaths:
            return {}
        self.execute(who, c.Sweep(limit=len(deaths)))  # of all dead holders, and of nobody else
        return deaths

    def plan(self, who: Identity, command: c.Command) -> Plan:
        """Returns what the command would lead to now, without changing anything."""
        evidence = NO_EVIDENCE
        if command.spec.checks_liveness:
            from dibs.board.liveness import check_liveness

            evidence = check_liveness(self)
        with self.read() as tx:
            caller, _ = caller_of(tx, who, self.settings)
            facts = facts_for(tx, caller, command, self.settings, evidence)
            facts = facts.but(is_plan=True)
            return Plan(decide(facts), facts, tx.now)

    def _renew(self, who: Identity, command: c.Command) -> Outcome | None:
        """Fast path for a plain renewal; `None` if the store has none or the renewal needs more than that."""
        assert isinstance(command, c.Renew), command.verb
        light = self.store.renewal(command.task)
        if light is None:
            return None
        with light as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            if is_new or tx.new_home:
                return None
            facts = facts_for(tx, caller, command, self.settings)
            decision = decide(facts)
            session = session_at(who, caller, command, decision)
            if decision.events or decision.refusal or (session and not tx.knows(session)):
                return None
            return write(tx, facts, decision, self.store)

    def log_refusal(self, who: Identity, command: c.Command, refusal: Refusal) -> None:
        """Logs a refusal that was found before `decide`, such as that of an impostor."""
        with self.store.write("log") as tx:
            tx.log_refusal(logged(tx.now, who, command, refusal))

    def _above_the_files(
        self, tx: WriteTransaction, caller: Caller, command: c.Sync, *, is_new: bool
    ) -> bool:
        """Begins a new epoch above the tokens that only the item files know: this board issued those too."""
        from dibs.board.facts.sync import epoch_in_files

        known = epoch_in_files(tx, command)
        if not known:
            return is_new
        evidence = Evidence(known_epoch=known)
        return start_new_epoch(tx, caller, REBUILT, self.settings, evidence, is_new=is_new)


# Reading.


def facts_for(
    tx: ReadTransaction,
    caller: Caller,
    command: c.Command,
    settings: Settings,
    evidence: Evidence = NO_EVIDENCE,
) -> Facts:
    basis = Facts(caller, settings.rules, tx.board.epoch, command, tx.now, {}, is_plan=False)
    return load(tx, basis, settings, evidence).but(now=tx.now)  # a task that is read may raise it


def load(tx: ReadTransaction, basis: Facts, settings: Settings, evidence: Evidence) -> Facts:
    kind = basis.command.spec.facts
    if kind in ("task", "claim"):
        return load_task(tx, basis, evidence)
    if kind in ("add", "intake"):
        from dibs.board.facts.intake import load_requests

        return load_requests(tx, basis, settings.key_prefix)
    if kind == "sync":
        from dibs.board.facts.sync import load_items

        return load_items(tx, basis, settings)
    if kind in ("stint", "approval"):
        from dibs.board.facts.stints import load_hours

        return load_hours(tx, basis)
    if kind in ("board", "clock", "actor", "epoch"):
        from dibs.board.facts.board import load_board

        return load_board(tx, basis, settings, evidence)
    if kind == "session":
        from dibs.board.facts.sessions import load_session

        return load_session(tx, basis)
    from dibs.board.facts.queue import load_many

    return load_many(tx, basis, evidence)


def changeable(board: ReadableBoard) -> Board:
    """The same board with the operations that change it."""
    if isinstance(board, Board):
        return board
    same = Board(board.store, board.settings, board.backlog, board.user)
    same.repository = board.repository
    return same


def prefetch_queries(
    who: Identity, command: c.Command, actor: ActorId | None, request_id: str | None
) -> tuple[Question, ...]:
    """The queries that a command always starts with, to be sent ahead. A wrong guess costs only itself."""
    ahead: list[Question] = []
    if isinstance(command, c.TaskCommand):
        ahead.append(("task_by_key", {"folded": folded_key(command.task)}))
    if actor is None:
        ahead.append(("actor_by_name", {"folded": folded_name(who.name)}))
        return tuple(ahead)
    if request_id:
        ahead.append(("request", {"actor": actor, "id": request_id}))
    if command.spec.ends_the_dead and who.place is not None:
        ahead.append(("session", {"actor": actor, "name": who.session}))
    return tuple(ahead)


# Writing.


def carry_out(
    tx: WriteTransaction,
    caller: Caller,
    command: c.Command,
    settings: Settings,
    evidence: Evidence = NO_EVIDENCE,
) -> Outcome | Refusal:
    """One of several steps of a transaction: facts, decision, writes."""
    facts = facts_for(tx, caller, command, settings, evidence)
    decision = decide(facts)
    if decision.refusal is not None:
        return decision.refusal
    return write(tx, facts, decision)


def write(
    tx: WriteTransaction, facts: Facts, decision: Decision, store: Store | None = None
) -> Outcome:
    """Writes the events and the rows that they change, in the same transaction."""
    caller, before = facts.caller, task_of(facts)
    own = Change(before, decision.events)
    task, entries = write_events(tx, own, caller, store)
    changed = [write_change(tx, change, caller, entries, store) for change in decision.others]
    give_out_keys(tx, facts, task)
    if decision.settings is not None:
        tx.save_settings(decision.settings)
    if decision.renews:
        assert task is not None, "only a task's lease is renewed"
        task = renew(task, tx.now)
    if task is not None and before is not None and task != before:
        tx.save(task)
    task = next((other for other in changed if task and other.id == task.id), task)
    events = decision.events + tuple(e for change in decision.others for e in change.events)
    named = actors_named(tx, task, events)
    if decision.actor is not None:
        named = {caller.actor.id: caller.actor, **facts.actors, decision.actor.id: decision.actor}
    keys = {other.id: other.key for other in changed}
    return Outcome(
        caller,
        tx.now,
        task,
        tuple(entries),
        events,
        named,
        tx.skewed,
        keys=keys,
        repeats=decision.repeats,
        actor=decision.actor,
        warnings=overlapping(facts, tx.now),
        outdated=outdated(facts),
    )


def write_events(
    tx: WriteTransaction, change: Change, caller: Caller, store: Store | None
) -> tuple[Task | None, list[Entry]]:
    """Appends the events; the task after them, whose row is not written yet, and their ledger entries."""
    task, entries = change.task, []
    for event in change.events:
        if isinstance(event, e.Added):
            task, entry = tx.add_task(event, caller)
        elif isinstance(event, e.TaskEvent):
            assert task is not None, "a task's event comes after its task"
            task, entry = tx.append(task, event, caller)
        else:
            entry = append_board_event(tx, caller, event, store)
        entries.append(entry)
    return task, entries


def append_board_event(
    tx: WriteTransaction, caller: Caller, event: Event, store: Store | None = None
) -> Entry:
    """Appends an event of the board itself, and changes its rows.

    `store`: whose clock is set; without one the board came to another clock, and only its leases shift.
    """
    from dibs.domain.events import board as b

    if isinstance(event, b.ActorRegistered):
        tx.register(Actor(event.id, event.name, event.kind, event.tier))
    elif isinstance(event, b.ActorChanged):
        fields = event.named()
        aliases = fields.pop("aliases")
        tx.change_actor(Actor(**fields), aliases)
    elif isinstance(event, b.Paused):
        tx.pause(caller.actor.id, event.reason)
    elif isinstance(event, b.Unpaused):
        tx.pause(None, "")
    elif isinstance(event, b.ClockSet):
        if store is None:
            tx.shift_leases(event.by)
        else:
            store.set_clock(tx, event.by)
    entry = tx.append_to_board(event, caller)
    if isinstance(event, b.Approved):
        tx.add_approval(entry.seq, event)
    elif isinstance(event, b.Reopened):
        tx.reopen(event.approval, entry.seq)
    elif isinstance(event, b.EpochRaised):
        tx.begin_epoch(event.epoch)
    return entry


def register(tx: WriteTransaction, caller: Caller, actor: Actor | None = None) -> None:
    """Registers the caller, or another actor that it names."""
    from dibs.domain.events.board import registration

    for event in registration(actor or caller.actor):
        append_board_event(tx, caller, event)


def write_change(
    tx: WriteTransaction, change: Change, caller: Caller, entries: list[Entry], store: Store | None
) -> Task:
    """Writes one of many changed tasks: its events and its row, or only that its lease is suspect."""
    task, own = write_events(tx, change, caller, store)
    entries += own
    assert task is not None, "without a task the first event adds one"
    if change.suspect is not None:
        task = task.but(lease=lease_of(task).but(suspect=change.suspect))
    if change.task is not None or len(change.events) > 1:
        tx.save(task if change.task else task.but(version=1))
    return task


def task_of(facts: Facts) -> Task | None:
    """The task that the facts are about, as it was read."""
    task: Task | None = getattr(facts, "task", None)
    return task


def give_out_keys(tx: WriteTransaction, facts: Facts, task: Task | None) -> None:
    """Counts the key numbers that were given out."""
    if isinstance(facts, AddFacts) and task is not None and task.key == facts.fresh_key:
        tx.give_out_key(int(task.key.rpartition("-")[2]))
    elif isinstance(facts, IntakeFacts) and facts.last_number > tx.board.keys:
        tx.give_out_key(facts.last_number)


def outdated(facts: Facts) -> tuple[str, ...]:
    """The refs of items whose tasks changed after their files were compared."""
    if not isinstance(facts, SyncFacts):
        return ()
    return tuple(match.listed.ref for match in facts.matches if match.outdated)


def overlapping(facts: Facts, now: Instant) -> tuple[str, ...]:
    """Warnings about overlapping scopes, where the board only warns: who may touch the same paths."""
    if not isinstance(facts, TaskFacts | ResetFacts) or not facts.beside:
        return ()
    from dibs.domain.refusals import scope_held

    task = facts.task
    return tuple(
        scope_held(task, rival, facts.actor(rival.actor), now).message for rival in facts.beside
    )


def session_at(
    who: Identity, caller: Caller, command: c.Command, decision: Decision
) -> Session | None:
    """The session row to store: when the session acquires a lease, has a process, or is watched by hooks.

    Commands about sessions decide on it themselves.
    """
    takes_up = isinstance(command, c.Claim) or any(
        isinstance(event, (e.LeaseBegun, e.Bound)) for event in decision.events
    )
    place = who.place
    if place is None or caller.is_child or command.spec.repeatable:
        return None
    if not (takes_up or place.process is not None or place.watched):
        return None
    return place.but(actor=caller.actor.id, name=caller.session)


def keep_processes(
    tx: WriteTransaction, facts: Facts, decision: Decision, task: Task | None
) -> None:
    """Stores the caller's process behind its lease, and removes those that are gone."""
    if task is None or decision.refusal is not None:
        return
    if isinstance(facts, ClaimFacts):
        for kept in facts.processes:
            if facts.lives.get(kept.behind.process) is False:
                tx.end_process(task.id, kept.token, kept.behind.process)
    caller = facts.caller
    if caller.behind is None:
        return
    if task.lease is not None and task.lease.held_by(caller):
        tx.keep_process(task, caller)
    elif task.lease is None:
        tx.end_process(task.id, task.token, caller.behind.process)


def start_new_epoch(
    tx: WriteTransaction,
    caller: Caller,
    why: str,
    settings: Settings,
    evidence: Evidence = NO_EVIDENCE,
    *,
    is_new: bool,
) -> bool:
    """Begins a new epoch, so that new tokens exceed any that are known elsewhere and not here."""
    if is_new:
        register(tx, caller)
    carry_out(tx, caller, c.BeginEpoch(why), settings, evidence)
    return False


# Replays of earlier requests.


def replayed(
    tx: ReadTransaction, caller: Caller, command: c.Command, request: PendingRequest
) -> Outcome | None:
    request_id = request.before
    if request_id is None:
        return None
    from dibs.board.requests import digest_of, rebuild_from_events, replay

    known = tx.request(caller.actor.id, request_id)
    if known is None:
        return rebuild_from_events(tx, caller, request_id, request.since) if request.own else None
    return replay(tx, caller, known, digest_of(caller, command), request_id)


def leaves_trace(command: c.Command, decision: Decision) -> bool:
    """Whether the events alone allow the answer to be rebuilt: then no copy of it is stored."""
    return (
        isinstance(command, c.TaskCommand)
        and bool(decision.events)
        and not decision.others
        and decision.refusal is None
    )


def logged(now: Instant, who: Identity, command: c.Command, refusal: Refusal) -> LoggedRefusal:
    return LoggedRefusal(
        id=0,
        at=now,
        verb=command.spec.typed,
        task=getattr(command, "task", ""),
        actor=who.name,
        session=who.session,
        code=refusal.code,
        message=refusal.message,
    )


def lock_label(command: c.Command) -> str:
    """The command as shown to those who wait for the write lock."""
    return f"{command.spec.typed} {getattr(command, 'task', '')}".strip()
