"""The work verbs: sweep, run, dispatch.

Messages of `run` itself go to stderr: stdout belongs to the command.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from contextlib import suppress

from dibs.board import matching, settings
from dibs.board.command_builder import build
from dibs.board.identity import Identity
from dibs.cli import text
from dibs.cli.call import COMMAND, MOST, NOTE, REASON, TTL, WAIT, Call, Verb, VerbResult, argument
from dibs.cli.text import count
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.refusals import Refused, bad_argument, refused, shown
from dibs.domain.values import iso, quoted, safe
from dibs.machine import UNKNOWN
from dibs.output import payloads
from dibs.workers.run import ON_FAIL, Options, RunResult, ended
from dibs.workers.run import run as run_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from dibs.board.outcome import Outcome
    from dibs.board.queries import LogLine
    from dibs.domain.values import Duration
    from dibs.output.payloads import Payload
    from dibs.workers.pool import DispatchEvent, Emit

    Checked = TypeVar("Checked")


# run.


FAILED = 1
NOT_SEEN = (
    "/proc does not identify this boot and process: "
    "if this run is killed, its task becomes free only when the lease expires"
)
OF_SIGNAL = 128
"""As in a shell: a run ended by signal N exits with 128 + N."""


def run(call: Call) -> VerbResult:
    gc.enable()  # it may run for days
    open_standard_streams()
    if call.request_id is not None:
        raise bad_argument("--request-id does not apply: a command runs each time")
    as_json, claim = call["json"], claiming(call)
    options = Options(
        submit=call["submit"],
        on_fail=checks.one_of(call["on_fail"], "--on-fail", ON_FAIL),
        note=call.note,
        log_dir=call["log_dir"],
        wait=call.wait,
        out=2 if as_json else 1,
    )

    def claimed(outcome: Outcome) -> None:
        if not as_json:
            unseen = () if call.board.store.machine.boot() != UNKNOWN else (NOT_SEEN,)
            print_lines(*(f"warning: {warning}" for warning in (*text.warnings(outcome), *unseen)))
            print_lines(*text.outcome(outcome))

    ran = run_under(call.board, worker(call, claim), claim, call["command"], options, claimed)
    if ran.lost is not None:
        raise Refused(ran.lost)
    if not as_json:
        print_lines(*summary_lines(ran))
    return VerbResult(lambda: payload(ran), exit=exit_of(ran))


def claiming(call: Call) -> c.Claim | c.Next:
    """The command that acquires the lease: claim of one task, or next."""
    if (call["key"] is None) != call["next"]:
        raise bad_argument("use either KEY or --next")
    if call["next"]:
        return call.build(c.Next)
    if call["wait"] is not None or call["most"] is not None:
        raise bad_argument("--wait and --most require --next")
    return call.build(c.Claim)


def open_standard_streams() -> None:
    """Opens closed standard streams on /dev/null, so that no pipe or file of ours gets their numbers."""
    with suppress(FileNotFoundError):  # a root file system without devices
        while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(opened, True)
        os.close(opened)


def worker(call: Call, command: c.Command) -> Identity:
    """The caller's identity. An agent without a session gets a new one for this run."""
    try:
        return call.caller(command)
    except Refused as problem:
        if problem.code != "no_session":
            raise
    call.arguments["session"] = f"run-{os.urandom(5).hex()}"
    return call.caller(command)


def print_lines(*lines: str) -> None:
    """Prints to stderr; ignores write errors, since the command has to run anyway."""
    with suppress(OSError):
        for line in lines:
            print(f"dibs: {safe(line)}", file=sys.stderr, flush=True)


def summary_lines(ran: RunResult) -> tuple[str, ...]:
    task = ran.outcome.task
    assert task is not None, "a run is about a task"
    what = f"the command {ended(ran.status)}"
    if ran.by_command:
        lines = [
            f"{what}; it ended the lease itself ({ran.verb}): {task.key} is {shown(task.state)}"
        ]
    else:
        lines = [f"{what}; {line}" for line in text.outcome(ran.outcome)]
    if ran.log_broken:
        lines.append(f"warning: {ran.log} is not complete: it could not be written")
    return tuple(lines)


