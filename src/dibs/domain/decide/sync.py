"""Sync: decides how the content of item files changes the board. Pure.

The file is the authority on the text of a task, the board on its owner: a file never ends a lease, and
begins one only where the board has lost its own record of it.
"""

from __future__ import annotations

from dibs.domain import commands as c
from dibs.domain.decision import Change, Decision
from dibs.domain.events import tasks as e
from dibs.domain.facts import ItemMatch, SyncFacts
from dibs.domain.model import COMPLETE, HUMAN, OPEN, ItemSnapshot, Task, Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import State


def sync(facts: SyncFacts, _command: c.Sync) -> Decision:
    """Applies the items. Skips tasks that changed after the comparison: the caller compares them again."""
    matches = (match for match in facts.matches if not match.outdated)
    changes = (taken_in(facts, match) for match in matches)
    return Decision(others=tuple(change for change in changes if change.events))


def taken_in(facts: SyncFacts, match: ItemMatch) -> Change:
    """A new task, or the changes of a known one."""
    listed, task = match.listed, match.task
    if task is not None:
        return Change(task, (*changed(match, task), *brought_back(facts, match, task)))
    terms = Terms(listed.title, listed.priority, constraints=listed.constraints or ())
    added = e.Added(
        uid=match.uid,
        key=match.key,
        terms=terms.but(max_attempts=facts.rules.max_attempts),
        scope=listed.scope or (),
        channel=listed.channel,
        origin_ask_ref=listed.ref,
        item=listed.item,
    )
    fresh = added.task(match.id, facts.caller.actor.id, facts.now)
    return Change(None, (added, *changed(match, fresh), *brought_back(facts, match, fresh)))


def changed(match: ItemMatch, task: Task) -> tuple[e.TaskEvent, ...]:
    listed = match.listed
    terms = task.terms.but(title=listed.title, priority=listed.priority)
    if listed.constraints is not None:
        terms = terms.but(constraints=listed.constraints)
    scope = task.scope if listed.scope is None else listed.scope
    content: tuple[Terms, tuple[str, ...], ItemSnapshot | None] = (terms, scope, listed.item)
    state = new_state(match, task)
    events: tuple[e.TaskEvent, ...] = ()
    if state is not None or listed.note or content != (task.terms, task.scope, task.item):
        events = (e.Synced(*content, state=state, note=listed.note),)
    return events + waits(match)


def new_state(match: ItemMatch, task: Task) -> State | None:
    """The state from the file, if it differs and nobody holds the task."""
    state = match.listed.state
    return None if state == task.state or task.lease is not None else state


def waits(match: ItemMatch) -> tuple[e.TaskEvent, ...]:
    """The changed dependencies in the file, limited to tasks that exist."""
    if match.listed.after is None:
        return ()
    on = tuple(key for key in match.causes if key not in match.after)
    not_on = tuple(key for key in match.after if key not in match.causes)
    if not on and not not_on:
        return ()
    open_ones = sum(state != COMPLETE for state in match.causes.values())
    return (e.Depended(on=on, not_on=not_on, waits_on=open_ones),)


def brought_back(facts: SyncFacts, match: ItemMatch, task: Task) -> tuple[e.TaskEvent, ...]:
    """Restores a lease that only the file records, for the same holder; or adopts who works by the file."""
    stated, holder, rules = match.listed.lease, match.holder, facts.rules
    if stated is None or holder is None or not is_free(task, match):
        return ()
    token = task.token.next_in(facts.epoch)
    ttl = stated.ttl or (rules.ttl_human if stated.kind == HUMAN else rules.ttl_agent)
    if stated.token is None:
        item = match.listed.item
        why = f"its file says {item.said}" if item else ""
        return (e.Adopted(token, holder, stated.session, ttl, reason=why),)
    if tuple(stated.token) <= tuple(task.token):
        return ()
    why = f"its file knew the lease {stated.token}"
    begun = e.BroughtBack(token, holder, stated.session, ttl, reason=why)
    started = stated.started and stated.session is not None
    return (begun, e.Started()) if started else (begun,)


def is_free(task: Task, match: ItemMatch) -> bool:
    return task.lease is None and (new_state(match, task) or task.state) == OPEN
