"""Many agents over the real rules and the real store, in one process, with one seed.

Each agent has a connection of its own. Chance decides who acts next, on what, how long nothing
happens in between, when the wall clock is stepped and when the machine boots; every step is one
transaction. Nothing but the machine is made up, so the same seed gives the same ledger.
"""

from __future__ import annotations

import os
import random
import time

from dibs.board.execute import Board
from dibs.board.facts import task as task_facts
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.model import FINAL, Terms, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND
from dibs.storage.sqlite.store import SqliteStore
from kit import soak
from kit.boards import START, Bench
from kit.history import Answer, Operation, State, after

AGENTS = 12
PEOPLE = 3
TASKS = 16
STEPS = 2_500
TTLS = (30 * SECOND, 300 * SECOND, 7_200 * SECOND)
KNOWN_VERBS = {c.Claim: 5, c.Takeover: 5, c.Renew: 5, c.Release: 10, c.Complete: 1}
"""What the model knows, and how often each is asked."""


class Simulation:
    """A team on a bench. Half of the tasks see only the verbs that the model of `kit.history` knows.

    The model then says what each answer must be: at one instant there is only one.
    """

    def __init__(self, folder, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bench = Bench(folder, uid=f"board-{seed}")
        self.quick(self.bench.store)
        self.team = [self.bench.agent(f"agent-{n}", f"s{n}") for n in range(AGENTS)]
        self.people = [self.bench.person(f"person-{n}") for n in range(PEOPLE)]
        self.boards = {}
        for actor in (*self.team, *self.people):
            store = SqliteStore(str(folder), machine=self.bench.machine)
            self.quick(store)
            self.boards[actor.identity.name] = Board(store, Settings())
        self.keys = [self.bench.add(f"task {n}") for n in range(TASKS)]
        self.model = {key: State() for key in self.keys[: TASKS // 2]}
        self.tokens: dict[tuple[str, str], Token] = {}
        self.requests: list[tuple] = []
        self.refused: dict[str, int] = {}
        self.accepted = 0

    @staticmethod
    def quick(store: SqliteStore) -> None:
        """Nothing is killed here: the disk need not be waited for."""
        store.connection.pragma("synchronous", 0)

    def close(self) -> None:
        for board in self.boards.values():
            board.store.close()
        self.bench.close()

    # One step.

    def step(self) -> None:
        self.let_time_pass()
        if self.requests and self.chance.random() < 0.05:
            self.repeat()
        elif self.chance.random() < 0.5:
            self.by_the_model()
        else:
            self.by_anybody()

    def let_time_pass(self) -> None:
        machine, chance = self.bench.machine, self.chance
        if chance.random() < 0.7:
            machine.advance(chance.choice((0, 0.001, 1, 20, 200)))
        if chance.random() < 0.02:
            machine.wall_us += chance.choice((-1, 1)) * chance.randrange(86_400) * SECOND
        if chance.random() < 0.005:
            machine.reboot()
        if chance.random() < 0.002:
            machine.wall_us = START
            machine.reboot()

    def by_the_model(self) -> None:
        key = self.chance.choice([*self.model])
        actor = self.chance.choice(self.team)
        verb = self.chance.choices([*KNOWN_VERBS], [*KNOWN_VERBS.values()])[0]
        fields = {"ttl": TTLS[0]} if "ttl" in verb.fields else {}
        own = self.tokens.get((actor.identity.name, key))
        if "token" in verb.fields and own and self.chance.random() < 0.5:
            near = self.chance.choices((0, -1, 1), (8, 1, 1))[0]
            fields["token"] = Token(own.epoch, own.number + near)
        now = self.now() * 1_000
        answer = self.carry_out(actor, verb(key, **fields))
        operation = Operation(
            session=actor.identity.session,
            key=key,
            verb=verb.verb,
            stated=fields["token"].number if "token" in fields else None,
            ttl=TTLS[0] * 1_000,
            request="",
            invoked=now,
            returned=now,
            answer=answer,
        )
        then = after(self.model[key], operation)
        assert then, (operation, self.model[key])
        self.model[key] = then[0]
        if then[0].final:
            del self.model[key]
            self.keys.append(self.bench.add("one more"))
            self.model[self.keys[-1]] = State()

    def by_anybody(self) -> None:
        key = self.chance.choice([key for key in self.keys if key not in self.model])
        actor = self.chance.choice((*self.team, *self.people))
        self.carry_out(actor, self.any_command(key, actor))

    def any_command(self, key: str, actor) -> c.Command:
        chance = self.chance
        other = chance.choice((*self.team, *self.people)).identity.name
        ttl = chance.choice((None, *TTLS))
        token = chance.choice((None, self.tokens.get((actor.identity.name, key))))
        why, note = chance.choice(("", "because")), chance.choice(("", "as it is"))
        return chance.choice(
            (
                c.Claim(key, ttl=ttl, reserve=chance.random() < 0.2),
                c.Claim(key, ttl=ttl),
                c.Start(key, ttl=ttl),
                c.Takeover(key, ttl=ttl, reason=why),
                c.Force(key, ttl=ttl, reason=why),
                c.Assign(key, to=other, ttl=ttl, reason=why),
                c.Unassign(key, reason=why),
                c.Renew(key, token=token, ttl=ttl),
                c.Stop(key, token=token),
                c.Release(key, token=token, note=note),
                c.Handoff(key, token=token, to=other, reason=why),
                c.Block(key, token=token, reason=why, keep=chance.random() < 0.5),
                c.Unblock(key, note=note),
                c.Submit(key, token=token, note=note),
                c.Accept(key, note=note),
                c.Reject(key, reason=why),
                c.Complete(key, token=token, note=note),
                c.Fail(key, token=token, reason=why),
                c.Park(key, reason=why),
                c.Unpark(key),
                c.Note(key, note="noted"),
                c.Edit(key, token=token, title=f"title {chance.random()}"),
                c.Scope(key, token=token, add=(f"src/{chance.randrange(3)}",)),
                c.Add(Terms("another"), channel="sim", origin_ask_ref=str(chance.randrange(40))),
            )
        )

    # Asking.

    def carry_out(self, actor, command: c.Command) -> Answer | str:
        """The answer; it is kept, so that it can be asked for again."""
        request = f"r{len(self.requests)}"
        seen = self.seen(actor, command, request)
        self.requests.append((actor, command, request, seen))
        if isinstance(seen, str):
            self.refused[seen] = self.refused.get(seen, 0) + 1
            return seen
        self.accepted += 1
        task, lease = seen.task, seen.task.lease
        if lease and lease.session == actor.identity.session:
            self.tokens[actor.identity.name, task.key] = task.token
        if isinstance(command, c.Add) and task.key not in self.keys:
            self.keys.append(task.key)
        holder = lease and lease.session
        renewals = lease.renewals if lease else 0
        return Answer(task.token.number, holder, task.state in FINAL, renewals)

    def seen(self, actor, command: c.Command, request: str):
        board = self.boards[actor.identity.name]
        try:
            return board.execute(actor.identity, command, request)
        except Refused as problem:
            return problem.code

    def repeat(self) -> None:
        """An old success is repeated, word for word, and changes nothing."""
        actor, command, request, before = self.chance.choice(self.requests)
        if isinstance(before, str):
            return
        events = self.count()
        again = self.seen(actor, command, request)
        assert (again.replayed, again.task, again.entries) == (True, before.task, before.entries)
        assert self.count() == events

    def count(self) -> tuple[int, int]:
        with self.bench.store.read() as tx:
            return tx.count_events()

    def now(self) -> int:
        with self.bench.store.read() as tx:
            return tx.now

    def heads(self) -> list[str]:
        """The end of each chain: of the board's own, and of every task's."""
        with self.bench.store.read() as tx:
            return [tx.board.head, *(tx.task(key).head for key in self.keys)]


def simulate(folder, seed: int, steps: int, monkeypatch) -> tuple[list[str], Simulation]:
    """Every chance is taken from the seed: that of the machine too, of which ids are made."""
    chance = random.Random(f"machine {seed}")
    with monkeypatch.context() as machine:
        machine.setattr(os, "urandom", chance.randbytes)
        machine.setattr(task_facts, "wall_clock", lambda: START)
        simulation = Simulation(folder, seed)
        for _ in range(steps):
            simulation.step()
        heads = simulation.heads()
    return heads, simulation


def test_thousands_of_steps_of_a_team_leave_a_board_that_its_ledger_proves(tmp_path, monkeypatch):
    """Every answer about a modelled task is the one that the model gives; every retry is a replay."""
    seed, begun = soak.seed(), time.monotonic()
    steps = soak.times(STEPS, share=0.2, each=0.0015)
    _, simulation = simulate(tmp_path / "one", seed, steps, monkeypatch)
    faults = simulation.bench.faults()
    simulation.close()
    took = time.monotonic() - begun
    print(f"{steps} steps, {simulation.accepted} accepted, {took:.1f} s")
    print(simulation.refused)
    assert faults == ()
    assert simulation.accepted > steps / 10
    assert {"held", "lease_lost", "wrong_state"} <= set(simulation.refused)


def test_the_same_seed_gives_the_same_ledger_and_another_seed_another(tmp_path, monkeypatch):
    seed = soak.seed()
    heads = {}
    for name, chosen in (("one", seed), ("again", seed), ("other", seed + 1)):
        heads[name], simulation = simulate(tmp_path / name, chosen, 600, monkeypatch)
        simulation.close()
    assert heads["one"] == heads["again"] != heads["other"]
