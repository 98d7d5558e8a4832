"""Orphan processes that outlived their `dibs run`: found by environment mark or
process session, and killed.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from dibs.board.identity import ancestors
from dibs.domain.model import LeaseProcess, Process
from dibs.machine import UNKNOWN, Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

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
