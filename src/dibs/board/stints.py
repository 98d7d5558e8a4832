"""Read stints for timesheets and corrections. The event that ended a stint records it."""

from __future__ import annotations

from dibs.domain.decide.approval import PeriodTotals, period_totals
from dibs.domain.events.board import Approved, Reopened
from dibs.domain.model import Approval
from dibs.domain.stints import WorkedStint, outside
from dibs.domain.values import DAY, LAST_INSTANT, Duration, Instant, Value
from dibs.storage.history import STINT
from dibs.storage.queries import texts
from dibs.timesheets.query import needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dibs.board.retry import ReadableBoard
    from dibs.domain.ledger import Entry
    from dibs.domain.model import Actor, ActorId, EndedStint, TaskKey
    from dibs.domain.stints import LocalDays
    from dibs.storage.transaction import ReadTransaction
    from dibs.timesheets.query import SheetQuery, Stint
    from dibs.timesheets.sheet import Sheet

DAYS_LISTED = 31
"""How many days a preview of a correction lists; the rest are only counted."""

AREA, CODE = WorkedStint.fields.index("area"), WorkedStint.fields.index("charge_code")


class Record(Value):
    """The stints of a period, with the names of actors and titles of tasks."""

    board: str
    now: Instant
    stints: tuple[WorkedStint, ...]
    actors: Mapping[ActorId, Actor]
    titles: Mapping[TaskKey, str]
    actor: Actor | None = None
    """The one actor whose stints were requested (by any name), if so."""


def worked(
    board: ReadableBoard, since: Instant, until: Instant, actor: str | None = None
) -> Record:
    """All stints that overlap the period, by actor, then start; open ones last until now."""
    idle = board.settings.idle_after
    with board.read() as tx:
        wanted = actor_of(tx, actor)
        found, titles = [], {}
        for row in with_areas(
            tx.stints_and_tasks(since, until, wanted.id if wanted else None, idle)
        ):
            stint = WorkedStint(*row[:-1])
            found.append(stint)
            titles[stint.key] = row[-1]
        return Record(tx.board.uid, tx.now, tuple(found), tx.actors(), titles, wanted)


def actor_of(tx: ReadTransaction, name: str | None) -> Actor | None:
    """The actor with this name or alias; refused if unknown."""
    from dibs.domain.refusals import Refused, unknown_actor

    actor = None if name is None else tx.actor_named(name)
    if name is not None and actor is None:
        raise Refused(unknown_actor(name))
    return actor


def summed(
    board: ReadableBoard, query: SheetQuery, local_days: LocalDays, actor: str | None = None
) -> Sheet:
    """The timesheet. Stints are aggregated as they are read; none is kept in memory."""
    from dibs.timesheets.sheet import make_sheet

    with board.read() as tx:
        wanted = actor_of(tx, actor)
        names = {number: one.name for number, one in tx.actors().items()}
        query = query.but(actor=wanted.id if wanted else None)
        period = (query.since, query.until, query.actor, board.settings.idle_after)
        if {*needed(query)} <= {*STINT}:
            return make_sheet(tx.stints(*period), query, local_days, names, STINT)
        found: Iterable[Stint] = tx.stints_and_tasks(*period)
        if "area" in needed(query):
            found = with_areas(found)
        return make_sheet(found, query, local_days, names)


def refuse_unknown_code(board: ReadableBoard, code: str | None) -> None:
    """Refuses a charge code that the board never had, after a query found nothing: it is a typing error."""
    approved = board.settings.charge_codes
    if not code or code in approved:
        return
    from dibs.domain.refusals import Refused, bad_charge_code

    with board.read() as tx:
        stints = tx.stints_and_tasks(Instant(0), LAST_INSTANT, None, board.settings.idle_after)
        used = {row[CODE] for row in stints}
    if code not in used:
        raise Refused(bad_charge_code(code, (*approved, *sorted(used - {"", *approved}))))


def with_areas(stints: Iterable[Stint]) -> Iterator[Stint]:
    """The stint rows, with the area of the task in place of its scope."""
    known: dict[str, str] = {}
    for row in stints:
        scope = row[AREA]
        area = known.get(scope)
        if area is None:
            area = known[scope] = area_of(texts(scope))
        yield *row[:AREA], area, *row[AREA + 1 :]


def area_of(scope: tuple[str, ...]) -> str:
    """The first area that a scope names."""
    return next((name[1:] for name in scope if name.startswith("@")), "")


# One stint, before its correction.


class Before(Value):
    """A stint that is to be corrected, and its actor."""

    stint: EndedStint
    actor: Actor
    key: TaskKey


