"""Renders longer results as text: a task, the status, the log."""

from __future__ import annotations

from dibs.cli.text import count, holder_of, table, until
from dibs.domain.checks import short
from dibs.domain.events import board
from dibs.domain.events import tasks as e
from dibs.domain.events.base import is_late
from dibs.domain.events.stints import StintAdded, StintAmended, UsageReported
from dibs.domain.refusals import shown
from dibs.domain.values import Instant, between, brief, exact, iso, rough_duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from dibs.board.explain import Held, LateNote, Status, Step
    from dibs.board.queries import Log, LogLine, Owner, TaskView
    from dibs.cli.text import Actors
    from dibs.domain.model import ItemFile, Linked, LoggedRefusal, TaskKey

WIDTH = 12
LINE = 60
"""Length of a note in a table, in characters."""
LATE = "late"
"""Kind of a note by a former holder."""


def field(name: str, value: object) -> str:
    return f"  {name:<{WIDTH}} {value}"


def task(view: TaskView, item: ItemFile | None = None) -> tuple[str, ...]:
    task, terms, now = view.task, view.task.terms, view.now
    lines = [f"{task.key}  {safe(terms.title)}", field("state", shown(task.state))]
    lines += lease(view)
    who = view.actors
    facts = {
        "assigned to": task.assignee and who[task.assignee].name,
        "parked by": task.parked_by and who[task.parked_by].name,
        "blocked on": task.blocked_on,
        "author": task.author and who[task.author].name,
        "scope": ", ".join(task.scope),
        "allowed": "; ".join(
            f"{actor.name} may touch {', '.join(one.paths)} until {brief(one.until, now)}"
            for one, actor in view.allowed
        ),
        "constraints": ", ".join(terms.constraints),
        "needs": ", ".join(terms.capabilities),
        "for": terms.audience if terms.audience != "any" else "",
        "tier": terms.tier if terms.tier > 1 else "",
        "waits for": linked(view.after, "complete"),
        "needed by": linked(view.before, ""),
        "not before": terms.not_before and brief(terms.not_before, now),
        "next attempt": task.rests_until and brief(task.rests_until, now),
        "charge code": terms.charge_code,
        "billable": "yes" if terms.billable else "",
        "origin": f"{task.channel} {task.origin_ask_ref}" if task.channel else "",
        "url": view.url,
        "delivered": delivered(view),
        "item": item,
        "gate": task.item.gate if task.item else "",
        "locked by": task.item.locked if task.item else "",
    }
    lines += [field(name, value) for name, value in facts.items() if value]
    lines.append(field("priority", f"P{terms.priority}"))
    lines.append(field("attempts", f"{task.attempts} of {terms.max_attempts}"))
    lines.append(field("added", f"{brief(task.created, now)} by {who[task.creator].name}"))
    if view.notes:
        lines.append("notes")
    for note in view.notes:
        late = " (refused: its lease had ended)" if note.kind == LATE else ""
        kind = f"{shown(note.kind)}{late}"
        lines.append(f"  {brief(note.at, now)} {who[note.actor].name}, {kind}, event {note.seq}:")
        gone = view.redactions.get(note.seq)
        text = f"redacted by {who[gone.by].name}: {gone.reason}" if gone else note.text
        lines += [f"    {line}" for line in text.splitlines()]
    if view.ended:
        lines.append("ended leases")
    for over in view.ended:
        actor = who[over.actor]
        session = f" (session {over.session})" if over.session else ""
        lines.append(
            f"  {over.token}  {actor.name}{session}  {brief(over.acquired, now)} to "
            f"{brief(over.ended, now)}, {over.cause}"
        )
    return tuple(lines)


def delivered(view: TaskView) -> str:
    """How often the request was delivered, if more than once."""
    receipts = view.receipts
    if len(receipts) < 2:
        return ""
    differ = sum(one.differs for one in receipts)
    other = f", {differ} of them with a different payload" if differ else ""
    return f"{len(receipts)} times, last {brief(receipts[-1].at, view.now)}{other}"


def linked(tasks: tuple[Linked, ...], done: str) -> str:
    """Keys of linked tasks, with the state of those that are not `done`."""
    return ", ".join(
        one.key if one.state == done else f"{one.key} ({shown(one.state)})" for one in tasks
    )


def lease(view: TaskView) -> list[str]:
    held, now = view.task.lease, view.now
    if held is None:
        return [field("holder", "nobody"), *where(view, "work is in")]
    lines = [
        field("holder", holder_of(view.task, view.actors)),
        field("lease", f"{until(view.task, now)} (ttl {exact(held.ttl)}, token {view.task.token})"),
        field("last seen", f"{ago(held.renewed, now)}, {count(held.renewals, 'renewal')}"),
    ]
    if held.stint is not None:
        lines.append(field("working", f"since {brief(held.stint, now)}"))
    if held.reason:
        lines.append(field("reason", safe(held.reason)))
    return lines + where(view, "works in")


