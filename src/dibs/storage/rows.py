"""The board's own row, and the mapping of other rows to values and back. Columns come in the order of the fragments in `queries.sql`."""

from __future__ import annotations

from dibs.domain.checks import short
from dibs.domain.model import (
    Actor,
    EndedLease,
    ItemSnapshot,
    KeptProcess,
    Lease,
    LeaseProcess,
    Place,
    Process,
    Session,
    Task,
    Terms,
    Token,
)
from dibs.domain.refusals import unreadable
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.domain.ledger import Entry
    from dibs.domain.model import ActorId, TaskId
    from dibs.domain.values import Instant

    Row = tuple[Any, ...]
    Columns = dict[str, Any]


ARRIVING, ARRIVED = 1, 2


def move_token_hash(word: str) -> str:
    """The hash of a move token. A copy stores only this until the move is confirmed with the token."""
    from hashlib import sha256

    return sha256(word.encode()).hexdigest()


def is_elsewhere(moved_to: str, arriving: int) -> bool:
    return bool(moved_to) and arriving != ARRIVED


class BoardRow(Value):
    """The board's own row: its counters, the floor of its clock, the head of its own chain."""

    uid: str
    created: Instant
    epoch: int
    floor: Instant
    seq: int
    actors: int
    tasks: int
    keys: int
    head: str
    events: int
    moved_to: str = ""
    arriving: int = 0
    paused_by: ActorId | None = None
    paused_why: str = ""
    ticket: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it moved away, or is a copy not yet active: `moved_to` says where the board is."""
        return is_elsewhere(self.moved_to, self.arriving)


def texts(column: str) -> tuple[str, ...]:
    if column == "[]":
        return ()
    from dibs.domain.jsontext import read

    try:
        values = read(column)
    except ValueError:
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise unreadable(f"a list, {short(column, 40)}")
    return tuple(values)


def listed(values: tuple[str, ...]) -> str:
    """A list as JSON. Most lists are empty: that case loads no JSON module."""
    if not values:
        return "[]"
    from dibs.domain.jsontext import listed as written

    return written(values)


def name_of(text: str) -> str:
    """The name of an actor or a session. dibs accepts none with spaces: by SQL somebody wrote a sentence."""
    if text.isprintable() and " " not in text:
        return text
    from dibs.domain.display import quoted

    return quoted(text)


def actor_of(row: Row) -> Actor:
    return Actor(row[0], name_of(row[1]), row[2], row[3], texts(row[4]), row[5])


def actor_columns(actor: Actor) -> Columns:
    return actor.named() | {"capabilities": listed(actor.capabilities)}


def session_of(row: Row) -> Session:
    process = None if row[7] is None else Process(*row[5:9])
    return Session(row[0], row[1], row[2], row[3], row[4], process, bool(row[9]), bool(row[10]))


def session_columns(session: Session) -> Columns:
    process = session.process
    return session.named() | {
        "boot": process and process.boot,
        "namespace": process and process.namespace,
        "pid": process and process.pid,
        "pid_started": process and process.started,
        "watched": int(session.watched),
        "background": int(session.background),
    }


def behind_of(row: Row) -> LeaseProcess:
    """Columns: boot, namespace, pid, start; then the other fields."""
    return LeaseProcess(Process(*row[:4]), row[4], bool(row[5]), *row[6:9])


def kept_process_of(row: Row) -> KeptProcess:
    return KeptProcess(Token(row[0], row[1]), behind_of(row[2:11]), row[11], row[12])


def kept_process_columns(task: TaskId, kept: KeptProcess) -> Columns:
    behind, (boot, namespace, pid, started) = kept.behind, kept.behind.process
    return {
        **behind.named(),
        "task": task,
        "token_epoch": kept.token.epoch,
        "token_number": kept.token.number,
        "actor": kept.actor,
        "session": kept.session,
        "boot": boot,
        "namespace": namespace,
        "pid": pid,
        "pid_started": started,
        "runs": int(behind.runs),
    }


def task_of(row: Row) -> Task:
    (
        _board, id_, uid, key, created, updated, creator, title, priority, audience, tier,
        capabilities, constraints, max_attempts, not_before, billable, charge_code, scope, channel, ref, state, epoch,
        number, holder, session, acquired, renewed, ttl, _expires, renewals, reason, stint, suspect, host,
        worktree, branch, assignee,        author, preferred, parked_by, blocked_on, attempts, rests_until, waits_on, item, gate,
        locked, head, events, version,
    ) = row  # fmt: skip
    lease = (
        None
        if holder is None
        else Lease(
            holder,
            session and name_of(session),
            acquired,
            renewed,
            ttl,
            renewals,
            reason,
            stint,
            suspect,
            Place(host, worktree, branch),
        )
    )
    terms = Terms(
        title,
        priority,
        audience,
        tier,
        texts(capabilities),
        texts(constraints),
        max_attempts,
        not_before,
        bool(billable),
        charge_code,
    )
    return Task(
        id_, uid, key, terms, created, updated, creator, texts(scope), channel, ref, state,
        Token(epoch, number), lease, assignee, author, preferred, parked_by, blocked_on, attempts,
        rests_until, waits_on, None if item is None else ItemSnapshot(item, gate, locked), head, events,
        version,
    )  # fmt: skip


def task_columns(task: Task) -> Columns:
    """All columns of a task except its board."""
    terms = task.terms
    return {
        **task.named(),
        **terms.named(),
        "capabilities": listed(terms.capabilities),
        "constraints": listed(terms.constraints),
        "billable": int(terms.billable),
        "scope": listed(task.scope),
        **work_columns(task),
    }


def work_columns(task: Task) -> Columns:
    """The columns that change while a task is worked on, and the row's key."""
    return {
        "id": task.id,
        "updated": task.updated,
        "state": task.state,
        "token_epoch": task.token.epoch,
        "token_number": task.token.number,
        **(NO_LEASE if task.lease is None else lease_columns(task.lease)),
        "assignee": task.assignee,
        "author": task.author,
        "preferred": task.preferred,
        "parked_by": task.parked_by,
        "blocked_on": task.blocked_on,
        "attempts": task.attempts,
        "rests_until": task.rests_until,
        "head": task.head,
        "events": task.events,
        "version": task.version,
    }


