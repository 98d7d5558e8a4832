"""dibs: one task, one owner.

    from dibs import open_board

    with open_board(agent="codex-2", session="s1") as board:
        with board.hold("T-1", then="complete") as lease:
            ...
            lease.check()

The public names are those in `__all__`. They are loaded when they are first asked for: the command
line starts without them.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Board",
    "Changed",
    "Event",
    "Lease",
    "LeaseLost",
    "LeaseRecord",
    "Owned",
    "Refusal",
    "Refused",
    "Status",
    "Stint",
    "Task",
    "open_board",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.refusals import Refusal, Refused
    from dibs.interfaces.hold import Lease
    from dibs.interfaces.library import Board, open_board
    from dibs.interfaces.records import (
        Answer,
        Changed,
        Event,
        LeaseLost,
        LeaseRecord,
        Owned,
        Status,
        Stint,
        Task,
    )

_RECORDS = (
    "Answer",
    "Changed",
    "Event",
    "LeaseLost",
    "LeaseRecord",
    "Owned",
    "Status",
    "Stint",
    "Task",
)
_PLACES = {
    "Board": "dibs.interfaces.library",
    "Lease": "dibs.interfaces.hold",
    "Refusal": "dibs.core.refusals",
    "Refused": "dibs.core.refusals",
    "open_board": "dibs.interfaces.library",
} | dict.fromkeys(_RECORDS, "dibs.interfaces.records")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"dibs has no {name}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
