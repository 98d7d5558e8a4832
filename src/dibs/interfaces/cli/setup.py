"""`dibs setup`: puts the guards where work is done, looks at them, takes them out again."""

from __future__ import annotations

import sys

from dibs.core.checks import quoted
from dibs.core.refusals import bad_argument
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.arguments import argument, refuse_strangers
from dibs.interfaces.cli.call import Answer, Call, Verb
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.git.install import Setup

MODES = ("check", "remove", "print")
LEVELS = ("user", "project")


def setup(call: Call) -> Answer:
    for choices in (MODES, LEVELS):
        if sum(bool(call[choice]) for choice in choices) > 1:
            raise bad_argument(f"{' and '.join(f'--{one}' for one in choices)}: one at a time")
    target = call["target"]
    if target is None:
        from dibs.interfaces.cli.setup_all import everything

        return everything(call)
    refuse_strangers(
        call.arguments, VERBS["setup"].arguments, dict.fromkeys(LEVELS, LEVELLED), target
    )
    if target not in TARGETS:
        names = ", ".join(TARGETS)
        raise bad_argument(f"{quoted(target)} cannot be set up; there are {names}")
    return TARGETS[target](call)


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


# Harnesses.


def harness(call: Call) -> Answer:
    from dibs.interfaces.cli.setup_harness import one

    return one(call, call["target"])


TARGETS: dict[str, Callable[[Call], Answer]] = {
    "git": git, "claude": harness, "codex": harness, "gemini": harness, "cursor": harness,
}  # fmt: skip
"""What can be set up, and how."""

LEVELLED = tuple(name for name in TARGETS if name != "git")
"""What is set up for a person, or for a project."""

VERBS = {
    "setup": Verb(
        setup,
        (
            argument(
                "target",
                nargs="?",
                metavar="TARGET",
                help=f"{', '.join(TARGETS)}; else a board, git and every harness that is found",
            ),
            argument("--user", action="store_true", help="for all your projects (the default)"),
            argument("--project", action="store_true", help="for this project, with instructions"),
            argument(
                "--check", action="store_true", help="only look: exit 1 if something is missing"
            ),
            argument("--remove", action="store_true", help="take everything out again"),
            argument("--print", action="store_true", help="only show what would be written"),
        ),
    ),
}
