"""Sessions that are known before they hold anything: a harness's hooks say that one has begun.

An actor's registration is an event. Where a session works, and its process, is no part of the
ledger; what one session hands to the next is.
"""

from __future__ import annotations

from dibs.board.callers import caller_of, register
from dibs.board.execute import begun_anew, write
from dibs.board.identity import KnownRun
from dibs.board.known import facts_for
from dibs.board.persist import persist
from dibs.core import commands as c
from dibs.core.decide import decide
from dibs.core.model import HUMAN
from dibs.core.refusals import Refusal
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome
    from dibs.core.model import Caller, KeptProcess, LeaseProcess, Process, Session, Task, TaskKey
    from dibs.stores.transaction import ReadTransaction, WriteTransaction


def meet(board: Board, who: Identity) -> None:
    """The board knows this session from now on, though it holds nothing yet."""
    persist(board, lambda: _meet(board, who))


def _meet(board: Board, who: Identity) -> None:
    assert who.place is not None, "a session that is met is somewhere"
    with board.store.write("session") as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        if tx.new_home:
            is_new = begun_anew(tx, caller, tx.new_home, is_new=is_new)
        if is_new:
            register(tx, caller)
        tx.keep_session(who.place.but(actor=caller.actor.id, name=caller.holding_session))
        tx.finish()


def part(board: Board, who: Identity) -> None:
    """The session is over: its process says nothing about it any more. What it holds only expires."""
    persist(board, lambda: _untie(board, who, own=True))


def succeeded(board: Board, who: Identity) -> None:
    """The other sessions of the same process are over, unless they hold something still."""
    persist(board, lambda: _untie(board, who, own=False))


def _untie(board: Board, who: Identity, *, own: bool) -> None:
    with board.store.write("session") as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        known = None if is_new else tx.session(caller.actor.id, caller.holding_session)
        process = None if known is None else known.process
        if known is None or process is None or tx.new_home:
            return
        beside = tx.sessions_of_process(process.boot, process.namespace, process.pid)
        for one in (known,) if own else beside:
            held = one != known and tx.tasks_held_by(one.actor, one.name)
            if one.actor == known.actor and own == (one == known) and not held:
                tx.keep_session(one.but(process=None))
        tx.finish()


def keep_command(board: Board, task: Task, behind: LeaseProcess) -> None:
    """The board knows what a run has started under a lease, also if that has ended since."""
    persist(board, lambda: _keep_command(board, task, behind))


def _keep_command(board: Board, task: Task, behind: LeaseProcess) -> None:
    with board.store.write(f"run {task.key}") as tx:
        if not tx.new_home:
            tx.keep_command(task.id, task.token, behind)
            tx.finish()


# From one session to the next, in the same process.


def predecessor(board: Board, who: Identity) -> str:
    """The other session of the same actor and process that holds something; "" unless it is one."""
    process = who.place.process if who.place is not None else None
    if process is None:
        return ""
    with board.read() as tx:
        actor = tx.actor_named(who.name)
        found = [
            one.name
            for one in tx.sessions_of_process(process.boot, process.namespace, process.pid)
            if actor is not None and one.actor == actor.id and one.process == process
            if one.name != who.session and tx.tasks_held_by(actor.id, one.name)
        ]
    return found[0] if len(found) == 1 else ""


class Succession(Value):
    """What the next session has got, and what the rules do not let it have: why each stays where it is."""

    handed: tuple[TaskKey, ...] = ()
    former: str = ""
    """The session before, if there is one that held something."""
    stays: tuple[Refusal, ...] = ()


def succeed(board: Board, former: str, who: Identity, reason: str) -> Succession:
    """What a session holds is handed to the next one of the same actor, which takes it up at once.

    One transaction: nobody finds it free, nor unbound, in between.
    """
    done = persist(board, lambda: _succeed(board, former, who, reason))
    outcomes = [(key, one) for key, one in done if not isinstance(one, Refusal)]
    if board.backlog is not None:
        for _, outcome in outcomes:
            board.backlog.after(board, who, outcome)
    stays = tuple(one for _, one in done if isinstance(one, Refusal))
    return Succession(tuple(key for key, _ in outcomes), former, stays)


def _succeed(
    board: Board, former: str, who: Identity, reason: str
) -> list[tuple[TaskKey, Outcome | Refusal]]:
    with board.store.write("handoff") as tx:
        heir, _ = caller_of(tx, who, board.settings)
        giver = heir.but(session=former)
        held = tx.tasks_held_by(heir.actor.id, former)
        done = [(task.key, _hand_over(board, tx, task, giver, heir, reason)) for task in held]
        tx.finish()
    return done


def _hand_over(
    board: Board, tx: WriteTransaction, task: Task, giver: Caller, heir: Caller, reason: str
) -> Outcome | Refusal:
    assert task.lease is not None, "it is held"
    handoff = c.Handoff(task.key, to=giver.actor.name, ttl=task.lease.ttl, reason=reason)
    facts = facts_for(tx, giver, handoff, board.settings)
    decision = decide(facts, handoff, tx.now)
    if decision.refusal is not None:
        return decision.refusal
    write(tx, giver, facts, decision)
    claim = c.Claim(task.key, reserve=True)
    facts = facts_for(tx, heir, claim, board.settings)
    return write(tx, heir, facts, decide(facts, claim, tx.now))


# Who is known here.


class Registry:
    """Which sessions a board knows."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def known(self, name: str, session: str) -> Session | None:
        """The session of an agent, if it was met or holds something."""
        with self._board.read() as tx:
            actor = tx.actor_named(name)
            if actor is None or actor.kind == HUMAN:
                return None
            return tx.session(actor.id, session.partition("/")[0])

    def of_process(self, process: Process) -> tuple[str, str] | None:
        """The agent and the session that are tied to a process; two of them are no answer."""
        with self._board.read() as tx:
            found = [
                (actor.name, one.name)
                for one in tx.sessions_of_process(process.boot, process.namespace, process.pid)
                if one.process == process and (actor := tx.actor(one.actor)).kind != HUMAN
            ]
        return found[0] if len(found) == 1 else None

    def runs(self, processes: Sequence[Process], session: int) -> list[KnownRun]:
        """The `dibs run`s that these processes are, or whose command led this session."""
        machine = self._board.store.machine
        with self._board.read() as tx:
            kept = tx.runs_of_command(machine.boot(), machine.namespace(), session)
            for process in processes:
                found = tx.runs_of(process.boot, process.namespace, process.pid)
                kept += [one for one in found if one.behind.process == process]
            return [as_run(tx, one) for one in kept]


def as_run(tx: ReadTransaction, kept: KeptProcess) -> KnownRun:
    actor = tx.actor(kept.actor)
    return KnownRun(actor.name, actor.kind == HUMAN, kept.behind)
