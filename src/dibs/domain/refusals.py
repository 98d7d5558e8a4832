"""Refusals: commands that were understood and denied. Each has a stable code and its facts.

A refusal states what, who and until when. The advice, exit code, HTTP status and MCP error of each code
are in one table, `dibs.output.error_map`.
"""

from __future__ import annotations

from dibs.domain.model import DEPENDENCIES_MAX, Actor, ActorId, Lease, Task, TaskKey, Token
from dibs.domain.values import Instant, Value, between, brief, iso, rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.domain.facts import ScopeReservation
    from dibs.domain.model import KeptProcess


class Refusal(Value):
    """A denial: a stable code, a one-sentence message, and the facts behind it."""

    code: str
    message: str
    facts: Mapping[str, object] = {}


class Refused(Exception):  # noqa: N818 - it is a refusal, not an error in the program
    """Carries a refusal to the edge. Nothing was changed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal

    @property
    def code(self) -> str:
        return self.refusal.code

    def __reduce__(self) -> tuple[object, ...]:
        """For `pickle` and `copy`: `args` has only the message, too little to rebuild the refusal."""
        return _without_init, (type(self), self.args), self.__dict__


def _without_init(kind: type[Refused], args: tuple[object, ...]) -> Refused:
    return kind.__new__(kind, *args)


def refused(code: str, message: str, **facts: object) -> Refused:
    return Refused(Refusal(code, message, facts))


def unreadable(what: str) -> Refused:
    """An unreadable record counts as held: no command acts on it."""
    return refused("corrupt", f"the board contains an unreadable record: {what}")


# Usage errors.


def bad_argument(message: str, **facts: object) -> Refused:
    return refused("bad_argument", message, **facts)


def unknown_task(key: str) -> Refusal:
    return Refusal("unknown_task", f"there is no task {key}", {"task": key})


def unknown_note(task: Task, seq: int) -> Refusal:
    message = f"event {seq} added no note to {task.key}"
    return Refusal("unknown_note", message, _task(task) | {"event": seq})


def unknown_actor(name: str) -> Refusal:
    return Refusal("unknown_actor", f"nobody named {name} is registered", {"actor": name})


def reason_missing(command: str) -> Refusal:
    return Refusal("reason_missing", f"{command} needs a reason", {"command": command})


# Denied by the state of the task, or for lack of a right.


def final(task: Task) -> Refusal:
    return Refusal("final", f"{task.key} is {task.state}; that is final", _task(task))


def wrong_state(task: Task, verb: str) -> Refusal:
    return Refusal(
        "wrong_state", f"{task.key} is {shown(task.state)}: {verb} is not possible", _task(task)
    )


def key_taken(key: str) -> Refusal:
    return Refusal("key_taken", f"the key {key} is taken; keys are never reused", {"task": key})


def people_only(command: str, actor: Actor, harness: str) -> Refusal:
    why = f"acts inside a harness ({harness})" if harness else f"is {a(actor.kind)}"
    return Refusal(
        "people_only",
        f"{command}: only a person may do this, and {actor.name} {why}",
        {"command": command, "actor": actor.name, "kind": actor.kind},
    )


def interrupting(refusal: Refusal, tasks: list[Task], actors: Mapping[ActorId, Actor]) -> Refusal:
    """The refusal, extended by the tasks whose live lease the command would end."""
    if not tasks:
        return refusal
    held = [
        f"{task.key} ({holder_label(actors[task.lease.actor], task.lease)})"
        for task in tasks
        if task.lease
    ]
    message = f"{refusal.message}: it would end the live lease of {several(held)}"
    return refusal.but(
        message=message, facts={**refusal.facts, "interrupts": [task.key for task in tasks]}
    )


def kind_is_fixed(actor: Actor) -> Refusal:
    return Refusal(
        "kind_is_fixed",
        f"{actor.name} is registered as {a(actor.kind)}; a person cannot become an agent, nor an agent a person",
        {"actor": actor.name, "kind": actor.kind},
    )


def parent_only(verb: str, key: str, session: str, parent: str) -> Refusal:
    return Refusal(
        "parent_only",
        f"{verb} {key}: {session} is a subagent; only its parent session {parent} may do this",
        {"task": key, "verb": verb, "session": session, "parent": parent},
    )


def own_review(task: Task, actor: Actor) -> Refusal:
    return Refusal(
        "own_review",
        f"{actor.name} submitted {task.key}: somebody else must review it",
        _task(task),
    )


def not_held(task: Task) -> Refusal:
    return Refusal("not_held", f"nobody holds {task.key}", _task(task))


def not_bound(task: Task, actor: Actor) -> Refusal:
    return Refusal(
        "not_bound",
        f"{task.key} is assigned to {actor.name}, but no session has taken it up yet",
        _task(task) | {"assignee": actor.name},
    )


def bound(task: Task, holder: Actor, lease: Lease) -> Refusal:
    return Refusal(
        "bound",
        f"{holder_label(holder, lease)} has already taken up {task.key}",
        _task(task) | {"holder": holder.name},
    )


def not_assigned(task: Task) -> Refusal:
    return Refusal("not_assigned", f"{task.key} is assigned to nobody", _task(task))


def not_yours_to_unpark(task: Task, parker: Actor) -> Refusal:
    return Refusal(
        "not_yours_to_unpark",
        f"{task.key} was parked by {parker.name}: only {parker.name} or a person may unpark it",
        _task(task) | {"parked_by": parker.name},
    )


def used_up(task: Task) -> Refusal:
    return Refusal(
        "used_up",
        f"{task.key} has used {task.attempts} of {task.terms.max_attempts} attempts",
        _task(task) | {"attempts": task.attempts, "max_attempts": task.terms.max_attempts},
    )


def cycle(way: tuple[str, ...]) -> Refusal:
    return Refusal(
        "cycle",
        f"that would create a cycle: {' waits for '.join(way)}",
        {"task": way[0], "cycle": list(way)},
    )


def too_many_dependencies(count: int) -> Refusal:
    return Refusal(
        "bad_argument", f"too many dependencies: {count}; the limit is {DEPENDENCIES_MAX}", {}
    )


def bad_charge_code(code: str, known: tuple[str, ...]) -> Refusal:
    these = f"its codes are {several(known)}" if known else "it has none"
    return Refusal(
        "bad_charge_code",
        f"{code} is not a charge code of this board: {these}",
        {"charge_code": code, "known": list(known)},
    )


def unconfirmed(command: str, keys: list[TaskKey]) -> Refusal:
    shown, more = ", ".join(keys[:10]), len(keys) - 10
    rest = f" and {more} more" if more > 0 else ""
    return Refusal(
        "unconfirmed",
        f"{command} changes {len(keys)} tasks: {shown}{rest}",
        {"command": command, "tasks": list(keys[:1000]), "count": len(keys)},
    )


# Nothing to do now: try again later.


def paused(why: str) -> Refusal:
    return Refusal("paused", f"work is paused by {why}", {"paused": why})


def at_limit(actor: Actor, held: int, most: int) -> Refusal:
    return Refusal(
        "at_limit",
        f"{actor.name} has reached its limit: {held} of {most} tasks",
        {"actor": actor.name, "held": held, "most": most},
    )


def nothing_ready(actor: Actor) -> Refusal:
    return Refusal("nothing_ready", f"nothing is ready for {actor.name}", {"actor": actor.name})


# A gate is not met.


def waits(task: Task, causes: Mapping[TaskKey, str]) -> Refusal:
    open_ones = [key for key, state in causes.items() if state != "complete"]
    listed = several([f"{key} ({shown(causes[key])})" for key in open_ones])
    return Refusal(
        "waits",
        f"{task.key} waits for {listed}",
        _task(task) | {"waits_for": open_ones[:100], "first": open_ones[0] if open_ones else ""},
    )


def gate_not_met(task: Task, gate: str) -> Refusal:
    return Refusal(
        "gate_not_met",
        f"{task.key} cannot be started: {gate}",
        _task(task) | {"gate": gate, "origin": task.origin_ask_ref},
    )


def locked_in_file(task: Task, locked: str) -> Refusal:
    return Refusal(
        "locked_in_file",
        f"{task.key} is locked by {in_quotes([locked])} in its item file, but dibs has no lease for it",
        _task(task) | {"locked_by": locked},
    )


def file_says_it(task: Task) -> Refusal:
    return Refusal(
        "file_says_it",
        f"{task.key} is a backlog item ({task.channel}): its file determines this",
        _task(task) | {"channel": task.channel},
    )


def wrong_kind(task: Task, actor: Actor) -> Refusal:
    whom = "people" if task.terms.audience == "human" else "agents"
    return Refusal(
        "wrong_kind",
        f"{task.key} is for {whom}, and {actor.name} is {a(actor.kind)}",
        _task(task) | {"for": task.terms.audience, "actor": actor.name, "kind": actor.kind},
    )


def tier_too_low(task: Task, actor: Actor) -> Refusal:
    return Refusal(
        "tier_too_low",
        f"{task.key} needs tier {task.terms.tier}, and {actor.name} has tier {actor.tier}",
        _task(task) | {"needs": task.terms.tier, "actor": actor.name, "tier": actor.tier},
    )


def capability_missing(task: Task, actor: Actor, missing: tuple[str, ...]) -> Refusal:
    return Refusal(
        "capability_missing",
        f"{task.key} needs {', '.join(missing)}, which {actor.name} does not have",
        _task(task) | {"missing": list(missing), "actor": actor.name},
    )


def parked(task: Task, parker: Actor) -> Refusal:
    return Refusal(
        "parked",
        f"{task.key} was parked by {parker.name}",
        _task(task) | {"parked_by": parker.name},
    )


def assigned_to_another(task: Task, assignee: Actor) -> Refusal:
    return Refusal(
        "assigned_to_another",
        f"{task.key} is assigned to {assignee.name}, a person; agents cannot claim it",
        _task(task) | {"assignee": assignee.name},
    )


def not_allowed(task: Task, action: str) -> Refusal:
    allowed = ", ".join(task.terms.constraints)
    return Refusal(
        "not_allowed",
        f"the constraints of {task.key} allow {allowed}, not {action}",
        _task(task) | {"action": action, "constraints": list(task.terms.constraints)},
    )


# Held by another session.


def held(task: Task, holder: Actor, lease: Lease, now: Instant) -> Refusal:
    if now < lease.renewed:
        renewed = "last renewed in the future (clock skew)"
    else:
        renewed = f"last renewed {rough_duration(between(lease.renewed, now))} ago"
    ends = "until" if lease.live(now) else "with a lease that expired at"
    verb = "is held by" if lease.bound else "is assigned to"
    return Refusal(
        "held",
        f"{task.key} {verb} {holder_label(holder, lease)} {ends} {brief(lease.expires, now)}, {renewed}",
        _task(task)
        | {
            "holder": holder.name,
            "kind": holder.kind,
            "session": lease.session if lease.session != "" else holder.name,
            "expires_at": iso(lease.expires),
            "renewed_at": iso(lease.renewed),
            "expired": not lease.live(now),
        },
    )


def already_running(task: Task, holder: Actor, kept: KeptProcess, now: Instant) -> Refusal:
    """`since` is given only while the lease of that run has not ended."""
    lease, behind = task.lease, kept.behind
    where = f" on {behind.host}" if behind.host else ""
    session = f" (session {kept.session})" if kept.session else ""
    running = (
        f"{holder.name}{session} is already running {task.key}: process {behind.process.pid}{where}"
    )
    since = lease.acquired if lease is not None and kept.token == task.token else None
    when = "its lease has ended" if since is None else f"since {brief(since, now)}"
    return Refusal(
        "already_running",
        f"{running}, {when}, token {kept.token}",
        _task(task)
        | {
            "holder": holder.name,
            "session": kept.session or holder.name,
            "process": behind.process.pid,
            "host": behind.host,
            "running_token": str(kept.token),
            "since": None if since is None else iso(since),
        },
    )


def undecided(paths: Sequence[str]) -> Refusal:
    """The comparison of these paths with scopes exceeded its step limit."""
    return Refusal(
        "undecided",
        f"cannot tell whether anybody holds {in_quotes(paths)}: too many wildcards in the scopes",
        {"paths": list(paths)},
    )


def areas_unknown(unread: str, areas: Sequence[str]) -> Refusal:
    """`unread`: why the areas cannot be read."""
    return Refusal(
        "bad_setting",
        f"{unread}; cannot resolve {in_quotes(areas)}",
        {"areas": list(areas)},
    )


TOO_LONG = "too many wildcards to compare them"


def scope_held(task: Task, rival: ScopeReservation, holder: Actor, now: Instant) -> Refusal:
    doubt = f"; {rival.doubt}, so they count as overlapping" if rival.doubt else ""
    who = f"{holder.name} (session {rival.session})" if rival.session else holder.name
    return Refusal(
        "scope_held",
        f"{task.key} needs {in_quotes(task.scope)}, but {who} holds {in_quotes(rival.scope)} "
        f"with {rival.key} until {brief(rival.expires, now)}{doubt}",
        _task(task)
        | {
            "scope": list(task.scope),
            "other": rival.key,
            "holder": holder.name,
            "session": rival.session if rival.session != "" else holder.name,
            "expires_at": iso(rival.expires),
            "doubt": rival.doubt or None,
        },
    )


# The lease has ended.


def lease_lost(task: Task, stated: Token | None, ended: str, holder: str, *, kept: bool) -> Refusal:
    which = f"the lease {stated} of {task.key}" if stated else f"your lease of {task.key}"
    why = f" ({ended})" if ended else ""
    now_with = f"; {holder} holds it now" if holder else ""
    note = "; your text was saved as a late note" if kept else ""
    return Refusal(
        "lease_lost",
        f"{which} has ended{why}{now_with}{note}",
        _task(task)
        | {
            "stated": str(stated) if stated else None,
            "cause": ended or None,
            "holder": holder or None,
            "late_note": kept,
        },
    )


def token_ahead(task: Task, stated: Token) -> Refusal:
    return Refusal(
        "token_ahead",
        f"token {stated} of {task.key} is ahead of the board's {task.token}: the board has lost "
        "changes (restored, or another board)",
        _task(task) | {"stated": str(stated)},
    )


def request_reused(request_id: str) -> Refusal:
    return Refusal(
        "request_reused",
        f"the request id {request_id} was used for another command",
        {"request_id": request_id},
    )


def holder_label(actor: Actor, lease: Lease) -> str:
    """A holder for people: actor and session; a person's session is not shown."""
    return f"{actor.name} (session {lease.session})" if lease.session else actor.name


def several(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def in_quotes(texts: Sequence[str]) -> str:
    """Scopes and paths, quoted because they are untrusted text."""
    from dibs.domain.values import quoted

    return several([quoted(text) for text in texts])


def a(kind: str) -> str:
    return f"an {kind}" if kind == "agent" else f"a {kind}"


def shown(state: str) -> str:
    return "under review" if state == "review" else state.replace("_", " ")


def _task(task: Task) -> dict[str, object]:
    return {"task": task.key, "state": task.state, "token": str(task.token)}
