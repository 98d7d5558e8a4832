"""What a transaction writes of the processes behind leases."""

from __future__ import annotations

from dibs.core.model import KeptProcess
from dibs.stores import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.core.model import Caller, LeaseProcess, Process, Task, TaskId, Token


class Behind:
    """The part of a transaction that keeps them. They are read with what is held: `Offers`."""

    _put: Any

    def keep_process(self, task: Task, caller: Caller) -> None:
        """The process that the caller stated stands behind its lease."""
        assert caller.behind is not None, "asked only if one was stated"
        kept = KeptProcess(task.token, caller.behind, caller.actor.id, caller.holding_session)
        self._put("save_lease_process", rows.kept_process_columns(task.id, kept))

    def keep_command(self, task: TaskId, token: Token, behind: LeaseProcess) -> None:
        """What the process behind a lease has started, if it still is that process."""
        started = {name: behind.named()[name] for name in ("command", "command_started", "forks")}
        self._put("save_command", {**place(task, token, behind.process), **started})

    def end_process(self, task: TaskId, token: Token, process: Process) -> None:
        """It works under that lease no more, if it was the one that did."""
        self._put("end_lease_process", place(task, token, process))


def place(task: TaskId, token: Token, process: Process) -> rows.Columns:
    """What a row is found by: the lease, and the process that is still to be behind it."""
    return {
        "task": task,
        "token_epoch": token.epoch,
        "token_number": token.number,
        "pid": process.pid,
        "pid_started": process.started,
    }