def where(view: TaskView, name: str) -> list[str]:
    """The work tree and branch of the lease, or of the last ended one."""
    place = view.place
    if not place.worktree:
        return []
    branch = f", branch {place.branch}" if place.branch else ""
    return [field(name, safe(f"{place.worktree}{branch}"))]


def ago(instant: Instant, now: Instant) -> str:
    if instant > now:
        return f"in the future, {brief(instant, now)} (clock skew)"
    return f"{rough_duration(between(instant, now))} ago"


def status(seen: Status) -> tuple[str, ...]:
    counts = ", ".join(f"{count} {shown(state)}" for state, count in sorted(seen.counts.items()))
    lines = [counts or "no tasks yet: add one with dibs add TITLE"]
    if seen.paused:
        lines.append(f"paused by {safe(seen.paused)}: dibs dispatch --resume")
    if seen.held:
        rows = [held_row(held, seen) for held in seen.held]
        lines += ["", *table(rows, ("HELD", "BY", "LEASE", "", "", "TITLE"))]
    if seen.waiting:
        waiting = [
            (step.task.key, shown(step.task.state), step.why, step.helps, step.task.terms.title)
            for step in seen.waiting
        ]
        lines += ["", *table(waiting, ("WAITING", "STATE", "WHY", "FIX", "TITLE"))]
    if seen.late:
        late = [late_row(one, seen) for one in seen.late]
        lines += ["", *table(late, ("LATE NOTE", "BY", "AT", "TEXT", "FIX"))]
    return (*lines, "more exist: see dibs list") if seen.more else tuple(lines)


def held_row(held: Held, seen: Status) -> tuple[str, ...]:
    task, now = held.task, seen.now
    return (
        task.key,
        holder_of(task, seen.actors),
        until(task, now),
        f"last seen {ago(task.lease.renewed, now)}" if task.lease else "",
        f"{held.wrong}; {held.helps}" if held.wrong else "",
        task.terms.title,
    )


def late_row(late: LateNote, seen: Status) -> tuple[str, ...]:
    note = late.note
    session = f" (session {note.session})" if note.session else ""
    text = short(next(iter(note.text.splitlines()), ""), LINE)
    by = f"{seen.actors[note.actor].name}{session}"
    return (late.key, by, brief(note.at, seen.now), text, f"dibs show {late.key}")


def why(steps: list[Step]) -> tuple[str, ...]:
    """The chain of causes, indented by depth."""
    lines, last = [], None
    for step in steps:
        indent = "  " * step.depth
        helps = f"  ({step.helps})" if step.helps else ""
        name = f"{step.task.key} " if step.task.key != last else " " * (len(step.task.key) + 1)
        lines.append(f"{indent}{name}{safe(step.why)}{helps}")
        last = step.task.key
    return tuple(lines)


def log(found: Log) -> tuple[str, ...]:
    rows = [event(line, found.actors, found.now) for line in found.lines]
    lines = (
        table(rows, ("SEQ", "AT", "TASK", "TOKEN", "EVENT", "BY", "")) if rows else ("no events",)
    )
    return lines + (("more exist: raise --limit",) if found.more else ())


def event(line: LogLine, actors: Actors, now: Instant) -> tuple[str, ...]:
    return (
        str(line.entry.seq),
        brief(line.entry.at, now),
        line.key or "board",
        str(line.entry.token or ""),
        line.entry.verb,
        line.actor.name + (f" ({line.entry.session})" if line.entry.session else ""),
        details(line, actors),
    )


EVENT_WIDTHS = (4, 9, 6, 5, 10, 16, 0)
"""Fixed column widths for `watch`, where later events are unknown."""


def event_as_it_comes(line: LogLine, actors: Actors, now: Instant) -> str:
    cells = zip(event(line, actors, now), EVENT_WIDTHS)
    return "  ".join(safe(cell).ljust(width) for cell, width in cells).rstrip()


def details(line: LogLine, actors: Actors) -> str:
    """The facts of an event worth adding to its name."""
    event = line.entry.event
    ending: e.Ending | None = getattr(event, "ending", None)
    facts = [ended(ending, line, actors)] if ending is not None else []
    facts += [render(event, actors) for kind, render in MORE.items() if isinstance(event, kind)]
    if is_late(event):
        facts.append("late")
    named = {name: getattr(event, name, "") for name in ("reason", "late")}
    named["on"] = event.on if isinstance(event, e.Blocked) else ""
    facts += [f"{name}: {value}" for name, value in named.items() if value]
    return "; ".join(part for part in facts if part)


def corrected(event: StintAdded | StintAmended, actors: Actors) -> str:
    return f"{actors[event.actor].name}, {iso(event.stint.started)} to {iso(event.stint.ended)}"


