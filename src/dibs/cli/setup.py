"""`dibs setup`: installs, checks and removes git hooks and harness hooks."""

from __future__ import annotations

import sys

from dibs.cli import text as say
from dibs.cli.arguments import argument, refuse_inapplicable
from dibs.cli.call import Call, Verb, VerbResult
from dibs.domain.checks import quoted
from dibs.domain.refusals import bad_argument
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.integrations.git.install import GitHooksSetup

MODES = ("check", "remove", "print")
LEVELS = ("user", "project")


def setup(call: Call) -> VerbResult:
    for choices in (MODES, LEVELS):
        if sum(bool(call[choice]) for choice in choices) > 1:
            raise bad_argument(f"{' and '.join(f'--{one}' for one in choices)}: one at a time")
    target = call["target"]
    if target is None:
        from dibs.cli.setup_all import everything

        return everything(call)
    refuse_inapplicable(
        call.arguments, VERBS["setup"].arguments, dict.fromkeys(LEVELS, LEVELLED), target
    )
    if target not in TARGETS:
        names = ", ".join(TARGETS)
        raise bad_argument(f"{quoted(target)} cannot be set up; there are {names}")
    return TARGETS[target](call)


# git.


def git(call: Call) -> VerbResult:
    from dibs.integrations.git.install import setup_of

    hooks = setup_of(call.place.repository, sys.executable)
    if call["print"]:
        return printed(hooks)
    if call["remove"]:
        gone = hooks.remove()
        lines = tuple(f"taken out: {path}" for path in gone) or ("nothing of dibs is in its hooks",)
        return VerbResult(payloads.answer(removed=gone), lines)
    if not call["check"]:
        hooks.install()
        hooks = setup_of(call.place.repository, sys.executable)
    return states(hooks)


def printed(hooks: GitHooksSetup) -> VerbResult:
    files = list(hooks.planned())
    text = "".join(f"# {path}\n{content}\n" for path, content in files)
    return VerbResult(payloads.answer(way=hooks.way, files=dict(files)), file=text)


def states(hooks: GitHooksSetup) -> VerbResult:
    found = hooks.states()
    whole = all(each.state == "installed" for each in found)
    rows = [(each.hook, each.state, each.note) for each in found]
    told = [each.named() for each in found]
    payload = payloads.answer(ok=whole, way=hooks.way, hooks=told)
    return VerbResult(
        payload, say.table(rows, ("HOOK", "STATE", "WHERE")), exit=0 if whole else REFUSED
    )


# Harnesses.


def harness(call: Call) -> VerbResult:
    from dibs.cli.setup_harness import one

    return one(call, call["target"])


TARGETS: dict[str, Callable[[Call], VerbResult]] = {
    "git": git, "claude": harness, "codex": harness, "gemini": harness, "cursor": harness,
}  # fmt: skip
"""Setup targets."""

LEVELLED = tuple(name for name in TARGETS if name != "git")
"""Targets with a user and a project level."""

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
