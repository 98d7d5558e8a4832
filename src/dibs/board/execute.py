"""Execute commands on a board: read facts, decide, write. Every change is one transaction."""

from __future__ import annotations

import os

from dibs.board.callers import caller_of, register, session_at
from dibs.board.facts.task import NO_EVIDENCE, Evidence, facts_for
from dibs.board.identity import Identity
from dibs.board.lease_processes import ProcessCheckNeeded, keep_processes, require_process_check
from dibs.board.outcome import Outcome, actors_named
from dibs.board.retry import PendingRequest, ReadableBoard, retry_on_disconnect
from dibs.board.user_config import User
from dibs.domain import commands as c
from dibs.domain.decide.tasks import Change, Decision, decide
from dibs.domain.events import tasks as e
from dibs.domain.events.base import lease_of
from dibs.domain.evolve import renew, taken_by
from dibs.domain.facts import Facts, LeftoverWork
from dibs.domain.instants import Instant
from dibs.domain.ledger import Entry
from dibs.domain.model import (
    ActorId,
    Caller,
    LoggedRefusal,
    Task,
    TaskKey,
    folded_key,
    folded_name,
)
from dibs.domain.refusals import Refusal, Refused
from dibs.domain.values import Value
from dibs.storage.transaction import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from dibs.board.settings import Settings
    from dibs.domain.facts import DeathEvidence
    from dibs.domain.model import TaskId
    from dibs.storage.store import Question, Store
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

    class Backlog(Protocol):
        """The backlog's item files: read before a command that depends on them, written after its commit.

        `before` and `after` return warnings for the user. A file that cannot be
        written waits for the next sync.
        """

        def before(self, board: Board, who: Identity, command: c.Command) -> tuple[str, ...]: ...

        def after(self, board: Board, who: Identity, outcome: Outcome) -> tuple[str, ...]: ...

        def read(self, board: Board, who: Identity) -> str:
            """Imports every change in the files; returns one line that summarizes
            it, or "" without changes.
            """
            ...

        def paths(self, tx: ReadTransaction, tasks: Iterable[Task]) -> frozenset[str]:
            """The paths of these tasks' item files, relative to the repository."""
            ...

        def deaths(self, board: Board) -> Mapping[TaskId, DeathEvidence]:
            """Leases whose sessions have ended, according to a list that the backlog itself maintains."""
            ...


TAKES_UP = (c.Claim, c.Start, c.Takeover)
CHECK_LIVENESS = (c.Retry, c.Reset, c.Sweep)
"""Commands that first check which holders are dead."""

REBUILT = "rebuilt from files"
"""The reason recorded for a new epoch when item files contain tokens that the board does not."""

BOARD_COMMANDS = (c.SetActor, c.SetClock, c.Pause, c.Resume, c.Approve, c.Reopen)


class WorktreeCheckNeeded(Exception):  # noqa: N818 - not an error: a lease is about to be taken
    """Raised to leave the transaction, inspect the worktree of the holder who loses the lease, and retry."""

    def __init__(self, ending: e.Ending) -> None:
        super().__init__(ending.worktree)
        self.ending = ending


