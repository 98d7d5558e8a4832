"""The verbs that let others work: run.

What `run` itself has to say goes to standard error: standard output belongs to the command.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from dibs.board.identity import Identity
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.display import safe
from dibs.core.refusals import Refused, bad_argument, shown
from dibs.interfaces.cli import say
from dibs.interfaces.cli.arguments import COMMAND, argument
from dibs.interfaces.cli.call import MOST, NOTE, TTL, WAIT, Answer, Call, Verb
from dibs.machine import UNKNOWN
from dibs.workers.run import FAIL, ON_FAIL, Options, Ran, ended
from dibs.workers.run import run as run_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.outcome import Outcome
    from dibs.interfaces.payloads import Payload

FAILED = 1
NOT_SEEN = (
    "/proc does not tell here which boot and which process this is: "
    "if this run is killed, its task is free when the lease expires, and not at once"
)
OF_SIGNAL = 128
"""As a shell does: a run that was ended by signal N exits with 128 + N."""


def run(call: Call) -> Answer:
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
            tell(*(f"warning: {warning}" for warning in (*say.warnings(outcome), *unseen)))
            tell(*say.outcome(outcome))

    ran = run_under(call.board, worker(call, claim), claim, call["command"], options, claimed)
    if ran.lost is not None:
        raise Refused(ran.lost)
    if not as_json:
        tell(*said(ran))
    return Answer(lambda: payload(ran), exit=exit_of(ran))


def claiming(call: Call) -> c.Claim | c.Next:
    """What is to be worked on: one task, or what is offered first."""
    if (call["key"] is None) != call["next"]:
        raise bad_argument("say KEY or --next: which task is it?")
    if call["next"]:
        return c.Next(ttl=call.ttl, most=call.most)
    if call["wait"] is not None or call["most"] is not None:
        raise bad_argument("--wait and --most go with --next")
    return c.Claim(call.key, ttl=call.ttl)


def open_standard_streams() -> None:
    """Where one is closed, a pipe or a file of ours would take its place."""
    with suppress(FileNotFoundError):  # a root without devices
        while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(opened, True)
        os.close(opened)


def worker(call: Call, command: c.Command) -> Identity:
    """Who calls. An agent that names no session gets one for this run."""
    try:
        return call.caller(command)
    except Refused as problem:
        if problem.code != "no_session":
            raise
    call.arguments["session"] = f"run-{os.urandom(5).hex()}"
    return call.caller(command)


def tell(*lines: str) -> None:
    """Nobody may be there to hear it: the command is run all the same."""
    with suppress(OSError):
        for line in lines:
            print(f"dibs: {safe(line)}", file=sys.stderr, flush=True)


def said(ran: Ran) -> tuple[str, ...]:
    task = ran.outcome.task
    assert task is not None, "a run is about a task"
    what = f"the command {ended(ran.status)}"
    if ran.by_command:
        lines = [
            f"{what}; it ended the lease itself ({ran.verb}): {task.key} is {shown(task.state)}"
        ]
    else:
        lines = [f"{what}; {line}" for line in say.outcome(ran.outcome)]
    if ran.log_broken:
        lines.append(f"warning: {ran.log} is not complete: it could not be written")
    return tuple(lines)


def exit_of(ran: Ran) -> int:
    if ran.stopped_by:
        return OF_SIGNAL + ran.stopped_by
    return FAILED if ran.status or ran.verb == FAIL else 0


def payload(ran: Ran) -> Payload:
    from dibs.interfaces import payloads

    warnings = say.warnings(ran.claimed)
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