def before(board: ReadableBoard, number: int) -> Before:
    from dibs.board.facts.stints import task_of, unknown

    with board.read() as tx:
        task = task_of(tx, number)
        for stint in tx.all_stints_of(task.id):
            if stint.seq == number:
                return Before(stint, tx.actor(stint.actor), task.key)
    raise unknown(number)


def actor_called(board: ReadableBoard, name: str) -> Actor | None:
    with board.read() as tx:
        return tx.actor_named(name)


class OnDay(Value):
    """An actor's working time on a local day, before and after a correction."""

    day: str
    before: Duration
    after: Duration


class Touched(Value):
    """The days that a correction touches: the first `DAYS_LISTED`, and how many more there are."""

    days: tuple[OnDay, ...]
    more: int


def days_with(
    board: ReadableBoard, local_days: LocalDays, new: EndedStint, old: EndedStint | None
) -> Touched:
    both = [one for one in (old, new) if one is not None]
    since = min(one.started for one in both)
    until = Instant(max(one.ended for one in both) + 1)
    with board.read() as tx:
        day = 2 * DAY  # include each day in full, not only the part that is touched
        found = list(
            tx.stints(
                Instant(max(0, since - day)),
                Instant(until + day),
                new.actor,
                board.settings.idle_after,
            )
        )
    before = [(row[1], row[2]) for row in found]
    after = list(before)
    if (
        old is not None and old.started < old.ended
    ):  # one that was amended to zero is not in the list
        after.remove((old.started, old.ended))
    after.append((new.started, new.ended))
    days = local_days(Instant(max(0, since - day)), Instant(until + day))
    touched = [
        (name, start, end)
        for name, start, end in days
        if not all(outside(one.started, one.ended, start, end) for one in both)
    ]
    listed = tuple(
        OnDay(name, union(before, start, end), union(after, start, end))
        for name, start, end in touched[:DAYS_LISTED]
    )
    return Touched(listed, len(touched) - len(listed))


def union(spans: Iterable[tuple[Instant, Instant]], since: Instant, until: Instant) -> Duration:
    """How much of a period the spans cover."""
    covered, reach = 0, since
    for start, end in sorted(spans):
        begin, finish = max(start, reach), min(end, until)
        if finish > begin:
            covered += finish - begin
            reach = finish
    return Duration(covered)


class Happened(Value):
    """An action of an actor, or a change of its lease by another."""

    at: Instant
    what: str
    key: TaskKey
    text: str = ""


def moments(board: ReadableBoard, actor: ActorId, since: Instant, until: Instant) -> list[Happened]:
    """The claims, notes, ends and takeovers of one actor in a period, in order."""
    found: list[Happened] = []
    with board.read() as tx:
        for entry in tx.events_between(since, until):
            if entry.task is None:
                continue
            event = entry.event
            lost = getattr(event, "ending", None)
            if entry.actor == actor:
                what = event.verb.replace("_", " ")
            elif lost is not None and lost.actor == actor:
                what = f"lost it: {event.verb.replace('_', ' ')} by {tx.actor(entry.actor).name}"
            else:
                continue
            key = tx.keys_of({entry.task})[entry.task]
            found.append(Happened(entry.at, what, key))
    return found


# Approved timesheets: load the facts, store approvals, and verify them.


class Checked(Value):
    """An approval, and the totals of its period as they are now."""

    approval: Approval
    actor: Actor
    by: Actor
    now: PeriodTotals

    @property
    def holds(self) -> bool:
        one = self.approval
        return self.now == PeriodTotals(one.stints, one.effort, one.working, one.digest)


def stints_of(
    tx: ReadTransaction, actor: ActorId, since: Instant, until: Instant, idle: Duration
) -> Iterable[WorkedStint]:
    return (WorkedStint(*row[:-1]) for row in tx.stints_and_tasks(since, until, actor, idle))


def check(board: ReadableBoard, actor: str | None = None) -> list[Checked]:
    """Every approval in force, recomputed from the current stints."""
    with board.read() as tx:
        whose = actor_of(tx, actor)
        found = []
        for one in tx.approvals(None if whose is None else whose.id):
            stints = stints_of(tx, one.actor, one.since, one.until, board.settings.idle_after)
            now = period_totals(stints, one.since, one.until)
            found.append(Checked(one, tx.actor(one.actor), tx.actor(tx.author_of(one.seq)), now))
        return found


def faults(own: list[Entry], tx: ReadTransaction) -> list[str]:
    """Checks the approvals against the ledger."""
    recorded: dict[int, Approval] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, Approved):
            recorded[entry.seq] = Approval(entry.seq, **event.named())
        elif isinstance(event, Reopened) and event.approval in recorded:
            recorded[event.approval] = recorded[event.approval].but(reopened=entry.seq)
    kept = {one.seq: one for one in tx.all_approvals()}
    return (
        [] if kept == recorded else ["the board: its approved periods are not those of the ledger"]
    )
