"""`dibs uninstall`: removes everything that was set up, and lists what remains."""

from __future__ import annotations

from dibs.cli.arguments import argument
from dibs.cli.call import Call, Verb, VerbResult


def uninstall(call: Call) -> VerbResult:
    from dibs.cli.setup_all import uninstall as taken_out

    return taken_out(call)


VERBS = {
    "uninstall": Verb(
        uninstall,
        (
            argument("--dry-run", action="store_true", help="only show what would be done"),
            argument("--keep-board", action="store_true", help="the board stays: hooks go"),
            argument("--yes", action="store_true", help="delete the board: people only"),
        ),
    )
}
