"""The processes behind leases: checked before a session continues one, stored with its claim."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.decision import Decision
    from dibs.domain.facts import Facts
    from dibs.domain.model import KeptProcess, Task
    from dibs.storage.transaction import WriteTransaction


class ProcessCheckNeeded(Exception):  # noqa: N818 - not an error: the caller's own may be gone
    """Raised to leave the transaction, check whether these processes are alive, and retry."""

    def __init__(self, kept: tuple[KeptProcess, ...]) -> None:
        super().__init__()
        self.kept = kept


def require_process_check(facts: Facts) -> None:
    """Raises `LookAtProcesses` if the session stated processes whose liveness was not checked yet."""
    own = facts.caller.behind and facts.caller.behind.process
    unseen = [kept for kept in facts.processes if kept.behind.process not in (own, *facts.lives)]
    if unseen:
        raise ProcessCheckNeeded(tuple(unseen))


def keep_processes(
    tx: WriteTransaction, facts: Facts, decision: Decision, task: Task | None
) -> None:
    """Stores the caller's process behind its lease, and removes those that are gone."""
    if task is None or decision.refusal is not None:
        return
    for kept in facts.processes:
        if facts.lives.get(kept.behind.process) is False:
            tx.end_process(task.id, kept.token, kept.behind.process)
    caller = facts.caller
    if caller.behind is None:
        return
    if task.lease is not None and task.lease.held_by(caller):
        tx.keep_process(task, caller)
    elif task.lease is None:
        tx.end_process(task.id, task.token, caller.behind.process)
