"""One invocation of the command line: its arguments (declared as data), board and caller; and the results of verbs."""

from __future__ import annotations

import os
import sys

from dibs.board.command_builder import build
from dibs.board.identity import Identity, IdentityOptions
from dibs.board.locate import Place, locate
from dibs.domain import checks
from dibs.domain.checks import short
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import SECOND, Duration, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn, TypeVar

    from dibs.board.execute import Board
    from dibs.board.identity import CallerContext
    from dibs.board.outcome import Outcome
    from dibs.domain.commands import Command
    from dibs.domain.model import ItemFile, Task, TaskKey

    Read = dict[str, Any]

if TYPE_CHECKING:
    Kind = TypeVar("Kind", bound=Command)

# Arguments of verbs as data, parsed in two ways. The fast path handles plain words and options; everything else
# (help, `--name=value`, errors) goes to `argparse`, whose import costs a third of the start-up of a short
# command. Where both parse, the results are equal.


WIDTH = 100


class Argument(Value):
    """One argument of a verb, with the keyword options of `argparse`."""

    names: tuple[str, ...]
    options: dict[str, Any]

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def dest(self) -> str:
        given: str = self.options.get("dest") or self.names[0].lstrip("-").replace("-", "_")
        return given

    @property
    def default(self) -> Any:
        is_flag = self.options.get("action") == "store_true"
        return self.options.get("default", False if is_flag else None)


def argument(*names: str, **options: Any) -> Argument:
    return Argument(names, options)


COMMAND = argument(
    "--", dest="command", metavar="CMD", required=True, help="the command, with its own arguments"
)
"""Everything after the first `--`, unparsed."""

COMMON = (
    argument("--agent", metavar="NAME", help="act as this agent (or DIBS_AGENT)"),
    argument("--as", metavar="NAME", dest="person", help="act as this person"),
    argument("--session", metavar="NAME", help="the session (or DIBS_SESSION)"),
    argument("--request-id", metavar="ID", help="retries with the same id return the same answer"),
    argument("--json", action="store_true", help="one JSON object instead of text"),
)


SEVERAL = ("*", "+")


def parse_arguments(
    verb: str, means: str, arguments: tuple[Argument, ...], words: list[str]
) -> Read:
    """Parses the words; returns the value of each argument by name."""
    if COMMAND in arguments:
        ours = before_dashes(words)
        return read_ours(verb, means, arguments, ours) | {COMMAND.dest: words[len(ours) + 1 :]}
    return read_ours(verb, means, arguments, words)


def before_dashes(words: list[str]) -> list[str]:
    """The words before `--`: those for dibs, where a command follows."""
    return words[: words.index("--")] if "--" in words else words


def read_ours(verb: str, means: str, arguments: tuple[Argument, ...], words: list[str]) -> Read:
    quick = parse_fast((*arguments, *COMMON), words)
    if quick is not None:
        return quick
    found = vars(parser(verb, means, arguments).parse_intermixed_args(words))
    for each in (*but_the_command(arguments), *COMMON):
        given = found[each.dest]
        several = each.options.get("action") == "append" or each.options.get("nargs") in SEVERAL
        values = given if several and isinstance(given, list) else [given]
        if any(isinstance(value, list) for value in values):
            # What argparse makes of `--name=--`.
            raise bad_argument(f"{each.names[0]} has no value (dibs {verb} --help)")
    return found


