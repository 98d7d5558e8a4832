"""Defaults of every dialect."""

from __future__ import annotations

from contextlib import nullcontext

from dibs.board.limited_files import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class BaseDialect:
    """A backlog of small files, without its own lock and list of sessions."""

    heals = False
    largest = LIMIT

    @property
    def knows_sessions(self) -> bool:
        return False

    def is_dead(self, session: str) -> bool:
        return False

    def alone(self, root: str) -> AbstractContextManager[object]:
        return nullcontext()
