"""Facts for commands about hours: the stints of a task and which replaced which; the stints of a period."""

from __future__ import annotations

from dibs.board.facts.task import found
from dibs.board.outcome import actors_named
from dibs.domain import commands as c
from dibs.domain.facts import ApprovalFacts, Facts, StintFacts, Stints
from dibs.domain.refusals import Refused, refused
from dibs.domain.stints import WorkedStint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Actor, Task
    from dibs.storage.transaction import ReadTransaction


def load_hours(tx: ReadTransaction, basis: Facts) -> StintFacts | ApprovalFacts:
    """Facts for a correction of a stint, or for an approval of a period."""
    command = basis.command
    if isinstance(command, c.Approve | c.Reopen):
        return load_period(tx, basis, command)
    assert isinstance(command, c.AddStint | c.AmendStint | c.ReportUsage), command.verb
    return load_stint(tx, basis, command)


def load_period(tx: ReadTransaction, basis: Facts, command: c.Approve | c.Reopen) -> ApprovalFacts:
    actor = tx.actor_named(command.actor)
    if actor is None:
        return basis.widened(ApprovalFacts)
    period = (command.since, command.until, actor.id, basis.rules.idle_after)
    stints = tuple(WorkedStint(*row[:-1]) for row in tx.stints_and_tasks(*period))
    approved = tuple(tx.approvals(actor.id))
    facts = basis.widened(ApprovalFacts, receiver=actor, stints=stints, approved=approved)
    return facts.but(actors={actor.id: actor})


def load_stint(
    tx: ReadTransaction, basis: Facts, command: c.AddStint | c.AmendStint | c.ReportUsage
) -> StintFacts:
    receiver: Actor | None = None
    if isinstance(command, c.AddStint):
        name, task, number = command.actor, found(tx, command.task), 0
        receiver = tx.actor_named(name) if name else basis.caller.actor
    else:
        number = command.number
        task = task_of(tx, number)
    kept = tx.all_stints_of(task.id)
    replaced = {stint.amends: stint.seq for stint in kept if stint.amends is not None}
    numbered = next((stint for stint in kept if stint.seq == number), None)
    if number and numbered is None:
        raise unknown(number)
    stints = Stints(
        current=tuple(stint for stint in kept if stint.seq not in replaced),
        numbered=numbered,
        replaced_by=replaced.get(number),
    )
    whose = {stint.actor: tx.actor(stint.actor) for stint in kept}
    if receiver is not None:
        whose[receiver.id] = receiver
    actor = numbered.actor if numbered else receiver and receiver.id
    approved = tuple(tx.approvals(actor)) if actor else ()
    basis = basis.but(actors=actors_named(tx, task) | whose)
    return basis.widened(StintFacts, task=task, stints=stints, receiver=receiver, approved=approved)


def task_of(tx: ReadTransaction, number: int) -> Task:
    """The task of a stint, by the event that ended the stint."""
    for entry in tx.entries(number, 1):
        if entry.seq == number and entry.task is not None:
            return found(tx, tx.keys_of({entry.task})[entry.task])
    raise unknown(number)


def unknown(number: int) -> Refused:
    return refused("unknown_stint", f"no stint has the number {number}", stint=number)
