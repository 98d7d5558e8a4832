"""Facts for commands about a stint: the other stints of its task, and which one replaced it."""

from __future__ import annotations

from dibs.board.facts.task import found
from dibs.board.outcome import actors_named
from dibs.domain import commands as c
from dibs.domain.facts import Facts, Period, Stints
from dibs.domain.refusals import Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Task
    from dibs.storage.transaction import ReadTransaction

StintCommand = c.AddStint | c.AmendStint | c.ReportUsage


def facts_for_time(
    tx: ReadTransaction, facts: Facts, command: StintCommand | c.Approve | c.Reopen
) -> Facts:
    """Facts for a correction of a stint, or for an approval of a period."""
    if isinstance(command, c.Approve | c.Reopen):
        from dibs.board.approval import facts_for_approval

        return facts_for_approval(tx, facts, command)
    return facts_for_stint(tx, facts, command)


def facts_for_stint(tx: ReadTransaction, facts: Facts, command: StintCommand) -> Facts:
    if isinstance(command, c.AddStint):
        name, task, number = command.actor, found(tx, command.task), 0
        facts = facts.but(receiver=tx.actor_named(name) if name else facts.caller.actor)
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
    if facts.receiver is not None:
        whose[facts.receiver.id] = facts.receiver
    actor = numbered.actor if numbered else facts.receiver and facts.receiver.id
    period = Period(approved=tuple(tx.approvals(actor))) if actor else None
    named = actors_named(tx, task) | whose
    return facts.but(task=task, stints=stints, actors=named, period=period)


def task_of(tx: ReadTransaction, number: int) -> Task:
    """The task of a stint, by the event that ended the stint."""
    for entry in tx.entries(number, 1):
        if entry.seq == number and entry.task is not None:
            return found(tx, tx.keys_of({entry.task})[entry.task])
    raise unknown(number)


def unknown(number: int) -> Refused:
    return refused("unknown_stint", f"no stint has the number {number}", stint=number)
