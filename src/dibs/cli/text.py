"""Renders outcomes and tables as text. Text by others is escaped before it is printed."""

from __future__ import annotations

import sys

from dibs.domain.events import tasks as e
from dibs.domain.model import Task
from dibs.domain.refusals import holder_label, shown
from dibs.domain.values import Instant, between, brief, quoted, rough_duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dibs.board.outcome import Outcome
    from dibs.domain.model import Actor, ActorId

    Actors = Mapping[ActorId, Actor]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def holder_of(task: Task, actors: Actors) -> str:
    lease = task.lease
    if lease is None:
        return ""
    return holder_label(actors[lease.actor], lease) + ("" if lease.bound else " (not taken up)")


def until(task: Task, now: Instant) -> str:
    lease = task.lease
    if lease is None:
        return ""
    return f"{'until' if lease.live(now) else 'expired'} {brief(lease.expires, now)}"


# Outcomes.


def outcome(outcome: Outcome) -> tuple[str, ...]:
    task = outcome.task
    if task is None:
        return ()
    if outcome.repeats is not None:
        return (about(task, sentence(outcome, task, outcome.repeats)),)
    if not outcome.entries:
        return (unchanged(outcome, task),)
    own = zip(outcome.entries, outcome.events)
    phrases = [sentence(outcome, task, event) for entry, event in own if entry.task == task.id]
    return tuple(about(task, words) for words in phrases if words)


def about(task: Task, phrase: str) -> str:
    """The line of a task: a phrase after its key, or after a colon if it has a subject of its own."""
    return f"{task.key}: {phrase}" if phrase in CHANGED.values() else f"{task.key} {phrase}"


def unchanged(outcome: Outcome, task: Task) -> str:
    lease = task.lease
    if lease is not None and lease.held_by(outcome.caller):
        return f"{task.key} is yours {until(task, outcome.now)} (token {task.token})"
    return f"{task.key} is {shown(task.state)}: nothing to do"


def sentence(outcome: Outcome, task: Task, event: e.Event) -> str:
    """One event as a phrase; "" if another event of the same command implies it."""
    ends = until(task, outcome.now)
    if isinstance(event, e.Claimed | e.TakenOver | e.Forced | e.Bound):
        state = ", in progress" if task.state == "in_progress" else ", reserved"
        return f"is yours {ends} (token {task.token}){state}"
    if isinstance(event, e.Assigned | e.HandedOff):
        who = outcome.actors[event.actor].name
        done = "is assigned to" if isinstance(event, e.Assigned) else "is handed off to"
        return f"{done} {who} {ends} (token {task.token})"
    if isinstance(event, e.Renewed):
        late = " (late)" if event.lapsed is not None else ""
        return f"is yours {ends} (token {task.token}){late}"
    if isinstance(event, e.Started) and (len(outcome.entries) > 1):
        return ""
    if isinstance(event, e.Redacted):
        return f"no longer has the text of event {event.of}"
    if isinstance(event, e.Noted) and event.late:
        return "saved your text as a late note"
    if isinstance(event, e.Noted | e.Edited):
        return event.verb
    if type(event) in CHANGED:
        return CHANGED[type(event)]
    late = " (late: the lease had expired)" if outcome.late else ""
    words = WORDS.get(type(event).__name__, shown(event.verb))
    return f"{words}{late}"


CHANGED: dict[type[e.Event], str] = {
    e.Depended: "dependencies changed",
    e.Scoped: "scope changed",
}
WORDS = {
    "Added": "added",
    "Started": "is in progress",
    "Resumed": "is in progress again",
    "Stopped": "is stopped; you keep the lease",
    "Released": "is released",
    "Acknowledged": "is no longer yours; you acknowledged the loss",
    "Blocked": "is blocked",
    "Unblocked": "is open again",
    "Submitted": "is submitted for review",
    "Accepted": "is accepted and complete",
    "Rejected": "is rejected and open again",
    "Completed": "is complete",
    "Failed": "has failed",
    "Dropped": "is dropped",
    "Parked": "is parked",
    "Unparked": "is offered again",
    "Unassigned": "is unassigned",
}


def warnings(outcome: Outcome) -> tuple[str, ...]:
    found = []
    ending = outcome.taken
    task = outcome.task
    if ending is not None and task is not None:
        name = outcome.actors[ending.actor].name
        session = f" (session {ending.session})" if ending.session else ""
        seen = rough_duration(between(ending.renewed, outcome.now))
        found.append(
            f"{task.key} was assigned to {name}, who had not taken it up"
            if ending.session is None
            else f"{task.key} was held by {name}{session}, last seen {seen} ago"
        )
        if ending.worktree:
            branch = f" on branch {quoted(ending.branch)}" if ending.branch else ""
            found.append(f"its work is in {quoted(ending.worktree)}{branch}")
        if ending.uncommitted:
            found.append(f"uncommitted there: {', '.join(map(quoted, ending.uncommitted))}")
        if ending.not_looked_at:
            found.append(f"uncommitted files there are unknown: {ending.not_looked_at}")
    found += [
        f"{key} is stopped: only one stint at a time; you keep its lease" for key in outcome.stopped
    ]
    found += outcome.warnings
    if outcome.repeats is not None:
        kept = "your new text was saved as a note" if outcome.entries else "nothing was changed"
        found.append(f"already done: {kept}")
    if outcome.replayed:
        found.append("replayed: this request id was answered before")
    if outcome.current is not None and not holds_now(outcome):
        holder = holder_of(outcome.current, outcome.actors) or "nobody"
        found.append(
            f"{outcome.current.key} is held by {holder} now (token {outcome.current.token})"
        )
    return tuple(found)


def holds_now(outcome: Outcome) -> bool:
    """Whether the caller of a replayed request still holds the lease that it got then."""
    now, then = outcome.current, outcome.task
    if now is None or then is None or then.lease is None:
        return True
    return now.lease is not None and now.lease.held_by(outcome.caller) and now.token == then.token


# Tables.


def table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> tuple[str, ...]:
    cells = [tuple(safe(cell) for cell in row) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return tuple(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    )


def tasks(tasks: Iterable[Task], actors: Actors, now: Instant) -> tuple[str, ...]:
    rows = [
        (
            task.key,
            f"P{task.terms.priority}",
            task.state,
            holder_of(task, actors),
            until(task, now),
            task.terms.title,
        )
        for task in tasks
    ]
    return table(rows, ("KEY", "PRI", "STATE", "HOLDER", "LEASE", "TITLE")) if rows else ()


# Progress.

BAR = 30


def progress_bar(what: str, at_least: int = 0) -> Callable[[int, int], None] | None:
    """A function that draws the bar if the total is at least `at_least`; `None` without a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total < at_least:
            return
        filled = BAR * done // max(1, total)
        stream.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done} of {total} {what}")
        stream.flush()
        if done >= total:
            stream.write("\r\033[K")

    return show
