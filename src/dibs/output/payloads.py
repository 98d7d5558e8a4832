"""The JSON payloads of all interfaces.

The assignment record uses the field names of backlogs; see docs/reference/json.md.
"""

from __future__ import annotations

from dibs.domain.events import tasks as e
from dibs.domain.model import Actor, Lease, Task, Token
from dibs.domain.values import SECOND, Instant, Value, exact, iso
from dibs.output.error_map import advice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from dibs.board.explain import Status, Step
    from dibs.board.outcome import Outcome
    from dibs.board.queries import LogLine, Owner, Redaction, TaskView
    from dibs.domain.model import (
        Actor,
        ActorId,
        EndedLease,
        ItemFile,
        KeptNote,
        LoggedRefusal,
        TaskKey,
    )
    from dibs.domain.refusals import Refusal

    Actors = Mapping[ActorId, Actor]
    Payload = dict[str, Any]


SCHEMA = 1


def answer(**parts: Any) -> Payload:
    return {"schema": SCHEMA, **parts}


def refusal(refused: Refusal) -> Payload:
    return answer(
        error={
            "code": refused.code,
            "message": refused.message,
            "advice": advice(refused),
            "facts": dict(refused.facts),
        }
    )


def optional(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)


def name_of(actors: Actors, actor_id: ActorId | None) -> str | None:
    return None if actor_id is None else actors[actor_id].name


def session_name(session: str | None, actor: Actor) -> str | None:
    """The session's name; a person's own session has the person's name."""
    return actor.name if session == "" else session


def task(task: Task, actors: Actors, now: Instant) -> Payload:
    """A task with its terms, state and assignment record."""
    terms = task.terms
    return {
        "key": task.key,
        "uid": task.uid,
        "title": terms.title,
        "state": task.state,
        "priority": terms.priority,
        "for": terms.audience,
        "tier": terms.tier,
        "capabilities": list(terms.capabilities),
        "attempts": task.attempts,
        "not_before": optional(terms.not_before),
        "rests_until": optional(task.rests_until),
        "waits_on": task.waits_on,
        "max_attempts": terms.max_attempts,
        "billable": terms.billable,
        "charge_code": terms.charge_code or None,
        "created_at": iso(task.created),
        "created_by": name_of(actors, task.creator),
        "updated_at": iso(task.updated),
        "channel": task.channel,
        "origin_ask_ref": task.origin_ask_ref,
        "item": None if task.item is None else task.item.named() | {"path": None, "line": None},
        "assigned_to": name_of(actors, task.assignee),
        "author": name_of(actors, task.author),
        "preferred": name_of(actors, task.preferred),
        "parked_by": name_of(actors, task.parked_by),
        "blocked_on": task.blocked_on or None,
        **assignment(task, actors, now),
    }


def with_item(payload: Payload, item: ItemFile | None) -> Payload:
    """The payload with the place of its task's item file."""
    if item is not None:
        payload["task"]["item"] |= {"path": item.path, "line": item.line or None}
    return payload


def assignment(task: Task, actors: Actors, now: Instant) -> Payload:
    """The assignment record, with the field names of backlogs."""
    lease = task.lease
    record: Payload = {
        "assignee_agent": None,
        "assignee_tier": None,
        "assigned_at": None,
        "lease_ttl": None,
        "lease_expires_at": None,
        "scope": list(task.scope),
        "constraints": list(task.terms.constraints),
        "handoff_reason": None,
        "token": str(task.token),
        "session": None,
        "renewed_at": None,
        "renewals": None,
        "holder": None,
        "expired": None,
        "suspect_since": None,
        "working_since": None,
    }
    if lease is None:
        return record
    holder = actors[lease.actor]
    session = session_name(lease.session, holder)
    return record | {
        "assignee_agent": holder.name,
        "assignee_tier": holder.tier,
        "assigned_at": iso(lease.acquired),
        "lease_ttl": exact(lease.ttl),
        "lease_expires_at": iso(lease.expires),
        "handoff_reason": lease.reason or None,
        "session": session,
        "renewed_at": iso(lease.renewed),
        "renewals": lease.renewals,
        "holder": {"name": holder.name, "kind": holder.kind, "session": session},
        "expired": not lease.live(now),
        "suspect_since": optional(lease.suspect),
        "working_since": optional(lease.stint),
    }


