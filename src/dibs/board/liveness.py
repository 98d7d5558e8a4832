"""Who is dead: processes behind leases, looked at before a transaction, outside of it.

People have no process. A process is judged only from its own kernel: elsewhere only expiry counts.
"""

from __future__ import annotations

from dibs.board.known import Evidence
from dibs.core.facts import Death
from dibs.core.model import HUMAN, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Board
    from dibs.core.model import TaskKey
    from dibs.machine import Machine
    from dibs.stores.offers import HeldByProcess

GONE, REBOOTED = "process gone", "host rebooted"


def look(board: Board) -> Evidence:
    """Which of the processes behind leases are dead, and which are known to live."""
    with board.read() as tx:
        leases = [lease for lease in tx.leases_with_process() if lease.kind != HUMAN]
    return judged(board, leases)


def look_at(board: Board, key: TaskKey) -> Evidence:
    """The same for one task."""
    with board.read() as tx:
        task = tx.task(key)
        leases = [
            lease
            for lease in tx.leases_with_process()
            if task and lease.task == task.id and lease.kind != HUMAN
        ]
    return judged(board, leases)


def judged(board: Board, leases: list[HeldByProcess]) -> Evidence:
    machine, one_kernel = board.store.machine, not board.store.remote
    causes = {lease: cause_of_death(machine, lease.process, one_kernel) for lease in leases}
    return Evidence(
        deaths={
            lease.task: Death(lease.token, lease.renewed, cause)
            for lease, cause in causes.items()
            if cause
        },
        living=frozenset(lease.task for lease, cause in causes.items() if cause == ""),
    )


def cause_of_death(machine: Machine, process: Process, one_kernel: bool) -> str | None:
    """Why it is dead; "" if it lives; nothing if that cannot be told from here."""
    if process.boot != machine.boot():
        return REBOOTED if one_kernel else None
    if process.namespace != machine.namespace():
        return None
    return "" if machine.process(process.pid) == process else GONE
