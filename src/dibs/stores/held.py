"""Who holds what, and who may touch it: what a guard asks of a transaction, and nothing that loads more."""

from __future__ import annotations

from dibs.core.facts import Rival
from dibs.core.model import Allowance
from dibs.stores import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.core.instants import Instant
    from dibs.core.model import Actor, ActorId, Task, TaskKey


class Held:
    """The part of a transaction that reads who holds what."""

    now: Instant
    _ask: Any
    _actors: dict[ActorId | str, Actor]

    def _one(self, query: str, **params: Any) -> rows.Row | None:
        found = self._ask(query, **params)
        return found[0] if found else None

    def actor_named(self, name: str) -> Actor | None:
        key = name.casefold()
        if key not in self._actors:
            row = self._one("actor_by_name", folded=key)
            if row is None:
                return None
            actor = rows.actor_of(row)
            self._actors[key] = self._actors.setdefault(actor.id, actor)
        return self._actors[key]

    def actors(self) -> dict[ActorId, Actor]:
        return {actor.id: actor for actor in map(rows.actor_of, self._ask("actors"))}

    def tasks_held_by(self, actor: ActorId, session: str) -> list[Task]:
        found = self._ask("tasks_held_by", actor=actor, session=session)
        return sorted((rows.task_of(row) for row in found), key=lambda task: task.id)

    def tasks_lost_by(self, actor: ActorId, session: str) -> list[TaskKey]:
        """Tasks that were taken from a session, and it has not said that it knows."""
        return [key for _, key in self._ask("tasks_lost_by", actor=actor, session=session)]

    def held_scopes(self) -> list[Rival]:
        """The scopes of all leases that have not ended."""
        return [
            Rival(id_, key, holder, session, expires, rows.texts(scope))
            for id_, key, holder, session, expires, scope in self._ask("held_scopes")
        ]

    def allowances(self) -> list[Allowance]:
        """What people let others touch now, the latest first."""
        return [
            Allowance(seq, key, rows.texts(paths), actor, until)
            for seq, key, paths, actor, until in self._ask("allowances", now=self.now)
        ]