def lease(outcome: Outcome) -> Payload | None:
    """The lease of the task after the command, if any."""
    task = outcome.task
    if task is None or task.lease is None:
        return None
    held: Lease = task.lease
    holder = outcome.actors[held.actor]
    taken = outcome.taken
    return {
        "token": str(task.token),
        "holder": holder.name,
        "session": session_name(held.session, holder),
        "acquired_at": iso(held.acquired),
        "renewed_at": iso(held.renewed),
        "expires_at": iso(held.expires),
        "ttl_seconds": held.ttl / SECOND,
        "late": outcome.late,
        "taken_over_from": former(taken, outcome.actors) if taken else None,
    }


def former(ending: e.Ending, actors: Actors) -> Payload:
    """A former holder: last sign of life, work tree and branch."""
    actor = actors[ending.actor]
    return {
        "name": actor.name,
        "kind": actor.kind,
        "session": session_name(ending.session, actor),
        "token": str(ending.token),
        "last_sign_of_life": iso(ending.renewed),
        "expired_at": iso(ending.expires),
        "worktree": ending.worktree or None,
        "branch": ending.branch or None,
        "uncommitted": None if ending.uncommitted is None else list(ending.uncommitted),
        "not_looked_at": ending.not_looked_at or None,
    }


def outcome(outcome: Outcome, warnings: Iterable[str]) -> Payload:
    task_after = outcome.task
    payload = answer(
        task=None if task_after is None else task(task_after, outcome.actors, outcome.now),
        lease=lease(outcome),
        late=outcome.late,
        stopped=list(outcome.stopped),
        events=[entry.seq for entry in outcome.entries],
        replayed=outcome.replayed,
        warnings=list(warnings),
    )
    if outcome.current is not None:
        now = outcome.now if outcome.read_at is None else outcome.read_at
        payload["current"] = task(outcome.current, outcome.actors, now)
    return payload


def view(shown: TaskView) -> Payload:
    place = shown.place
    return answer(
        task=task(shown.task, shown.actors, shown.now)
        | {
            "worktree": place.worktree or None,
            "branch": place.branch or None,
            "host": place.host or None,
            "url": shown.url or None,
        },
        waits_for=[{"key": one.key, "state": one.state} for one in shown.after],
        waited_for_by=[{"key": one.key, "state": one.state} for one in shown.before],
        notes=[
            note(kept, shown.actors) | redaction(shown.redactions.get(kept.seq), shown.actors)
            for kept in shown.notes
        ],
        ended_leases=[ended(lease, shown.actors) for lease in shown.ended],
        receipts=[one.named() | {"at": iso(one.at)} for one in shown.receipts],
        allowed=[
            {"to": actor.name, "paths": list(one.paths), "until": iso(one.until), "event": one.seq}
            for one, actor in shown.allowed
        ],
    )


def note(kept: KeptNote, actors: Actors) -> Payload:
    actor = actors[kept.actor]
    return {
        "event": kept.seq,
        "kind": kept.kind,
        "at": iso(kept.at),
        "actor": actor.name,
        "session": session_name(kept.session, actor),
        "text": kept.text or None,
        "late": kept.kind == "late",
    }


def redaction(gone: Redaction | None, actors: Actors) -> Payload:
    if gone is None:
        return {"redacted": None}
    by = actors[gone.by].name
    return {"redacted": {"by": by, "at": iso(gone.at), "reason": gone.reason}}


def ended(lease: EndedLease, actors: Actors) -> Payload:
    actor = actors[lease.actor]
    return {
        "token": str(lease.token),
        "holder": actor.name,
        "session": session_name(lease.session, actor),
        "acquired_at": iso(lease.acquired),
        "renewed_at": iso(lease.renewed),
        "expires_at": iso(lease.expires),
        "renewals": lease.renewals,
        "ended_at": iso(lease.ended),
        "cause": lease.cause,
        "lost": lease.lost,
        "acknowledged": lease.acknowledged,
        "host": lease.host or None,
        "worktree": lease.worktree or None,
        "branch": lease.branch or None,
    }


