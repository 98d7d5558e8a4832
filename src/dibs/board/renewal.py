"""Heartbeat of a session: renews everything that it holds, each lease with its own ttl."""

from __future__ import annotations

from dibs.board.path_access import known_caller, read_for_guard
from dibs.board.retry import retry_on_disconnect
from dibs.domain.facts import is_plain_renewal
from dibs.domain.refusals import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.identity import Identity
    from dibs.board.retry import ReadableBoard
    from dibs.domain.model import Task, TaskKey

REFUSED_BY_RULES = ("scope_held", "lease_lost", "held", "not_held", "wrong_state")
"""Refusal codes of a renewal that come from the rules, not from a failure."""


def held_by(board: ReadableBoard, who: Identity) -> list[Task]:
    """The tasks that a session holds."""
    with read_for_guard(board, who) as tx:
        caller = known_caller(tx, board, who)
        return [] if caller is None else tx.tasks_held_by(caller.actor.id, caller.holding_session)


def renew(board: ReadableBoard, who: Identity, tasks: Iterable[Task]) -> None:
    """Renews each lease with its own ttl. Skips refused ones: the session learns of
    the loss when it matters.
    """
    keys = [task.key for task in tasks]
    done = retry_on_disconnect(board, lambda: renewed_plainly(board, who, keys)) if keys else set()
    left = [key for key in keys if key not in done]
    if not left:
        return
    from dibs.board.execute import changeable
    from dibs.domain.commands import Renew

    whole = changeable(board)
    for key in left:
        try:
            whole.execute(who, Renew(key))
        except Refused as problem:
            if problem.code not in REFUSED_BY_RULES:
                raise


def renewed_plainly(board: ReadableBoard, who: Identity, keys: list[TaskKey]) -> set[TaskKey]:
    """Fast path: renews all plain leases in one transaction, without loading `decide`; returns their keys.

    Returns none on a server, which has its own fast path; nor if item files or a
    session must be written, too.
    """
    if board.store.remote or board.backlog is not None or who.person or who.place is not None:
        return set()
    from dibs.storage.sqlite.fast_path import FastRenewalContext

    rules = board.settings.rules
    with FastRenewalContext(board.store, f"renew {keys[0]}") as tx:  # type: ignore[arg-type]  # SQLite
        caller = known_caller(tx, board, who)
        if caller is None:
            return set()
        held = tx.tasks_held_by(caller.actor.id, caller.holding_session)
        plain = [task for task in held if is_plain_renewal(task, caller, tx.now, rules)]
        for task in plain:
            tx.renew(task)
        if plain:
            tx.finish()
    return {task.key for task in plain}