def lease_columns(lease: Lease) -> Columns:
    holder, session, acquired, renewed, ttl, renewals, reason, stint, suspect, place = lease
    return {
        "holder": holder,
        "session": session,
        "acquired": acquired,
        "renewed": renewed,
        "ttl": ttl,
        "expires": lease.expires,
        "renewals": renewals,
        "reason": reason,
        "stint": stint,
        "suspect": suspect,
        **place.named(),
    }


NO_LEASE: Columns = dict.fromkeys(("holder", "expires", *Lease.fields[1:-1], *Place.fields))


def ended_lease_of(row: Row) -> EndedLease:
    lost, acknowledged = map(bool, row[10:12])
    return EndedLease(Token(row[0], row[1]), *row[2:10], lost, acknowledged, *row[12:])  # type: ignore[call-arg]


def ended_lease_columns(task: TaskId, lease: EndedLease) -> Columns:
    epoch, number = lease.token
    return {
        **lease.named(),
        "task": task,
        "token_epoch": epoch,
        "token_number": number,
        "lost": int(lease.lost),
    }


def entry_of(row: Row) -> Entry:
    from dibs.domain.ledger import Entry  # most guard transactions read no events

    seq, task, position, at, actor, session, epoch, number, verb, cause, facts, digest = row
    token = None if epoch is number is None else Token(epoch, number)
    return Entry(seq, task, position, at, actor, session, token, verb, cause, facts, digest)


def entry_columns(entry: Entry, request: str | None) -> Columns:
    seq, task, position, at, actor, session, token, verb, cause, facts, digest = entry
    epoch, number = (None, None) if token is None else token
    return {
        "seq": seq,
        "task": task,
        "position": position,
        "at": at,
        "actor": actor,
        "session": session,
        "token_epoch": epoch,
        "token_number": number,
        "verb": verb,
        "cause": cause,
        "facts": facts,
        "digest": digest,
        "request": request,
    }


def next_page_key(last: int, found: int) -> int:
    """The key where the next page starts; refuses a step back: a damaged index could loop for ever."""
    if found <= last:
        raise unreadable("the order of its rows")
    return found
