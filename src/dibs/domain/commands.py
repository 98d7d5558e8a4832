"""Commands: one class per verb, named in the imperative. The caller is passed separately."""

from __future__ import annotations

from dibs.domain.model import GRACE, SWEPT_AT_ONCE, BacklogItem, TaskKey, Terms, Token
from dibs.domain.values import Duration, Instant, Value
from dibs.domain.verbs import VERBS, VerbSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from dibs.domain.model import Audience, Kind, Session


class Command(Value):
    """A request that may change the board."""

    verb: ClassVar[str]

    @property
    def spec(self) -> VerbSpec:
        """The row of its verb in the registry."""
        return VERBS[self.verb]


class TaskCommand(Command):
    """A command about one existing task."""

    task: TaskKey


class HoldersCommand(TaskCommand):
    """A command of the lease holder. If it states a token, the token is checked."""

    token: Token | None = None


class Add(Command):
    """Adds a task; for an origin that is already known, records one more delivery of the same request.

    `digest` is the digest of the raw payload, `delivery` the channel's own id of this delivery.
    """

    verb = "add"
    terms: Terms
    scope: tuple[str, ...] = ()
    key: TaskKey | None = None
    channel: str | None = None
    origin_ask_ref: str | None = None
    after: tuple[TaskKey, ...] = ()
    url: str = ""
    digest: str = ""
    delivery: str = ""
    formerly: str = ""
    """An earlier ref of the same request."""

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(ref for ref in (self.origin_ask_ref, self.formerly) if ref)


class Intake(Command):
    """Many requests in one command, each with its origin. Each follows the rule of `Add`."""

    verb = "intake"
    asks: tuple[Add, ...]


class Edit(HoldersCommand):
    """Changes the given terms. `None` leaves a term unchanged; the instant 0 clears it."""

    verb = "edit"
    title: str | None = None
    priority: int | None = None
    audience: Audience | None = None
    tier: int | None = None
    capabilities: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    max_attempts: int | None = None
    not_before: Instant | None = None
    billable: bool | None = None
    charge_code: str | None = None


class Scope(HoldersCommand):
    verb = "scope"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Allow(TaskCommand):
    """Lets an actor touch paths that the task reserves, so that a hotfix need not wait for the holder.

    If `to` is empty, the caller gets the permission.
    """

    verb = "allow"
    paths: tuple[str, ...]
    to: str
    span: Duration
    reason: str = ""


class Depend(HoldersCommand):
    """Adds dependencies (`on`) and removes dependencies (`not_on`)."""

    verb = "depend"
    on: tuple[TaskKey, ...] = ()
    not_on: tuple[TaskKey, ...] = ()


class Note(TaskCommand):
    verb = "note"
    note: str


class Redact(TaskCommand):
    """Removes the text of the note that event `seq` recorded."""

    verb = "redact"
    seq: int
    reason: str = ""


class Claim(TaskCommand):
    verb = "claim"
    ttl: Duration | None = None
    reserve: bool = False
    reason: str = ""


class Next(Command):
    """Claims the first task on offer. `most`: refused if the actor already holds that many."""

    verb = "next"
    ttl: Duration | None = None
    reserve: bool = False
    most: int | None = None


class Start(TaskCommand):
    verb = "start"
    ttl: Duration | None = None


class Takeover(TaskCommand):
    verb = "takeover"
    ttl: Duration | None = None
    reason: str = ""


class Force(TaskCommand):
    """A takeover against a live lease: by a person, with a reason."""

    verb = "force"
    ttl: Duration | None = None
    reason: str = ""


class Assign(TaskCommand):
    verb = "assign"
    to: str
    ttl: Duration | None = None
    reason: str = ""


class Unassign(TaskCommand):
    verb = "unassign"
    reason: str = ""


class Park(TaskCommand):
    verb = "park"
    reason: str = ""


class Unpark(TaskCommand):
    verb = "unpark"


class Renew(HoldersCommand):
    """`here`: the renewal comes with a commit and also reports the place of the work."""

    verb = "renew"
    ttl: Duration | None = None
    here: bool = False


class Stop(HoldersCommand):
    verb = "stop"


class Release(HoldersCommand):
    """Gives the task back.

    `rest`: the attempt failed; the delay before the next one. Without attempts left the task fails.
    `tried`: the lease is released by its keeper, not by the holder, so the attempt counts.
    """

    verb = "release"
    note: str = ""
    rest: Duration | None = None
    tried: bool = False


