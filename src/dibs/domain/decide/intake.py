"""Decides intake: one request, or many at once. Idempotent: the same origin is the same task. Pure."""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decide.tasks import open_ones
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.facts import Case

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.events.tasks import Event


def add(case: Case, command: c.Add) -> Decision:
    """A new task; for an origin that is already known, only a receipt on its task."""
    if case.facts.task is not None:
        return Decision((received(command, case.facts.first),))
    added = e.Added(
        uid=case.facts.fresh_uid,
        key=command.key or case.facts.fresh_key,
        terms=command.terms,
        scope=command.scope,
        channel=command.channel,
        origin_ask_ref=command.origin_ask_ref,
        after=case.facts.on,
        waits_on=open_ones(case, case.facts.on),
        url=command.url,
        digest=command.digest,
        delivery=command.delivery,
    )
    return Decision((added,))


def received(command: c.Add, first: str) -> e.Received:
    """The receipt of a repeated delivery. The task does not change: the first request stays valid."""
    differs = bool(first and command.digest and first != command.digest)
    return e.Received(digest=command.digest, delivery=command.delivery, differs=differs)


def intake(case: Case, _command: c.Intake) -> Decision:
    """One change per origin: a new task if needed, and a receipt for every later delivery."""
    found: dict[int, list[Event]] = {}
    for place, asked in enumerate(case.facts.asked):
        ask = asked.ask
        if asked.before is not None:
            first = case.facts.asked[asked.before]
            found[asked.before].append(received(ask, first.first or first.ask.digest))
        elif asked.task is not None:
            found[place] = [received(ask, asked.first)]
        else:
            terms, origin = ask.terms, (ask.channel, ask.origin_ask_ref)
            added = e.Added(asked.uid, asked.key, terms, ask.scope, *origin)
            found[place] = [added.but(url=ask.url, digest=ask.digest, delivery=ask.delivery)]
    changes = (Change(case.facts.asked[place].task, tuple(all_)) for place, all_ in found.items())
    return Decision(others=tuple(changes))
