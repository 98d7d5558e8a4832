"""What every dialect has, unless it says otherwise."""

from __future__ import annotations

from contextlib import nullcontext

from dibs.board.bounded import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Plain:
    """A backlog of small files, without a lock and a list of sessions of its own."""

    heals = False
    largest = LIMIT

    @property
    def knows_sessions(self) -> bool:
        return False

    def is_dead(self, session: str) -> bool:
        return False

    def alone(self, root: str) -> AbstractContextManager[object]:
        return nullcontext()
