"""A session's sign of life: what it holds is renewed, each lease with its own ttl."""

from __future__ import annotations

from dibs.board.guarding import known_caller, looking
from dibs.board.persist import persist
from dibs.core.facts import renews_plainly
from dibs.core.refusals import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.identity import Identity
    from dibs.board.persist import Opened
    from dibs.core.model import Task, TaskKey

OUT_OF_REACH = ("scope_held", "lease_lost", "held", "not_held", "wrong_state")
"""Codes with which a renewal is refused by the rules, not by a failure."""


def held_by(board: Opened, who: Identity) -> list[Task]:
    """What a session holds; the lease of none of it has ended."""
    with looking(board, who) as tx:
        caller = known_caller(tx, board, who)
        return [] if caller is None else tx.tasks_held_by(caller.actor.id, caller.holding_session)


def renew(board: Opened, who: Identity, tasks: Iterable[Task]) -> None:
    """Each with its own ttl. One that is refused is left: whoever needs it is told when it matters."""
    keys = [task.key for task in tasks]
    done = persist(board, lambda: renewed_plainly(board, who, keys)) if keys else set()
    left = [key for key in keys if key not in done]
    if not left:
        return
    from dibs.core.commands import Renew

    whole = board.whole()
    for key in left:
        try:
            whole.execute(who, Renew(key))
        except Refused as problem:
            if problem.code not in OUT_OF_REACH:
                raise


def renewed_plainly(board: Opened, who: Identity, keys: list[TaskKey]) -> set[TaskKey]:
    """Those whose renewal was nothing else: all at once, with nothing loaded that decides more.

    None on a server, which has a way of its own for them; nor where item files or a session are kept too.
    """
    if board.store.remote or board.backlog is not None or who.person or who.place is not None:
        return set()
    from dibs.stores.glance import Renewal

    rules = board.settings.rules
    with Renewal(board.store, f"renew {keys[0]}") as tx:  # type: ignore[arg-type]  # a file
        caller = known_caller(tx, board, who)
        if caller is None:
            return set()
        held = tx.tasks_held_by(caller.actor.id, caller.holding_session)
        plain = [task for task in held if renews_plainly(task, caller, tx.now, rules)]
        for task in plain:
            tx.renew(task)
        if plain:
            tx.finish()
    return {task.key for task in plain}
