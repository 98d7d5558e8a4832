"""The records that the library returns, with `datetime` instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dibs.board.outcome import task_events
from dibs.domain import checks, model
from dibs.domain.events import tasks as e
from dibs.domain.ledger import Entry, plain
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import LAST_INSTANT, Duration, Instant, Value
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board import explain as waiting
    from dibs.board.outcome import Outcome
    from dibs.board.queries import Owner, TaskView
    from dibs.board.stints import Record
    from dibs.domain.events.tasks import Ending
    from dibs.domain.model import State
    from dibs.output.payloads import Actors

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(instant: Instant) -> datetime:
    return EPOCH + timedelta(microseconds=instant)


def instant(moment: datetime) -> Instant:
    """A `datetime` without a zone is local time."""
    checks.is_a(moment, datetime, "the time", "a datetime")
    try:
        found = (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    except (OverflowError, ValueError, OSError):  # near the first and the last year of datetime
        found = -1
    if not 0 <= found <= LAST_INSTANT:
        raise bad_argument(f"the time is {moment}; it must be between 1970 and 9999, in UTC")
    return Instant(found)


def span(duration: Duration) -> timedelta:
    return timedelta(microseconds=duration)


def microseconds(span: timedelta) -> Duration:
    return Duration(span // timedelta(microseconds=1))


def not_picklable(what: str) -> TypeError:
    """The error for pickling or copying an object that has a connection."""
    return TypeError(f"{what} cannot be pickled or copied: open a board in each process")


class LeaseLost(Refused):
    """The lease is lost: stop working. `refusal` says why."""


class Holder(Value):
    """Who holds a task. A `session` of `None`: assigned, but not taken up by a session yet."""

    name: str
    kind: str
    session: str | None


class LeaseRecord(Value):
    """A snapshot of a lease."""

    token: str
    holder: Holder
    acquired_at: datetime
    renewed_at: datetime
    expires_at: datetime
    ttl: timedelta
    renewals: int
    expired: bool
    reason: str


class Former(Value):
    """The former holder of a task that was taken: the last sign of life, and where the work is."""

    holder: Holder
    token: str
    last_sign_of_life: datetime
    worktree: str
    branch: str
    uncommitted: tuple[str, ...] | None
    """Uncommitted files there; `None`: not inspected, and `not_looked_at` says why."""
    not_looked_at: str


class Note(Value):
    """A note, its author and its time."""

    kind: str
    text: str
    actor: str
    at: datetime
    event: int
    redacted: bool = False


class Stint(Value):
    """A period of work; while it is open, `number` is `None` and `ended_at` is now."""

    number: int | None
    actor: str
    task: str
    started_at: datetime
    ended_at: datetime
    source: str
    tokens: int | None
    cost: str | None
    spending: str


class Task(Value):
    """A snapshot of a task."""

    key: str
    uid: str
    title: str
    state: State
    priority: int
    audience: str
    tier: int
    capabilities: tuple[str, ...]
    constraints: tuple[str, ...]
    scope: tuple[str, ...]
    attempts: int
    max_attempts: int
    token: str
    lease: LeaseRecord | None
    assigned_to: str | None
    author: str | None
    parked_by: str | None
    blocked_on: str
    channel: str | None
    origin_ask_ref: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    billable: bool = False
    charge_code: str = ""
    notes: tuple[Note, ...] = ()


class Answer:
    """The result of a command. Each part is computed lazily."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._task: Task | None = None

    @property
    def task(self) -> Task:
        if self._task is None:
            seen = self._outcome
            assert seen.task is not None, "a task's command leads to a task"
            self._task = task(seen.task, seen.actors, seen.now)
        return self._task

    @property
    def created(self) -> bool:
        """Whether the task is new."""
        return any(isinstance(event, e.Added) for event in self._outcome.events)

    @property
    def differs(self) -> bool:
        """Whether the request arrived with a different payload than before. The task is not changed."""
        return any(isinstance(one, e.Received) and one.differs for one in self._outcome.events)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings, such as about the task's item file."""
        return self._outcome.warnings

    @property
    def late(self) -> bool:
        """Whether the lease had expired; the command was accepted all the same."""
        return self._outcome.late

    @property
    def taken_over_from(self) -> Former | None:
        ending = self._outcome.taken
        return None if ending is None else former(ending, self._outcome.actors)

    @property
    def replayed(self) -> bool:
        return self._outcome.replayed

    @property
    def events(self) -> tuple[int, ...]:
        return tuple(entry.seq for entry in self._outcome.entries)

    @property
    def lease(self) -> LeaseRecord | None:
        return self.task.lease

    @property
    def token(self) -> str:
        return self.task.token


