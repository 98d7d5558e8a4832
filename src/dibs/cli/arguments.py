"""Declares the arguments of verbs as data, and parses them in two ways.

The fast path here handles plain words and options. Everything else (help, `--name=value`, errors) goes to
`argparse`, whose import costs a short command a third of its start-up time. Where both parse, the results
are equal.
"""

from __future__ import annotations

from dibs.domain.checks import short
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import Any, NoReturn

    Read = dict[str, Any]

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
