"""What a person let the holder of a task touch beside its scope: by `dibs guard allow`, in the ledger.

A commit arrives later than it was made, and the leave may be over by then. Nobody can prove when a commit
was made, so what counts is that the leave ran while the lease did that the commit names.
"""

from __future__ import annotations

from dibs.core.events import Allowed
from dibs.core.instants import DAY, Duration, later
from dibs.core.reserved import Reserved
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.core.instants import Instant
    from dibs.core.model import ActorId, Task, TaskKey, Token
    from dibs.stores.transaction import ReadTransaction

LONGEST = Duration(DAY)
"""No leave runs longer."""


class Tenure(Value):
    """Who held a task under a token, from when until when."""

    actor: ActorId
    since: Instant
    until: Instant


class Leave:
    """Read only when a commit would be refused without it, and once for each lease."""

    def __init__(self, tx: ReadTransaction, *, fold: bool) -> None:
        self._tx = tx
        self._fold = fold
        self._read: dict[tuple[TaskKey, Token], Reserved] = {}

    def covers(self, task: Task, token: Token, path: str) -> bool:
        known = self._read.get((task.key, token))
        if known is None:
            known = Reserved(self._paths(task, token), fold=self._fold)
            self._read[task.key, token] = known
        return bool(known.of(path))

    def _paths(self, task: Task, token: Token) -> Iterator[tuple[str, ...]]:
        held = self._tenure(task, token)
        if held is None:
            return
        entries = self._tx.events_between(later(held.since, Duration(-LONGEST)), held.until)
        for event in (entry.event for entry in entries if entry.verb == Allowed.verb):
            assert isinstance(event, Allowed), "by its verb"
            if event.to == held.actor and event.until >= held.since:
                yield event.paths

    def _tenure(self, task: Task, token: Token) -> Tenure | None:
        if task.lease is not None and token == task.token:
            return Tenure(task.lease.actor, task.lease.acquired, self._tx.now)
        ended = (one for one in self._tx.ended_leases(task.id) if one.token == token)
        return next((Tenure(one.actor, one.acquired, one.ended) for one in ended), None)
