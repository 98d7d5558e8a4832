"""The board: read, decide, write. Every change is one transaction."""

from __future__ import annotations

import os

from dibs.board.behind import LookAtProcesses, keep_processes, look_at_processes
from dibs.board.callers import caller_of, register, session_at
from dibs.board.identity import Identity
from dibs.board.known import NOTHING, Evidence, facts_for
from dibs.board.outcome import Outcome, actors_named
from dibs.board.persist import Asked, Opened, persist
from dibs.board.user import User
from dibs.core import commands as c
from dibs.core import events as e
from dibs.core.decide import Change, Decision, decide
from dibs.core.event import lease_of
from dibs.core.evolve import renew, taken_by
from dibs.core.facts import Facts, Left
from dibs.core.instants import Instant
from dibs.core.ledger import Entry
from dibs.core.model import (
    ActorId,
    Caller,
    LoggedRefusal,
    Task,
    TaskKey,
    folded,
    folded_key,
)
from dibs.core.refusals import Refusal, Refused
from dibs.core.values import Value
from dibs.stores.transaction import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from dibs.board.settings import Settings
    from dibs.core.facts import Death
    from dibs.core.model import TaskId
    from dibs.stores.store import Question, Store
    from dibs.stores.transaction import ReadTransaction, WriteTransaction

    class Backlog(Protocol):
        """Item files: read before a command that depends on them, written after its commit.

        Both say what a person should know; what cannot be written is left to the next sync.
        """

        def before(self, board: Board, who: Identity, command: c.Command) -> tuple[str, ...]: ...

        def after(self, board: Board, who: Identity, outcome: Outcome) -> tuple[str, ...]: ...

        def read(self, board: Board, who: Identity) -> str:
            """Takes in all that is new in the files; a line about it, if there was anything."""
            ...

        def paths(self, tx: ReadTransaction, tasks: Iterable[Task]) -> frozenset[str]:
            """Where the item files of these tasks are, relative to the repository."""
            ...

        def deaths(self, board: Board) -> Mapping[TaskId, Death]:
            """Leases whose sessions have ended, by a list that the backlog keeps itself."""
            ...


TAKES_UP = (c.Claim, c.Start, c.Takeover)
LOOKS_ROUND = (c.Retry, c.Reset, c.Sweep)
"""Commands for which it matters who is dead."""

REBUILT = "rebuilt from files"
"""Why an epoch begins when item files know tokens that the board does not."""

BOARD_COMMANDS = (c.SetActor, c.SetClock, c.Pause, c.Resume, c.Approve, c.Reopen)


class LookFirst(Exception):  # noqa: N818 - not an error: a lease is about to be taken from somebody
    """What its holder left behind is looked up before the transaction, then it is tried again."""

    def __init__(self, ending: e.Ending) -> None:
        super().__init__(ending.worktree)
        self.ending = ending


class Plan(Value):
    """What a command would lead to."""

    decision: Decision
    facts: Facts
    now: Instant


