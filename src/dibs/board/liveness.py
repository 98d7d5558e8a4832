"""Liveness of holders: checks the processes behind leases, before and outside a transaction.

People have no process. Only a process of the same kernel can be judged: elsewhere only expiry counts.
"""

from __future__ import annotations

from dibs.board.orphans import end_survivors
from dibs.domain.facts import DeathEvidence, Evidence
from dibs.domain.model import HUMAN, Process
from dibs.machine import UNKNOWN, is_certain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board.retry import ReadableBoard
    from dibs.domain.model import KeptProcess, Task, TaskKey
    from dibs.machine import Machine
    from dibs.storage.readiness import HeldByProcess

GONE, REBOOTED = "process gone", "host rebooted"


def check_liveness(board: ReadableBoard) -> Evidence:
    """Which processes behind leases are dead, and which are known to be alive."""
    return evidence_for(board, leases_of(board))


def kill_orphans_of_dead(board: ReadableBoard, key: TaskKey | None = None) -> Evidence:
    """The same for a command that acts on it: first kills the orphan processes of dead holders."""
    leases = leases_of(board, key)
    evidence = evidence_for(board, leases)
    for lease in leases:
        if lease.task in evidence.deaths and evidence.deaths[lease.task].cause == GONE:
            end_survivors(board.store.machine, lease.behind)
    return evidence


def lives(
    board: ReadableBoard, kept: Iterable[KeptProcess], *, ends_left: bool
) -> dict[Process, bool | None]:
    """Whether the processes behind a session's own leases are alive; `None` for those that cannot be seen.

    `ends_left`: also kills the orphan processes of a run that is gone, since another process replaces it.
    """
    machine, one_kernel = board.store.machine, not board.store.remote
    found: dict[Process, bool | None] = {}
    for one in kept:
        process = one.behind.process
        cause = cause_of_death(machine, process, one_kernel)
        found[process] = None if cause is None else cause == ""
        if cause == GONE and ends_left:
            end_survivors(machine, one.behind)
    return found


def is_dead(board: ReadableBoard, task: Task) -> bool:
    """Whether the holder of a task, as it was read, is known to be dead."""
    lease = task.lease
    if lease is None or not lease.bound:
        return False
    death = evidence_for(board, leases_of(board, task.key)).deaths.get(task.id)
    return death is not None and (death.token, death.renewed) == (task.token, lease.renewed)


def leases_of(board: ReadableBoard, key: TaskKey | None = None) -> list[HeldByProcess]:
    """Leases of agents with a process, of all tasks or of one."""
    with board.read() as tx:
        task = None if key is None else tx.task(key)
        return [
            lease
            for lease in tx.leases_with_process()
            if lease.kind != HUMAN and (key is None or (task and lease.task == task.id))
        ]


def evidence_for(board: ReadableBoard, leases: list[HeldByProcess]) -> Evidence:
    machine, one_kernel = board.store.machine, not board.store.remote
    causes = {lease: cause_of_death(machine, lease.process, one_kernel) for lease in leases}
    ended = board.backlog.deaths(board) if board.backlog is not None else {}
    return Evidence(
        deaths={
            **ended,
            **{
                lease.task: DeathEvidence(lease.token, lease.renewed, cause)
                for lease, cause in causes.items()
                if cause
            },
        },
        living=frozenset(lease.task for lease, cause in causes.items() if cause == ""),
    )


def cause_of_death(machine: Machine, process: Process, one_kernel: bool) -> str | None:
    """Why it is dead; "" if it is alive; `None` if that cannot be determined from here."""
    here = machine.boot()
    if process.boot != here:
        sure = is_certain(process.boot) and is_certain(here) and machine.sees_host()
        return REBOOTED if one_kernel and sure else None
    if process.namespace != machine.namespace() or UNKNOWN in (here, process.namespace):
        return None
    alive = machine.lives(process)
    return None if alive is None else "" if alive else GONE
