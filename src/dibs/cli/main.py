"""Entry point of `dibs`: finds the verb, imports only its module, prints the result, exits."""

from __future__ import annotations

import os
import sys
from errno import EBADF

from dibs.cli.call import before_dashes, parse_arguments
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.verbs import VERBS, VerbSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dibs.cli.call import Call, Verb, VerbResult

WITH_VALUE = ("--agent", "--as", "--session", "--request-id")
"""Common options that take a value; they may come before the verb."""

INTERRUPTED = 130
SKEW = (
    "clock skew: this machine's clock contradicts the board's ledger, and is not trusted; "
    "once it is correct, a person runs: dibs doctor --set-clock --reason TEXT --as NAME"
)
CLEAR = "\033[H\033[2J"
TRACEBACKS = "DIBS_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and maps every exception to a message and an exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in before_dashes(given)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return run(given)
    except Refused as problem:
        return print_refusal(problem, as_json=as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - printed as a bug, with its exit code
        if os.environ.get(TRACEBACKS):
            from traceback import print_exception

            print_exception(error)
        bug = refused("bug", f"this is a bug in dibs: {type(error).__name__}: {error}")
        return print_refusal(bug, as_json=as_json)


def run(given: list[str]) -> int:
    name, rest = split(given)
    if not given or name in ("help", "--help", "-h"):
        if name == "help" and rest:
            return run([rest[0], "--help"])
        from dibs.cli.verbs import overview

        return print_text(overview()) or (0 if given else 2)
    if name == "--version":
        from dibs import __version__

        return print_text(f"dibs {__version__}\n")
    spec = typed_verb(name)
    if spec is None:
        raise unknown_verb(name)
    return run_verb(spec, rest)


def typed_verb(name: str) -> VerbSpec | None:
    """The verb that people type by this name or alias."""
    spec = VERBS.get(name) or next((one for one in VERBS.values() if one.alias == name != ""), None)
    return spec if spec is not None and spec.group else None


def run_with_retry(verb: Verb, call: Call) -> VerbResult | Iterator[VerbResult | None]:
    try:
        return verb.run(call)
    except Refused as problem:
        if not verb.looks or problem.code != "unreachable":
            raise
        from dibs.board.retry import may_be_retried, retry_on_disconnect

        if not may_be_retried(problem):
            raise
        return retry_on_disconnect(call.board, lambda: verb.run(call))


def run_verb(spec: VerbSpec, rest: list[str]) -> int:
    """Imports the verb's module, runs the verb, prints its result; returns the exit code."""
    # `__import__` instead of `importlib`, which would be imported for this alone.
    module = __import__(f"dibs.cli.{spec.module or spec.group}", fromlist=("VERBS",))
    verb: Verb = module.VERBS[spec.name]
    from dibs.cli.call import Call, OutputFailed, VerbResult

    try:
        call = Call(parse_arguments(spec.name, spec.title, verb.arguments, rest))
    except Refused as problem:
        if verb.misused is None:
            raise
        print_refusal(problem, as_json="--json" in before_dashes(rest))
        return verb.misused
    try:
        answer = run_with_retry(verb, call)
        if not isinstance(answer, VerbResult):
            return print_stream(answer, as_json=call["json"])
    except Refused:
        raise
    except OutputFailed as problem:
        return output_lost(problem.error, 0, as_json=call["json"])
    except Exception as error:
        if call.is_damaged():
            raise refused("corrupt", f"the board is damaged ({type(error).__name__})") from error
        raise
    finally:
        call.close()
        if call.skewed:
            warn(SKEW)
        if spec.group != "inner":
            warn_of_ignored(call)
    return print_result(answer, as_json=call["json"])


def warn_of_ignored(call: Call) -> None:
    """Warns about settings that are ignored where they were found.

    Says nothing next to a refusal in JSON: then stderr holds that one object only.
    """
    refused_in_json = call["json"] and sys.exc_info()[0] is not None
    if call.ignored and not refused_in_json:
        from dibs.domain.values import safe

        warn(safe(call.ignored))


def split(given: list[str]) -> tuple[str, list[str]]:
    """Splits the command line into the verb and the rest; common options may also come before the verb."""
    position = 0
    while position < len(given) and given[position].startswith("-"):
        option = given[position]
        if option in ("--help", "-h", "--version"):
            return option, []
        position += 2 if option in WITH_VALUE else 1
    if given and position >= len(given):
        raise bad_argument(f"no verb given, only {quoted(' '.join(given))}")
    if not given:
        return "", given
    after = given[position + 1 :]
    ours = before_dashes(after)
    return given[position], ours + given[:position] + after[len(ours) :]


def unknown_verb(name: str) -> Refused:
    from difflib import get_close_matches

    from dibs.cli.verbs import ALIASES, MODULES

    close = get_close_matches(name, [*MODULES, *ALIASES], 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return bad_argument(f"there is no verb {quoted(name)}{hint}")


# Printing.


def warn(text: str) -> None:
    with suppress_output_errors():
        print(f"dibs: warning: {text}", file=sys.stderr, flush=True)


def print_text(text: str) -> int:
    """Prints text that needs no board (help, version); returns the exit code."""
    from dibs.cli.call import VerbResult

    return print_result(VerbResult({}, file=text), as_json=False)


def print_result(answer: VerbResult, *, as_json: bool) -> int:
    """Prints the result, or reports that its output was lost; returns the exit code."""
    try:
        print_answer(answer, as_json=as_json)
    except OSError as error:
        return output_lost(error, answer.exit, as_json=as_json)
    return answer.exit


def print_answer(answer: VerbResult, *, as_json: bool) -> None:
    for warning in answer.warnings:
        from dibs.domain.values import safe

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
    elif as_json or answer.file or answer.lines:
        raise OSError(EBADF, os.strerror(EBADF))


def print_lines(answer: VerbResult) -> None:
    """Prints the lines; `afresh` clears the terminal first (elsewhere a blank line follows)."""
    from dibs.domain.values import safe

    on_screen = sys.stdout is not None and sys.stdout.isatty()
    if answer.afresh and on_screen:
        print(CLEAR, end="")
    for line in answer.lines:
        print(safe(line))
    if answer.afresh and not on_screen:
        print()


def print_stream(answers: Iterator[VerbResult | None], *, as_json: bool) -> int:
    """Prints each result of a streaming verb at once, until it ends or the reader closes the pipe."""
    for answer in answers:
        if answer is None and reader_is_connected():
            continue
        if answer is None:
            return 0
        try:
            print_answer(answer, as_json=as_json)
        except OSError as error:
            return output_lost(error, answer.exit, as_json=as_json)
    return 0


def reader_is_connected() -> bool:
    """Whether the reader of stdout is still there (its pipe is not closed)."""
    if sys.stdout is None:
        return False
    import select

    ends = select.poll()
    try:
        ends.register(sys.stdout.fileno(), 0)
    except OSError:  # an in-memory stream has no file descriptor
        return True
    return not any(sign & (select.POLLERR | select.POLLHUP) for _, sign in ends.poll(0))


def output_lost(error: OSError, code: int, *, as_json: bool) -> int:
    """Reports that the command was carried out but its output could not be written; keeps a non-zero code.

    A closed pipe (`| head`) is not reported.
    """
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return code
    what = "the command succeeded, but its output cannot be written"
    lost = print_refusal(refused("output_lost", f"{what}: {error.strerror}"), as_json=as_json)
    return code or lost


def print_refusal(problem: Refused, *, as_json: bool) -> int:
    """Prints a refusal to stderr, as text or JSON; returns its exit code."""
    from dibs.output.error_map import advice, mapping_of

    refusal = problem.refusal
    with suppress_output_errors():
        if as_json:
            import json

            from dibs.output import payloads

            print(json.dumps(payloads.refusal(refusal)), file=sys.stderr)
        else:
            from dibs.domain.values import safe

            red, dim, plain = colours(sys.stderr)
            print(f"{red}dibs:{plain} {safe(refusal.message)}", file=sys.stderr)
            print(f"  {dim}next:{plain} {safe(advice(refusal))}", file=sys.stderr)
    return mapping_of(refusal).exit


class suppress_output_errors:  # noqa: N801 - named like contextlib.suppress, which costs an import
    """Ignores errors while writing to stderr: the exit code still reports the refusal."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            return True
        return False


def colours(stream: object) -> tuple[str, str, str]:
    """ANSI codes for red, dim and plain; empty unless the stream is a terminal and NO_COLOR is unset."""
    wanted = getattr(stream, "isatty", bool)() and not os.environ.get("NO_COLOR")
    return ("\033[31m", "\033[2m", "\033[0m") if wanted else ("", "", "")
