"""Decides intake: one request, or many at once. Idempotent: the same origin is the same task. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decide import open_ones
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.facts import AddFacts, IntakeFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.events.tasks import Event


def add(facts: AddFacts, command: c.Add) -> Decision:
    """A new task; for an origin that is already known, only a receipt on its task."""
    if facts.task is not None:
        return Decision((received(command, facts.first),))
    key = command.key or facts.fresh_key
    assert key is not None, "a request without a key gets a fresh one"
    added = e.Added(
        uid=facts.fresh_uid,
        key=key,
        terms=command.terms,
        scope=command.scope,
        channel=command.channel,
        origin_ask_ref=command.origin_ask_ref,
        after=facts.on,
        waits_on=open_ones(facts.causes, facts.on),
        url=command.url,
        digest=command.digest,
        delivery=command.delivery,
    )
    return Decision((added,))


def received(command: c.Add, first: str) -> e.Received:
    """The receipt of a repeated delivery. The task does not change: the first request stays valid."""
    differs = bool(first and command.digest and first != command.digest)
    return e.Received(digest=command.digest, delivery=command.delivery, differs=differs)


def intake(facts: IntakeFacts, _command: c.Intake) -> Decision:
    """One change per origin: a new task if needed, and a receipt for every later delivery."""
    found: dict[int, list[Event]] = {}
    for place, request in enumerate(facts.requests):
        ask = request.ask
        if request.before is not None:
            first = facts.requests[request.before]
            found[request.before].append(received(ask, first.first or first.ask.digest))
        elif request.task is not None:
            found[place] = [received(ask, request.first)]
        else:
            terms, origin = ask.terms, (ask.channel, ask.origin_ask_ref)
            added = e.Added(request.uid, request.key, terms, ask.scope, *origin)
            found[place] = [added.but(url=ask.url, digest=ask.digest, delivery=ask.delivery)]
    changes = (Change(facts.requests[place].task, tuple(all_)) for place, all_ in found.items())
    return Decision(others=tuple(changes))
