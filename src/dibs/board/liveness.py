"""Liveness of holders: checks the processes behind leases, before and outside a transaction.

People have no process. Only a process of the same kernel can be judged: elsewhere only expiry counts.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from dibs.board.identity import ancestors
from dibs.domain.facts import DeathEvidence, Evidence
from dibs.domain.model import HUMAN, LeaseProcess, Process
from dibs.machine import UNKNOWN, Machine, is_certain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from dibs.board.retry import ReadableBoard
    from dibs.domain.model import KeptProcess, Task, TaskKey
    from dibs.storage.readiness import HeldByProcess

# Orphans: processes that outlived their `dibs run`; found by environment mark or process session, and killed.


PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL."""

KILLED = 5.0
"""Seconds to wait for a killed process to disappear, if it can be killed at all."""

POLL_INTERVAL = 0.02


def mark_of(process: Process) -> str:
    """The value that a run puts into its command's environment: PID.STARTED. It is unique per run."""
    return f"{process.pid}.{process.started}"


def end_survivors(machine: Machine, run: LeaseProcess, patience: float = PATIENCE) -> list[Process]:
    """Terminates everything that a run has started, except the caller. Returns what survives."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILLED)):
        signalled: set[Process] = set()
        deadline = time.monotonic() + seconds
        while (found := started_by(machine, run)) and time.monotonic() < deadline:
            for process in found:
                if process not in signalled:
                    send_signal(machine, process, number)
                    signalled.add(process)
            time.sleep(POLL_INTERVAL)
    return started_by(machine, run)


def started_by(machine: Machine, run: LeaseProcess) -> list[Process]:
    """Processes with the mark of a run, or in the process session of its command, except the caller.

    A command may clear its environment, or start a session of its own: one of the two
    remains. The caller may itself be such a process: it and its ancestors are excluded.
    """
    found = dict.fromkeys(machine.carrying(mark_of(run.process)))
    here = (machine.boot(), machine.namespace())
    is_here = (run.process.boot, run.process.namespace) == here and UNKNOWN not in here
    if is_here and leads_for(machine, run, found):
        members = machine.in_session(run.command, run.command_started, run.forks)
        found |= dict.fromkeys(members)
    spared = {os.getpid(), *(process.pid for process in ancestors(machine))} if found else set()
    return [process for process in found if process.pid not in spared]


def leads_for(machine: Machine, run: LeaseProcess, marked: Container[Process]) -> bool:
    """Whether the session may be that of the run's command. Others write to the board, so its word is no proof.

    A command that is alive has the mark, or is a child of the run: the kernel kills it when the run dies.
    """
    leader = machine.process(run.command)
    if leader is None or leader in marked:
        return True
    return machine.parent(run.command) == run.process.pid and bool(machine.lives(run.process))


def send_signal(machine: Machine, process: Process, number: int) -> None:
    """Sends a signal to this process, but not to a new one with the same pid."""
    if machine.process(process.pid) != process:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)  # a stopped process handles no signal but SIGKILL


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