def but_the_command(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    return tuple(each for each in arguments if each is not COMMAND)


def parse_fast(arguments: tuple[Argument, ...], words: list[str]) -> Read | None:
    """Fast path: parses plain words and options; `None` if `argparse` has to parse them."""
    arguments = but_the_command(arguments)
    options = {argument.names[0]: argument for argument in arguments if argument.is_option}
    found = {argument.dest: argument.default for argument in arguments}
    placed: list[str] = []
    seen = set()
    left = iter(words)
    for word in left:
        if word[:1] != "-":
            placed.append(word)
            continue
        option = options.get(word)
        if option is None:
            return None
        seen.add(option.dest)
        action = option.options.get("action")
        if action == "store_true":
            found[option.dest] = True
            continue
        value = next(left, None)
        if value is None or value[:1] == "-":
            return None
        found[option.dest] = [*(found[option.dest] or ()), value] if action == "append" else value
    if any(o.options.get("required") and o.dest not in seen for o in options.values()):
        return None
    return assign_positionals(found, [a for a in arguments if not a.is_option], placed)


def assign_positionals(found: Read, arguments: list[Argument], words: list[str]) -> Read | None:
    """Assigns positional words in order; the last argument may take the rest. `None` if they do not fit."""
    if arguments and arguments[-1].options.get("nargs") in SEVERAL:
        *arguments, last = arguments
        found[last.dest] = words[len(arguments) :]
        if len(words) < len(arguments) or (last.options["nargs"] == "+" and not found[last.dest]):
            return None
        words = words[: len(arguments)]
    needed = sum("nargs" not in argument.options for argument in arguments)
    if not needed <= len(words) <= len(arguments):
        return None
    for argument, word in zip(arguments, words):
        found[argument.dest] = word
    return found


def refuse_inapplicable(
    read: Read, arguments: tuple[Argument, ...], homes: dict[str, tuple[str, ...]], here: str
) -> None:
    """Refuses an option that does not apply to this form of the verb, instead of ignoring it.

    `homes`: the forms that each option goes with. An argument not listed there goes with all of them.
    """
    for each in arguments:
        fits = homes.get(each.dest, (here,))
        if here not in fits and read[each.dest] != each.default:
            *most, last = fits
            with_ = f"{', '.join(most)} or {last}" if most else last
            raise bad_argument(f"{each.names[0]} is for {with_}, not for {here}")


def without(message: str, free: list[str]) -> str:
    """Removes optional arguments from argparse's message "the following arguments are required"."""
    head, required, names = message.partition("are required: ")
    needed = [name for name in names.split(", ") if name not in free]
    return f"{head}{required}{', '.join(needed)}"


def parser(verb: str, means: str, arguments: tuple[Argument, ...]) -> ArgumentParser:
    import argparse

    free = [each.options["metavar"] for each in arguments if each.options.get("nargs") == "*"]

    class Parser(argparse.ArgumentParser):
        """Raises a refusal instead of exiting."""

        def error(self, message: str) -> NoReturn:
            raise bad_argument(f"{short(without(message, free))} (dibs {verb} --help)")

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, max_help_position=32, width=WIDTH)

    made = Parser(
        prog=f"dibs {verb}", description=means, allow_abbrev=False, formatter_class=formatter
    )
    for each in but_the_command(arguments):
        made.add_argument(*each.names, **each.options)
    if COMMAND in arguments:
        made.usage = f"{made.format_usage()[len('usage: ') :].rstrip()} -- CMD ..."
        made.epilog = f"-- CMD ...: {COMMAND.options['help']}"
    common = made.add_argument_group("common options")
    for each in COMMON:
        common.add_argument(*each.names, **each.options)
    return made


BEGIN = ("claimed", "taken_over", "forced", "bound", "started")
"""Events after which somebody begins to work, and needs to know where the item is."""


class VerbResult(Value):
    """The result of a verb: JSON payload (or a function that builds it), lines of text, warnings."""

    payload: dict[str, Any] | Callable[[], dict[str, Any]]
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    exit: int = 0
    afresh: bool = False
    """Whether it replaces the previous result on a terminal."""
    file: str = ""
    """Printed instead of `lines`: file contents, byte for byte."""

    def json(self) -> dict[str, Any]:
        return self.payload if isinstance(self.payload, dict) else self.payload()


