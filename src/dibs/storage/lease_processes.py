"""Writes the processes tied to leases."""

from __future__ import annotations

from dibs.domain.model import KeptProcess
from dibs.storage import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.domain.model import Caller, LeaseProcess, Process, Task, TaskId, Token


class LeaseProcessWrites:
    """The part of a transaction that writes lease processes. `Offers` reads them with the leases."""

    _put: Any

    def keep_process(self, task: Task, caller: Caller) -> None:
        """Ties the caller's process to its lease."""
        assert caller.behind is not None, "asked only if one was stated"
        kept = KeptProcess(task.token, caller.behind, caller.actor.id, caller.holding_session)
        self._put("save_lease_process", rows.kept_process_columns(task.id, kept))

    def keep_command(self, task: TaskId, token: Token, behind: LeaseProcess) -> None:
        """Stores the command that the lease's process started, if it is still the same process."""
        started = {name: behind.named()[name] for name in ("command", "command_started", "forks")}
        self._put("save_command", {**place(task, token, behind.process), **started})

    def end_process(self, task: TaskId, token: Token, process: Process) -> None:
        """Marks a process as no longer working under a lease, if it was the one tied to it."""
        self._put("end_lease_process", place(task, token, process))


def place(task: TaskId, token: Token, process: Process) -> rows.Columns:
    """The key of a row: the lease, and the process expected behind it."""
    return {
        "task": task,
        "token_epoch": token.epoch,
        "token_number": token.number,
        "pid": process.pid,
        "pid_started": process.started,
    }
