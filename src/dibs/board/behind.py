"""The processes behind leases: looked at before a session goes on with one, kept with its claim."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.decide import Decision
    from dibs.core.facts import Facts
    from dibs.core.model import KeptProcess, Task
    from dibs.stores.transaction import WriteTransaction


class LookAtProcesses(Exception):  # noqa: N818 - not an error: the caller's own may be gone
    """Whether they live is looked up before the transaction, then it is tried again."""

    def __init__(self, kept: tuple[KeptProcess, ...]) -> None:
        super().__init__()
        self.kept = kept


def look_at_processes(facts: Facts) -> None:
    """Before a session goes on with a lease: what it stated behind its leases may be gone."""
    own = facts.caller.behind and facts.caller.behind.process
    unseen = [kept for kept in facts.processes if kept.behind.process not in (own, *facts.lives)]
    if unseen:
        raise LookAtProcesses(tuple(unseen))


def keep_processes(
    tx: WriteTransaction, facts: Facts, decision: Decision, task: Task | None
) -> None:
    """What the caller stated stands behind its lease from now on; what is gone does so no more."""
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