class OutputFailed(Exception):  # noqa: N818 - not an error of the program
    """Raised by a verb that writes to stdout itself, when that write fails."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Verb(Value):
    """A verb: its arguments, and the function that returns one result or streams results.

    A streaming verb yields `None` as a heartbeat when there is nothing new.
    """

    run: Callable[[Call], VerbResult | Iterator[VerbResult | None]]
    arguments: tuple[Argument, ...] = ()
    misused: int | None = None
    """Exit code for bad arguments, where the usual one has another meaning to the caller."""
    looks: bool = False
    """Whether it is read-only: then it is retried after a lost connection."""


def on_terminal() -> bool:
    """Whether a person may be present: one of the standard streams may be redirected."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return any(stream is not None and stream.isatty() for stream in streams)


def current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise refused("no_board", "the current directory no longer exists") from None


KEY = argument("key", metavar="KEY", help="the task, like T-42")
TTL = argument("--ttl", metavar="TIME", help="how long the lease runs: 90s, 30m, 2h, 7d")
TOKEN = argument("--token", metavar="TOKEN", help="the token of your lease, to be checked")
REASON = argument("--reason", metavar="TEXT", default="", help="why")
NOTE = argument("--note", metavar="TEXT", default="", help="a note on the task")
WAIT = argument("--wait", metavar="TIME", help="how long to wait for work: 30s, 10m")
MOST = argument("--most", metavar="N", help="refuse if you already hold N tasks")
ARGUMENT_OF = {"task": "key", "tasks": "keys"}
"""The argument of a command's field, where their names differ."""

LIMIT = argument("--limit", metavar="N", default="100", help="the maximum number (100)")


