"""What people and agents said about stints afterwards, as entries of the ledger. No task changes by it."""

from __future__ import annotations

from dibs.core.event import Stint, TaskEvent
from dibs.core.ledger import USAGE
from dibs.core.model import ActorId, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from dibs.core.instants import Instant


class StintEvent(TaskEvent):
    """An event after which the task is as it was."""

    def evolve(self, task: Task, at: Instant) -> Task:
        return task


class StintAdded(StintEvent):
    """A person told of a period of work that nobody had recorded."""

    verb = "stint_added"
    source: ClassVar[str] = "added"
    actor: ActorId
    stint: Stint
    reason: str


class StintAmended(StintEvent):
    """A person put a stint right: this one counts in the place of `amends`, which stays in the ledger."""

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
    """What was used in a stint; `cost` in millionths. It takes the place of what was said before."""

    verb = USAGE
    number: int
    tokens: int | None
    cost: int | None
    spending: str


STINT_EVENTS: tuple[type[StintEvent], ...] = (StintAdded, StintAmended, UsageReported)
