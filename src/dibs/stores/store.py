"""The seam: what a board asks of the place that keeps it. A file and a server both answer it."""

from __future__ import annotations

from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from dibs.core.instants import Duration
    from dibs.core.model import TaskKey
    from dibs.machine import Machine
    from dibs.stores.transaction import ReadTransaction, WriteTransaction

    Question = tuple[str, dict[str, Any]]

    class Store(Protocol):
        """One board, wherever it is kept."""

        where: str
        """A folder, or the address of a server, without a password."""
        machine: Machine
        skewed: bool
        """Whether the last look at the clock found that it cannot be right."""
        remote: bool
        """Whether an answer can be lost on its way: then every change needs a request id."""
        deadline: float
        """By `time.monotonic()`: after it a server is not waited for any more. Hooks set one."""

        def create(self, uid: str) -> bool: ...

        def stated_settings(self) -> str | None:
            """Settings that are kept with the board, if it keeps any."""
            ...

        def read(self) -> AbstractContextManager[ReadTransaction]: ...

        def write(
            self, what: str, ahead: tuple[Question, ...] = ()
        ) -> AbstractContextManager[WriteTransaction]:
            """`ahead`: questions that will be asked at once; a server answers them in one go."""
            ...

        def renewal(self, task: TaskKey) -> AbstractContextManager[WriteTransaction] | None:
            """A transaction for a renewal and nothing else, if the store has a lighter one."""
            ...

        def pulse(self) -> int:
            """A number that differs when the board may have changed; it costs next to nothing."""
            ...

        def listen(self, seconds: float) -> None:
            """Waits until the board may have changed or another look is due, and no longer than this."""
            ...

        def hush(self) -> None:
            """Nobody listens any more."""
            ...

        def set_clock(self, transaction: WriteTransaction) -> Duration: ...

        def health(self) -> tuple[Finding, ...]: ...

        def another(self) -> Store:
            """The same board through a connection of its own."""
            ...

        def close(self) -> None: ...


class Finding(Value):
    """One line of `doctor`: fine ("ok"), worth knowing ("note"), or "wrong"."""

    what: str
    found: str
    level: str = "ok"
    damage: bool = False
    """Whether what is stored is damaged, not only how it is kept."""


def check(
    what: str, found: str, *, fine: object, level: str = "wrong", damage: bool = False
) -> Finding:
    return Finding(what, found) if fine else Finding(what, found, level, damage)
