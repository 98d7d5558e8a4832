"""`dibs setup`: puts the guards where work is done, looks at them, takes them out again."""

from __future__ import annotations

from dibs.core.checks import quoted
from dibs.core.refusals import bad_argument
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
    if target not in TARGETS:
        names = ", ".join(TARGETS)
        raise bad_argument(f"{quoted(target)} cannot be set up; there are {names}")
    return TARGETS[target](call)


def harness(call: Call) -> Answer:
    from dibs.interfaces.cli.setup_harness import one

    return one(call, call["target"])


TARGETS: dict[str, Callable[[Call], Answer]] = dict.fromkeys(
    ("claude", "codex", "gemini", "cursor"), harness
)
"""What can be set up, and how."""

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
