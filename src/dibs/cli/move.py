"""The verbs that change a task's state: block, submit, accept, reject, complete, fail, retry, reset, drop."""

from __future__ import annotations

import os

from dibs.cli.arguments import argument
from dibs.cli.call import KEY, NOTE, REASON, TOKEN, Call, Verb, VerbResult
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.refusals import bad_argument


def block(call: Call) -> VerbResult:
    on = checks.optional_text(call["on"], "the cause", checks.NAME_LENGTH)
    return call.do(
        c.Block(call.key, token=call.token, reason=call.reason, on=on, keep=call["keep"])
    )


def unblock(call: Call) -> VerbResult:
    return call.do(c.Unblock(call.key, note=call.note))


def submit(call: Call) -> VerbResult:
    return call.do(c.Submit(call.key, token=call.token, note=call.note))


def accept(call: Call) -> VerbResult:
    return tidied(call, call.do(c.Accept(call.key, note=call.note)))


def reject(call: Call) -> VerbResult:
    return call.do(c.Reject(call.key, reason=call.reason))


def complete(call: Call) -> VerbResult:
    return tidied(call, call.do(c.Complete(call.key, token=call.token, note=call.note)))


def tidied(call: Call, told: VerbResult) -> VerbResult:
    """Removes the work trees of finished tasks, and adds a line for each to the result."""
    repository = call.place.repository
    if repository is None or not os.path.isdir(os.path.join(repository.common_dir, "worktrees")):
        return told
    from dibs.workers.worktrees import tidy

    removed = tidy(call.board, repository)
    return told.but(lines=(*told.lines, *(f"removed the work tree {path}" for path in removed)))


def fail(call: Call) -> VerbResult:
    return call.do(c.Fail(call.key, token=call.token, reason=call.reason))


def drop(call: Call) -> VerbResult:
    return tidied(call, call.do(c.Drop(call.key, token=call.token, reason=call.reason)))


def retry(call: Call) -> VerbResult:
    command = c.Retry(call.key, force=call["force"], reason=call.reason)
    return many(call, command)


def reset(call: Call) -> VerbResult:
    kept = [name for name in ("assign", "mine", "park") if call[name]]
    if len(kept) > 1:
        raise bad_argument(f"--{kept[0]} and --{kept[1]} are both given; whose is it to be?")
    if call["only"] and call["downstream"]:
        raise bad_argument("--only and --downstream are both given; which one?")
    return many(
        call,
        c.Reset(
            tuple(checks.task_key(key) for key in call["keys"]),
            only=call["only"],
            redo=call["redo"],
            to=checks.actor_name(call["assign"]) if call["assign"] else "",
            mine=call["mine"],
            park=call["park"],
            yes=call["yes"],
            reason=call.reason,
        ),
    )


def many(call: Call, command: c.Retry | c.Reset) -> VerbResult:
    """Executes the command; with --dry-run only prints the plan."""
    from dibs.cli.output import many_tasks

    return many_tasks.planned(call, command) if call["dry_run"] else many_tasks.done(call, command)


DRY_RUN = argument("--dry-run", action="store_true", help="only say what would be done")

VERBS = {
    "block": Verb(
        block,
        (
            KEY,
            REASON,
            argument(
                "--on", metavar="NAME", default="", help="a task or an actor that it waits for"
            ),
            argument("--keep", action="store_true", help="keep the lease meanwhile"),
            TOKEN,
        ),
    ),
    "unblock": Verb(unblock, (KEY, NOTE)),
    "submit": Verb(submit, (KEY, NOTE, TOKEN)),
    "accept": Verb(accept, (KEY, NOTE)),
    "reject": Verb(reject, (KEY, REASON)),
    "complete": Verb(complete, (KEY, NOTE, TOKEN)),
    "fail": Verb(fail, (KEY, REASON, TOKEN)),
    "retry": Verb(
        retry,
        (
            KEY,
            argument("--force", action="store_true", help="one attempt more: people only"),
            DRY_RUN,
            REASON,
        ),
    ),
    "reset": Verb(
        reset,
        (
            argument("keys", nargs="+", metavar="KEY", help="the tasks, like T-42"),
            argument(
                "--downstream", action="store_true", help="with all that depends on them (so it is)"
            ),
            argument("--only", action="store_true", help="only the named ones"),
            argument(
                "--redo", action="store_true", help="also what is complete and depends on them"
            ),
            argument("--assign", metavar="NAME", help="make somebody the holder in the same step"),
            argument("--mine", action="store_true", help="hold it yourself in the same step"),
            argument("--park", action="store_true", help="park it in the same step"),
            argument("--yes", action="store_true", help="yes, more than one task"),
            DRY_RUN,
            REASON,
        ),
    ),
    "drop": Verb(drop, (KEY, REASON, TOKEN)),
}
