"""The queries of a transaction about ready tasks, leases and their processes, and dependencies."""

from __future__ import annotations

from dibs.domain.facts import ScopeReservation
from dibs.domain.model import (
    ActorId,
    Allowance,
    EndedLease,
    Linked,
    Task,
    TaskId,
    TaskKey,
    Token,
    folded_key,
)
from dibs.domain.refusals import unreadable
from dibs.domain.values import Instant, Value
from dibs.storage import queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.domain.model import KeptProcess, Kind, LeaseProcess, Process

PAGE = 200
"""Tasks fetched per page, until one fits."""


class Offer(Value):
    """The part of a ready task that decides whether it fits an actor."""

    priority: int
    id: TaskId
    key: TaskKey
    capabilities: str
    scope: str


class HeldByProcess(Value):
    """A lease tied to a process, directly or through its session."""

    task: TaskId
    token: Token
    renewed: Instant
    kind: Kind
    behind: LeaseProcess

    @property
    def process(self) -> Process:
        return self.behind.process


class ReadinessQueries(queries.Reader):
    """The part of a transaction that reads ready tasks, leases and dependencies."""

    def tasks_held_by(self, actor: ActorId, session: str) -> list[Task]:
        found = self._ask("tasks_held_by", actor=actor, session=session)
        return sorted((queries.task_of(row) for row in found), key=lambda task: task.id)

    def tasks_lost_by(self, actor: ActorId, session: str) -> list[TaskKey]:
        """Tasks taken from a session that it has not acknowledged."""
        return [key for _, key in self._ask("tasks_lost_by", actor=actor, session=session)]

    def ready_for(self, tier: int, kind: str) -> Iterator[Offer]:
        """Ready tasks that an actor of this tier and kind may claim, by priority, then age."""
        priority, last = -1, 0
        while page := self._ask(
            "ready_for", tier=tier, kind=kind, now=self.now, priority=priority, id=last, limit=PAGE
        ):
            for row in page:
                yield Offer(*row)
            priority, last = page[-1][:2]

    def tasks_ready(self, limit: int) -> list[Task]:
        found = self._ask("tasks_ready", now=self.now, limit=limit)
        return [queries.task_of(row) for row in found]

    def is_ready(self, task: TaskId) -> bool:
        """Whether it is open, not held, and nothing keeps it from being offered now."""
        return self._one("is_ready", id=task, now=self.now) is not None

    def tasks_assigned_to(self, actor: ActorId) -> list[Task]:
        found = self._ask("tasks_assigned_to", actor=actor, limit=PAGE)
        return [queries.task_of(row) for row in found]

    def tasks_preferred_by(self, actor: ActorId) -> list[Task]:
        found = self._ask("tasks_preferred_by", actor=actor, limit=PAGE)
        return [queries.task_of(row) for row in found]

    def held_scopes(self) -> list[ScopeReservation]:
        """Scopes of all leases that have not ended."""
        return [
            ScopeReservation(
                id_,
                key,
                holder,
                session and queries.name_of(session),
                expires,
                queries.texts(scope),
            )
            for id_, key, holder, session, expires, scope in self._ask("held_scopes")
        ]

    def allowances(self) -> list[Allowance]:
        """Current permissions to touch paths of other holders, newest first."""
        return [
            Allowance(seq, key, queries.texts(paths), actor, until)
            for seq, key, paths, actor, until in self._ask("allowances", now=self.now)
        ]

    def allowances_of(self, task: TaskId) -> list[tuple[int, tuple[str, ...], ActorId, Instant]]:
        """All allowances ever given for one task: event, paths, actor, expiry."""
        return [
            (seq, queries.texts(paths), actor, until)
            for seq, paths, actor, until in self._ask("allowances_of", task=task)
        ]

    def count_held_by(self, actor: ActorId) -> int:
        [(count,)] = self._ask("count_held_by", actor=actor)
        return int(count)

    def leases_with_process(self) -> list[HeldByProcess]:
        return [
            HeldByProcess(
                id_, Token(epoch, number), renewed, kind, queries.behind_of(tuple(behind))
            )
            for id_, epoch, number, renewed, kind, *behind in self._ask("leases_with_process")
        ]

    def process_behind(self, task: TaskId, token: Token) -> LeaseProcess | None:
        """The process tied to a lease, also after the lease ended."""
        epoch, number = token
        row = self._one("process_behind", task=task, token_epoch=epoch, token_number=number)
        return queries.kept_process_of(row).behind if row else None

    def processes_behind(self, task: TaskId, actor: ActorId, session: str) -> list[KeptProcess]:
        """Processes of one session that were not reported as ended, latest lease first."""
        found = self._ask("processes_behind", task=task, actor=actor, session=session, limit=PAGE)
        return [queries.kept_process_of(row) for row in found]

    def runs_of(self, boot: str, namespace: str, pid: int) -> list[KeptProcess]:
        """Every `dibs run` that ran as this process."""
        found = self._ask("runs_by_pid", boot=boot, namespace=namespace, pid=pid)
        return [queries.kept_process_of(row) for row in found]

    def runs_of_command(self, boot: str, namespace: str, command: int) -> list[KeptProcess]:
        """Every `dibs run` whose command led this process session."""
        found = self._ask("runs_by_command", boot=boot, namespace=namespace, command=command)
        return [queries.kept_process_of(row) for row in found]

    def tasks_expired(self, limit: int) -> list[Task]:
        """Tasks whose lease has expired and not ended, longest expired first."""
        found = self._ask("tasks_expired", now=self.now, limit=limit)
        return [queries.task_of(row) for row in found]

    # Ended leases.

    def ended_leases(self, task: TaskId) -> list[EndedLease]:
        return [queries.ended_lease_of(row) for row in self._ask("ended_leases", task=task)]

    def last_lease_of(self, task: TaskId, actor: ActorId, session: str) -> EndedLease | None:
        row = self._one("last_lease_of_session", task=task, actor=actor, session=session)
        return queries.ended_lease_of(row) if row else None

    def last_ended_lease(self, task: TaskId) -> EndedLease | None:
        row = self._one("last_ended_lease", task=task)
        return queries.ended_lease_of(row) if row else None

    # Dependencies.

    def id_of(self, key: TaskKey) -> TaskId:
        row = self._one("task_by_key", folded=folded_key(key))
        if row is None:
            raise unreadable(f"a dependency on {key}, which is not there")
        return queries.task_of(row).id

    def dependencies(self, task: TaskId) -> list[Linked]:
        """The tasks that a task depends on."""
        return [Linked(*row) for row in self._ask("dependencies", task=task)]

    def dependants(self, task: TaskId, limit: int = PAGE) -> list[Linked]:
        """The tasks that depend on a task."""
        return [Linked(*row) for row in self._ask("dependants", task=task, limit=limit)]

    def is_upstream(self, cause: TaskId, task: TaskId) -> bool:
        """Whether `task` depends on `cause`, directly or transitively."""
        return self._one("is_upstream", task=task, cause=cause) is not None

    def downstream(self, task: TaskId) -> list[Task]:
        """All tasks that depend on a task, directly or transitively."""
        return [queries.task_of(row) for row in self._ask("downstream", task=task)]

    def wrong_waits(self) -> list[TaskKey]:
        """Tasks whose counter of open dependencies does not match their dependencies."""
        return [key for (key,) in self._ask("wrong_waits")]