class Call:
    """Everything that a verb may need, created on first use."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self._place: Place | None = None
        self._board: Board | None = None
        self._deadline: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def place(self) -> Place:
        """Where the board is, or would be created; refuses what belongs to another user."""
        self.found.check_ours()
        return self.found

    @property
    def found(self) -> Place:
        """Like `place`, without the ownership check: the caller must not read anything from it."""
        if self._place is None:
            self._place = locate(current_directory(), os.environ)
        return self._place

    def stand(self, place: Place) -> None:
        """Locates the board at `place` instead of from the current directory."""
        self._place = place

    @property
    def board(self) -> Board:
        if self._board is None:
            from dibs.opening import open_at

            self._board = open_at(self.place, deadline=self._deadline)
        return self._board

    def set_hook_deadline(self) -> None:
        """Sets the deadline of a hook: git or a harness is waiting for it."""
        from time import monotonic

        from dibs.domain.scopes.policy import hook_timeout

        self._deadline = monotonic() + hook_timeout(os.environ)

    def open_within(self, wait: Duration | None) -> None:
        """Opens the board; waits at most `wait` for a server that is unreachable."""
        if self._board is None:
            from dibs.opening import open_at

            self._board = open_at(self.place, wait=wait)

    def opened_within(self, wait: Duration) -> Duration:
        """Like `open_within`, for verbs that wait; returns what is left of the time."""
        from time import monotonic

        began = monotonic()
        self.open_within(wait or None)  # a wait of 0: the setting write_wait applies
        return Duration(max(0, wait - int((monotonic() - began) * SECOND)))

    def board_or_none(self) -> Board:
        """The board at this place, even if none exists there yet or it cannot be used."""
        from dibs.opening import place_of

        if self._board is None:
            self._board = place_of(self.place)
        return self._board

    @property
    def ignored(self) -> str:
        """A warning about settings ignored where they were found, and how a person adopts them; else ""."""
        settings = None if self._board is None else self._board.settings
        if settings is None or not settings.proposed:
            return ""
        names = ", ".join(settings.proposed)
        what = "programs and servers are only read from your own configuration"
        return f"{settings.proposed_in}: {names} ignored: {what}; to adopt it: dibs config --adopt"

    @property
    def skewed(self) -> bool:
        return self._board is not None and self._board.store.skewed

    def is_damaged(self) -> bool:
        """Whether an unexpected exception is due to a damaged board rather than a bug."""
        if self._board is None:
            return False
        from dibs.board.verify import checkup

        try:
            return checkup(self._board).damaged
        except Exception:  # noqa: BLE001 - a board that cannot even be verified
            return True

    def adopt(self, board: Board) -> None:
        self._board = board

    def close(self) -> None:
        if self._board is not None:
            self._board.store.close()

    # Parsed and checked arguments.

    @property
    def key(self) -> TaskKey:
        return checks.task_key(self["key"])

    @property
    def wait(self) -> Duration | None:
        return None if self["wait"] is None else checks.duration(self["wait"], "the wait")

    @property
    def reason(self) -> str:
        return checks.reason(self["reason"])

    @property
    def note(self) -> str:
        return checks.note(self["note"])

    @property
    def limit(self) -> int:
        return checks.whole(self["limit"], "the limit", 1, 100_000)

    def build(self, kind: type[Kind], **more: Any) -> Kind:
        """Builds a command from the arguments of the same names, and those given here."""
        given = {field: ARGUMENT_OF.get(field, field) for field in kind.fields if field not in more}
        typed = {field: self[name] for field, name in given.items() if name in self.arguments}
        return build(kind, **typed, **more)

    # Identity and execution.

    def who(self) -> Identity:
        return self._context().identify(
            IdentityOptions(self["agent"], self["person"], self["session"])
        )

    def agents_run(self) -> str:
        """Names the agent's harness or `dibs run` that this process is part of, or ""."""
        return self._context().agents_run()

    def _context(self) -> CallerContext:
        from dibs.board.identity import CallerContext

        repository = self.place.repository
        return CallerContext(self.board, os.environ, repository, on_terminal=on_terminal())

    @property
    def request_id(self) -> str | None:
        given = self["request_id"]
        return None if given is None else checks.request_id(given)

    def refuse_request_id(self) -> None:
        """Refuses --request-id for verbs that store no results: they are not idempotent."""
        if self["request_id"] is not None:
            raise bad_argument("--request-id does not apply: this verb is not idempotent")

    def do(self, command: Command) -> VerbResult:
        """Executes a command and renders its outcome."""
        return self.render(self.execute(command))

    def execute(self, command: Command) -> Outcome:
        return self.board.execute(self.caller(command), command, self.request_id)

    def caller(self, command: Command) -> Identity:
        """The caller's identity; an agent that poses as a person is refused, and the refusal is logged."""
        try:
            return self.who()
        except Refused as problem:
            if problem.code == "in_harness":
                impostor = Identity(self["person"], True, "")
                self.board.log_refusal(impostor, command, problem.refusal)
            raise

    def render(self, outcome: Outcome) -> VerbResult:
        from dibs.cli import text

        warnings = text.warnings(outcome)
        item = self.item_of(outcome.task)
        began = any(event.verb in BEGIN for event in outcome.events)

        def payload() -> dict[str, Any]:
            from dibs.output import payloads

            return payloads.with_item(payloads.outcome(outcome, warnings), item)

        lines = text.outcome(outcome)
        return VerbResult(
            payload, (*lines, f"  item {item}") if item and began else lines, warnings
        )

    def item_of(self, task: Task | None) -> ItemFile | None:
        """The item file of a task, if it has one."""
        backlog = self.board.backlog
        return None if backlog is None else backlog.where(self.board, task)

    def render_with(self, outcome: Outcome, lines: tuple[str, ...], **fields: Any) -> VerbResult:
        """Renders an outcome that is not about a task: with these lines and payload fields."""
        from dibs.cli import text
        from dibs.output import payloads

        warnings = text.warnings(outcome)
        payload = payloads.answer(**fields, replayed=outcome.replayed, warnings=list(warnings))
        return VerbResult(payload, lines, warnings)


def executes(kind: type[Command]) -> Callable[[Call], VerbResult]:
    """The function of a verb that only executes one command."""
    return lambda call: call.do(call.build(kind))
