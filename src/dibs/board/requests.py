"""Requests: what was asked and answered under an id, so that asking again is safe."""

from __future__ import annotations

from dibs.board.outcome import Outcome, actors_named
from dibs.core import commands as c
from dibs.core import ledger, refusals
from dibs.core.model import Caller, Task, Token
from dibs.core.refusals import Refusal, Refused
from dibs.core.values import Value
from dibs.stores.transaction import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.stores.transaction import ReadTransaction


def digest_of(caller: Caller, command: c.Command) -> str:
    """What was asked, and by which session: the same id means the same of both."""
    asked = [caller.holding_session, command.verb, ledger.plain(command)]
    return ledger.digest_of(ledger.canonical(asked))


def answered(outcome: Outcome, refusal: Refusal | None) -> str:
    entries = outcome.entries
    return ledger.canonical(
        {
            "task": brief(outcome.task),
            "now": outcome.now,
            "first": entries[0].seq if entries else 0,
            "count": len(entries),
            "refusal": ledger.plain(refusal),
            "actor": outcome.actor and outcome.actor.id,
            "outdated": outcome.outdated,
        }
    )


def brief(value: object) -> Any:
    """As `ledger.plain`, without what is as it is by default: `ledger.build` puts that in again."""
    if not isinstance(value, Value) or isinstance(value, Token):
        return ledger.plain(value)
    defaults = value.defaults
    return {
        field: brief(inner) if isinstance(inner, tuple) else inner
        for field, inner in zip(value.fields, value)
        if field not in defaults or inner != defaults[field]
    }


def retold(
    tx: ReadTransaction, caller: Caller, request_id: str, since: int | None
) -> Outcome | None:
    """What was done under an id of our own, by the events that it left; nothing if there are none."""
    found = tx.events_of_request(request_id, since or 0)
    entries = tuple(entry for entry in found if entry.task is not None)
    if not entries:
        return None
    last = entries[-1]
    assert last.task is not None, "as chosen"
    keys = tx.keys_of({last.task})
    current = tx.task(keys[last.task])
    task = current
    if current is None or current.events != last.position:
        until = (one for one in tx.events_of(last.task) if one.seq <= last.seq)
        folded = ledger.fold(until, [one for one in tx.clock_events() if one.seq < last.seq])
        assert folded is not None, "a task begins with its first event"
        task = folded.task
    events = tuple(entry.event for entry in entries)
    named = actors_named(tx, task, events) | actors_named(tx, current)
    return Outcome(
        caller, entries[0].at, task, entries, events, named, tx.skewed,
        replayed=True, keys=keys, current=current, seen=tx.now,
    )  # fmt: skip


def replay(
    tx: ReadTransaction,
    caller: Caller,
    known: Request,
    digest: str,
    request_id: str,
) -> Outcome:
    """The same answer as the first time, with the task as it is now beside it."""
    if known.digest != digest:
        raise Refused(refusals.request_reused(request_id))
    import json

    answer = json.loads(known.answer)
    if answer["refusal"]:
        raise Refused(Refusal(**answer["refusal"]))
    entries = tuple(tx.entries(answer["first"], answer["count"]))
    events = tuple(entry.event for entry in entries)
    keys = tx.keys_of({entry.task for entry in entries if entry.task is not None})
    outcome = Outcome(caller, answer["now"], None, entries, events, replayed=True, keys=keys)
    if answer["task"] is None:
        actor = tx.actor(answer["actor"]) if answer["actor"] else None
        named = actors_named(tx, None, events)
        outdated = tuple(answer["outdated"])
        return outcome.but(actor=actor, actors=named, skewed=tx.skewed, outdated=outdated)
    task: Task = ledger.build(Task, answer["task"])
    current = tx.task(task.key)
    named = actors_named(tx, task, events) | actors_named(tx, current)
    return outcome.but(task=task, current=current, seen=tx.now, actors=named, skewed=tx.skewed)
