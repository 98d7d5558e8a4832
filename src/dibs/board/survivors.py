"""Processes that outlived the `dibs run` which started them: found by its mark or session, and ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from dibs.board.identity import ancestors
from dibs.core.model import LeaseProcess, Process
from dibs.machine import UNKNOWN, Machine

PATIENCE = 5.0
"""Seconds between asking a process to end and killing it."""

KILLED = 5.0
"""Seconds in which a killed process is gone, if it can be killed at all."""

GLANCE = 0.02


def mark_of(process: Process) -> str:
    """What a run puts into the environment of its command: PID.STARTED. No two runs share it."""
    return f"{process.pid}.{process.started}"


def end_survivors(machine: Machine, run: LeaseProcess, patience: float = PATIENCE) -> list[Process]:
    """Ends everything that a run has started, but not the caller. Returns what is left of it."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILLED)):
        told: set[Process] = set()
        deadline = time.monotonic() + seconds
        while (found := started_by(machine, run)) and time.monotonic() < deadline:
            for process in found:
                if process not in told:
                    tell(machine, process, number)
                    told.add(process)
            time.sleep(GLANCE)
    return started_by(machine, run)


def started_by(machine: Machine, run: LeaseProcess) -> list[Process]:
    """What carries the mark of a run, or is in the session of its command, but not the caller.

    A command may clear its environment, or begin a session of its own: one of the two is left. The
    caller may itself be what was left: neither it nor what started it is in here.
    """
    found = dict.fromkeys(machine.carrying(mark_of(run.process)))
    here = (machine.boot(), machine.namespace())
    if (run.process.boot, run.process.namespace) == here and UNKNOWN not in here:
        members = machine.in_session(run.command, run.command_started, run.forks)
        found |= dict.fromkeys(members)
    spared = {os.getpid(), *(process.pid for process in ancestors(machine))} if found else set()
    return [process for process in found if process.pid not in spared]


def tell(machine: Machine, process: Process, number: int) -> None:
    """Sends a signal to this process, not to one that has got its pid since."""
    if machine.process(process.pid) != process:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)  # who is stopped hears nothing but a kill