class Handoff(HoldersCommand):
    verb = "handoff"
    to: str = ""
    ttl: Duration | None = None
    reason: str = ""
    note: str = ""


class Block(HoldersCommand):
    verb = "block"
    reason: str = ""
    on: str = ""
    keep: bool = False


class Unblock(TaskCommand):
    verb = "unblock"
    note: str = ""


class Submit(HoldersCommand):
    verb = "submit"
    note: str = ""


class Accept(TaskCommand):
    verb = "accept"
    note: str = ""


class Reject(TaskCommand):
    verb = "reject"
    reason: str = ""


class Complete(HoldersCommand):
    verb = "complete"
    note: str = ""


class Fail(HoldersCommand):
    verb = "fail"
    reason: str = ""


class Drop(HoldersCommand):
    verb = "drop"
    reason: str = ""


class AddStint(TaskCommand):
    """A person records a period of work that was not tracked: their own, or that of `actor`.

    `backdated`: the work is older than its task.
    """

    verb = "add_stint"
    started: Instant
    ended: Instant
    actor: str = ""
    yes: bool = False
    backdated: bool = False
    reason: str = ""


class AmendStint(Command):
    """A person corrects a stint. `None` leaves its start or end unchanged."""

    verb = "amend_stint"
    number: int
    started: Instant | None = None
    ended: Instant | None = None
    yes: bool = False
    backdated: bool = False
    reason: str = ""


class ReportUsage(Command):
    """Reports what a stint used: `cost` in millionths, `spending` says how certain the numbers are."""

    verb = "report_usage"
    number: int
    tokens: int | None = None
    cost: int | None = None
    spending: str = "unknown"


class Retry(TaskCommand):
    """Reopens a task that failed, or whose holder is dead or late."""

    verb = "retry"
    force: bool = False
    reason: str = ""


class Reset(Command):
    """Starts the tasks and everything that depends on them over. `to`: assigns them in the same step."""

    verb = "reset"
    tasks: tuple[TaskKey, ...]
    only: bool = False
    redo: bool = False
    to: str = ""
    mine: bool = False
    park: bool = False
    yes: bool = False
    reason: str = ""


class Sweep(Command):
    """Ends the leases of dead holders, at most `limit` of them."""

    verb = "sweep"
    grace: Duration = GRACE
    limit: int = SWEPT_AT_ONCE


class Sync(Command):
    """Applies the content of item files. `rebuilt`: the board was lost and recreated under the same id."""

    verb = "sync"
    items: tuple[BacklogItem, ...]
    rebuilt: bool = False


class Pause(Command):
    """Stops offering tasks until somebody resumes."""

    verb = "pause"
    reason: str = ""


class Resume(Command):
    verb = "resume"


class Approve(Command):
    """Confirms the hours of an actor in a period. `label` is the period's name for people."""

    verb = "approve"
    actor: str
    since: Instant
    until: Instant
    zone: str
    label: str


class Reopen(Command):
    """Allows corrections of an approved period again."""

    verb = "reopen"
    actor: str
    since: Instant
    until: Instant
    label: str
    reason: str = ""


class SetActor(Command):
    """A person changes an actor: name, kind, tier, capabilities, zone, aliases."""

    verb = "set_actor"
    actor: str
    name: str | None = None
    kind: Kind | None = None
    tier: int | None = None
    capabilities: tuple[str, ...] | None = None
    zone: str | None = None
    add_aliases: tuple[str, ...] = ()
    remove_aliases: tuple[str, ...] = ()


class MoveBoard(Command):
    """The board arrives in another place, with another clock."""

    verb = "move_board"
    reason: str = ""


class SetSettings(Command):
    verb = "set_settings"
    settings: str = ""


class RestoreBoard(Command):
    verb = "restore_board"
    reason: str = ""


class BeginEpoch(Command):
    """The board's own server or files show that tokens may have been lost."""

    verb = "begin_epoch"
    why: str


class RegisterSession(Command):
    """The session is there, although it holds nothing yet; `place`: where, and its process."""

    verb = "register_session"
    place: Session


class EndSession(Command):
    """The session is over; `siblings`: instead of it, the idle others of its process are."""

    verb = "end_session"
    siblings: bool = False


class SetBackground(Command):
    """Whether the session has background work."""

    verb = "set_background"
    running: bool


class SetClock(Command):
    """A person re-anchors the board's clock to the machine's clock."""

    verb = "set_clock"
    reason: str = ""
