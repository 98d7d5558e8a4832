"""Allowances: paths outside its scope that a person let a holder touch (`dibs guard allow`).

A commit is checked later than it was made, when the allowance may be over, and its time cannot be proven.
So an allowance counts if it overlapped the lease that the commit names.
"""

from __future__ import annotations

from dibs.domain.events.tasks import Allowed
from dibs.domain.instants import DAY, Duration, later
from dibs.domain.scopes.index import ScopeIndex
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.domain.instants import Instant
    from dibs.domain.model import ActorId, Task, TaskKey, Token
    from dibs.storage.transaction import ReadTransaction

LONGEST = Duration(DAY)
"""Maximum duration of an allowance."""


class OwnershipInterval(Value):
    """Ownership interval: who held a task under a token, from when until when."""

    actor: ActorId
    since: Instant
    until: Instant


class AllowanceCheck:
    """Checks paths against allowances; reads them once per lease, and only if a commit would be refused."""

    def __init__(self, tx: ReadTransaction, *, fold: bool) -> None:
        self._tx = tx
        self._fold = fold
        self._read: dict[tuple[TaskKey, Token], ScopeIndex] = {}

    def covers(self, task: Task, token: Token, path: str) -> bool:
        known = self._read.get((task.key, token))
        if known is None:
            known = ScopeIndex(self._paths(task, token), fold=self._fold)
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

    def _tenure(self, task: Task, token: Token) -> OwnershipInterval | None:
        if task.lease is not None and token == task.token:
            return OwnershipInterval(task.lease.actor, task.lease.acquired, self._tx.now)
        ended = (one for one in self._tx.ended_leases(task.id) if one.token == token)
        return next((OwnershipInterval(one.actor, one.acquired, one.ended) for one in ended), None)