def exit_of(ran: RunResult) -> int:
    if ran.stopped_by:
        return OF_SIGNAL + ran.stopped_by
    return FAILED if ran.status or ran.verb == c.Fail.verb else 0


def payload(ran: RunResult) -> Payload:
    from dibs.output import payloads

    warnings = text.warnings(ran.claimed)
    return payloads.outcome(ran.outcome, warnings) | {
        "run": {
            "exit": ran.status if ran.status >= 0 else None,
            "signal": None if ran.status >= 0 else signal.Signals(-ran.status).name,
            "ended_by": ran.verb,
            "by_command": ran.by_command,
            "interrupted_by": signal.Signals(ran.stopped_by).name if ran.stopped_by else None,
            "token": str(ran.claimed.task.token) if ran.claimed.task else None,
            "session": ran.claimed.caller.session or ran.claimed.caller.actor.name,
            "tail": ran.tail,
            "log": ran.log or None,
        }
    }


# sweep.


def sweep(call: Call) -> VerbResult:
    from dibs.cli import pages
    from dibs.cli.move import of_outcome, plan, render_changes

    given = {name: call[name] for name in ("grace", "limit") if call[name] is not None}
    command = build(c.Sweep, **given)
    if call["dry_run"]:
        return plan(call, command)
    from dibs.domain.values import Instant
    from dibs.workers.sweep import sweep as run_sweep

    who = call.who()
    outcome = run_sweep(call.board, who, command.grace, command.limit)
    many = of_outcome(outcome) if outcome else []
    actors, now = (outcome.actors, outcome.now) if outcome else ({}, Instant(0))
    answer = render_changes(many, actors, now, outcome)
    left = count_expired(call)
    payload = answer.json() | {"dry_run": False, "suspect": left}
    suspects = (
        (f"{count(left, 'lease')} expired; sweep ends them unless they are renewed",)
        if left
        else ()
    )
    return answer.but(
        payload=payload,
        lines=(pages.endings(many), *answer.lines, *suspects) if many else suspects or answer.lines,
    )


def count_expired(call: Call) -> int:
    """The number of leases that have expired but not ended (counts at most 1,000)."""
    with call.board.read() as tx:
        return len(tx.tasks_expired(1_000))


# dispatch: reports each event as it happens.


def dispatch(call: Call) -> VerbResult | Iterator[VerbResult]:
    ways = ("once", "dry_run", "pause", "resume")
    given = [f"--{way.replace('_', '-')}" for way in ways if call[way]]
    if len(given) > 1:
        raise bad_argument(f"{' and '.join(given)} do not combine")
    if call["reason"] and not call["pause"]:
        raise bad_argument("--reason requires --pause")
    if call["pause"]:
        return pause(call)
    if call["resume"]:
        return resume(call)
    return preview_tick(call) if call["dry_run"] else work(call)


# Pause and resume.


def pause(call: Call) -> VerbResult:
    outcome = call.execute(call.build(c.Pause))
    did = bool(outcome.entries)  # else it was paused before; that pause may be over by now
    who, why = (
        (outcome.caller.actor.name, call.reason.strip()) if did else matching.paused_by(call.board)
    )
    done = f"paused by {who}" + (f": {quoted(why)}" if why else "")
    lines: tuple[str, ...] = (
        done if did else f"it was {done}",
        "to continue: dibs dispatch --resume",
    )
    if not who:
        lines = ("no longer paused",)
    return call.render_with(outcome, lines, paused=bool(who), by=who or None, reason=why or None)


def resume(call: Call) -> VerbResult:
    outcome = call.execute(c.Resume())
    line = "resumed: work is offered again" if outcome.entries else "was not paused"
    return call.render_with(outcome, (line,), paused=False, changed=bool(outcome.entries))


# Dry run and work.


