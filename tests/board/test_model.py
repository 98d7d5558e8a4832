"""A state machine against a model: random commands of several actors, on the real store.

The model is written from the rules, not from the code: a task is a state, a holder, a token and
a deadline. After every step the row must be what the model says, and every refusal the model's.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dibs.board.views import who
from dibs.core import commands as c
from dibs.core.instants import SECOND
from dibs.core.model import TaskKey, Token
from dibs.core.refusals import Refused
from kit.boards import Bench

TASKS = ("T-1", "T-2")
AGENTS = (("codex", "s1"), ("codex", "s2"), ("claude", "s9"))
PEOPLE = (("ana", ""), ("bob", ""))
EVERYBODY = AGENTS + PEOPLE
FINAL = ("complete", "dropped")
TTLS = st.sampled_from([60, 3600])

tasks = st.sampled_from(TASKS)
anybody = st.sampled_from(EVERYBODY)
agents = st.sampled_from(AGENTS)


@dataclass
class Held:
    """A lease in the model."""

    actor: str
    session: str | None
    renewed: int
    ttl: int

    @property
    def until(self) -> int:
        return self.renewed + self.ttl


@dataclass
class Model:
    """A task in the model."""

    state: str = "open"
    held: Held | None = None
    number: int = 0
    attempts: int = 0
    assignee: str | None = None
    author: str | None = None
    parked_by: str | None = None
    once: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Sessions that held it and no longer do."""

    def mine(self, who) -> bool:
        return self.held is not None and (self.held.actor, self.held.session) == who

    def offered(self, who) -> bool:
        return self.held is not None and self.held.session is None and self.held.actor == who[0]

    def others(self, who) -> bool:
        return self.held is not None and not self.mine(who) and not self.offered(who)

    def end(self) -> None:
        if self.held is not None and self.held.session is not None:
            self.once[self.held.actor, self.held.session] = True
        self.held = None


def is_human(name: str) -> bool:
    return name in ("ana", "bob")


