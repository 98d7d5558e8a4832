"""What a command leads to: events, or a refusal."""

from __future__ import annotations

from dibs.domain.events.base import Event
from dibs.domain.events.tasks import Added
from dibs.domain.facts import ClaimFacts
from dibs.domain.model import Actor, Session, Task, TaskKey
from dibs.domain.refusals import Refusal
from dibs.domain.values import Instant, Value


class Change(Value):
    """The changes of one of many tasks: its events, or only a mark that it is suspect since an instant.

    Without a task the first event adds one.
    """

    task: Task | None
    events: tuple[Event, ...] = ()
    suspect: Instant | None = None

    @property
    def key(self) -> TaskKey:
        if self.task is not None:
            return self.task.key
        added = self.events[0]
        assert isinstance(added, Added), "without a task the first event adds one"
        return added.key


class Decision(Value):
    """The result: events, whether the lease is renewed, and the refusal if there is one.

    A refusal with an event keeps a former holder's text as a late note. `others`: the changes of tasks
    other than the command's own.
    """

    events: tuple[Event, ...] = ()
    renews: bool = False
    refusal: Refusal | None = None
    others: tuple[Change, ...] = ()
    repeats: Event | None = None
    """The caller's earlier event, if the command is a retry of it."""
    chosen: ClaimFacts | None = None
    """The facts of the offer that `next` claims."""
    actor: Actor | None = None
    """The actor that a command of the board is about, as it is afterwards."""
    settings: str | None = None
    """The new settings of a board on a server."""
    sessions: tuple[Session, ...] = ()
    """Rows of the session registry, as they are afterwards."""
    background: Session | None = None
    """The session whose background work has begun or ended."""
