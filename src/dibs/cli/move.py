"""The verbs that change a task's state: block, submit, accept, reject, complete, fail, retry, reset, drop."""

from __future__ import annotations

import os

from dibs.cli.call import KEY, NOTE, REASON, TOKEN, Call, Verb, VerbResult, argument, executes
from dibs.domain import commands as c
from dibs.domain.refusals import Refused, bad_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Plan
    from dibs.board.outcome import Outcome
    from dibs.cli.text import Actors
    from dibs.domain.events import tasks as e
    from dibs.domain.model import TaskKey
    from dibs.domain.values import Instant

    Changes = list[tuple[TaskKey, e.Event]]


def accept(call: Call) -> VerbResult:
    return finish(call, call.build(c.Accept))


def complete(call: Call) -> VerbResult:
    return finish(call, call.build(c.Complete))


def finish(call: Call, command: c.Command) -> VerbResult:
    """Executes the command, then removes the work trees of finished tasks, with a line for each."""
    result = call.do(command)
    repository = call.place.repository
    if repository is None or not os.path.isdir(os.path.join(repository.common_dir, "worktrees")):
        return result
    from dibs.workers.worktrees import tidy

    removed = tidy(call.board, repository)
    return result.but(lines=(*result.lines, *(f"removed the work tree {path}" for path in removed)))


def drop(call: Call) -> VerbResult:
    return finish(call, call.build(c.Drop))


def retry(call: Call) -> VerbResult:
    return many(call, call.build(c.Retry))


def reset(call: Call) -> VerbResult:
    kept = [name for name in ("assign", "mine", "park") if call[name]]
    if len(kept) > 1:
        raise bad_argument(f"--{kept[0]} and --{kept[1]} do not combine")
    if call["only"] and call["downstream"]:
        raise bad_argument("--only does not combine with --downstream")
    return many(call, call.build(c.Reset, to=call["assign"]))


def many(call: Call, command: c.Retry | c.Reset) -> VerbResult:
    """Executes the command; with --dry-run only prints the plan."""
    return plan(call, command) if call["dry_run"] else execute(call, command)


def execute(call: Call, command: c.Retry | c.Reset | c.Sweep) -> VerbResult:
    outcome = call.execute(command)
    return render_changes(of_outcome(outcome), outcome.actors, outcome.now, outcome)


def plan(call: Call, command: c.Retry | c.Reset | c.Sweep) -> VerbResult:
    found = call.board.plan(call.who(), command)
    if found.decision.refusal is not None:
        raise Refused(found.decision.refusal)
    answer = render_changes(of_plan(found), found.facts.actors, found.now, None)
    return answer.but(lines=("dry run; this would happen:", *answer.lines))


def of_outcome(outcome: Outcome) -> Changes:
    from dibs.board.outcome import task_events

    return [(key, event) for key, _, event in task_events(outcome)]


def of_plan(plan: Plan) -> Changes:
    task = plan.task
    own = [(task.key, event) for event in plan.decision.events] if task else []
    return own + [(change.key, e) for change in plan.decision.others for e in change.events]


def render_changes(
    many: Changes, actors: Actors, now: Instant, outcome: Outcome | None
) -> VerbResult:
    from dibs.cli import pages
    from dibs.output import payloads

    lines = tuple(f"{key} {pages.change(event, actors, now)}" for key, event in many)
    payload = payloads.answer(
        dry_run=outcome is None,
        changes=payloads.changes(many, actors),
        events=[entry.seq for entry in outcome.entries] if outcome else [],
        replayed=outcome is not None and outcome.replayed,
    )
    return VerbResult(payload, lines or ("nothing to do",))


DRY_RUN = argument("--dry-run", action="store_true", help="only show what would be done")

VERBS = {
    "block": Verb(
        executes(c.Block),
        (
            KEY,
            REASON,
            argument(
                "--on", metavar="NAME", default="", help="the task or actor that it waits for"
            ),
            argument("--keep", action="store_true", help="keep the lease"),
            TOKEN,
        ),
    ),
    "unblock": Verb(executes(c.Unblock), (KEY, NOTE)),
    "submit": Verb(executes(c.Submit), (KEY, NOTE, TOKEN)),
    "accept": Verb(accept, (KEY, NOTE)),
    "reject": Verb(executes(c.Reject), (KEY, REASON)),
    "complete": Verb(complete, (KEY, NOTE, TOKEN)),
    "fail": Verb(executes(c.Fail), (KEY, REASON, TOKEN)),
    "retry": Verb(
        retry,
        (
            KEY,
            argument("--force", action="store_true", help="allow another attempt: people only"),
            DRY_RUN,
            REASON,
        ),
    ),
    "reset": Verb(
        reset,
        (
            argument("keys", nargs="+", metavar="KEY", help="the tasks, like T-42"),
            argument(
                "--downstream",
                action="store_true",
                help="with everything that depends on them (the default)",
            ),
            argument("--only", action="store_true", help="only these tasks"),
            argument("--redo", action="store_true", help="also complete tasks that depend on them"),
            argument("--assign", metavar="NAME", help="assign them to somebody in the same step"),
            argument("--mine", action="store_true", help="claim them in the same step"),
            argument("--park", action="store_true", help="park them in the same step"),
            argument("--yes", action="store_true", help="confirm that more than one task changes"),
            DRY_RUN,
            REASON,
        ),
    ),
    "drop": Verb(drop, (KEY, REASON, TOKEN)),
}