def preview_tick(call: Call) -> VerbResult:
    """Prints what one tick would do now; starts and writes nothing."""
    check(call)
    board, agents = call.board, call.board.settings.agents
    swept = board.plan(call.who(), c.Sweep(board.settings.dispatch_grace)).decision.others
    ends = [(change.key, event.cause) for change in swept for event in change.events]
    found = matching.matches(board, agents, most(call) or board.settings.dispatch_max)
    starts = [(key, agent.name) for agent, key in found.starts]
    lines = [f"would end the lease of {key} ({cause})" for key, cause in ends]
    lines += [f"would start {key} with {name}" for key, name in starts]
    if found.paused:
        lines.append(f"paused by {found.paused}")
    payload = payloads.answer(
        dry_run=True,
        ends=[{"task": key, "cause": cause} for key, cause in ends],
        starts=[{"task": key, "agent": name} for key, name in starts],
        paused=found.paused or None,
    )
    warnings = tuple(matching.check_agents(board, agents))
    return VerbResult(payload, tuple(lines) or ("nothing to do",), warnings)


def work(call: Call) -> Iterator[VerbResult]:
    """Runs the dispatcher. It prints events as they happen, so there is no final result."""
    from dibs.opening import settings_now
    from dibs.workers.dispatch import Dispatcher, Options

    gc.enable()  # it may run for weeks
    check(call)
    board, options = call.board, Options(tick(call), most(call))
    dispatcher = Dispatcher(board, call.who(), reporter(call), as_json, options)
    if call["once"]:
        dispatcher.once()
    else:
        dispatcher.run(lambda: settings_now(call.place, board))
    return iter(())


def check(call: Call) -> None:
    """Checks the options, and refuses if no agent is configured."""
    if call.request_id is not None:
        raise bad_argument("--request-id requires --pause or --resume")
    tick(call), most(call)
    call.board.follow_if_moved()
    if not call.board.settings.agents:
        raise refused("no_agents", "no agent is configured")


def tick(call: Call) -> Duration | None:
    return None if call["tick"] is None else typed("--tick", settings.tick, call["tick"])


def most(call: Call) -> int | None:
    return None if call["max"] is None else typed("--max", settings.most, call["max"])


def typed(name: str, check: Callable[[str], Checked], value: str) -> Checked:
    try:
        return check(value)
    except Refused as problem:
        raise bad_argument(f"{name} {checks.quoted(value)}: {problem}") from None


# Reporting.


def reporter(call: Call) -> Emit:
    """A function that prints each event as a line or as JSON. Write errors do not stop the work."""
    machine = call.board.store.machine
    in_json, dated = call["json"], not call["once"]

    def report(event: DispatchEvent) -> None:
        at = iso(machine.wall())
        line = f"{at[:19]}Z {event.line}" if dated else event.line
        facts = payloads.answer(at=at, event=event.what, message=event.line, **event.facts)
        with suppress(OSError, AttributeError, ValueError):
            print(json.dumps(facts) if in_json else safe(line), file=sys.stdout, flush=True)

    return report


def as_json(line: LogLine) -> str:
    """The input of a `[notify]` command: one event as JSON."""
    return json.dumps(payloads.answer(**payloads.event(line)))


VERBS = {
    "run": Verb(
        run,
        (
            argument("key", nargs="?", metavar="KEY", help="the task, like T-42"),
            argument(
                "--next", action="store_true", help="the task that next offers, instead of KEY"
            ),
            WAIT,
            MOST,
            TTL,
            argument("--submit", action="store_true", help="submit it for review when it is done"),
            argument(
                "--on-fail",
                metavar="WHAT",
                default=c.Fail.verb,
                help="what to do on a non-zero exit: fail (the default), release or block",
            ),
            argument(
                "--log-dir", metavar="DIR", default="", help="write its output to DIR/KEY-TOKEN.log"
            ),
            NOTE,
            COMMAND,
        ),
    ),
    "sweep": Verb(
        sweep,
        (
            argument("--dry-run", action="store_true", help="only show what would be done"),
            argument("--grace", metavar="TIME", help="how long to wait after expiry (30s)"),
            argument("--limit", metavar="N", help="the maximum number of leases (100)"),
        ),
    ),
    "dispatch": Verb(
        dispatch,
        (
            argument("--once", action="store_true", help="one tick; do not wait for the work"),
            argument("--dry-run", action="store_true", help="only show what would be done"),
            argument("--pause", action="store_true", help="offer no work until --resume"),
            argument("--resume", action="store_true", help="offer work again"),
            REASON,
            argument("--tick", metavar="TIME", help="the polling interval, if nothing changes"),
            argument("--max", metavar="N", help="how many tasks its agents may hold in total"),
        ),
    ),
}