class Plan(Value):
    """The decision that a command would lead to now, with the facts behind it."""

    decision: Decision
    facts: Facts
    now: Instant


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
        backlog = self.backlog
        if backlog is None or isinstance(command, c.Sync):
            return self._asked(who, command, request_id)
        said = backlog.before(self, who, command)
        outcome = self._asked(who, command, request_id)
        return outcome.but(said=said + outcome.said + backlog.after(self, who, outcome))

    def _asked(self, who: Identity, command: c.Command, request_id: str | None) -> Outcome:
        # On a server every change gets a request id, so that it can be retried safely after a lost
        # connection.
        own = request_id is None and self.store.remote
        asked = PendingRequest(os.urandom(12).hex() if own else request_id, own=own)
        light = isinstance(command, c.Renew) and request_id is None
        outcome = retry_on_disconnect(self, lambda: self._execute(who, command, light, asked))
        return self._scrubbed(outcome) if isinstance(command, c.Redact) else outcome

    def _scrubbed(self, outcome: Outcome) -> Outcome:
        """Also removes redacted text from what the store itself leaves behind."""
        from dibs.board.locate import scrub

        return outcome.but(said=scrub(self.store))

    def _execute(
        self, who: Identity, command: c.Command, light: bool, asked: PendingRequest
    ) -> Outcome:
        outcome = self._renew(who, command) if light else None
        seen = self._bury() if isinstance(command, CHECK_LIVENESS) else NO_EVIDENCE
        while outcome is None:
            try:
                outcome = self._attempt(who, command, asked, seen)
            except WorktreeCheckNeeded as look:
                from dibs.board.former_work import left_by

                left = left_by(look.ending, self.store.machine, self.repository)
                seen = seen.but(left=left)
            except ProcessCheckNeeded as look:
                from dibs.board.liveness import lives

                found = lives(self, look.kept, ends_left=who.behind is not None)
                seen = seen.but(lives={**seen.lives, **found})
            except Refused as problem:
                dead = self._look_at_holder(who, command, problem, seen)
                if dead is None:
                    raise
                seen = seen.but(deaths=dead.deaths)
        return outcome

    def _bury(self) -> Evidence:
        from dibs.board.liveness import kill_orphans_of_dead

        return kill_orphans_of_dead(self)

    def _look_at_holder(
        self, who: Identity, command: c.Command, problem: Refused, seen: Evidence
    ) -> Evidence | None:
        """Checks whether the holder that blocks this command is dead; returns the
        evidence if so, else `None`.
        """
        if not isinstance(command, TAKES_UP):
            return None
        if problem.code == "scope_held":
            from dibs.board.liveness import sweep_dead_rival

            return sweep_dead_rival(self, who, TaskKey(str(problem.refusal.facts["other"])), seen)
        if problem.code != "held" or seen.deaths:
            return None
        from dibs.board.liveness import kill_orphans_of_dead

        dead = kill_orphans_of_dead(self, command.task)
        return dead if dead.deaths else None

    def plan(self, who: Identity, command: c.Command) -> Plan:
        """Returns what the command would lead to now, without changing anything."""
        seen = NO_EVIDENCE
        if isinstance(command, CHECK_LIVENESS):
            from dibs.board.liveness import check_liveness

            seen = check_liveness(self)
        with self.read() as tx:
            caller, _ = caller_of(tx, who, self.settings)
            facts = facts_for(tx, caller, command, self.settings, seen).but(is_plan=True)
            return Plan(decide(facts, command, tx.now), facts, tx.now)

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
            decision = decide(facts, command, tx.now)
            session = session_at(who, caller, command, decision)
            if decision.events or decision.refusal or (session and not tx.knows(session)):
                return None
            return write(tx, caller, facts, decision)

    def log_refusal(self, who: Identity, command: c.Command, refusal: Refusal) -> None:
        """Logs a refusal that was found before `decide`, such as that of an impostor."""
        with self.store.write("log") as tx:
            tx.log_refusal(logged(tx.now, who, command, refusal))

    def _attempt(
        self, who: Identity, command: c.Command, asked: PendingRequest, seen: Evidence
    ) -> Outcome | None:
        """Runs one transaction; `None` if it only began a new epoch, in which to try again."""
        ahead = prefetch_queries(who, command, self._met.get(who.name), asked.before)
        with self.store.write(lock_label(command), ahead) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            self._met[who.name] = caller.actor.id
            if tx.new_home:
                start_new_epoch(tx, caller, tx.new_home, is_new=is_new)
                tx.finish()
                return None
            known = replayed(tx, caller, command, asked)
            if known is not None:
                if self.store.remote:
                    tx.touch()
                return known
            asked.record_attempt(tx.board.seq)
            if isinstance(command, c.Sync):
                is_new = self._above_the_files(tx, caller, command, is_new=is_new)
            facts = facts_for(tx, caller, command, self.settings, seen)
            require_process_check(facts)
            decision = decide(facts, command, tx.now)
            refusal = decision.refusal
            if refusal is not None:
                tx.log_refusal(logged(tx.now, who, command, refusal))
            if refusal is None or decision.events:
                require_worktree_check(decision, seen.left)
                for unknown in ((caller.actor,) if is_new else ()) + facts.newcomers:
                    register(tx, caller, unknown)
                session = session_at(who, caller, command, decision)
                if session is not None:
                    tx.keep_session(session)
                outcome = self._write(tx, facts, command, decision, asked)
                keep_processes(tx, facts, decision, outcome.task)
                tx.finish(changed=bool(decision.renews or asked.id))
        if refusal is not None:
            raise Refused(refusal)
        return outcome

    def _above_the_files(
        self, tx: WriteTransaction, caller: Caller, command: c.Sync, *, is_new: bool
    ) -> bool:
        """Begins a new epoch above the tokens that only the item files know: this board issued those too."""
        from dibs.board.facts.sync import epoch_in_files

        known = epoch_in_files(tx, command)
        return start_new_epoch(tx, caller, REBUILT, known, is_new=is_new) if known else is_new

    def _write(
        self,
        tx: WriteTransaction,
        facts: Facts,
        command: c.Command,
        decision: Decision,
        asked: PendingRequest,
    ) -> Outcome:
        """Writes the decision, and what is needed to replay the answer to a retry."""
        if asked.own and leaves_trace(command, decision):
            tx.request_id = asked.id
        if isinstance(command, BOARD_COMMANDS):
            from dibs.board.admin import administer

            outcome = administer(self, tx, facts, command, decision)
        else:
            outcome = write(tx, facts.caller, facts, decision)
        if asked.id is not None and tx.request_id is None:
            keep_answer(tx, command, asked.id, outcome, decision.refusal)
        return outcome


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
    if isinstance(command, TAKES_UP) and who.place is not None:
        ahead.append(("session", {"actor": actor, "name": who.session}))
    return tuple(ahead)