class OneOwner(RuleBasedStateMachine):
    """Every command of everybody, in any order, at any time."""

    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="dibs-model-")
        self.bench = Bench(f"{self.folder}/dibs", kind=self.kind)
        self.model = {key: Model() for key in TASKS}
        self.tokens: dict[str, list[Token]] = {key: [] for key in TASKS}
        self.asked: list[tuple] = []
        self.last_instant = 0
        self.requests = 0
        self.origins: dict[str, str] = {}
        self.actors = {
            who: self.bench.person(*who) if is_human(who[0]) else self.bench.agent(*who)
            for who in EVERYBODY
        }
        for _ in TASKS:
            self.bench.add()
        for actor in self.actors.values():
            actor.do(c.Note(TaskKey("T-1"), note="here"))

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            faults = self.bench.faults()
            self.bench.close()
            shutil.rmtree(self.folder)
            assert faults == ()

    # Asking the board, and comparing with what the model expects.

    def now(self) -> int:
        return self.bench.machine.boottime_us

    def live(self, task: Model) -> bool:
        return task.held is not None and self.now() <= task.held.until

    def ask(self, who, command, expected: str | None) -> bool:
        """Does it, and compares. True if it was accepted."""
        before = self.bench.snapshot() if expected else None
        self.requests += 1
        request = f"r{self.requests}"
        try:
            outcome = self.actors[who].do(command, request)
        except Refused as problem:
            assert problem.code == expected, (problem.code, expected, command)
            kept = expected == "lease_lost" and command.verb in ("complete", "fail", "submit")
            if not kept:
                assert self.bench.snapshot() == before
            return False
        assert expected is None, (expected, command)
        self.asked.append((who, command, request, outcome))
        return True

    def begin_lease(self, task: Model, key: str, actor: str, session: str | None, ttl: int) -> None:
        task.end()
        task.number += 1
        task.held = Held(actor, session, self.now(), ttl * SECOND)
        task.assignee = None if session is not None else actor
        token = self.bench.task(key).token
        assert token == Token(1, task.number)
        self.tokens[key].append(token)

    def renew(self, task: Model) -> None:
        task.held.renewed = self.now()

    def gate(self, task: Model, actor: str) -> str | None:
        if task.parked_by is not None:
            return "parked"
        if task.assignee not in (None, actor) and is_human(task.assignee) and not is_human(actor):
            return "assigned_to_another"
        return None

    def to_claim(self, task: Model, who) -> str | None:
        if task.state in FINAL:
            return "final"
        if task.state not in ("open", "in_progress"):
            return "wrong_state"
        if task.mine(who) or task.offered(who):
            return None
        if task.others(who) and self.live(task):
            return "held"
        return self.gate(task, who[0])

    def to_hold(self, task: Model, who, states) -> str | None:
        if task.once.get(who) and not task.mine(who):
            return "lease_lost"
        if task.state not in states:
            return "final" if task.state in FINAL else "wrong_state"
        if task.offered(who):
            return "not_bound"
        if task.others(who):
            return "held"
        return None if task.held else "not_held"

    # The rules.

    @rule(key=tasks, who=anybody, ttl=TTLS, reserve=st.booleans())
    def claim(self, key, who, ttl, reserve) -> None:
        task = self.model[key]
        expected = self.to_claim(task, who)
        if not self.ask(who, c.Claim(TaskKey(key), ttl=ttl * SECOND, reserve=reserve), expected):
            return
        self.taken(task, key, who, ttl, start=not reserve)

    @rule(key=tasks, who=anybody, ttl=TTLS)
    def takeover(self, key, who, ttl) -> None:
        task = self.model[key]
        if self.ask(who, c.Takeover(TaskKey(key), ttl=ttl * SECOND), self.to_claim(task, who)):
            self.taken(task, key, who, ttl, start=True)

    @rule(key=tasks, who=anybody, ttl=TTLS)
    def start(self, key, who, ttl) -> None:
        task = self.model[key]
        if self.ask(who, c.Start(TaskKey(key), ttl=ttl * SECOND), self.to_claim(task, who)):
            self.taken(task, key, who, ttl, start=True)

    def taken(self, task: Model, key: str, who, ttl: int, *, start: bool) -> None:
        if task.mine(who) or task.offered(who):
            task.held.session, task.held.ttl, task.assignee = who[1], ttl * SECOND, None
            self.renew(task)
        else:
            task.attempts += task.state == "in_progress"
            self.begin_lease(task, key, who[0], who[1], ttl)
        if start and task.state == "open":
            task.state = "in_progress"
            task.attempts += 1

    @rule(key=tasks, who=anybody)
    def force(self, key, who) -> None:
        task = self.model[key]
        expected = None if is_human(who[0]) else "people_only"
        if expected is None and task.state not in ("open", "in_progress"):
            expected = "final" if task.state in FINAL else "wrong_state"
        own = task.mine(who) or task.offered(who)
        if expected is None and not own and task.parked_by is not None:
            expected = "parked"
        if self.ask(who, c.Force(TaskKey(key), ttl=3600 * SECOND, reason="now"), expected):
            self.taken(task, key, who, 3600, start=True)

    @rule(key=tasks, who=anybody, to=st.sampled_from(["codex", "claude", "ana"]))
    def assign(self, key, who, to) -> None:
        task = self.model[key]
        expected = None
        if task.state in FINAL:
            expected = "final"
        elif task.state not in ("open", "in_progress"):
            expected = "wrong_state"
        elif self.live(task):
            expected = "held"
        else:
            expected = self.gate(task, to)
        if self.ask(who, c.Assign(TaskKey(key), to=to, ttl=60 * SECOND), expected):
            task.attempts += task.state == "in_progress"
            self.begin_lease(task, key, to, None, 60)

    @rule(key=tasks, who=anybody, to=st.sampled_from(["codex", "claude", "ana"]))
    def handoff(self, key, who, to) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("open", "in_progress")) or self.gate(task, to)
        if self.ask(who, c.Handoff(TaskKey(key), to=to, ttl=60 * SECOND), expected):
            self.begin_lease(task, key, to, None, 60)

    @rule(key=tasks, who=anybody)
    def unassign(self, key, who) -> None:
        task = self.model[key]
        expected = None
        if task.state in FINAL:
            expected = "final"
        elif task.held is not None and task.held.session is not None:
            expected = "bound"
        elif task.held is None and task.assignee is None:
            expected = "not_assigned"
        elif task.others(who) and self.live(task) and not is_human(who[0]):
            expected = "people_only"
        if self.ask(who, c.Unassign(TaskKey(key), reason="changed"), expected):
            task.end()
            task.assignee = None
            task.state = "open" if task.state == "in_progress" else task.state

    @rule(key=tasks, who=anybody)
    def renew_it(self, key, who) -> None:
        task = self.model[key]
        if self.ask(
            who, c.Renew(TaskKey(key)), self.to_hold(task, who, ("open", "in_progress", "blocked"))
        ):
            self.renew(task)

    @rule(key=tasks, who=anybody)
    def stop(self, key, who) -> None:
        task = self.model[key]
        if self.ask(who, c.Stop(TaskKey(key)), self.to_hold(task, who, ("in_progress",))):
            self.renew(task)

    @rule(key=tasks, who=anybody, text=st.sampled_from(["", "result"]))
    def complete(self, key, who, text) -> None:
        self.finish(key, who, c.Complete(TaskKey(key), note=text), "complete")

    @rule(key=tasks, who=anybody)
    def fail(self, key, who) -> None:
        self.finish(key, who, c.Fail(TaskKey(key), reason="no luck"), "failed")

    @rule(key=tasks, who=anybody)
    def submit(self, key, who) -> None:
        if self.finish(key, who, c.Submit(TaskKey(key)), "review"):
            self.model[key].author = who[0]

    def finish(self, key, who, command, state) -> bool:
        task = self.model[key]
        was_open = task.state == "open"
        if not self.ask(who, command, self.to_hold(task, who, ("open", "in_progress"))):
            return False
        task.attempts += was_open and command.verb != "fail"
        task.end()
        task.state = state
        return True

    @rule(key=tasks, who=anybody)
    def release(self, key, who) -> None:
        task = self.model[key]
        expected = "held" if task.others(who) and not task.once.get(who) else None
        if self.ask(who, c.Release(TaskKey(key)), expected):
            if task.mine(who) or task.offered(who):
                task.end()
                task.assignee = None
                task.state = "blocked" if task.state == "blocked" else "open"
            elif task.held is None and task.assignee == who[0]:
                task.assignee = None

    @rule(key=tasks, who=anybody, keep=st.booleans())
    def block(self, key, who, keep) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("open", "in_progress"))
        if expected == "not_held":
            expected = None
        if self.ask(who, c.Block(TaskKey(key), reason="waits", keep=keep), expected):
            if keep and task.mine(who):
                self.renew(task)
            else:
                task.end()
            task.state = "blocked"

    @rule(key=tasks, who=anybody)
    def unblock(self, key, who) -> None:
        task = self.model[key]
        expected = None
        if task.state != "blocked":
            expected = "final" if task.state in FINAL else "wrong_state"
        elif task.others(who) and not is_human(who[0]):
            expected = "held"
        if self.ask(who, c.Unblock(TaskKey(key)), expected):
            task.state = "open"
            if task.mine(who):
                self.renew(task)

    @rule(key=tasks, who=anybody, yes=st.booleans())
    def review(self, key, who, yes) -> None:
        task = self.model[key]
        expected = None
        if task.state != "review":
            expected = "final" if task.state in FINAL else "wrong_state"
        elif yes and task.author == who[0]:
            expected = "own_review"
        command = c.Accept(TaskKey(key)) if yes else c.Reject(TaskKey(key), reason="no")
        if self.ask(who, command, expected):
            task.state = "complete" if yes else "open"

    @precondition(lambda self: all(task.state not in FINAL for task in self.model.values()))
    @rule(key=tasks, who=anybody)
    def drop(self, key, who) -> None:
        task = self.model[key]
        expected = "people_only" if task.others(who) and not is_human(who[0]) else None
        if self.ask(who, c.Drop(TaskKey(key), reason="not wanted"), expected):
            task.end()
            task.assignee = None
            task.state = "dropped"

    @rule(key=tasks, who=anybody)
    def park(self, key, who) -> None:
        task = self.model[key]
        if self.ask(who, c.Park(TaskKey(key)), "final" if task.state in FINAL else None):
            task.parked_by = task.parked_by or who[0]
            if task.mine(who):
                self.renew(task)

    @rule(key=tasks, who=anybody)
    def unpark(self, key, who) -> None:
        task = self.model[key]
        expected = "final" if task.state in FINAL else None
        if expected is None and task.parked_by not in (None, who[0]) and not is_human(who[0]):
            expected = "not_yours_to_unpark"
        if self.ask(who, c.Unpark(TaskKey(key)), expected):
            task.parked_by = None
            if task.mine(who):
                self.renew(task)

    @rule(key=tasks, who=anybody)
    def note(self, key, who) -> None:
        self.ask(who, c.Note(TaskKey(key), note="progress"), None)
        if self.model[key].mine(who):
            self.renew(self.model[key])

    @rule(key=tasks, who=anybody, title=st.sampled_from(["one", "two"]))
    def edit(self, key, who, title) -> None:
        self.change(key, who, c.Edit(TaskKey(key), title=title))

    @rule(key=tasks, who=anybody, path=st.sampled_from(["src/**", "docs"]))
    def scope(self, key, who, path) -> None:
        self.change(key, who, c.Scope(TaskKey(key), add=(f"{key}/{path}",)))

    def change(self, key, who, command) -> None:
        task = self.model[key]
        expected = "final" if task.state in FINAL else None
        if expected is None and task.others(who) and not is_human(who[0]):
            expected = "held"
        if self.ask(who, command, expected) and task.mine(who):
            self.renew(task)

    @rule(key=tasks, who=agents, verb=st.sampled_from([c.Complete, c.Release, c.Stop, c.Submit]))
    def a_subagent_ends_nothing(self, key, who, verb) -> None:
        child = self.bench.agent(who[0], f"{who[1]}/sub")
        before = self.bench.snapshot()
        assert child.refused(verb(TaskKey(key))) == "parent_only"
        assert self.bench.snapshot() == before

    @rule(key=tasks, who=agents)
    def a_subagent_renews(self, key, who) -> None:
        task = self.model[key]
        child = self.bench.agent(who[0], f"{who[1]}/sub")
        expected = self.to_hold(task, who, ("open", "in_progress", "blocked"))
        if expected:
            assert child.refused(c.Renew(TaskKey(key))) == expected
        else:
            child.do(c.Renew(TaskKey(key)))
            self.renew(task)

    @rule(channel=st.sampled_from(["mail", "github"]))
    def one_origin_is_one_task(self, channel) -> None:
        command = c.Add(self.bench.terms("asked"), channel=channel, origin_ask_ref="1")
        key = self.actors["ana", ""].do(command).task.key
        assert self.origins.setdefault(channel, key) == key

    # What the world does.

    @rule(seconds=st.sampled_from([0, 1, 59, 60, 61, 3600, 3601]))
    def time_passes(self, seconds) -> None:
        self.bench.advance(seconds)

    @rule(seconds=st.integers(-10_000_000, 10_000_000))
    def somebody_sets_the_wall_clock(self, seconds) -> None:
        """18: a step of the wall clock changes no lease's remaining time."""
        self.bench.machine.wall_us += seconds * SECOND

    @rule(data=st.data())
    def an_old_request_is_sent_again(self, data) -> None:
        """23, 27: the same answer, the current owner beside it, and nothing changes."""
        if not self.asked:
            return
        sent, command, request, outcome = data.draw(st.sampled_from(self.asked))
        before = self.bench.snapshot()
        again = self.actors[sent].do(command, request)
        assert (again.task, again.entries, again.replayed) == (outcome.task, outcome.entries, True)
        assert again.current == self.bench.task(outcome.task.key)
        assert self.bench.snapshot() == before

    @rule(data=st.data(), who=anybody)
    def an_old_id_is_used_for_something_else(self, data, who) -> None:
        """24: refused, and nothing changes."""
        mine = [asked for asked in self.asked if asked[0] == who]
        if not mine:
            return
        _, command, request, _ = data.draw(st.sampled_from(mine))
        before = self.bench.snapshot()
        other = c.Note(TaskKey("T-2"), note="something else")
        assert other != command
        assert self.actors[who].refused(other, request) == "request_reused"
        assert self.bench.snapshot() == before

    @rule(data=st.data(), key=tasks, who=anybody)
    def an_old_token_is_stated(self, data, key, who) -> None:
        """3, 5, 6: a token that is not current changes nothing."""
        current = self.model[key]
        old = [t for t in self.tokens[key] if t.number < current.number or current.held is None]
        if not old:
            return
        token = data.draw(st.sampled_from(old))
        before = self.bench.snapshot()
        for command in (c.Renew(TaskKey(key), token=token), c.Release(TaskKey(key), token=token)):
            assert self.actors[who].refused(command) == "lease_lost"
        assert (
            self.actors[who].refused(c.Stop(TaskKey(key), token=Token(1, current.number + 1)))
            == "token_ahead"
        )
        assert self.bench.snapshot() == before

    # What must always be so.

    @invariant()
    def the_rows_are_what_the_model_says(self) -> None:
        if not hasattr(self, "bench"):
            return
        with self.bench.store.read() as tx:
            names = {actor.id: actor.name for actor in tx.actors().values()}
            for key, task in self.model.items():
                row = tx.task(key)
                assert (row.state, row.attempts, row.token.number) == (
                    task.state,
                    task.attempts,
                    task.number,
                )
                assert names.get(row.assignee) == task.assignee
                assert names.get(row.parked_by) == task.parked_by
                if task.held is None:
                    assert row.lease is None
                else:
                    lease = row.lease
                    assert (names[lease.actor], lease.session) == (
                        task.held.actor,
                        task.held.session,
                    )
                    assert lease.ttl == task.held.ttl
                    assert lease.live(tx.now) == self.live(task)
                    assert lease.expires == lease.renewed + lease.ttl

    @invariant()
    def instants_never_fall_and_tokens_are_never_given_twice(self) -> None:
        if not hasattr(self, "bench"):
            return
        now = self.bench.now()
        assert now >= self.last_instant
        self.last_instant = now
        for given in self.tokens.values():
            assert given == sorted(set(given))

    @invariant()
    def who_says_what_the_row_says(self) -> None:
        if not hasattr(self, "bench"):
            return
        for key, task in self.model.items():
            owner = who(self.bench.board, TaskKey(key))
            assert (owner.actor.name if owner.actor else None) == (
                task.held.actor if task.held else None
            )
            assert owner.expired == (task.held is not None and not self.live(task))


class OneOwnerOnAServer(OneOwner):
    """The same on PostgreSQL."""

    kind = "postgres"


OneOwner.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
OneOwnerOnAServer.TestCase.settings = settings(
    OneOwner.TestCase.settings, max_examples=8, stateful_step_count=30
)
TestOneOwner = OneOwner.TestCase
TestOneOwnerOnAServer = OneOwnerOnAServer.TestCase