class Board(Opened):
    """What can be done with a board. One method for changes; `views` has the questions."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        backlog: Backlog | None = None,
        user: User = User(),  # noqa: B008 - it cannot be changed
    ) -> None:
        super().__init__(store, settings, backlog, user)
        self._met: dict[str, ActorId] = {}
        """Who called before: what will be asked about them is known ahead."""

    def settle(self) -> None:
        """Goes where the board is, before something that concerns its place."""
        with self.read():
            pass

    def execute(self, who: Identity, command: c.Command, request_id: str | None = None) -> Outcome:
        """Carries the command out, or raises `Refused`. The same request id: the same answer."""
        backlog = self.backlog
        if backlog is None or isinstance(command, c.Sync):
            return self._asked(who, command, request_id)
        said = backlog.before(self, who, command)
        outcome = self._asked(who, command, request_id)
        return outcome.but(said=said + outcome.said + backlog.after(self, who, outcome))

    def _asked(self, who: Identity, command: c.Command, request_id: str | None) -> Outcome:
        # On a server, what was lost on its way is asked for again: every change has an id there.
        own = request_id is None and self.store.remote
        asked = Asked(os.urandom(12).hex() if own else request_id, own=own)
        light = isinstance(command, c.Renew) and request_id is None
        outcome = persist(self, lambda: self._execute(who, command, light, asked))
        return self._scrubbed(outcome) if isinstance(command, c.Redact) else outcome

    def _scrubbed(self, outcome: Outcome) -> Outcome:
        """What was removed is removed from the store's own leftovers, too."""
        from dibs.board.moving import scrub

        return outcome.but(said=scrub(self))

    def _execute(self, who: Identity, command: c.Command, light: bool, asked: Asked) -> Outcome:
        outcome = self._renew(who, command) if light else None
        seen = self._bury() if isinstance(command, LOOKS_ROUND) else NOTHING
        while outcome is None:
            try:
                outcome = self._attempt(who, command, asked, seen)
            except LookFirst as look:
                from dibs.board.left_behind import left_by

                left = left_by(look.ending, self.store.machine, self.repository)
                seen = seen.but(left=left)
            except LookAtProcesses as look:
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
        from dibs.board.liveness import bury

        return bury(self)

    def _look_at_holder(
        self, who: Identity, command: c.Command, problem: Refused, seen: Evidence
    ) -> Evidence | None:
        """The process of a holder that stands in the way may be dead: then it is no holder."""
        if not isinstance(command, TAKES_UP):
            return None
        if problem.code == "scope_held":
            from dibs.board.liveness import bury_rival

            return bury_rival(self, who, TaskKey(str(problem.refusal.facts["other"])), seen)
        if problem.code != "held" or seen.deaths:
            return None
        from dibs.board.liveness import bury

        dead = bury(self, command.task)
        return dead if dead.deaths else None

    def plan(self, who: Identity, command: c.Command) -> Plan:
        """What the command would lead to now. Nothing is changed."""
        seen = NOTHING
        if isinstance(command, LOOKS_ROUND):
            from dibs.board.liveness import look

            seen = look(self)
        with self.read() as tx:
            caller, _ = caller_of(tx, who, self.settings)
            facts = facts_for(tx, caller, command, self.settings, seen).but(is_plan=True)
            return Plan(decide(facts, command, tx.now), facts, tx.now)

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
            facts = facts_for(tx, caller, command, self.settings)
            decision = decide(facts, command, tx.now)
            session = session_at(who, caller, command, decision)
            if decision.events or decision.refusal or (session and not tx.knows(session)):
                return None
            return write(tx, caller, facts, decision)

    def log_refusal(self, who: Identity, command: c.Command, refusal: Refusal) -> None:
        """A refusal that was found before the rules were asked, such as that of an impostor."""
        with self.store.write("log") as tx:
            tx.log_refusal(logged(tx.now, who, command, refusal))

    def _attempt(
        self, who: Identity, command: c.Command, asked: Asked, seen: Evidence
    ) -> Outcome | None:
        """One transaction; nothing if it began a new epoch, in which to try again."""
        ahead = questions(who, command, self._met.get(who.name), asked.before)
        with self.store.write(what(command), ahead) as tx:
            caller, is_new = caller_of(tx, who, self.settings)
            self._met[who.name] = caller.actor.id
            if tx.new_home:
                begun_anew(tx, caller, tx.new_home, is_new=is_new)
                tx.finish()
                return None
            known = replayed(tx, caller, command, asked)
            if known is not None:
                if self.store.remote:
                    tx.touch()
                return known
            asked.begins(tx.board.seq)
            if isinstance(command, c.Sync):
                is_new = self._above_the_files(tx, caller, command, is_new=is_new)
            facts = facts_for(tx, caller, command, self.settings, seen)
            look_at_processes(facts)
            decision = decide(facts, command, tx.now)
            refusal = decision.refusal
            if refusal is not None:
                tx.log_refusal(logged(tx.now, who, command, refusal))
            if refusal is None or decision.events:
                look_first(decision, seen.left)
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
        """Tokens that only item files know were given out by this board: the next ones are above them."""
        from dibs.board.listing import epoch_in_files

        known = epoch_in_files(tx, command)
        return begun_anew(tx, caller, REBUILT, known, is_new=is_new) if known else is_new

    def _write(
        self,
        tx: WriteTransaction,
        facts: Facts,
        command: c.Command,
        decision: Decision,
        asked: Asked,
    ) -> Outcome:
        """What was decided, and what tells it to somebody who has to ask again."""
        if asked.own and leaves_trace(command, decision):
            tx.request_id = asked.id
        if isinstance(command, BOARD_COMMANDS):
            from dibs.board.affairs import administer

            outcome = administer(self, tx, facts, command, decision)
        else:
            outcome = write(tx, facts.caller, facts, decision)
        if asked.id is not None and tx.request_id is None:
            keep_answer(tx, command, asked.id, outcome, decision.refusal)
        return outcome


def questions(
    who: Identity, command: c.Command, actor: ActorId | None, request_id: str | None
) -> tuple[Question, ...]:
    """What a command asks first, whatever comes of it. A wrong guess costs nothing but itself."""
    ahead: list[Question] = []
    if isinstance(command, c.TaskCommand):
        ahead.append(("task_by_key", {"folded": folded_key(command.task)}))
    if actor is None:
        ahead.append(("actor_by_name", {"folded": folded(who.name)}))
        return tuple(ahead)
    if request_id:
        ahead.append(("request", {"actor": actor, "id": request_id}))
    if isinstance(command, TAKES_UP) and who.place is not None:
        ahead.append(("session", {"actor": actor, "name": who.session}))
    return tuple(ahead)


def overlapping(facts: Facts, now: Instant) -> tuple[str, ...]:
    """Where the board only warns of it: who may touch the same paths."""
    from dibs.core.refusals import scope_held

    task = facts.task
    assert task is not None, "a scope is a task's"
    return tuple(
        scope_held(task, rival, facts.actors[rival.actor], now).message for rival in facts.beside
    )


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
    changed = [carried_out(tx, change, caller, entries) for change in decision.others]
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


def begun_anew(
    tx: WriteTransaction, caller: Caller, why: str, known: int = 0, *, is_new: bool
) -> bool:
    """Tokens may be known elsewhere that are not known here: higher ones are given out from now on."""
    from dibs.board.epochs import begin_epoch

    if is_new:
        register(tx, caller)
    begin_epoch(tx, caller, why, known)
    return False


def carried_out(tx: WriteTransaction, change: Change, caller: Caller, entries: list[Entry]) -> Task:
    """One of many tasks: its events and its row, or only that it is suspect."""
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


def look_first(decision: Decision, left: Left | None) -> None:
    """Before a lease is taken from its holder: what lies where it worked."""
    for event in decision.events:
        ending = taken_by(event)
        if left is None and ending and ending.worktree:
            raise LookFirst(ending)


# What was asked before, and what is told of it.


def replayed(
    tx: ReadTransaction, caller: Caller, command: c.Command, asked: Asked
) -> Outcome | None:
    request_id = asked.before
    if request_id is None:
        return None
    from dibs.board.requests import digest_of, replay, retold

    known = tx.request(caller.actor.id, request_id)
    if known is None:
        return retold(tx, caller, request_id, asked.since) if asked.own else None
    return replay(tx, caller, known, digest_of(caller, command), request_id)


def leaves_trace(command: c.Command, decision: Decision) -> bool:
    """Whether its events alone tell the whole answer: then none is kept."""
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
