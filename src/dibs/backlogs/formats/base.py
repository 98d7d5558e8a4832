"""Defaults of every dialect."""

from __future__ import annotations

from contextlib import nullcontext

from dibs.safe_files import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from dibs.backlogs.item import Item, Problem
    from dibs.domain.values import Instant


class BaseDialect:
    """A backlog of small files, without its own lock and list of sessions."""

    heals = False
    single = False
    largest = LIMIT

    def read(
        self, path: str, data: bytes, now: Instant, *, strict: bool = False
    ) -> tuple[list[Item], list[Problem]]:
        raise NotImplementedError

    @property
    def knows_sessions(self) -> bool:
        return False

    def is_dead(self, session: str) -> bool:
        return False

    def folded(self, id_: str) -> str:
        return id_.casefold()

    def named(self, text: str) -> tuple[str, str]:
        return text, ""

    def skipped(self, root: str) -> Iterator[tuple[str, str]]:
        return iter(())

    def read_one(
        self, path: str, data: bytes, now: Instant, ref: str
    ) -> tuple[list[Item], list[Problem]]:
        return self.read(path, data, now)

    def alone(self, root: str) -> AbstractContextManager[object]:
        return nullcontext()
