"""`dibs setup TARGET`: puts the guards where work is done, looks at them, takes them out again."""

from __future__ import annotations

import sys

from dibs.core.checks import quoted
from dibs.core.refusals import bad_argument
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.git.install import Setup

MODES = ("check", "remove", "print")


def setup(call: Call) -> Answer:
    if call["target"] not in TARGETS:
        names = ", ".join(TARGETS)
        raise bad_argument(f"{quoted(call['target'])} cannot be set up; there are {names}")
    if sum(bool(call[mode]) for mode in MODES) > 1:
        raise bad_argument("--check, --remove and --print: one at a time")
    return TARGETS[call["target"]](call)


# git.


def git(call: Call) -> Answer:
    from dibs.git.install import setup_of

    hooks = setup_of(call.place.repository, sys.executable)
    if call["print"]:
        return printed(hooks)
    if call["remove"]:
        gone = hooks.remove()
        lines = tuple(f"taken out: {path}" for path in gone) or ("nothing of dibs is in its hooks",)
        return Answer(payloads.answer(removed=gone), lines)
    if not call["check"]:
        hooks.install()
        hooks = setup_of(call.place.repository, sys.executable)
    return states(hooks)


def printed(hooks: Setup) -> Answer:
    files = list(hooks.planned())
    text = "".join(f"# {path}\n{content}\n" for path, content in files)
    return Answer(payloads.answer(way=hooks.way, files=dict(files)), file=text)


def states(hooks: Setup) -> Answer:
    found = hooks.states()
    whole = all(each.state == "installed" for each in found)
    rows = [(each.hook, each.state, each.note) for each in found]
    told = [each.named() for each in found]
    payload = payloads.answer(ok=whole, way=hooks.way, hooks=told)
    return Answer(
        payload, say.table(rows, ("HOOK", "STATE", "WHERE")), exit=0 if whole else REFUSED
    )


TARGETS: dict[str, Callable[[Call], Answer]] = {"git": git}
"""What can be set up, and how."""

VERBS = {
    "setup": Verb(
        setup,
        (
            argument("target", metavar="TARGET", help=f"what to set up: {', '.join(TARGETS)}"),
            argument(
                "--check", action="store_true", help="only look: exit 1 if something is missing"
            ),
            argument("--remove", action="store_true", help="take everything out again"),
            argument("--print", action="store_true", help="only show what would be written"),
        ),
    ),
}
