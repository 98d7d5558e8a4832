"""Results of commands on many tasks (retry, reset, sweep): what happened, or would happen, to each."""

from __future__ import annotations

from dibs.board.outcome import task_events
from dibs.cli.arguments import argument
from dibs.cli.call import Call, Verb, VerbResult
from dibs.cli.output.text import count
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.events import tasks as e
from dibs.domain.instants import between, rough_duration
from dibs.domain.model import GRACE, SWEPT_AT_ONCE
from dibs.domain.refusals import Refused
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.execute import Plan
    from dibs.board.outcome import Outcome
    from dibs.cli.output.text import Actors
    from dibs.domain.instants import Instant
    from dibs.domain.model import TaskKey

    Happened = list[tuple[TaskKey, e.Event]]


def done(call: Call, command: c.Retry | c.Reset | c.Sweep) -> VerbResult:
    outcome = call.execute(command)
    return render_changes(of_outcome(outcome), outcome.actors, outcome.now, outcome)


def planned(call: Call, command: c.Retry | c.Reset | c.Sweep) -> VerbResult:
    plan = call.board.plan(call.who(), command)
    if plan.decision.refusal is not None:
        raise Refused(plan.decision.refusal)
    answer = render_changes(of_plan(plan), plan.facts.actors, plan.now, None)
    return answer.but(lines=("nothing was done; this would be:", *answer.lines))


def of_outcome(outcome: Outcome) -> Happened:
    return [(key, event) for key, _, event in task_events(outcome)]


def of_plan(plan: Plan) -> Happened:
    task = plan.task
    own = [(task.key, event) for event in plan.decision.events] if task else []
    return own + [(change.key, e) for change in plan.decision.others for e in change.events]


def render_changes(
    many: Happened, actors: Actors, now: Instant, outcome: Outcome | None
) -> VerbResult:
    lines = tuple(f"{key} {line(event, actors, now)}" for key, event in many)
    payload = payloads.answer(
        dry_run=outcome is None,
        changes=payloads.changes(many, actors),
        events=[entry.seq for entry in outcome.entries] if outcome else [],
        replayed=outcome is not None and outcome.replayed,
    )
    return VerbResult(payload, lines or ("nothing to do",))


def line(event: e.Event, actors: Actors, now: Instant) -> str:
    """Describes what happened to one task, and whose lease it ended."""
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
    seen = rough_duration(between(ending.renewed, now))
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


def sweep(call: Call) -> VerbResult:
    grace = GRACE if call["grace"] is None else checks.duration(call["grace"], "the grace")
    limit = (
        SWEPT_AT_ONCE
        if call["limit"] is None
        else checks.whole(call["limit"], "the limit", 1, 10_000)
    )
    command = c.Sweep(grace, limit)
    if call["dry_run"]:
        return planned(call, command)
    from dibs.domain.instants import Instant
    from dibs.workers.sweep import sweep as pass_over

    who = call.who()
    outcome = pass_over(call.board, who, grace, limit)
    many = of_outcome(outcome) if outcome else []
    actors, now = (outcome.actors, outcome.now) if outcome else ({}, Instant(0))
    answer = render_changes(many, actors, now, outcome)
    left = count_expired(call)
    payload = answer.json() | {"dry_run": False, "suspect": left}
    suspects = (
        (f"{count(left, 'lease')} expired, and will be ended unless renewed",) if left else ()
    )
    return answer.but(
        payload=payload,
        lines=(summary(many), *answer.lines, *suspects) if many else suspects or answer.lines,
    )


def summary(many: Iterable[tuple[TaskKey, e.Event]]) -> str:
    """One line for any number of ended leases: counts by cause."""
    causes: dict[str, int] = {}
    for _, event in many:
        causes[event.cause] = causes.get(event.cause, 0) + 1
    total = sum(causes.values())
    return f"{count(total, 'lease')} ended: " + ", ".join(f"{n} {why}" for why, n in causes.items())


def count_expired(call: Call) -> int:
    """The number of leases that have expired but not ended (counts at most 1,000)."""
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
