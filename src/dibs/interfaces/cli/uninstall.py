"""`dibs uninstall`: takes everything out that was set up, and names what stays."""

from __future__ import annotations

from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb


def uninstall(call: Call) -> Answer:
    from dibs.interfaces.cli.setup_all import uninstall as taken_out

    return taken_out(call)


VERBS = {
    "uninstall": Verb(
        uninstall,
        (
            argument("--dry-run", action="store_true", help="only say what would be done"),
            argument("--keep-board", action="store_true", help="the board stays: hooks go"),
            argument("--yes", action="store_true", help="delete the board: people only"),
        ),
    )
}