def depended(event: e.Depended) -> str:
    on = [f"on {', '.join(event.on)}"] if event.on else []
    return ", ".join(on + ([f"not on {', '.join(event.not_on)}"] if event.not_on else []))


def ended(ending: e.Ending, line: LogLine, actors: Actors) -> str:
    if not line.entry.event.takes:
        return count(ending.renewals, "renewal")
    session = f" ({ending.session})" if ending.session else ""
    seen = brief(ending.renewed, line.entry.at)
    return f"from {actors[ending.actor].name}{session}, last seen {seen}"


MORE: dict[type[e.Event], Callable[[Any, Actors], str]] = {
    e.Added: lambda event, _: (
        event.terms.title + (f"; after {', '.join(event.after)}" if event.after else "")
    ),
    e.Assigned: lambda event, actors: f"to {actors[event.actor].name}",
    e.HandedOff: lambda event, actors: f"to {actors[event.actor].name}",
    e.Renewed: lambda event, _: f"ttl {exact(event.ttl)}",
    e.Redacted: lambda event, _: f"the text of event {event.of}",
    e.Depended: lambda event, _: depended(event),
    StintAdded: corrected,
    StintAmended: lambda event, actors: f"{corrected(event, actors)}, for {event.amends}",
    UsageReported: lambda event, _: f"the stint {event.number}, {event.spending}",
    e.Allowed: lambda event, actors: (
        f"{actors[event.to].name} may touch {', '.join(event.paths)} until {iso(event.until)}"
    ),
    board.Approved: lambda event, actors: (
        f"{actors[event.actor].name}, {event.label} ({event.zone})"
    ),
    board.Reopened: lambda event, actors: f"{actors[event.actor].name}, {event.label}",
    e.LeaseEnded: lambda event, _: event.why + (", attempts used up" if event.gives_up else ""),
    e.Released: lambda event, _: "attempts used up" if event.gives_up else "",
    e.Reset: lambda event, _: f"with {event.of}" if event.of else "",
    board.ClockSet: lambda event, _: f"by {'-' if event.by < 0 else '+'}{rough_duration(event.by)}",
    board.EpochRaised: lambda event, _: f"{event.epoch}: {event.why}",
    board.ActorRegistered: lambda event, _: f"{event.name}, {event.kind}, tier {event.tier}",
    board.ActorChanged: lambda event, _: f"{event.name}, {event.kind}, tier {event.tier}",
}


def refusals(lines: Iterable[LoggedRefusal], *, more: bool) -> tuple[str, ...]:
    rows = [
        (iso(line.at), line.verb, line.task, line.actor, line.code, line.message) for line in lines
    ]
    shown = (
        table(rows, ("AT", "VERB", "TASK", "BY", "CODE", "MESSAGE")) if rows else ("no refusals",)
    )
    return shown + (("more exist: raise --limit",) if more else ())


def owner(owner: Owner) -> str:
    if owner.actor is None:
        return f"{owner.task.key}: nobody"
    session = f" (session {owner.session})" if owner.session else ""
    unbound = " (assigned, not taken up)" if owner.session is None else ""
    expired = ", expired" if owner.expired else ""
    return f"{owner.task.key}: {owner.actor.name}{session}{unbound}, token {owner.token}{expired}"


# Changes of many tasks.


def change(event: e.Event, actors: Actors, now: Instant) -> str:
    """Describes what happened to one task, and whose lease it ended."""
    words = CHANGE_WORDS.get(event.verb, event.verb)
    if isinstance(event, e.Assigned | e.Claimed):
        words = f"{words} {actors[event.actor].name}"
    if isinstance(event, e.LeaseEnded):
        words = (
            f"has failed: attempts used up ({event.why})"
            if event.gives_up
            else f"is open again: {event.why}"
        )
    ending: e.Ending | None = getattr(event, "ending", None)
    if ending is None:
        return words
    session = f" (session {ending.session})" if ending.session else ""
    seen = rough_duration(between(ending.renewed, now))
    where = f", work in {ending.worktree}" if ending.worktree else ""
    return (
        f"{words}; it was held by {actors[ending.actor].name}{session}, last seen {seen} ago{where}"
    )


CHANGE_WORDS = {
    "reset": "is reset",
    "retried": "is open again",
    "assigned": "is assigned to",
    "claimed": "is held by",
    "parked": "is parked",
}


def endings(many: Iterable[tuple[TaskKey, e.Event]]) -> str:
    """One line for any number of ended leases: counts by cause."""
    causes: dict[str, int] = {}
    for _, event in many:
        causes[event.cause] = causes.get(event.cause, 0) + 1
    total = sum(causes.values())
    return f"{count(total, 'lease')} ended: " + ", ".join(f"{n} {why}" for why, n in causes.items())
