"""What can be asked of a board: imperative, one class per verb. The caller is given beside it."""

from __future__ import annotations

from dibs.core.instants import Duration, Instant
from dibs.core.model import GRACE, SWEPT_AT_ONCE, Listed, TaskKey, Terms, Token
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from dibs.core.model import Audience, Kind


class Command(Value):
    """Anything that may change the board."""

    verb: ClassVar[str]

    @property
    def typed(self) -> str:
        """The verb as people type it."""
        return TYPED.get(self.verb, self.verb)


TYPED = {
    "force": "takeover --force", "allow": "guard allow", "set_actor": "actor set", "redact": "note --redact", "set_clock": "doctor --set-clock",
    "move_board": "board move", "restore_board": "board restore",
    "add_stint": "stint add", "amend_stint": "stint amend", "report_usage": "stint usage",
    "set_settings": "config --load", "pause": "dispatch --pause", "resume": "dispatch --resume",
}  # fmt: skip


class TaskCommand(Command):
    """A command about one existing task."""

    task: TaskKey


class HoldersCommand(TaskCommand):
    """A holder's verb: it may state its token, which is then checked."""

    token: Token | None = None


REPEATED = ("complete", "submit", "fail", "drop", "release")
"""Verbs that a holder may give again: its answer may have been lost on the way."""


class Add(Command):
    """A new task; or, for an origin that is known already, one more delivery of the same request.

    `digest`, `delivery`: of the payload as it came, and the channel's own id of this delivery.
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
    """The ref under which the same request may have come before."""

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(ref for ref in (self.origin_ask_ref, self.formerly) if ref)


class Intake(Command):
    """Many requests at once, each with its origin; the same rule for each of them."""

    verb = "intake"
    asks: tuple[Add, ...]


class Edit(HoldersCommand):
    """Changes the terms that are given; `None` leaves one as it is, and the instant 0 is none."""

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
    """Let somebody touch paths that the task reserves: a hotfix does not wait for its holder.

    Nobody named: the caller.
    """

    verb = "allow"
    paths: tuple[str, ...]
    to: str
    span: Duration
    reason: str = ""


class Depend(HoldersCommand):
    """The task waits until these are complete; or does not wait for those any more."""

    verb = "depend"
    on: tuple[TaskKey, ...] = ()
    not_on: tuple[TaskKey, ...] = ()


class Note(TaskCommand):
    verb = "note"
    note: str


class Redact(TaskCommand):
    """Removes the text of the note that event `seq` brought."""

    verb = "redact"
    seq: int
    reason: str = ""


class Claim(TaskCommand):
    verb = "claim"
    ttl: Duration | None = None
    reserve: bool = False
    reason: str = ""


class Next(Command):
    """Claims what is offered first. `most`: not if the actor holds as many already."""

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
    """A takeover against a live lease: a person, with a reason."""

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
    """`here`: with a commit, which says where the work lies."""

    verb = "renew"
    ttl: Duration | None = None
    here: bool = False


class Stop(HoldersCommand):
    verb = "stop"


class Release(HoldersCommand):
    """`rest`: a try that did not succeed; the task rests so long, and attempts used up fail it.

    `tried`: what kept the lease gives it back, not its holder: the attempt counts.
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
    """A person tells of a period of work that was not recorded: her own, or that of `actor`.

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
    """A person puts a stint right; `None` leaves its start or its end as it is."""

    verb = "amend_stint"
    number: int
    started: Instant | None = None
    ended: Instant | None = None
    yes: bool = False
    backdated: bool = False
    reason: str = ""


class ReportUsage(Command):
    """What was used in a stint; `cost` in millionths, `spending`: how well it is known."""

    verb = "report_usage"
    number: int
    tokens: int | None = None
    cost: int | None = None
    spending: str = "unknown"


class Retry(TaskCommand):
    """A failed task, or one whose holder is dead or late, is open again."""

    verb = "retry"
    force: bool = False
    reason: str = ""


class Reset(Command):
    """The tasks, and what depends on them, begin anew. `to`: assigned to somebody in the same step."""

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
    """Ends the leases of the dead, at most `limit` of them."""

    verb = "sweep"
    grace: Duration = GRACE
    limit: int = SWEPT_AT_ONCE


class Sync(Command):
    """Takes in what item files say. `rebuilt`: the board was lost, and was made again under its id."""

    verb = "sync"
    items: tuple[Listed, ...]
    rebuilt: bool = False


class Pause(Command):
    """Nothing is offered until somebody resumes."""

    verb = "pause"
    reason: str = ""


class Resume(Command):
    verb = "resume"


class Approve(Command):
    """Confirm the hours of an actor in a period; `label` is how people name it."""

    verb = "approve"
    actor: str
    since: Instant
    until: Instant
    zone: str
    label: str


class Reopen(Command):
    """Let an approved period be corrected again."""

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
    verb = "move_board"


class SetSettings(Command):
    verb = "set_settings"


class RestoreBoard(Command):
    verb = "restore_board"
    reason: str = ""


class SetClock(Command):
    """A person re-anchors the board's clock to the machine's."""

    verb = "set_clock"
    reason: str = ""


TASK_COMMANDS: tuple[type[TaskCommand], ...] = (
    Edit, Scope, Allow, Depend, Note, Redact, Claim, Start, Takeover, Force, Assign, Unassign, Park, Unpark, Renew, Stop,
    Release, Handoff, Block, Unblock, Submit, Accept, Reject, Complete, Fail, Drop, Retry,
)  # fmt: skip
