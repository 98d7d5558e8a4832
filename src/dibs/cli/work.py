"""The verb `run`: runs a command under a lease.

Messages of `run` itself go to stderr: stdout belongs to the command.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from dibs.board.identity import Identity
from dibs.cli.arguments import COMMAND, argument
from dibs.cli.call import MOST, NOTE, TTL, WAIT, Call, Verb, VerbResult
from dibs.cli.output import text
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.display import safe
from dibs.domain.refusals import Refused, bad_argument, shown
from dibs.machine import UNKNOWN
from dibs.workers.run import FAIL, ON_FAIL, Options, RunResult, ended
from dibs.workers.run import run as run_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome
    from dibs.output.payloads import Payload

FAILED = 1
NOT_SEEN = (
    "/proc does not tell here which boot and which process this is: "
    "if this run is killed, its task is free when the lease expires, and not at once"
)
OF_SIGNAL = 128
"""As in a shell: a run ended by signal N exits with 128 + N."""


def run(call: Call) -> VerbResult:
    gc.enable()  # it may run for days
    open_standard_streams()
    if call.request_id is not None:
        raise bad_argument("--request-id belongs to one change; a command is run anew each time")
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
            tell(*(f"warning: {warning}" for warning in (*text.warnings(outcome), *unseen)))
            tell(*text.outcome(outcome))

    ran = run_under(call.board, worker(call, claim), claim, call["command"], options, claimed)
    if ran.lost is not None:
        raise Refused(ran.lost)
    if not as_json:
        tell(*summary_lines(ran))
    return VerbResult(lambda: payload(ran), exit=exit_of(ran))


def claiming(call: Call) -> c.Claim | c.Next:
    """The command that acquires the lease: claim of one task, or next."""
    if (call["key"] is None) != call["next"]:
        raise bad_argument("say KEY or --next: which task is it?")
    if call["next"]:
        return c.Next(ttl=call.ttl, most=call.most)
    if call["wait"] is not None or call["most"] is not None:
        raise bad_argument("--wait and --most go with --next")
    return c.Claim(call.key, ttl=call.ttl)


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


def tell(*lines: str) -> None:
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
    return FAILED if ran.status or ran.verb == FAIL else 0


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


VERBS = {
    "run": Verb(
        run,
        (
            argument("key", nargs="?", metavar="KEY", help="the task, like T-42"),
            argument("--next", action="store_true", help="what is offered first, instead of KEY"),
            WAIT,
            MOST,
            TTL,
            argument("--submit", action="store_true", help="hand it to a reviewer when it is done"),
            argument(
                "--on-fail",
                metavar="WHAT",
                default=FAIL,
                help="if it exits with anything but 0: fail (the default), release or block",
            ),
            argument(
                "--log-dir", metavar="DIR", default="", help="keep its output in DIR/KEY-TOKEN.log"
            ),
            NOTE,
            COMMAND,
        ),
    ),
}
