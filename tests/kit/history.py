"""What several processes did, and whether one board that does one thing at a time could have said it.

A history is a list of operations with the instants at which each was asked and answered. It is
judged twice. `violation` looks for an order of the operations of one task that agrees with real
time and with the rules below (linearizability, after Wing and Gong, and Lowe, with a memo); it
believes nothing but the answers. `ledger_faults` asks the ledger, which must agree.

The rules are written down here once more, on purpose: they share no code with the board.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

MICROSECOND = 1_000
"""In nanoseconds. The board's clock is cut to microseconds: the model allows for one."""


@dataclass(frozen=True)
class Answer:
    """A success: the task's token, who holds it, whether it is final; and the events of it."""

    token: int
    holder: str | None
    final: bool
    renewals: int
    seqs: tuple[int, ...] = ()
    replayed: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation on one task. Instants are nanoseconds of CLOCK_MONOTONIC.

    `answer` is an `Answer`, the code of a refusal, or None if nobody knows: the process was killed
    meanwhile. Such an operation took place before `returned`, or never.
    """

    session: str
    key: str
    verb: str
    stated: int | None
    ttl: int
    request: str
    invoked: int
    returned: int
    answer: Answer | str | None
    dead: bool = False
    """Of a sweep: the holder was known to be dead."""


@dataclass(frozen=True)
class State:
    """One task. `soonest` and `latest` are the bounds between which the lease runs out."""

    holder: str | None = None
    token: int = 0
    final: bool = False
    renewals: int = 0
    soonest: int = 0
    latest: int = 0
    former: frozenset[str] = frozenset()
    failed: bool = False
    left_by: tuple[str, str] | None = None
    """The session and the verb that ended the last lease, while nothing has happened since."""


# The rules: what may be answered to an operation, and what the task is afterwards.


def possible(task: State, op: Operation) -> list[tuple[str, State]]:
    """Every (code, task afterwards) that the rules allow; the code of a success is ""."""
    if op.verb in ("claim", "takeover"):
        return taking(task, op)
    if op.verb == "sweep":
        return sweeping(task, op)
    if op.verb == "retry":
        return [("", replace(task, failed=False, left_by=None))] * task.failed
    return holding(task, op)


def sweeping(task: State, op: Operation) -> list[tuple[str, State]]:
    """`ttl` is the grace here. Whether the attempts are used up is not known to this model."""
    over = op.dead or op.returned + MICROSECOND > task.soonest + op.ttl
    if task.holder is None or op.stated != task.token or not over:
        return []
    return [("", ended(task)), ("", replace(ended(task), failed=True))]


def taking(task: State, op: Operation) -> list[tuple[str, State]]:
    if task.final:
        return [("final", task)]
    if task.failed:
        return [("wrong_state", task)]
    if task.holder == op.session:
        return [("", renewed(task, op))]
    if task.holder is None:
        return [("", granted(task, op))]
    # Another holds it. Nobody saw the board's clock: near the expiry both answers are right.
    could_be_expired = op.returned + MICROSECOND > task.soonest
    could_be_live = op.invoked - MICROSECOND <= task.latest
    return [("", granted(task, op))] * could_be_expired + [("held", task)] * could_be_live


def holding(task: State, op: Operation) -> list[tuple[str, State]]:
    mine, was_mine = task.holder == op.session, op.session in task.former
    if task.left_by == (op.session, op.verb) and op.stated in (None, task.token):
        return [("", task)]  # a holder that repeats itself gets the same success
    if op.stated is not None and (op.stated != task.token or task.holder is None):
        return [("token_ahead" if op.stated > task.token else "lease_lost", task)]
    if op.verb == "release":
        if mine:
            return [("", ended(task, op))]
        return [("held" if task.holder and not was_mine else "", task)]
    if mine:
        if op.verb == "renew":
            return [("", renewed(task, op))]
        return [
            ("", replace(ended(task, op), **{"failed" if op.verb == "fail" else "final": True}))
        ]
    if was_mine:
        return [("lease_lost", task)]
    if task.failed:
        return [("wrong_state", task)]
    return [("final" if task.final else "held" if task.holder else "not_held", task)]


def granted(task: State, op: Operation) -> State:
    former = task.former | ({task.holder} if task.holder else set())
    return renewed(State(op.session, task.token + 1, renewals=-1, former=former), op)


def renewed(task: State, op: Operation) -> State:
    """The board read its clock between asking and answering: the lease runs from there."""
    bounds = {"soonest": op.invoked + op.ttl, "latest": op.returned + op.ttl}
    return replace(task, renewals=task.renewals + 1, **bounds)


def ended(task: State, by: Operation | None = None) -> State:
    left_by = (by.session, by.verb) if by is not None else None
    return State(None, task.token, former=task.former | {task.holder}, left_by=left_by)


# The first judge: is there an order?


def after(task: State, op: Operation) -> list[State]:
    """The states in which an operation leaves a task, if it was answered as it was."""
    ways = possible(task, op)
    if op.answer is None:
        return [task, *(then for code, then in ways if code == "")]
    if isinstance(op.answer, str):
        return [then for code, then in ways if code == op.answer]
    facts_of = attrgetter("holder", "token", "final", "renewals", "failed")
    return [then for code, then in ways if code == "" and facts_of(then) == facts_of(op.answer)]


def unordered(operations: list[Operation], start: State) -> Operation | None:
    """None if some order explains all of them; else the one at which every order fails.

    `done` has a bit for each operation from `first` on. The next in order can be any that was
    asked before the first of the others was answered.
    """
    ops = sorted(operations, key=attrgetter("invoked"))
    todo, seen, farthest = [(0, 0, start)], set(), 0
    while todo:
        first, done, task = todo.pop()
        while done & 1:
            first, done = first + 1, done >> 1
        if first == len(ops):
            return None
        if (first, done, task) in seen:
            continue
        seen.add((first, done, task))
        farthest = max(farthest, first)
        candidates, deadline, n = [], ops[first].returned, first
        while n < len(ops) and ops[n].invoked <= deadline:
            if not done >> (n - first) & 1:
                deadline = min(deadline, ops[n].returned)
                candidates.append(n)
            n += 1
        for n in sorted(candidates, key=lambda n: -ops[n].returned):
            todo += [(first, done | 1 << (n - first), then) for then in after(task, ops[n])]
    return ops[farthest]


def violation(operations: list[Operation]) -> Operation | None:
    """The first task, and the operation on it, for which there is no order; None if all have one.

    An operation that was told to try again did nothing: it is not judged.
    """
    by_key = attrgetter("key")
    judged = sorted((op for op in operations if op.answer != "busy"), key=by_key)
    for _, ops in groupby(judged, key=by_key):
        failed = unordered(list(ops), State())
        if failed is not None:
            return failed
    return None


# The second judge: the ledger.

BEGINS = ("claimed", "taken_over")
BY_HOLDER = ("released", "completed", "failed", "started", "renewed")
ENDS = ("released", "completed", "failed", "lease_ended")


def ledger_faults(operations: list[Operation], entries: list) -> list[str]:
    """What the ledger says that the answers do not, and the other way round."""
    return (
        faults_of_order(operations)
        + faults_of_presence(operations, entries)
        + [fault for task in {e.task: 0 for e in entries} for fault in overlaps(entries, task)]
    )


def faults_of_order(operations: list[Operation]) -> list[str]:
    """If one operation was answered before another was asked, its events come first."""
    entered = [op for op in operations if isinstance(op.answer, Answer) and op.answer.seqs]
    answered = [(op.returned, op.answer.seqs[-1], op.request) for op in entered]
    heapq.heapify(answered)
    highest, who, faults = 0, "", []
    for op in sorted(entered, key=attrgetter("invoked")):
        while answered and answered[0][0] < op.invoked:
            _, seq, request = heapq.heappop(answered)
            highest, who = max((highest, who), (seq, request))
        if op.answer.seqs[0] <= highest:
            faults.append(f"{op.request} came after {who}, and stands before it in the ledger")
    return faults


def faults_of_presence(operations: list[Operation], entries: list) -> list[str]:
    """Every success is in the ledger, once; what else is there is of an operation that was cut."""
    known = {entry.seq: entry for entry in entries}
    owner: dict[int, str] = {}
    faults = []
    for op in operations:
        for seq in op.answer.seqs if isinstance(op.answer, Answer) else ():
            entry = known.get(seq)
            if entry is None or (entry.session, entry.token.number) != (
                op.session,
                op.answer.token,
            ):
                faults.append(f"{op.request} was answered, and event {seq} is not its own")
            if owner.setdefault(seq, op.request) != op.request:
                faults.append(f"event {seq} is of {owner[seq]}, and of {op.request}")
    cut = {op.session for op in operations if op.answer is None}
    faults += [
        f"event {entry.seq} ({entry.verb} by {entry.session}) was asked for by nobody"
        for entry in entries
        if entry.seq not in owner and entry.verb != "added" and entry.session not in cut
    ]
    return faults


def overlaps(entries: list, task: int) -> list[str]:
    """One holder at a time; a lease is taken after its expiry only; tokens rise by one."""
    holder, token, faults = None, 0, []
    for entry in (entry for entry in entries if entry.task == task):
        if entry.verb in BEGINS:
            ending = entry.event.ending
            taken_from = ending.session if ending else None
            if taken_from != holder or entry.token.number != token + 1:
                faults.append(f"event {entry.seq}: {entry.session} came while {holder} held it")
            if ending and entry.at <= ending.expires:
                faults.append(f"event {entry.seq}: taken from {holder} before its lease expired")
            holder, token = entry.session, entry.token.number
        elif entry.verb in BY_HOLDER and entry.session != holder:
            faults.append(f"event {entry.seq}: {entry.session} acted, and {holder} held it")
        if entry.verb in ENDS:
            holder = None
    return faults
