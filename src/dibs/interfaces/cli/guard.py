"""Guards: the task in front of every write to the repository. `allow` is a person's way past one."""

from __future__ import annotations

from dibs.core import checks
from dibs.core.refusals import bad_argument
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def allow(call: Call) -> Answer:
    from dibs.interfaces.cli.paths import allow

    return allow(call, call["rest"])


ACTIONS: dict[str, Callable[[Call], Answer]] = {"allow": allow}


def guard(call: Call) -> Answer:
    action = call["action"]
    if action not in ACTIONS:
        raise bad_argument(f"{checks.quoted(action)}: say {', '.join(ACTIONS)}")
    return ACTIONS[action](call)


VERBS = {
    "guard": Verb(
        guard,
        (
            argument("action", metavar="allow", help="what to do"),
            argument("rest", nargs="*", metavar="PATH", help="with allow: what may be touched"),
            argument("--for", dest="span", metavar="TIME", default="15m", help="how long (15m)"),
            argument("--to", metavar="NAME", help="who may; else you yourself"),
            REASON,
        ),
    ),
}
