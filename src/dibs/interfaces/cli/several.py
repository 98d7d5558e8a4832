"""Verbs about several tasks at once: what happened, or would happen, to each; and `sweep`."""

from __future__ import annotations

from dibs.board.outcome import task_events
from dibs.core import checks
from dibs.core import commands as c
from dibs.core import events as e
from dibs.core.instants import about, between
from dibs.core.model import GRACE, SWEPT_AT_ONCE
from dibs.core.refusals import Refused
from dibs.interfaces import payloads
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb
from dibs.interfaces.cli.say import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Plan
    from dibs.board.outcome import Outcome
    from dibs.core.instants import Instant
    from dibs.core.model import TaskKey
    from dibs.interfaces.cli.say import Actors

    Happened = list[tuple[TaskKey, e.Event]]


def done(call: Call, command: c.Retry | c.Reset | c.Sweep) -> Answer:
    outcome = call.execute(command)
    return told(of_outcome(outcome), outcome.actors, outcome.now, outcome)


def planned(call: Call, command: c.Retry | c.Reset | c.Sweep) -> Answer:
    plan = call.board.plan(call.who(), command)
    if plan.decision.refusal is not None:
        raise Refused(plan.decision.refusal)
    answer = told(of_plan(plan), plan.facts.actors, plan.now, None)
    return answer.but(lines=("nothing was done; this would be:", *answer.lines))


def of_outcome(outcome: Outcome) -> Happened:
    return [(key, event) for key, _, event in task_events(outcome)]


def of_plan(plan: Plan) -> Happened:
    task = plan.facts.task
    own = [(task.key, event) for event in plan.decision.events] if task else []
    return own + [(change.key, e) for change in plan.decision.others for e in change.events]


def told(many: Happened, actors: Actors, now: Instant, outcome: Outcome | None) -> Answer:
    lines = tuple(f"{key} {line(event, actors, now)}" for key, event in many)
    payload = payloads.answer(
        dry_run=outcome is None,
        changes=payloads.changes(many, actors),
        events=[entry.seq for entry in outcome.entries] if outcome else [],
        replayed=outcome is not None and outcome.replayed,
    )
    return Answer(payload, lines or ("nothing to do",))


def line(event: e.Event, actors: Actors, now: Instant) -> str:
    """What happened to one task, and who was interrupted by it."""
    words = WORDS.get(event.verb, event.verb)
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
    seen = about(between(ending.renewed, now))
    where = f", work in {ending.worktree}" if ending.worktree else ""
    return (
        f"{words}; it was held by {actors[ending.actor].name}{session}, last seen {seen} ago{where}"
    )


WORDS = {
    "reset": "begins anew",
    "retried": "is open again",
    "assigned": "is assigned to",
    "claimed": "is held by",
    "parked": "is parked",
}


def sweep(call: Call) -> Answer:
    grace = GRACE if call["grace"] is None else checks.duration(call["grace"], "the grace")
    limit = (
        SWEPT_AT_ONCE
        if call["limit"] is None
        else checks.whole(call["limit"], "the limit", 1, 10_000)
    )
    command = c.Sweep(grace, limit)
    if call["dry_run"]:
        return planned(call, command)
    from dibs.workers.sweep import sweep as pass_over

    who = call.who()
    outcome = pass_over(call.board, who, grace, limit)
    many = of_outcome(outcome) if outcome else []
    answer = told(many, outcome.actors if outcome else {}, outcome.now if outcome else 0, outcome)  # type: ignore[arg-type]
    left = still_there(call)
    payload = answer.json() | {"dry_run": False, "suspect": left}
    suspects = (
        (f"{count(left, 'lease')} expired, and will be ended unless renewed",) if left else ()
    )
    return answer.but(
        payload=payload,
        lines=(summary(many), *answer.lines, *suspects) if many else suspects or answer.lines,
    )


def summary(many: Iterable[tuple[TaskKey, e.Event]]) -> str:
    """One line for any number of leases: what ended, and why."""
    causes: dict[str, int] = {}
    for _, event in many:
        causes[event.cause] = causes.get(event.cause, 0) + 1
    total = sum(causes.values())
    return f"{count(total, 'lease')} ended: " + ", ".join(f"{n} {why}" for why, n in causes.items())


def still_there(call: Call) -> int:
    """Leases that have expired, and have not ended yet."""
    with call.board.read() as tx:
        return len(tx.tasks_expired(1_000))


VERBS = {
    "sweep": Verb(
        sweep,
        (
            argument("--dry-run", action="store_true", help="only say what would be done"),
            argument("--grace", metavar="TIME", help="how long a lease stays suspect (30s)"),
            argument("--limit", metavar="N", help="how many leases at most (100)"),
        ),
    ),
}
