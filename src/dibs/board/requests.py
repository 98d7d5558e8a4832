"""Idempotent requests: stores the answer under a request id and replays it on retry."""

from __future__ import annotations

from dibs.board.outcome import Outcome, actors_named
from dibs.domain import commands as c
from dibs.domain import ledger, refusals
from dibs.domain.model import Caller, Task, Token
from dibs.domain.refusals import Refusal, Refused
from dibs.domain.values import Value
from dibs.storage.transaction import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.storage.transaction import ReadTransaction, WriteTransaction


def digest_of(caller: Caller, command: c.Command) -> str:
    """The digest of a request: session, verb and payload. The same request id must have the same digest."""
    payload = [caller.holding_session, command.verb, ledger.plain(command)]
    return ledger.digest_of(ledger.canonical(payload))


def keep_answer(
    tx: WriteTransaction,
    command: c.Command,
    request_id: str,
    outcome: Outcome,
    refusal: Refusal | None,
) -> None:
    caller = outcome.caller
    request = Request(digest_of(caller, command), encode_answer(outcome, refusal))
    tx.keep_request(caller.actor.id, request_id, request)


def encode_answer(outcome: Outcome, refusal: Refusal | None) -> str:
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
    """As `ledger.plain`, without fields that have their default: `ledger.build` restores those."""
    if not isinstance(value, Value) or isinstance(value, Token):
        return ledger.plain(value)
    defaults = value.defaults
    return {
        field: brief(inner) if isinstance(inner, tuple) else inner
        for field, inner in zip(value.fields, value)
        if field not in defaults or inner != defaults[field]
    }


def rebuild_from_events(
    tx: ReadTransaction, caller: Caller, request_id: str, since: int | None
) -> Outcome | None:
    """Rebuilds the answer from the events written under a request id of our own; `None` if there are none."""
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
        replayed=True, keys=keys, current=current, read_at=tx.now,
    )  # fmt: skip


def replay(
    tx: ReadTransaction,
    caller: Caller,
    known: Request,
    digest: str,
    request_id: str,
) -> Outcome:
    """The stored answer of the first time, with the task's current state beside it."""
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
    return outcome.but(task=task, current=current, read_at=tx.now, actors=named, skewed=tx.skewed)
