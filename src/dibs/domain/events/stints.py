"""Ledger events that correct or annotate ended stints. They do not change the task."""

from __future__ import annotations

from dibs.domain.events.base import USAGE, Stint, TaskEvent
from dibs.domain.model import ActorId, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from dibs.domain.values import Instant


class StintEvent(TaskEvent):
    """An event that does not change its task."""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task


class StintAdded(StintEvent):
    """A person recorded a period of work that was not tracked."""

    verb = "stint_added"
    source: ClassVar[str] = "added"
    actor: ActorId
    stint: Stint
    reason: str


class StintAmended(StintEvent):
    """A person corrected a stint: this one replaces `amends`, which stays in the ledger."""

    verb = "stint_amended"
    source: ClassVar[str] = "amended"
    actor: ActorId
    stint: Stint
    amends: int
    reason: str
    tokens: int | None = None
    cost: int | None = None
    spending: str = ""


class UsageReported(StintEvent):
    """What a stint used; `cost` in millionths. Replaces an earlier report."""

    verb = USAGE
    number: int
    tokens: int | None
    cost: int | None
    spending: str


STINT_EVENTS: tuple[type[StintEvent], ...] = (StintAdded, StintAmended, UsageReported)
