"""The ownership verbs: claim, next, start, stop, renew, release, handoff, takeover, assign, park."""

from __future__ import annotations

from dibs.board.command_builder import ttl as parse_ttl
from dibs.cli.call import (
    KEY,
    MOST,
    NOTE,
    REASON,
    TOKEN,
    TTL,
    WAIT,
    Call,
    Verb,
    VerbResult,
    argument,
    executes,
)
from dibs.domain import commands as c
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import MINUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.identity import Identity
    from dibs.board.outcome import Outcome

TO = argument("--to", required=True, metavar="NAME", help="the new holder: a registered actor")


def claim(call: Call) -> VerbResult:
    command = call.build(c.Claim)
    if call["pid"] is None:
        return call.do(command)
    from dibs.board.identity import with_process

    who = with_process(call.caller(command), call["pid"], call.board.store.machine)
    return call.render(call.board.execute(who, command, call.request_id))


def next_(call: Call) -> VerbResult:
    from dibs.workers.next import next_task

    wait = None if call.wait is None else call.opened_within(call.wait)
    reserve = call["reserve"] or call["worktree"]  # started below, in its work tree
    who, command = call.who(), call.build(c.Next, reserve=reserve)
    if call["worktree"]:
        from dibs.workers.worktrees import check_possible

        if call.place.repository is None:
            raise bad_argument("--worktree needs a git repository around the current directory")
        check_possible(call.place.repository)
    outcome = next_task(call.board, who, command, wait, call.request_id)
    return in_worktree(call, who, outcome) if call["worktree"] else call.render(outcome)


def in_worktree(call: Call, who: Identity, outcome: Outcome) -> VerbResult:
    """Creates a work tree for the claimed task; if that fails, releases the task with a delay of a minute."""
    from dibs.workers.worktrees import make, tidy

    task, repository = outcome.task, call.place.repository
    assert task is not None, "something was claimed"
    assert repository is not None, "checked before"
    tidy(call.board, repository)
    try:
        tree = make(repository, task.key)
    except Refused as problem:
        command = c.Release(task.key, token=task.token, note=str(problem), rest=MINUTE)
        call.board.execute(who, command)
        raise
    place = None if who.place is None else who.place.but(worktree=tree.path, branch=tree.branch)
    started = call.board.execute(who.but(place=place), c.Claim(task.key, reserve=call["reserve"]))
    result = call.render(
        started.but(
            entries=outcome.entries + started.entries,
            events=outcome.events + started.events,
            actors={**outcome.actors, **started.actors},
        )
    )
    line = f"work in {tree.path}, branch {tree.branch}"
    payload = result.json() | {"worktree": tree.path, "branch": tree.branch}
    return result.but(payload=payload, lines=(*result.lines, line))


def renew(call: Call) -> VerbResult:
    if call["key"] is not None:
        return call.do(call.build(c.Renew))
    if call["token"] is not None:
        raise bad_argument("--token requires KEY")
    return renew_all(call)


def renew_all(call: Call) -> VerbResult:
    """Renews each task of the session separately; exits with the highest exit code."""
    from dibs.board import queries
    from dibs.output import payloads
    from dibs.output.error_map import mapping_of

    if call.request_id is not None:
        raise bad_argument("--request-id requires KEY")
    who, ttl = call.who(), None if call["ttl"] is None else parse_ttl(call["ttl"])
    results: list[payloads.Payload] = []
    lines: list[str] = []
    warnings: list[str] = []
    highest = 0
    held = [task.key for task in queries.held_by(call.board, who)]
    for key in (*held, *queries.lost_by(call.board, who)):
        try:
            result = call.render(call.board.execute(who, c.Renew(key, ttl=ttl)))
            results.append(result.json())
            lines += result.lines
            warnings += result.warnings
        except Refused as problem:
            results.append(payloads.refusal(problem.refusal))
            lines.append(problem.refusal.message)
            highest = max(highest, mapping_of(problem.refusal).exit)
    shown = tuple(lines) or ("no leases held",)
    return VerbResult(payloads.answer(renewed=results), shown, tuple(warnings), exit=highest)


def takeover(call: Call) -> VerbResult:
    return call.do(call.build(c.Force if call["force"] else c.Takeover))


VERBS = {
    "claim": Verb(
        claim,
        (
            KEY,
            argument("--reserve", action="store_true", help="reserve it without starting"),
            argument(
                "--pid",
                metavar="PID",
                help="the process that works on it: if it dies, others may claim the task",
            ),
            TTL,
            REASON,
        ),
    ),
    "next": Verb(
        next_,
        (
            WAIT,
            argument("--reserve", action="store_true", help="reserve it without starting"),
            argument(
                "--worktree",
                action="store_true",
                help="create a git work tree and a branch for it; removed after completion if clean",
            ),
            MOST,
            TTL,
        ),
    ),
    "start": Verb(executes(c.Start), (KEY, TTL)),
    "stop": Verb(executes(c.Stop), (KEY, TOKEN)),
    "renew": Verb(
        renew,
        (
            argument(
                "key", nargs="?", metavar="KEY", help="one task; default: all of this session"
            ),
            TTL,
            TOKEN,
        ),
    ),
    "release": Verb(executes(c.Release), (KEY, NOTE, TOKEN)),
    "handoff": Verb(executes(c.Handoff), (KEY, TO, TTL, REASON, NOTE, TOKEN)),
    "takeover": Verb(
        takeover,
        (
            KEY,
            argument("--force", action="store_true", help="even from a live holder: people only"),
            TTL,
            REASON,
        ),
    ),
    "assign": Verb(executes(c.Assign), (KEY, TO, TTL, REASON)),
    "unassign": Verb(executes(c.Unassign), (KEY, REASON)),
    "park": Verb(executes(c.Park), (KEY, REASON)),
    "unpark": Verb(executes(c.Unpark), (KEY,)),
}
