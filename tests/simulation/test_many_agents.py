"""Many agents over the real rules and the real store, interleaved by one seed at transactions.

Nothing here runs at the same time: a scheduler lets one agent take one step, then another. So a run
can be repeated exactly, and thousands of orders are tried in seconds.
"""

from __future__ import annotations

import random

from dibs.core import commands as c
from dibs.core.model import TaskKey
from dibs.core.refusals import Refused
from kit import soak
from kit.boards import Bench

AGENTS = 20
TASKS = 12
STEPS = 2_500
FINAL = ("complete", "dropped")


class Agent:
    """Claims, works, renews, finishes; sometimes it dies, sleeps too long, or wakes as a zombie."""

    def __init__(self, bench: Bench, name: str, chance: random.Random) -> None:
        self.actor = bench.agent(name, f"{name}-1")
        self.bench, self.chance = bench, chance
        self.key: TaskKey | None = None
        self.token = None
        self.asleep_until = 0.0

    def step(self, now: float) -> str:
        if now < self.asleep_until:
            return "asleep"
        if self.key is None:
            return self.try_to_claim()
        return self.chance.choice((self.renew, self.finish, self.give_back, self.sleep, self.work))(
            now
        )

    def try_to_claim(self) -> str:
        key = TaskKey(f"T-{self.chance.randint(1, TASKS)}")
        try:
            outcome = self.actor.do(c.Claim(key, ttl=self.chance.choice((30, 300)) * 1_000_000))
        except Refused as problem:
            return f"claim {problem.code}"
        self.key, self.token = key, outcome.task.token
        return f"claimed {outcome.entries[0].verb if outcome.entries else 'again'}"

    def tell(self, command) -> str:
        """Shows its token. A zombie learns from the first reply that it is one."""
        try:
            self.actor.do(command)
        except Refused as problem:
            assert problem.code == "lease_lost", (problem.code, command)
            self.key = None
            return "lost"
        return command.verb

    def renew(self, _now: float) -> str:
        return self.tell(c.Renew(self.key, token=self.token))

    def work(self, _now: float) -> str:
        return self.actor.do(c.Note(self.key, note="at work")).entries[-1].verb

    def finish(self, _now: float) -> str:
        kind = self.chance.choice((c.Complete, c.Submit))
        done = self.tell(kind(self.key, token=self.token, note="result"))
        self.key = None
        return done

    def give_back(self, _now: float) -> str:
        done = self.tell(c.Release(self.key, token=self.token))
        self.key = None
        return done

    def sleep(self, now: float) -> str:
        self.asleep_until = now + self.chance.choice((5, 60, 600))
        if self.chance.random() < 0.2:
            self.key = None
            return "forgot"
        return "fell asleep"


def simulate(folder, seed: int, steps: int) -> tuple[str, dict[str, int]]:
    """What the ledger's heads are after the run, and what happened how often."""
    bench = Bench(folder)
    chance = random.Random(seed)
    agents = [Agent(bench, f"agent-{n}", chance) for n in range(AGENTS)]
    reviewer = bench.person("ana")
    for _ in range(TASKS):
        bench.add()
    happened: dict[str, int] = {}
    now = 0.0
    for _ in range(steps):
        seconds = chance.choice((0, 0.5, 1, 5, 20))
        bench.advance(seconds)
        now += seconds
        what = chance.choice(agents).step(now)
        happened[what] = happened.get(what, 0) + 1
        if chance.random() < 0.05:
            review(bench, reviewer, chance)
        one_owner_each(bench, agents)
    heads = " ".join(task.head for task in map(bench.task, [f"T-{n + 1}" for n in range(TASKS)]))
    faults = bench.faults()
    bench.close()
    assert faults == ()
    return heads, happened


def review(bench: Bench, reviewer, chance: random.Random) -> None:
    """A person looks at what was handed in, and sends some of it back; and adds nothing herself."""
    for key in (TaskKey(f"T-{n + 1}") for n in range(TASKS)):
        if bench.task(key).state == "review":
            reviewer.do(c.Reject(key, reason="again") if chance.random() < 0.9 else c.Accept(key))
            return


def one_owner_each(bench: Bench, agents: list[Agent]) -> None:
    """Of those who show a token for a task, at most one shows the one that counts."""
    by_key: dict[str, list] = {}
    for agent in agents:
        if agent.key is not None:
            by_key.setdefault(agent.key, []).append(agent.token)
    for key, tokens in by_key.items():
        task = bench.task(key)
        current = [token for token in tokens if task.lease is not None and token == task.token]
        assert len(current) <= 1, (key, tokens)
        assert len(set(tokens)) == len(tokens), (key, tokens)


def test_no_order_of_steps_gives_a_task_two_owners(tmp_path):
    seed = soak.seed()
    _, happened = simulate(tmp_path / "a", seed, soak.times(STEPS, share=0.2, each=0.004))
    print(happened)
    assert happened["claimed taken_over"] > 0
    assert happened["lost"] > 0


def test_the_same_seed_gives_the_same_ledger(tmp_path):
    first, second = (simulate(tmp_path / name, 42, 400) for name in "ab")
    assert first[1] == second[1]