def event(line: LogLine) -> Payload:
    entry = line.entry
    return {
        "seq": entry.seq,
        "task": line.key or None,
        "position": entry.position,
        "at": iso(entry.at),
        "actor": line.actor.name,
        "session": session_name(entry.session, line.actor),
        "token": str(entry.token) if entry.token else None,
        "verb": entry.verb,
        "cause": entry.cause or None,
        "facts": facts_payload(entry.event, line.actors),
        "digest": entry.digest,
    }


def refused_line(line: LoggedRefusal) -> Payload:
    return {
        "at": iso(line.at),
        "verb": line.verb,
        "task": line.task or None,
        "actor": line.actor,
        "session": line.session or line.actor,
        "code": line.code,
        "message": line.message,
    }


def owner(owner: Owner) -> Payload:
    actor = owner.actor
    return answer(
        task=owner.task.key,
        at=iso(owner.at),
        holder=None
        if actor is None
        else {
            "name": actor.name,
            "kind": actor.kind,
            "session": session_name(owner.session, actor),
        },
        token=str(owner.token) if owner.token else None,
        since=optional(owner.since),
        expired=owner.expired,
    )


def actor(actor: Actor, aliases: Iterable[str]) -> Payload:
    return {
        "name": actor.name,
        "kind": actor.kind,
        "tier": actor.tier,
        "capabilities": list(actor.capabilities),
        "zone": actor.zone,
        "aliases": list(aliases),
    }


def status(seen: Status) -> Payload:
    return answer(
        board=seen.uid,
        now=iso(seen.now),
        counts=dict(seen.counts),
        paused=seen.paused or None,
        held=[
            task(held.task, seen.actors, seen.now)
            | {"wrong": held.wrong or None, "helps": held.helps or None}
            for held in seen.held
        ],
        waiting=[
            {
                "key": waiting.task.key,
                "title": waiting.task.terms.title,
                "state": waiting.task.state,
                "why": waiting.why,
                "helps": waiting.helps,
            }
            for waiting in seen.waiting
        ],
        more=seen.more,
        clock_skew=seen.skewed,
        late_notes=[{"key": one.key, **note(one.note, seen.actors)} for one in seen.late],
    )


def why(steps: Iterable[Step], now: Instant) -> Payload:
    return answer(
        now=iso(now),
        steps=[
            {
                "depth": step.depth,
                "key": step.task.key,
                "state": step.task.state,
                "why": step.why,
                "helps": step.helps or None,
            }
            for step in steps
        ],
    )


def changes(many: Iterable[tuple[TaskKey, e.Event]], actors: Actors) -> list[Payload]:
    """What happened, or would happen, to each task, and whose lease ended."""
    return [
        {
            "key": key,
            "event": event.verb,
            "cause": (event.cause or None) if getattr(event, "ending", None) else None,
            "gives_up": bool(getattr(event, "gives_up", False)),
            "from": former(ending, actors) if (ending := getattr(event, "ending", None)) else None,
        }
        for key, event in many
    ]


# Facts of events. The ledger stores numbers, and its digests cover those; the conversion follows the annotation
# of each field, so a new event needs no code here.


AMOUNT = "cost"
"""A field whose type does not show its unit: millionths of the board's currency."""

_types: dict[type, dict[str, str]] = {}


def facts_payload(value: Value, actors: Actors) -> dict[str, Any]:
    """The fields by name; actors appear under their current names."""
    types = types_of(type(value))
    return {
        field: fact(inner, AMOUNT if field == AMOUNT else types[field], actors)
        for field, inner in zip(value.fields, value)
    }


def fact(value: Any, kind: str, actors: Actors) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return several(value, actors)
    if kind == "Instant":
        return iso(value)
    if kind == "Duration":
        return exact(value)
    if kind == "ActorId":
        return actors[value].name if value in actors else value
    return amount(value) if kind == AMOUNT else value


def several(value: tuple[Any, ...], actors: Actors) -> Any:
    if isinstance(value, Token):
        return str(value)
    return facts_payload(value, actors) if isinstance(value, Value) else list(value)


def amount(millionths: int) -> str:
    from dibs.timesheets.formats import money

    return money(millionths)


def types_of(kind: type) -> dict[str, str]:
    """The annotation of each field, without `| None`."""
    found = _types.get(kind)
    if found is None:
        found = {}
        for each in reversed(kind.__mro__):
            for field, written in vars(each).get("__annotations__", {}).items():
                found[field] = written.removesuffix(" | None")
        _types[kind] = found
    return found
