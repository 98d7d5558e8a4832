"""The verbs that harnesses and shell prompts call: hook, prime, statusline. Silent if there is no board."""

from __future__ import annotations

import os
import sys

from dibs.cli.call import Call, Verb, VerbResult, argument
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refused, bad_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.identity import Identity
    from dibs.domain.refusals import Refusal
    from dibs.harness_table import Harness

BLOCKS, FAILS = 2, 1
"""Exit codes that every harness reads as: denied; failed without blocking."""

PROMPT_SECONDS = 2.0
"""Timeout for a prompt: the shell prints it after every command."""

MOST = 64 * 2**20
"""Limit on one event in bytes. It may contain a whole file that is to be written."""


def hook(call: Call) -> VerbResult:
    """Reads a harness's event from stdin and prints only the reply for the harness.

    A denial that cannot be printed is still reported by the exit code.
    """
    from dibs.integrations.harness.hooks import Hooks, Reply

    call.arguments["json"] = False  # replies in the harness's own JSON
    try:
        refuse_names(call)
        harness = harness_named(call["name"])
    except Refused as problem:  # a mistake in its settings: exit code 2 would block every action
        reply = Reply(err=f"dibs: {problem}: nothing was checked", exit=FAILS)
    else:
        reply = Hooks(harness, os.environ, advice, leaves=True).answer(read_stdin())
    if reply.err:
        complain(reply.err)
    wrong = unwritten(reply.out) if reply.out else ""
    if not wrong or reply.is_empty:
        return VerbResult({}, exit=reply.exit)
    complain(reply.denial or f"dibs: the reply cannot be written: {wrong}")
    return VerbResult({}, exit=BLOCKS if reply.denial else FAILS)


NAMES = {"agent": "--agent", "person": "--as", "session": "--session", "request_id": "--request-id"}


def refuse_names(call: Call) -> None:
    for dest, name in NAMES.items():
        if call[dest] is not None:
            who = "the harness names its session; DIBS_AGENT and DIBS_SESSION may override it"
            raise bad_argument(f"dibs hook takes no {name}: {who}")


def unwritten(text: str) -> str:
    """Prints the text; returns why that failed, or ""."""
    if sys.stdout is None:
        return "the standard output is closed"
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return str(error)
    return ""


def complain(text: str) -> None:
    """Prints to stderr; ignores write errors, since the exit code reports the result too."""
    from dibs.domain.values import safe

    try:
        print(safe(text), file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def harness_named(name: str) -> Harness:
    from dibs.harness_table import HARNESSES

    if name not in HARNESSES:
        raise bad_argument(
            f"{quoted(name)} is not a known harness; there are {', '.join(HARNESSES)}"
        )
    return HARNESSES[name]


def read_stdin() -> str:
    """Standard input as text; invalid UTF-8 is replaced, as it can name nothing."""
    stream = getattr(sys.stdin, "buffer", None)
    read = b"" if stream is None else stream.read(MOST)
    return read.decode("utf-8", "replace")


def advice(refusal: Refusal) -> str:
    from dibs.output.error_map import advice as next_step

    return next_step(refusal)


def prime(call: Call) -> VerbResult:
    """Prints the context that a session gets at its start."""
    from dibs.integrations.harness.context import prime as context

    text = context(call.board, who_or_nobody(call))
    return VerbResult({"schema": 1, "text": text}, tuple(text.splitlines()))


def statusline(call: Call) -> VerbResult:
    """Prints one line or nothing: a prompt shows no errors and must not wait."""
    from dibs.domain.values import Duration
    from dibs.integrations.harness.context import status_line
    from dibs.integrations.harness.hook_input import may_be_board

    text, name = "", call["name"]
    harness = None if name is None else harness_named(name)
    try:
        if may_be_board(call.found, os.environ):
            set_timeout(PROMPT_SECONDS)
            call.open_within(Duration(0))
            who = who_or_nobody(call) if harness is None else who_by_harness(harness)
            text = status_line(call.board, who) if who is not None else ""
    except Refused as problem:
        text = "" if problem.code == "no_board" else "dibs?"
    except PromptTimeout:
        text = "dibs?"
    finally:
        set_timeout(0)
    return VerbResult({"schema": 1, "text": text}, (text,) if text else ())


class PromptTimeout(BaseException):
    """Timeout of a server. Not an `Exception`, whose cleanup handlers would query the server again."""


def set_timeout(seconds: float) -> None:
    """Raises `PromptTimeout` after so many seconds; 0 cancels it."""
    import signal

    def stop(*_: object) -> None:
        raise PromptTimeout

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def who_or_nobody(call: Call) -> Identity | None:
    try:
        return call.who()
    except Refused as problem:
        if problem.code in ("no_identity", "no_session"):
            return None
        raise


def who_by_harness(harness: Harness) -> Identity | None:
    """The identity of the session that the harness names on standard input."""
    from dibs.integrations.harness.hook_input import HookEvent, actor_in, parse_event

    event: HookEvent | None = parse_event(harness, read_stdin())
    return None if event is None else actor_in(event, os.environ)


NAME = argument("name", metavar="NAME", help="the harness: claude, codex, gemini or cursor")

VERBS = {
    "hook": Verb(hook, (NAME,), misused=FAILS),
    "prime": Verb(prime),
    "statusline": Verb(
        statusline,
        (
            argument(
                "name",
                nargs="?",
                metavar="NAME",
                help="the harness that calls, and names its session on standard input",
            ),
        ),
    ),
}
