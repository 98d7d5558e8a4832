"""Facts for `sync`: which task each item file belongs to, and its dependencies."""

from __future__ import annotations

from dibs.board.facts.task import fresh_uid
from dibs.board.identity import newcomer
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.facts import Facts, ItemMatch, SyncFacts
from dibs.domain.model import (
    Actor,
    ActorId,
    BacklogItem,
    Task,
    TaskId,
    TaskKey,
    folded_key,
    folded_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import State
    from dibs.storage.transaction import ReadTransaction


def load_items(tx: ReadTransaction, basis: Facts, settings: Settings) -> SyncFacts:
    command = basis.command
    assert isinstance(command, c.Sync), command.verb
    new = basis.caller.actor.id > tx.board.actors
    matching = Matching(tx, settings, int(new))
    matches = tuple(matching.match(listed) for listed in command.items)
    return basis.widened(SyncFacts, matches=matches, newcomers=tuple(matching.newcomers))


def epoch_in_files(tx: ReadTransaction, command: c.Sync) -> int:
    """The highest epoch of a token that item files state and the board does not know; 0 if none."""
    epochs = [1] if command.rebuilt else [0]
    for listed in command.items:
        if listed.token is not None:
            task = task_of(tx, listed)
            known = (0, 0) if task is None else tuple(task.token)
            if tuple(listed.token) > known and listed.token.epoch >= tx.board.epoch:
                epochs.append(listed.token.epoch)
    return max(epochs)


def task_of(tx: ReadTransaction, listed: BacklogItem) -> Task | None:
    """The task of an item: by its ref, or by its id if earlier versions of the item had nothing better."""
    found = (tx.task_of_origin(listed.channel, ref) for ref in (listed.ref, *listed.also))
    return next((task for task in found if task is not None), None)


class Matching:
    """Matches items with tasks, and assigns ids, keys and uids to new ones."""

    def __init__(self, tx: ReadTransaction, settings: Settings, registered_before: int) -> None:
        self._tx = tx
        self._settings = settings
        self._before = registered_before
        self._last = tx.board.tasks
        self._keys: set[str] = set()
        self.newcomers: list[Actor] = []

    def match(self, listed: BacklogItem) -> ItemMatch:
        task = task_of(self._tx, listed)
        causes = self.causes(listed)
        if task is not None:
            after = frozenset(one.key for one in self._tx.dependencies(task.id))
            match = ItemMatch(listed, task, task.id, task.key, task.uid, after, causes)
        else:
            self._last += 1
            key, uid = self.free_key(listed.key), self.free_uid(listed.uid)
            match = ItemMatch(listed, None, TaskId(self._last), key, uid, causes=causes)
        return match.but(holder=self.holder(listed))

    def causes(self, listed: BacklogItem) -> dict[TaskKey, State]:
        found: dict[TaskKey, State] = {}
        for key in listed.after or ():
            task = self._tx.task(key)
            if task is not None:
                found[task.key] = task.state
        return found

    def free_key(self, wanted: TaskKey) -> TaskKey:
        """The wanted key, or with a number appended: a key is never used twice."""
        key, number = wanted, 1
        while folded_key(key) in self._keys or self._tx.task(key) is not None:
            number += 1
            key = TaskKey(f"{wanted}-{number}")
        self._keys.add(folded_key(key))
        return key

    def free_uid(self, wanted: str) -> str:
        return fresh_uid() if not wanted or self._tx.knows_uid(wanted) else wanted

    def holder(self, listed: BacklogItem) -> ActorId | None:
        """The actor of the lease that the file states; registered again if the board has lost it."""
        stated = listed.lease
        if stated is None:
            return None
        known = self._tx.actor_named(stated.actor)
        if known is None:
            name = folded_name(stated.actor)
            known = next((one for one in self.newcomers if folded_name(one.name) == name), None)
        if known is None:
            fresh = newcomer(self._tx, stated.actor, stated.kind, self._settings)
            known = fresh.but(id=ActorId(fresh.id + self._before + len(self.newcomers)))
            self.newcomers.append(known)
        return known.id
