"""What is known where item files are taken in: which task each item is, and what it waits for."""

from __future__ import annotations

from dibs.board.callers import newcomer
from dibs.board.known import fresh_uid
from dibs.board.settings import Settings
from dibs.core import commands as c
from dibs.core.facts import Facts, Match
from dibs.core.model import Actor, ActorId, Listed, Task, TaskId, TaskKey, folded, folded_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.model import State
    from dibs.stores.transaction import ReadTransaction


def facts_for_sync(tx: ReadTransaction, facts: Facts, command: c.Sync, settings: Settings) -> Facts:
    new = facts.caller.actor.id > tx.board.actors
    matching = Matching(tx, settings, int(new))
    matches = tuple(matching.match(listed) for listed in command.items)
    return facts.but(matches=matches, newcomers=tuple(matching.newcomers))


def epoch_in_files(tx: ReadTransaction, command: c.Sync) -> int:
    """The highest epoch of a token that files state and the board does not know; 0 without one."""
    epochs = [1] if command.rebuilt else [0]
    for listed in command.items:
        if listed.token is not None:
            task = task_of(tx, listed)
            known = (0, 0) if task is None else tuple(task.token)
            if tuple(listed.token) > known and listed.token.epoch >= tx.board.epoch:
                epochs.append(listed.token.epoch)
    return max(epochs)


def task_of(tx: ReadTransaction, listed: Listed) -> Task | None:
    """By its ref; or by its id, if the item had nothing better before."""
    found = (tx.task_of_origin(listed.channel, ref) for ref in (listed.ref, *listed.also))
    return next((task for task in found if task is not None), None)


class Matching:
    """Finds the tasks of items, and gives ids, keys and uids to those that are new."""

    def __init__(self, tx: ReadTransaction, settings: Settings, registered_before: int) -> None:
        self._tx = tx
        self._settings = settings
        self._before = registered_before
        self._last = tx.board.tasks
        self._keys: set[str] = set()
        self.newcomers: list[Actor] = []

    def match(self, listed: Listed) -> Match:
        task = task_of(self._tx, listed)
        causes = self.causes(listed)
        if task is not None:
            after = frozenset(one.key for one in self._tx.dependencies(task.id))
            match = Match(listed, task, task.id, task.key, task.uid, after, causes)
        else:
            self._last += 1
            key, uid = self.free_key(listed.key), self.free_uid(listed.uid)
            match = Match(listed, None, TaskId(self._last), key, uid, causes=causes)
        return match.but(holder=self.holder(listed))

    def causes(self, listed: Listed) -> dict[TaskKey, State]:
        found: dict[TaskKey, State] = {}
        for key in listed.after or ():
            task = self._tx.task(key)
            if task is not None:
                found[task.key] = task.state
        return found

    def free_key(self, wanted: TaskKey) -> TaskKey:
        """The wanted one, or with a number behind it: a key is never used twice."""
        key, number = wanted, 1
        while folded_key(key) in self._keys or self._tx.task(key) is not None:
            number += 1
            key = TaskKey(f"{wanted}-{number}")
        self._keys.add(folded_key(key))
        return key

    def free_uid(self, wanted: str) -> str:
        return fresh_uid() if not wanted or self._tx.knows_uid(wanted) else wanted

    def holder(self, listed: Listed) -> ActorId | None:
        """Who had the lease; registered anew, if that was lost too."""
        stated = listed.lease
        if stated is None:
            return None
        known = self._tx.actor_named(stated.actor)
        if known is None:
            name = folded(stated.actor)
            known = next((one for one in self.newcomers if folded(one.name) == name), None)
        if known is None:
            fresh = newcomer(self._tx, stated.actor, stated.kind, self._settings)
            known = fresh.but(id=ActorId(fresh.id + self._before + len(self.newcomers)))
            self.newcomers.append(known)
        return known.id
