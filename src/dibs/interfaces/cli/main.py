"""`dibs`: finds the verb, loads what that verb needs, prints its answer, and exits with its code."""

from __future__ import annotations

import os
import sys

from dibs.core.checks import quoted
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.interfaces.cli import verbs
from dibs.interfaces.cli.arguments import before_dashes, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dibs.interfaces.cli.call import Answer, Call, Verb

WITH_VALUE = ("--agent", "--as", "--session", "--request-id")
"""Options of every verb that take a value; they may stand before the verb."""

INTERRUPTED = 130
SKEW = (
    "clock skew: this machine's clock contradicts the board's ledger, and is not believed; "
    "once it is right, a person runs: dibs doctor --set-clock --reason TEXT --as NAME"
)
CLEAR = "\033[H\033[2J"
TRACEBACKS = "DIBS_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; everything that can go wrong ends here."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in before_dashes(given)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return run(given)
    except Refused as problem:
        return told(problem, as_json=as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - told, with its exit code
        if os.environ.get(TRACEBACKS):
            from traceback import print_exception

            print_exception(error)
        bug = refused("bug", f"this is a bug in dibs: {type(error).__name__}: {error}")
        return told(bug, as_json=as_json)


def run(given: list[str]) -> int:
    name, rest = split(given)
    if not given or name in ("help", "--help", "-h"):
        if name == "help" and rest:
            return run([rest[0], "--help"])
        return print_text(verbs.overview()) or (0 if given else 2)
    if name == "--version":
        from dibs import __version__

        return print_text(f"dibs {__version__}\n")
    name = verbs.ALIASES.get(name, name)
    if name not in verbs.MODULES:
        raise unknown_verb(name)
    return carry_out(name, rest)


def answered(verb: Verb, call: Call) -> Answer | Iterator[Answer | None]:
    try:
        return verb.run(call)
    except Refused as problem:
        if not verb.looks or problem.code != "unreachable":
            raise
        from dibs.board.persist import persist, was_cut_off

        if not was_cut_off(problem):
            raise
        return persist(call.board, lambda: verb.run(call))


def carry_out(name: str, rest: list[str]) -> int:
    """Loads the verb, lets it act, and tells its answer."""
    # `importlib` itself would be loaded for this alone.
    verb: Verb = __import__(verbs.MODULES[name], fromlist=("VERBS",)).VERBS[name]
    from dibs.interfaces.cli.call import Answer, Call, CannotPrint

    try:
        call = Call(read(name, verbs.meaning(name), verb.arguments, rest))
    except Refused as problem:
        if verb.misused is None:
            raise
        told(problem, as_json="--json" in before_dashes(rest))
        return verb.misused
    try:
        answer = answered(verb, call)
        if not isinstance(answer, Answer):
            return print_as_they_come(answer, as_json=call["json"])
    except Refused:
        raise
    except CannotPrint as problem:
        return output_lost(problem.error, 0, as_json=call["json"])
    except Exception as error:
        if call.is_damaged():
            raise refused("corrupt", f"the board is damaged ({type(error).__name__})") from error
        raise
    finally:
        call.close()
        if call.skewed:
            warn(SKEW)
        if name not in verbs.GROUPS["inner"]:
            warn_of_ignored(call)
    return print_or_tell(answer, as_json=call["json"])


def warn_of_ignored(call: Call) -> None:
    """Settings that do not count where they are. Beside a refusal in JSON, nothing else is on stderr."""
    refused_in_json = call["json"] and sys.exc_info()[0] is not None
    if call.ignored and not refused_in_json:
        from dibs.core.display import safe

        warn(safe(call.ignored))


def split(given: list[str]) -> tuple[str, list[str]]:
    """The verb, and everything else: options of every verb may stand before it too."""
    position = 0
    while position < len(given) and given[position].startswith("-"):
        option = given[position]
        if option in ("--help", "-h", "--version"):
            return option, []
        position += 2 if option in WITH_VALUE else 1
    if given and position >= len(given):
        raise bad_argument(f"no verb is given, only {quoted(' '.join(given))}")
    if not given:
        return "", given
    after = given[position + 1 :]
    ours = before_dashes(after)
    return given[position], ours + given[:position] + after[len(ours) :]


def unknown_verb(name: str) -> Refused:
    from difflib import get_close_matches

    close = get_close_matches(name, [*verbs.MODULES, *verbs.ALIASES], 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return bad_argument(f"there is no verb {quoted(name)}{hint}")


# Printing.


def warn(text: str) -> None:
    with suppress_output_errors():
        print(f"dibs: warning: {text}", file=sys.stderr, flush=True)


def print_text(text: str) -> int:
    """A text that is about no board; the exit code."""
    from dibs.interfaces.cli.call import Answer

    return print_or_tell(Answer({}, file=text), as_json=False)


def print_or_tell(answer: Answer, *, as_json: bool) -> int:
    """Prints it; or says that only the output is lost. The exit code."""
    try:
        print_answer(answer, as_json=as_json)
    except OSError as error:
        return output_lost(error, answer.exit, as_json=as_json)
    return answer.exit


def print_answer(answer: Answer, *, as_json: bool) -> None:
    for warning in answer.warnings:
        from dibs.core.display import safe

        warn(safe(warning))
    if as_json:
        import json

        print(json.dumps(answer.json(), ensure_ascii=True))
    elif answer.file:
        print(answer.file, end="")
    elif answer.lines or answer.afresh:
        print_lines(answer)
    if sys.stdout is not None:
        sys.stdout.flush()


def print_lines(answer: Answer) -> None:
    """In place of those before, if they are to be: on a terminal; elsewhere a blank line follows."""
    from dibs.core.display import safe

    on_screen = sys.stdout is not None and sys.stdout.isatty()
    if answer.afresh and on_screen:
        print(CLEAR, end="")
    for line in answer.lines:
        print(safe(line))
    if answer.afresh and not on_screen:
        print()


def print_as_they_come(answers: Iterator[Answer | None], *, as_json: bool) -> int:
    """Each at once, until there are no more, or nobody reads them any more."""
    for answer in answers:
        if answer is None and is_heard():
            continue
        if answer is None:
            return 0
        try:
            print_answer(answer, as_json=as_json)
        except OSError as error:
            return output_lost(error, answer.exit, as_json=as_json)
    return 0


def is_heard() -> bool:
    """Whether the other end of a pipe is still there."""
    if sys.stdout is None:
        return False
    import select

    ends = select.poll()
    try:
        ends.register(sys.stdout.fileno(), 0)
    except OSError:  # output that is kept in memory has no other end
        return True
    return not any(sign & (select.POLLERR | select.POLLHUP) for _, sign in ends.poll(0))


def output_lost(error: OSError, code: int, *, as_json: bool) -> int:
    """Everything is done but the printing. A code that says more than that is kept."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return code
    what = "the command was carried out, but its output cannot be written"
    lost = told(refused("output_lost", f"{what}: {error.strerror}"), as_json=as_json)
    return code or lost


def told(problem: Refused, *, as_json: bool) -> int:
    """Prints a refusal, and gives its exit code."""
    from dibs.interfaces.surfaces import advice, surface

    refusal = problem.refusal
    with suppress_output_errors():
        if as_json:
            import json

            from dibs.interfaces import payloads

            print(json.dumps(payloads.refusal(refusal)), file=sys.stderr)
        else:
            from dibs.core.display import safe

            red, dim, plain = colours(sys.stderr)
            print(f"{red}dibs:{plain} {safe(refusal.message)}", file=sys.stderr)
            print(f"  {dim}next:{plain} {safe(advice(refusal))}", file=sys.stderr)
    return surface(refusal).exit


class suppress_output_errors:  # noqa: N801 - as contextlib.suppress, which costs an import
    """Nobody may be there to read a refusal: its exit code says it all the same."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            return True
        return False


def colours(stream: object) -> tuple[str, str, str]:
    """Colour only on a terminal, and not where it is not wanted."""
    wanted = getattr(stream, "isatty", bool)() and not os.environ.get("NO_COLOR")
    return ("\033[31m", "\033[2m", "\033[0m") if wanted else ("", "", "")
