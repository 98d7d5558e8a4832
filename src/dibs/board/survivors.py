"""Processes that outlived the `dibs run` which started them: found by its mark, and ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from dibs.core.model import Process
from dibs.machine import Machine

MARK = "DIBS_RUN"
"""The variable that everything below a `dibs run` carries."""

PATIENCE = 5.0
"""Seconds between asking a process to end and killing it."""

KILLED = 5.0
"""Seconds in which a killed process is gone, if it can be killed at all."""

GLANCE = 0.02


def mark_of(process: Process) -> str:
    """What a run puts into the environment of its command: PID.STARTED. No two runs share it."""
    return f"{process.pid}.{process.started}"


def end_survivors(machine: Machine, mark: str, patience: float = PATIENCE) -> list[Process]:
    """Ends every process that carries the mark, but not the caller. Returns those that are left."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILLED)):
        told: set[Process] = set()
        deadline = time.monotonic() + seconds
        while (found := others(machine, mark)) and time.monotonic() < deadline:
            for process in found:
                if process not in told:
                    tell(machine, process, number)
                    told.add(process)
            time.sleep(GLANCE)
    return others(machine, mark)


def others(machine: Machine, mark: str) -> list[Process]:
    return [found for found in machine.carrying(mark) if found.pid != os.getpid()]


def tell(machine: Machine, process: Process, number: int) -> None:
    """Sends a signal to this process, not to one that has got its pid since."""
    if machine.process(process.pid) != process:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)  # who is stopped hears nothing but a kill
