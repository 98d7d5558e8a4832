"""Chaos: twelve work through a graph of tasks while they are killed, stopped, and given wrong clocks.

Half of them are agents that ask for themselves; the others are runs. A person sweeps, and tries
again what failed. In the end every task is complete, or has failed with its attempts used up, or
waits for one that has; and whatever was said on the way, one board could have said it.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter

from dibs.board.identity import Identity
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import COMPLETE, DROPPED, FAILED, OPEN, TaskKey, Terms
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND, Duration
from dibs.opening import open_board
from dibs.workers.sweep import sweep
from kit import clocks, soak
from kit.crowd import AGENT, LOOSE, RUN, TTL, Crowd
from kit.history import Answer, Operation, ledger_faults, violation
from kit.workshop import lines_of, two_at_once

KINDS = (AGENT, LOOSE, AGENT, RUN, RUN, RUN) * 2
GRACE = Duration(SECOND)
TICK = 0.2
"""Seconds between two sweeps."""

NEAR = 50_000_000
"""Nanoseconds: the precision of an instant of the board on the clock of this test."""

PERSON = Identity("ana", True, "")


class Graph:
    """Tasks that wait for others. What is in its name says how a task ends; those are leaves."""

    def __init__(self, board, chance: random.Random, tasks: int) -> None:
        self.keys: list[TaskKey] = []
        inner: list[TaskKey] = []
        for n in range(tasks):
            name = chance.choices(("OK", "ONCE", "BAD", "FEW"), (80, 8, 7, 5))[0]
            leaf = name in ("BAD", "FEW")
            after = chance.sample(inner[-20:], min(len(inner), chance.choice((0, 1, 1, 2))))
            terms = Terms(f"task {n}", max_attempts=2 if leaf else 500, priority=n % 3)
            key = TaskKey(f"{name}-{n}")
            board.execute(PERSON, c.Add(terms, key=key, after=tuple(after)))
            self.keys.append(key)
            if not leaf:
                inner.append(key)


class Nemesis:
    """Kills, stops and continues whoever works, and steps the wall clock, by chance."""

    def __init__(self, crowd: Crowd, chance: random.Random, offset) -> None:
        self.crowd, self.chance, self.offset = crowd, chance, offset
        self.stopped: dict[int, float] = {}
        self.done: Counter[str] = Counter()
        self.hired = 0

    def hire(self) -> None:
        """Who is gone is replaced by one of the same kind, under a name that nobody had."""
        working = Counter(orders["kind"] for orders in self.crowd.alive.values())
        for kind, missing in (Counter(KINDS) - working).items():
            for _ in range(missing):
                self.hired += 1
                name = f"{kind}-{self.hired}"
                self.crowd.start(kind=kind, session=name, seed=self.chance.random())

    def wake(self, *, all_of_them: bool = False) -> None:
        for pid, until in [*self.stopped.items()]:
            if all_of_them or until < time.monotonic():
                self.crowd.signal(pid, signal.SIGCONT)
                del self.stopped[pid]

    def strike(self) -> None:
        deed = self.chance.choices(("kill", "stop", "kill below", "step"), (6, 3, 1, 1))[0]
        awake = sorted(set(self.crowd.alive) - set(self.stopped))
        if deed == "step":
            if self.offset is not None:
                clocks.step(self.offset, self.chance.randint(-86_400, 86_400))
                self.done[deed] += 1
            return
        if len(awake) < 5:
            return
        pid = self.chance.choice(awake)
        self.done[deed] += 1
        if deed == "stop":
            self.crowd.signal(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic() + self.chance.uniform(0, 3) * TTL / SECOND
        else:
            self.crowd.signal(pid, signal.SIGKILL, below=deed == "kill below")


class Person:
    """Sweeps at every tick, and tries again what has attempts left."""

    def __init__(self, board) -> None:
        self.board, self.next_tick = board, 0.0
        self.over = False

    def look_after(self) -> None:
        if time.monotonic() < self.next_tick:
            return
        try:
            self.over = self.is_over()
            sweep(self.board, PERSON, GRACE)
            for task in self.tasks().values():
                if task.state == FAILED and not has_given_up(task):
                    self.board.execute(PERSON, c.Retry(task.key))
        except Refused as problem:
            assert problem.code == "busy", problem  # somebody was stopped inside a transaction
        self.next_tick = time.monotonic() + TICK

    def tasks(self):
        with self.board.read() as tx:
            return {key: tx.task(key) for key in tx.task_keys()}

    def is_over(self) -> bool:
        """Nothing is left that anybody could do."""
        tasks = self.tasks()
        given_up = {task.key for task in tasks.values() if has_given_up(task)}
        with self.board.read() as tx:
            return all(
                task.state == COMPLETE or key in given_up or waits_for(tx, task, given_up)
                for key, task in tasks.items()
            )


def has_given_up(task) -> bool:
    return task.state == FAILED and task.attempts >= task.terms.max_attempts


def waits_for(tx, task, given_up) -> bool:
    causes = {one.key for one in tx.dependencies(task.id) if one.state != COMPLETE}
    if task.state != OPEN or task.lease is not None or not causes:
        return False
    return bool(causes & given_up) or any(waits_for(tx, tx.task(key), given_up) for key in causes)


def test_chaos_ends_with_every_task_complete_or_its_attempts_used_up(repo, kind, tmp_path):
    chance = random.Random(soak.seed())
    seconds = max(soak.seconds(8, share=0.1), 60 if soak.MINUTES else 0)
    tasks = 300 if soak.MINUTES else 50
    workshop = tmp_path / "workshop"
    workshop.touch()
    board = open_board(str(repo.folder), environment=repo.environment())
    shim = clocks.shim(tmp_path)
    try:
        graph = Graph(board, chance, tasks)
        person = Person(board)
        with Crowd(repo, workshop, **(shim.environment if shim else {})) as crowd:
            nemesis = Nemesis(crowd, chance, shim and shim.offset)
            nemesis.hire()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not person.over:
                crowd.listen(chance.uniform(0, 0.1))
                nemesis.wake()
                nemesis.strike()
                nemesis.hire()
                person.look_after()
            nemesis.wake(all_of_them=True)
            deadline = time.monotonic() + 240
            while not person.over:
                assert time.monotonic() < deadline, repo.ok("status").out
                crowd.listen(0.1)
                nemesis.hire()
                person.look_after()
            crowd.listen(0.2)
        judge(board, person, graph, crowd, nemesis, workshop)
    finally:
        board.store.close()


def judge(board, person, graph, crowd, nemesis, workshop) -> None:
    entries = entries_of(board)
    operations = crowd.operations()
    swept = [entry for entry in entries if entry.verb == "lease_ended"]
    states = Counter(task.state for task in person.tasks().values())
    print(f"{dict(states)}, {dict(nemesis.done)}, {len(operations)} operations by agents")
    print(f"{len(swept)} leases swept: {dict(Counter(entry.cause for entry in swept))}")
    assert crowd.bugs() == []
    assert set(person.tasks()) == set(graph.keys) and not states[DROPPED]
    assert states[COMPLETE] + states[FAILED] + states[OPEN] == len(graph.keys)
    assert two_at_once(lines_of(workshop)) == []
    assert verify(board).faults == ()
    complete = operations + unheard(board, operations, entries)
    assert violation(complete) is None
    assert ledger_faults(complete, [entry for entry in entries if is_judged(entry)]) == []
    begun_once = Counter((e.task, e.token) for e in entries if e.verb == "claimed")
    assert set(begun_once.values()) <= {1}
    assert set(Counter((e.task, e.token) for e in swept).values()) <= {1}
    for entry in swept:
        if entry.cause == "process gone" and entry.event.ending.session.startswith(AGENT):
            assert entry.event.ending.session in crowd.killed, "it was alive"


# What no answer contains: what runs did, sweeps, and what was cut off. The ledger knows.

VERBS = {
    "claimed": "claim",
    "completed": "complete",
    "failed": "fail",
    "released": "release",
    "lease_ended": "sweep",
    "retried": "retry",
}


def is_judged(entry) -> bool:
    """Not late notes, nor what the keeper of a run did: all that is known is that it renewed late."""
    of_a_keeper = entry.verb == "renewed" and entry.session.startswith("run-")
    return entry.verb not in ("added", "noted") and not of_a_keeper


def entries_of(board) -> list:
    with board.read() as tx:
        return [entry for entry in tx.events() if entry.task]


def unheard(board, operations: list[Operation], entries: list) -> list[Operation]:
    """An operation for each event that is in no answer."""
    before = time.monotonic_ns()
    with board.read() as tx:
        offset = tx.now * 1_000 - (before + time.monotonic_ns()) // 2
        keys = {tx.task(key).id: key for key in tx.task_keys()}
    answered = {s for op in operations if isinstance(op.answer, Answer) for s in op.answer.seqs}
    started = {(e.task, e.token): e.seq for e in entries if e.verb == "started"}
    found = []
    for entry in entries:
        if entry.seq in answered or entry.verb not in VERBS:
            continue
        verb, token = VERBS[entry.verb], entry.token.number
        follows = (started[entry.task, entry.token],) if verb == "claim" else ()
        gives_up = bool(getattr(entry.event, "gives_up", False))
        answer = Answer(
            token=token,
            holder=entry.session if verb == "claim" else None,
            final=verb == "complete",
            renewals=0,
            seqs=(entry.seq, *follows),
            failed=verb == "fail" or gives_up,
        )
        at = entry.at * 1_000 - offset
        found.append(
            Operation(
                session=entry.session,
                key=keys[entry.task],
                verb=verb,
                stated=token if verb == "sweep" else None,
                ttl=(GRACE if verb == "sweep" else TTL) * 1_000,
                request=f"event {entry.seq}",
                invoked=at - NEAR,
                returned=at + NEAR,
                answer=answer,
                dead=verb == "sweep" and entry.cause != "expired",
            )
        )
    return found
