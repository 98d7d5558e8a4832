"""The storage interface that the board uses; SQLite and PostgreSQL implement it."""

from __future__ import annotations

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from dibs.domain.model import TaskKey
    from dibs.domain.values import Duration
    from dibs.machine import Machine
    from dibs.storage.transaction import ReadTransaction, WriteTransaction

    Question = tuple[str, dict[str, Any]]

    class Store(Protocol):
        """One board in one database."""

        where: str
        """A folder, or the URL of a server without its password."""
        machine: Machine
        skewed: bool
        """Whether the last clock reading was implausible."""
        remote: bool
        """Whether a response can be lost in transit: then every change needs a request id to be idempotent.
        """
        deadline: float
        """On the `time.monotonic()` clock: stop waiting for a server after it. Hooks set one."""

        def create(self, uid: str) -> bool: ...

        def stated_settings(self) -> str | None:
            """Settings stored with the board, if any."""
            ...

        def read(self) -> AbstractContextManager[ReadTransaction]: ...

        def write(
            self, what: str, ahead: tuple[Question, ...] = ()
        ) -> AbstractContextManager[WriteTransaction]:
            """A write transaction. `ahead`: its first queries, which a server runs in one pipeline."""
            ...

        def renewal(self, task: TaskKey) -> AbstractContextManager[WriteTransaction] | None:
            """A cheaper transaction that can only renew a lease, if the store has one."""
            ...

        def pulse(self) -> int:
            """A change counter: differs when the board may have changed, and is very cheap to read."""
            ...

        def listen(self, seconds: float) -> None:
            """Waits until the board may have changed or the next poll is due, for at most `seconds`."""
            ...

        def unlisten(self) -> None:
            """Unlistens: stops subscribing to change notifications."""
            ...

        def set_clock(self, transaction: WriteTransaction, by: Duration) -> None: ...

        def health(self) -> tuple[Finding, ...]: ...

        def another(self) -> Store:
            """The same board through a separate connection."""
            ...

        def close(self) -> None: ...


class Finding(Value):
    """One line of `doctor`: "ok", "note" (worth knowing) or "wrong"."""

    what: str
    found: str
    level: str = "ok"
    damage: bool = False
    """Whether the stored data itself is damaged, not only its environment."""


def check(
    what: str, found: str, *, fine: object, level: str = "wrong", damage: bool = False
) -> Finding:
    return Finding(what, found) if fine else Finding(what, found, level, damage)
