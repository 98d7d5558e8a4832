"""Session registry: sessions that harness hooks announce before they hold anything.

An actor's registration is an event. A session's place and process are not in the
ledger; a handoff from one session to the next is.
"""

from __future__ import annotations

from dibs.board.execute import carry_out
from dibs.board.identity import caller_of
from dibs.board.retry import retry_on_disconnect
from dibs.domain import commands as c
from dibs.domain.refusals import Refusal
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome
    from dibs.domain.model import Caller, LeaseProcess, Task, TaskKey
    from dibs.storage.transaction import WriteTransaction


def register_session(board: Board, who: Identity) -> None:
    """Registers this session, although it holds nothing yet."""
    assert who.place is not None, "a session that is registered is somewhere"
    board.execute(who, c.RegisterSession(who.place))


def end_session(board: Board, who: Identity) -> None:
    """Ends the session: its process no longer counts as its sign of life. What it holds only expires."""
    board.execute(who, c.EndSession())


def end_sibling_sessions(board: Board, who: Identity) -> None:
    """Ends the other sessions of the same process, unless they still hold something."""
    board.execute(who, c.EndSession(siblings=True))


def record_background_work(board: Board, who: Identity, *, running: bool) -> None:
    """Records whether the session has background work, if that has changed."""
    if had_background_work(board, who) != running:
        board.execute(who, c.SetBackground(running))


def had_background_work(board: Board, who: Identity) -> bool:
    """Whether background work was running at the last report."""
    with board.read() as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        known = None if is_new else tx.session(caller.actor.id, caller.holding_session)
    return known is not None and known.background


def keep_command(board: Board, task: Task, behind: LeaseProcess) -> None:
    """Records the command that a run has started under a lease, even if the lease has ended since."""
    retry_on_disconnect(board, lambda: _keep_command(board, task, behind))


def _keep_command(board: Board, task: Task, behind: LeaseProcess) -> None:
    with board.store.write(f"run {task.key}") as tx:
        if not tx.new_home:
            tx.keep_command(task.id, task.token, behind)
            tx.finish()


# Handoff from one session to the next in the same process.


def predecessor(board: Board, who: Identity) -> str:
    """The one other session of the same actor and process that holds something; "" if none or several."""
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


class SessionHandover(Value):
    """The tasks that the next session received, and a refusal for each that it did not."""

    handed: tuple[TaskKey, ...] = ()
    former: str = ""
    """The previous session, if one held something."""
    stays: tuple[Refusal, ...] = ()


def hand_over_session(board: Board, former: str, who: Identity, reason: str) -> SessionHandover:
    """Hands everything that a session holds to the next one of the same actor, which takes it up at once.

    In one transaction: nobody sees it free or unbound in between.
    """
    done = retry_on_disconnect(board, lambda: _succeed(board, former, who, reason))
    outcomes = [(key, one) for key, one in done if not isinstance(one, Refusal)]
    if board.backlog is not None:
        for _, outcome in outcomes:
            board.backlog.after(board, who, outcome)
    stays = tuple(one for _, one in done if isinstance(one, Refusal))
    return SessionHandover(tuple(key for key, _ in outcomes), former, stays)


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
    handed = carry_out(tx, giver, handoff, board.settings)
    if isinstance(handed, Refusal):
        return handed
    return carry_out(tx, heir, c.Claim(task.key, reserve=True), board.settings)
