"""dibs: one task, one owner.

    from dibs import open_board

    with open_board(agent="codex-2", session="s1") as board:
        with board.hold("T-1", then="complete") as lease:
            ...
            lease.check()

The public names are those in `__all__`. They are imported lazily: the command line starts without them.
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
    from dibs.domain.refusals import Refusal, Refused
    from dibs.library.board import Board, open_board
    from dibs.library.lease import Lease
    from dibs.library.records import (
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
    "Board": "dibs.library.board",
    "Lease": "dibs.library.lease",
    "Refusal": "dibs.domain.refusals",
    "Refused": "dibs.domain.refusals",
    "open_board": "dibs.library.board",
} | dict.fromkeys(_RECORDS, "dibs.library.records")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"dibs has no {name}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