class Changed(Value):
    """A change to one of several tasks, and the lease that it ended."""

    task: str
    event: str
    cause: str
    taken_from: Former | None = None


class Event(Value):
    """An entry of the ledger."""

    seq: int
    task: str | None
    at: datetime
    actor: str
    session: str
    token: str | None
    verb: str
    cause: str
    facts: Mapping[str, object]
    digest: str


class Owned(Value):
    """Who owned a task at an instant: nobody, or a holder, whose lease may have expired."""

    holder: Holder | None
    token: str | None
    expired: bool


class Status(Value):
    """A summary of the board."""

    counts: Mapping[str, int]
    held: tuple[Task, ...]
    waiting: Mapping[str, str]
    late: tuple[str, ...] = ()
    """Tasks with a result of a former holder that nobody else has seen."""


def holder(actor: model.Actor, session: str | None) -> Holder:
    return Holder(actor.name, actor.kind, payloads.session_name(session, actor))


def lease(task: model.Task, actors: Actors, now: Instant) -> LeaseRecord | None:
    held = task.lease
    if held is None:
        return None
    return LeaseRecord(
        token=str(task.token),
        holder=holder(actors[held.actor], held.session),
        acquired_at=moment(held.acquired),
        renewed_at=moment(held.renewed),
        expires_at=moment(held.expires),
        ttl=span(held.ttl),
        renewals=held.renewals,
        expired=not held.live(now),
        reason=held.reason,
    )


def task(task: model.Task, actors: Actors, now: Instant) -> Task:
    terms = task.terms

    def name(actor: model.ActorId | None) -> str | None:
        return payloads.name_of(actors, actor)

    return Task(
        key=task.key,
        uid=task.uid,
        title=terms.title,
        state=task.state,
        priority=terms.priority,
        audience=terms.audience,
        tier=terms.tier,
        capabilities=terms.capabilities,
        constraints=terms.constraints,
        scope=task.scope,
        attempts=task.attempts,
        max_attempts=terms.max_attempts,
        token=str(task.token),
        lease=lease(task, actors, now),
        assigned_to=name(task.assignee),
        author=name(task.author),
        parked_by=name(task.parked_by),
        blocked_on=task.blocked_on,
        channel=task.channel,
        origin_ask_ref=task.origin_ask_ref,
        created_at=moment(task.created),
        created_by=actors[task.creator].name,
        updated_at=moment(task.updated),
        billable=terms.billable,
        charge_code=terms.charge_code,
    )


def stints(record: Record) -> tuple[Stint, ...]:
    from dibs.timesheets.formats import money

    return tuple(
        Stint(
            one.number,
            record.actors[one.actor].name,
            one.key,
            moment(one.start),
            moment(one.end),
            one.source,
            one.tokens,
            None if one.cost is None else money(one.cost),
            one.spending,
        )
        for one in record.stints
    )


def view(seen: TaskView) -> Task:
    notes = tuple(
        Note(
            note.kind,
            note.text,
            seen.actors[note.actor].name,
            moment(note.at),
            note.seq,
            not note.text,
        )
        for note in seen.notes
    )
    return task(seen.task, seen.actors, seen.now).but(notes=notes)


def answer(outcome: Outcome) -> Answer:
    return Answer(outcome)


def changed(outcome: Outcome) -> tuple[Changed, ...]:
    """One per event, in order."""
    return tuple(
        Changed(
            key,
            event.verb,
            entry.cause,
            former(ending, outcome.actors) if (ending := getattr(event, "ending", None)) else None,
        )
        for key, entry, event in task_events(outcome)
    )


def former(ending: Ending, actors: Actors) -> Former:
    return Former(
        holder(actors[ending.actor], ending.session),
        str(ending.token),
        moment(ending.renewed),
        ending.worktree,
        ending.branch,
        ending.uncommitted,
        ending.not_looked_at,
    )


def event(entry: Entry, key: str, actor: model.Actor) -> Event:
    return Event(
        seq=entry.seq,
        task=key or None,
        at=moment(entry.at),
        actor=actor.name,
        session=entry.session or actor.name,
        token=str(entry.token) if entry.token else None,
        verb=entry.verb,
        cause=entry.cause,
        facts=plain(entry.event),
        digest=entry.digest,
    )


def owned(owner: Owner) -> Owned:
    who = None if owner.actor is None else holder(owner.actor, owner.session)
    return Owned(who, str(owner.token) if owner.token else None, owner.expired)


def status(seen: waiting.Status) -> Status:
    held = tuple(task(held.task, seen.actors, seen.now) for held in seen.held)
    return Status(
        dict(seen.counts),
        held,
        {w.task.key: w.why for w in seen.waiting},
        tuple(dict.fromkeys(one.key for one in seen.late)),
    )
