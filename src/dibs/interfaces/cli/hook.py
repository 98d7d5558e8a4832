"""The verbs that harnesses and prompts call: hook, prime, statusline. Silent where there is no board."""

from __future__ import annotations

import os
import sys

from dibs.core.checks import quoted
from dibs.core.refusals import Refused, bad_argument
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.identity import Identity
    from dibs.core.refusals import Refusal
    from dibs.harness.table import Harness

BLOCKS, FAILS = 2, 1
"""What every harness reads as a denial, and as a failure that blocks nothing."""

PROMPT_SECONDS = 2.0
"""How long a prompt may take: it is there again after every command."""

MOST = 64 * 2**20
"""Bytes of one event. A file that is written whole stands in it."""


def hook(call: Call) -> Answer:
    """What a harness says is read from the standard input; what it is told is all that is printed.

    A denial that cannot be written is one all the same, by the exit code.
    """
    from dibs.harness.hooks import Hooks, Reply

    call.arguments["json"] = False  # it answers in the harness's own JSON
    try:
        refuse_names(call)
        harness = harness_named(call["name"])
    except Refused as problem:  # a slip in their settings: exit code 2 would block all that they do
        reply = Reply(err=f"dibs: {problem}: nothing was checked", exit=FAILS)
    else:
        reply = Hooks(harness, os.environ, advice, leaves=True).answer(said())
    if reply.err:
        complain(reply.err)
    wrong = unwritten(reply.out) if reply.out else ""
    if not wrong or reply.is_empty:
        return Answer({}, exit=reply.exit)
    complain(reply.denial or f"dibs: the answer cannot be written: {wrong}")
    return Answer({}, exit=BLOCKS if reply.denial else FAILS)


NAMES = {"agent": "--agent", "person": "--as", "session": "--session", "request_id": "--request-id"}


def refuse_names(call: Call) -> None:
    for dest, name in NAMES.items():
        if call[dest] is not None:
            who = "the harness says who it is, and so may DIBS_AGENT and DIBS_SESSION"
            raise bad_argument(f"dibs hook takes no {name}: {who}")


def unwritten(text: str) -> str:
    """Prints it; why it could not be, if so."""
    if sys.stdout is None:
        return "the standard output is closed"
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return str(error)
    return ""


def complain(text: str) -> None:
    """Nobody may be there to read it: the exit code says it all the same."""
    from dibs.core.display import safe

    try:
        print(safe(text), file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def harness_named(name: str) -> Harness:
    from dibs.harness.table import HARNESSES

    if name not in HARNESSES:
        raise bad_argument(f"{quoted(name)} is no harness that dibs knows: {', '.join(HARNESSES)}")
    return HARNESSES[name]


def said() -> str:
    """The standard input. Bytes that are not text cannot name anything."""
    stream = getattr(sys.stdin, "buffer", None)
    read = b"" if stream is None else stream.read(MOST)
    return read.decode("utf-8", "replace")


def advice(refusal: Refusal) -> str:
    from dibs.interfaces.surfaces import advice as next_step

    return next_step(refusal)


def prime(call: Call) -> Answer:
    """What a session is told at its start, for whoever asks."""
    from dibs.harness.telling import prime as told

    who = who_or_nobody(call)
    text = told(call.board, who)
    return Answer({"schema": 1, "text": text}, tuple(text.splitlines()))


def statusline(call: Call) -> Answer:
    """One line, or nothing: a prompt is no place for errors, nor for a wait."""
    from dibs.core.instants import Duration
    from dibs.harness.hooks import may_be_board
    from dibs.harness.telling import line

    text, name = "", call["name"]
    harness = None if name is None else harness_named(name)
    try:
        if may_be_board(call.found, os.environ):
            give_up_after(PROMPT_SECONDS)
            call.open_within(Duration(0))
            who = who_or_nobody(call) if harness is None else who_by_harness(harness)
            text = line(call.board, who) if who is not None else ""
    except Refused as problem:
        text = "" if problem.code == "no_board" else "dibs?"
    except TooLong:
        text = "dibs?"
    finally:
        give_up_after(0)
    return Answer({"schema": 1, "text": text}, (text,) if text else ())


class TooLong(BaseException):
    """A server keeps silent. No `Exception`: whoever clears up after one would ask the server again."""


def give_up_after(seconds: float) -> None:
    """0: never."""
    import signal

    def stop(*_: object) -> None:
        raise TooLong

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
    """A harness that asks for a line says which session it is on the standard input."""
    from dibs.harness.heard import Heard, actor_in, heard

    event: Heard | None = heard(harness, said())
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
                help="the harness that asks, and says its session on the standard input",
            ),
        ),
    ),
}