def overlapping(facts: Facts, now: Instant) -> tuple[str, ...]:
    """Warnings about overlapping scopes, where the board only warns: who may touch the same paths."""
    from dibs.domain.refusals import scope_held

    task = facts.task
    assert task is not None, "a scope is a task's"
    return tuple(
        scope_held(task, rival, facts.actors[rival.actor], now).message for rival in facts.beside
    )


# Writing.


def write(tx: WriteTransaction, caller: Caller, facts: Facts, decision: Decision) -> Outcome:
    """Writes the events and the task row that they produce, in the same transaction."""
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
    changed = [write_change(tx, change, caller, entries) for change in decision.others]
    if facts.last_number > tx.board.keys:
        tx.give_out_key(facts.last_number)
    if decision.renews:
        assert task is not None, "only a task's lease is renewed"
        task = renew(task, tx.now)
    if task is not None and task != facts.task and facts.task is not None:
        tx.save(task)
    task = next((other for other in changed if task and other.id == task.id), task)
    events = decision.events + tuple(e for change in decision.others for e in change.events)
    named = actors_named(tx, task, events)
    keys = {other.id: other.key for other in changed}
    outcome = Outcome(caller, tx.now, task, tuple(entries), events, named, tx.skewed, keys=keys)
    outcome = outcome.but(repeats=decision.repeats)
    if facts.matches:
        refs = tuple(match.listed.ref for match in facts.matches if match.outdated)
        outcome = outcome.but(outdated=refs)
    return outcome.but(said=overlapping(facts, tx.now)) if facts.beside else outcome


def start_new_epoch(
    tx: WriteTransaction, caller: Caller, why: str, known: int = 0, *, is_new: bool
) -> bool:
    """Begins a new epoch, so that new tokens exceed any that are known elsewhere and not here."""
    from dibs.board.epochs import begin_epoch

    if is_new:
        register(tx, caller)
    begin_epoch(tx, caller, why, known)
    return False


def write_change(
    tx: WriteTransaction, change: Change, caller: Caller, entries: list[Entry]
) -> Task:
    """Writes one of many changed tasks: its events and its row, or only that its lease is suspect."""
    task = change.task
    for event in change.events:
        if isinstance(event, e.Added):
            task, entry = tx.add_task(event, caller)
        else:
            assert isinstance(event, e.TaskEvent), event.verb
            assert task is not None, "a task's event comes after its task"
            task, entry = tx.append(task, event, caller)
        entries.append(entry)
    assert task is not None, "without a task the first event adds one"
    if change.suspect is not None:
        task = task.but(lease=lease_of(task).but(suspect=change.suspect))
    if change.task is not None or len(change.events) > 1:
        tx.save(task if change.task else task.but(version=1))
    return task


def require_worktree_check(decision: Decision, left: LeftoverWork | None) -> None:
    """Raises `LookFirst` before a lease is taken, unless the former holder's worktree was inspected."""
    for event in decision.events:
        ending = taken_by(event)
        if left is None and ending and ending.worktree:
            raise WorktreeCheckNeeded(ending)


# Replays of earlier requests.


def replayed(
    tx: ReadTransaction, caller: Caller, command: c.Command, asked: PendingRequest
) -> Outcome | None:
    request_id = asked.before
    if request_id is None:
        return None
    from dibs.board.requests import digest_of, rebuild_from_events, replay

    known = tx.request(caller.actor.id, request_id)
    if known is None:
        return rebuild_from_events(tx, caller, request_id, asked.since) if asked.own else None
    return replay(tx, caller, known, digest_of(caller, command), request_id)


def leaves_trace(command: c.Command, decision: Decision) -> bool:
    """Whether the events alone allow the answer to be rebuilt: then no copy of it is stored."""
    return (
        isinstance(command, c.TaskCommand)
        and bool(decision.events)
        and not decision.others
        and decision.refusal is None
    )


def keep_answer(
    tx: WriteTransaction,
    command: c.Command,
    request_id: str,
    outcome: Outcome,
    refusal: Refusal | None,
) -> None:
    from dibs.board.requests import digest_of, encode_answer

    caller = outcome.caller
    request = Request(digest_of(caller, command), encode_answer(outcome, refusal))
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


def lock_label(command: c.Command) -> str:
    """The command as shown to those who wait for the write lock."""
    return f"{command.typed} {getattr(command, 'task', '')}".strip()
