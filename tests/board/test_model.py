"""A state machine against a model: random commands of several actors, on the real store.

The model is written from the rules, not from the code: a task is a state, a holder, a token, a
deadline, and what it waits for. After every step the row must be what the model says, and every
refusal the model's.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dibs.board.queries import who
from dibs.domain import commands as c
from dibs.domain.model import Process, TaskKey, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND
from dibs.workers.next import next_task
from dibs.workers.sweep import sweep
from kit import soak
from kit.boards import Bench

TASKS = ("T-1", "T-2", "T-3")
AGENTS = (("codex", "s1"), ("codex", "s2"), ("claude", "s9"))
PEOPLE = (("ana", ""), ("bob", ""))
EVERYBODY = AGENTS + PEOPLE
FINAL = ("complete", "dropped")
TELLS = ("complete", "submit", "fail", "block", "release", "handoff")
"""Verbs of which a former holder's text is kept, although they are refused."""
TEXTS = st.sampled_from(["", "result", "another"])
TTLS = st.sampled_from([60, 3600])
MAX_ATTEMPTS = 3
GRACE = 30
WEEK, TWO_HOURS = 7 * 86_400, 7_200

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
    suspect: int | None = None
    works: bool = False
    """A stint is open."""

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
    preferred: str | None = None
    rests: int = 0
    after: set[str] = field(default_factory=set)
    shared: bool = False
    """Its scope overlaps with that of every other task that has this."""
    most: int = MAX_ATTEMPTS
    once: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Sessions that held it and no longer do."""
    last: tuple[tuple[str, str], str, str] | None = None
    """Who gave it up by which verb with which text, until anything else moves it."""

    def mine(self, who) -> bool:
        return self.held is not None and (self.held.actor, self.held.session) == who

    def offered(self, who) -> bool:
        return self.held is not None and self.held.session is None and self.held.actor == who[0]

    def others(self, who) -> bool:
        return self.held is not None and not self.mine(who) and not self.offered(who)

    def repeats(self, who, verb: str) -> bool:
        """The caller did the same with it before, and it is as that left it."""
        return self.last is not None and self.last[:2] == (who, verb)

    def given_up(self, who, command, state: str) -> None:
        """Its holder ends its lease, by its own verb."""
        was_held = self.mine(who)
        self.end()
        self.state = state
        self.last = (who, command.verb, text_of(command)) if was_held else None

    def end(self) -> None:
        self.last = None
        if self.held is not None and self.held.session is not None:
            self.once[self.held.actor, self.held.session] = True
        self.held = None

    def begin_anew(self) -> None:
        """As if nobody had ever worked on it."""
        self.end()
        self.state, self.attempts, self.rests = "open", 0, 0
        self.assignee = self.author = self.preferred = None

    def give_up_or_open(self) -> None:
        """Its lease is ended by the board."""
        unbound = self.held.session is None and not is_human(self.held.actor)
        self.end()
        self.assignee = None if unbound else self.assignee
        if self.state == "in_progress":
            self.state = "failed" if self.attempts >= self.most else "open"


def is_human(name: str) -> bool:
    return name in ("ana", "bob")


def text_of(command) -> str:
    """What a former holder wrote; what it needs to be kept as a note."""
    return getattr(command, "note", "") or getattr(command, "reason", "")


REPEATED = {kind.verb: kind for kind in (c.Complete, c.Submit, c.Fail, c.Drop, c.Release)}
"""What a holder may give again when its answer was lost."""


def unasked(snapshot: dict[str, list]) -> dict[str, list]:
    """Without the answers that are kept: a server keeps one for every request, for whoever asks again."""
    return {table: rows for table, rows in snapshot.items() if table != "request"}


class OneOwner(RuleBasedStateMachine):
    """Every command of everybody, in any order, at any time."""

    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="dibs-model-")
        self.bench = Bench(f"{self.folder}/dibs", kind=self.kind)
        self.model = {key: Model() for key in TASKS}
        self.tokens: dict[str, list[Token]] = {key: [] for key in TASKS}
        self.history: list[tuple] = []
        self.last_instant = 0
        self.request_number = 0
        self.paused = False
        self.workers = 0
        self.processes: dict[tuple[str, str], int] = {}
        """Sessions that are tied to a process."""
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

    def attempt(self, who, command, expected: str | None) -> bool:
        """Does it, and compares. True if it was accepted."""
        before = self.bench.snapshot() if expected else None
        self.request_number += 1
        request = f"r{self.request_number}"
        try:
            outcome = self.actors[who].do(command, request)
        except Refused as problem:
            assert problem.code == expected, (problem.code, expected, command)
            if expected == "lease_lost" and command.verb in TELLS and text_of(command):
                self.a_note_is_kept(command, before, late=command.verb)
            else:
                assert self.bench.snapshot() == before
            return False
        assert expected is None, (expected, command)
        if outcome.task is not None and not outcome.keys:
            self.history.append((who, command, request, outcome))
        return True

    def a_note_is_kept(self, command, before, *, late: str) -> None:
        """One event, one text, and nothing else of the task changes."""
        after, key = self.bench.snapshot(), command.task
        assert len(after["event"]) == len(before["event"]) + 1
        assert len(after["note"]) == len(before["note"]) + 1
        assert after["ended_lease"] == before["ended_lease"]
        event = self.bench.events(key)[-1].event
        assert (event.verb, event.late) == ("noted", late)
        with self.bench.store.read() as tx:
            assert tx.notes(tx.task(key).id)[-1].text == text_of(command)

    def repeat(self, task: Model, who, command) -> None:
        """What its own holder did last: the same success, and a new text is kept as a note."""
        before = self.bench.snapshot()
        outcome = self.actors[who].do(command)
        assert outcome.task.state == task.state
        assert outcome.repeats is not None
        if text_of(command) in ("", task.last[2]):
            assert unasked(self.bench.snapshot()) == unasked(before)
        else:
            self.a_note_is_kept(command, before, late="")

    def dead(self, task: Model) -> bool:
        """The process behind its lease is gone."""
        held = task.held
        pid = held and self.processes.get((held.actor, held.session))
        return pid in self.bench.machine.dead

    def lives(self, task: Model) -> bool:
        held = task.held
        return (held.actor, held.session) in self.processes and not self.dead(task)

    def waits(self, task: Model) -> bool:
        return any(self.model[key].state != "complete" for key in task.after)

    def in_the_way(self, task: Model, actor: str, session: str | None) -> bool:
        """A live lease of another session has paths that the task may touch."""
        if not task.shared:
            return False
        for other in self.model.values():
            if other is task or not other.shared or not self.live(other):
                continue
            own = other.held.actor == actor
            if not (own and (session is None or other.held.session in (None, session))):
                return True
        return False

    def late(self, task: Model, who) -> bool:
        """Its own lease has expired, and somebody came into its scope."""
        return task.mine(who) and not self.live(task) and self.in_the_way(task, *who)

    def below(self, key: str) -> list[str]:
        """All that depends on a task, over any number of steps."""
        found = [key]
        for at in found:
            found += [k for k, task in self.model.items() if at in task.after and k not in found]
        return found[1:]

    def begin_lease(self, task: Model, key: str, actor: str, session: str | None, ttl: int) -> None:
        task.end()
        task.number += 1
        task.held = Held(actor, session, self.now(), ttl * SECOND)
        task.assignee = None if session is not None else actor
        task.preferred, task.rests = None, 0
        token = self.bench.task(key).token
        assert token == Token(1, task.number)
        self.tokens[key].append(token)

    def renew(self, task: Model) -> None:
        task.held.renewed, task.held.suspect = self.now(), None

    def renew_if_free(self, task: Model, who) -> None:
        """A verb that nobody is refused renews a lease that has expired only if its scope is free."""
        if task.mine(who) and not self.late(task, who):
            self.renew(task)

    def gate(self, task: Model, actor: str, session: str | None, *, forced: bool = False):
        if self.waits(task):
            return "waits"
        if task.parked_by is not None:
            return "parked"
        person = task.assignee not in (None, actor) and is_human(task.assignee)
        if person and not is_human(actor) and not forced:
            return "assigned_to_another"
        return "scope_held" if self.in_the_way(task, actor, session) else None

    def to_go_on(self, task: Model, who, *, start: bool) -> str | None:
        """The caller's own lease: it is renewed, or taken up; and started, if that is asked."""
        renews = not self.live(task) or task.offered(who)
        if renews and self.in_the_way(task, *who):
            return "scope_held"
        return "waits" if start and task.state == "open" and self.waits(task) else None

    def to_claim(self, task: Model, who, *, start: bool = True) -> str | None:
        if task.state in FINAL:
            return "final"
        if task.state not in ("open", "in_progress"):
            return "wrong_state"
        if task.mine(who) or task.offered(who):
            return self.to_go_on(task, who, start=start)
        if task.others(who) and self.live(task) and not self.dead(task):
            return "held"
        return self.gate(task, *who)

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
        expected = self.to_claim(task, who, start=not reserve)
        if not self.attempt(
            who, c.Claim(TaskKey(key), ttl=ttl * SECOND, reserve=reserve), expected
        ):
            return
        self.taken(task, key, who, ttl, start=not reserve)

    @rule(key=tasks, who=anybody, ttl=TTLS)
    def takeover(self, key, who, ttl) -> None:
        task = self.model[key]
        if self.attempt(who, c.Takeover(TaskKey(key), ttl=ttl * SECOND), self.to_claim(task, who)):
            self.taken(task, key, who, ttl, start=True)

    @rule(key=tasks, who=anybody, ttl=TTLS)
    def start(self, key, who, ttl) -> None:
        task = self.model[key]
        if self.attempt(who, c.Start(TaskKey(key), ttl=ttl * SECOND), self.to_claim(task, who)):
            self.taken(task, key, who, ttl, start=True)

    def taken(self, task: Model, key: str, who, ttl: int, *, start: bool) -> None:
        """A person who begins to work stops working on everything else."""
        worked = task.mine(who) and task.held.works
        works = worked or start or (task.state == "in_progress" and not task.mine(who))
        self.held_anew(task, key, who, ttl, start=start)
        if works and not worked and is_human(who[0]):
            for other in self.model.values():
                if other.held is not None and other.held.actor == who[0]:
                    other.held.works = False
        task.held.works = works

    def held_anew(self, task: Model, key: str, who, ttl: int, *, start: bool) -> None:
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
        if expected is None and (task.mine(who) or task.offered(who)):
            expected = self.to_go_on(task, who, start=True)
        elif expected is None:
            expected = self.gate(task, *who, forced=True)
        if self.attempt(who, c.Force(TaskKey(key), ttl=3600 * SECOND, reason="now"), expected):
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
            expected = self.gate(task, to, None)
        if self.attempt(who, c.Assign(TaskKey(key), to=to, ttl=60 * SECOND), expected):
            task.attempts += task.state == "in_progress"
            self.begin_lease(task, key, to, None, 60)

    @rule(key=tasks, who=anybody, to=st.sampled_from(["codex", "claude", "ana"]), text=TEXTS)
    def handoff(self, key, who, to, text) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("open", "in_progress"))
        expected = expected or self.gate(task, to, None)
        command = c.Handoff(TaskKey(key), to=to, ttl=60 * SECOND, note=text)
        if self.attempt(who, command, expected):
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
        if self.attempt(who, c.Unassign(TaskKey(key), reason="changed"), expected):
            task.end()
            task.assignee = None
            task.state = "open" if task.state == "in_progress" else task.state

    @rule(key=tasks, who=anybody)
    def renew_it(self, key, who) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("open", "in_progress", "blocked"))
        if self.attempt(who, c.Renew(TaskKey(key)), expected or self.if_late(task, who)):
            self.renew(task)

    def if_late(self, task: Model, who) -> str | None:
        return "scope_held" if self.late(task, who) else None

    @rule(key=tasks, who=anybody)
    def stop(self, key, who) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("in_progress",)) or self.if_late(task, who)
        if self.attempt(who, c.Stop(TaskKey(key)), expected):
            self.renew(task)
            task.held.works = False

    @rule(key=tasks, who=anybody, text=TEXTS)
    def complete(self, key, who, text) -> None:
        self.finish(key, who, c.Complete(TaskKey(key), note=text), "complete")

    @rule(key=tasks, who=anybody, text=st.sampled_from(["no luck", "another"]))
    def fail(self, key, who, text) -> None:
        self.finish(key, who, c.Fail(TaskKey(key), reason=text), "failed")

    @rule(key=tasks, who=anybody, text=TEXTS)
    def submit(self, key, who, text) -> None:
        if self.finish(key, who, c.Submit(TaskKey(key), note=text), "review"):
            self.model[key].author = who[0]

    def finish(self, key, who, command, state) -> bool:
        task = self.model[key]
        if task.repeats(who, command.verb):
            self.repeat(task, who, command)
            return False
        was_open = task.state == "open"
        expected = self.to_hold(task, who, ("open", "in_progress"))
        if expected is None and was_open and command.verb != "fail" and self.waits(task):
            expected = "waits"
        if not self.attempt(who, command, expected):
            return False
        task.attempts += was_open and command.verb != "fail"
        task.given_up(who, command, state)
        return True

    @rule(key=tasks, who=anybody, rest=st.sampled_from([None, 60]), text=TEXTS)
    def release(self, key, who, rest, text) -> None:
        """With a rest it was a try that did not succeed: the last one fails the task."""
        task = self.model[key]
        command = c.Release(TaskKey(key), note=text, rest=rest and rest * SECOND)
        if task.repeats(who, "release"):
            self.repeat(task, who, command)
            return
        expected = "held" if task.others(who) and not task.once.get(who) else None
        if self.attempt(who, command, expected):
            if task.mine(who) or task.offered(who):
                tried = rest is not None and task.state == "in_progress"
                failed = tried and task.attempts >= task.most
                left = "blocked" if task.state == "blocked" else "open"
                task.attempts -= rest is None and task.state == "in_progress"
                task.given_up(who, command, "failed" if failed else left)
                task.assignee = None
                rests = rest is not None and task.state != "failed"
                task.rests = self.now() + rest * SECOND if rests else 0
            elif task.held is None and task.assignee == who[0]:
                task.assignee, task.rests, task.last = None, 0, None

    @rule(key=tasks, who=anybody, keep=st.booleans())
    def block(self, key, who, keep) -> None:
        task = self.model[key]
        expected = self.to_hold(task, who, ("open", "in_progress"))
        if expected == "not_held":
            expected = None
        if expected is None and keep:
            expected = self.if_late(task, who)
        if self.attempt(who, c.Block(TaskKey(key), reason="waits", keep=keep), expected):
            if keep and task.mine(who):
                task.held.works = False
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
        elif task.offered(who):
            expected = "scope_held" if self.in_the_way(task, *who) else None
        else:
            expected = self.if_late(task, who)
        if self.attempt(who, c.Unblock(TaskKey(key)), expected):
            task.state, task.last = "open", None
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
        if self.attempt(who, command, expected):
            task.state, task.last = "complete" if yes else "open", None
            if not yes:
                task.preferred, task.author = task.author, None

    def may_be_dropped(self, key: str) -> bool:
        """Few tasks are enough to go on with."""
        task = self.model[key]
        return task.state == "dropped" or all(t.state not in FINAL for t in self.model.values())

    @rule(key=tasks, who=anybody, text=st.sampled_from(["not wanted", "another"]))
    def drop(self, key, who, text) -> None:
        task, command = self.model[key], c.Drop(TaskKey(key), reason=text)
        if task.repeats(who, "drop"):
            self.repeat(task, who, command)
            return
        if not self.may_be_dropped(key):
            return
        expected = "people_only" if task.others(who) and not is_human(who[0]) else None
        expected = "final" if task.state in FINAL else expected
        if self.attempt(who, command, expected):
            task.given_up(who, command, "dropped")
            task.assignee = None

    @precondition(lambda self: any(task.last for task in self.model.values()))
    @rule(data=st.data(), text=st.sampled_from(["result", "no luck"]), stated=st.booleans())
    def an_answer_is_lost(self, data, text, stated) -> None:
        """Its holder gives the same verb again, with its token or without."""
        key = data.draw(st.sampled_from([key for key, task in self.model.items() if task.last]))
        who, verb, _ = self.model[key].last
        named = {"reason" if verb in ("fail", "drop") else "note": text}
        if stated:
            named["token"] = Token(1, self.model[key].number)
        self.repeat(self.model[key], who, REPEATED[verb](TaskKey(key), **named))

    @rule(key=tasks, who=anybody)
    def park(self, key, who) -> None:
        task = self.model[key]
        if self.attempt(who, c.Park(TaskKey(key)), "final" if task.state in FINAL else None):
            task.parked_by = task.parked_by or who[0]
            self.renew_if_free(task, who)

    @rule(key=tasks, who=anybody)
    def unpark(self, key, who) -> None:
        task = self.model[key]
        expected = "final" if task.state in FINAL else None
        if expected is None and task.parked_by not in (None, who[0]) and not is_human(who[0]):
            expected = "not_yours_to_unpark"
        if self.attempt(who, c.Unpark(TaskKey(key)), expected):
            task.parked_by = None
            self.renew_if_free(task, who)

    @rule(key=tasks, who=anybody)
    def note(self, key, who) -> None:
        self.attempt(who, c.Note(TaskKey(key), note="progress"), None)
        self.renew_if_free(self.model[key], who)

    @rule(key=tasks, who=anybody, title=st.sampled_from(["one", "two"]))
    def edit(self, key, who, title) -> None:
        self.change(key, who, c.Edit(TaskKey(key), title=title))

    @rule(key=tasks, who=anybody, path=st.sampled_from(["src/**", "docs"]))
    def scope(self, key, who, path) -> None:
        self.change(key, who, c.Scope(TaskKey(key), add=(f"{key}/{path}",)))

    @rule(key=tasks, who=anybody, path=st.sampled_from(["src/**", "src/a*", "src/**/*.py"]))
    def scope_that_overlaps(self, key, who, path) -> None:
        """What is added to the scope of a task that is held must be free for its holder."""
        task = self.model[key]
        wider, was = self.to_change(task, who), task.shared
        task.shared = True
        if wider is None and self.live(task) and not self.dead(task):
            holder = (task.held.actor, task.held.session)
            wider = "scope_held" if self.in_the_way(task, *holder) else None
        wider = wider or self.if_late(task, who)
        if not self.attempt(who, c.Scope(TaskKey(key), add=(path,)), wider):
            task.shared = was
        elif task.mine(who):
            self.renew(task)

    def to_change(self, task: Model, who) -> str | None:
        if task.state in FINAL:
            return "final"
        return "held" if task.others(who) and not is_human(who[0]) else None

    def change(self, key, who, command) -> bool:
        task = self.model[key]
        expected = self.to_change(task, who)
        if expected is None:
            offered = task.offered(who) and self.in_the_way(task, *who)
            expected = "scope_held" if offered else self.if_late(task, who)
        accepted = self.attempt(who, command, expected)
        if accepted and task.mine(who):
            self.renew(task)
        return accepted

    # What waits for what, and what is offered.

    @rule(key=tasks, who=anybody, on=tasks)
    def depend(self, key, who, on) -> None:
        task = self.model[key]
        if self.to_change(task, who) is None and (on == key or on in self.below(key)):
            self.attempt(who, c.Depend(TaskKey(key), on=(TaskKey(on),)), "cycle")
        elif self.change(key, who, c.Depend(TaskKey(key), on=(TaskKey(on),))):
            task.after.add(on)

    @rule(key=tasks, who=anybody, on=tasks)
    def depend_no_more(self, key, who, on) -> None:
        if self.change(key, who, c.Depend(TaskKey(key), not_on=(TaskKey(on),))):
            self.model[key].after.discard(on)

    def is_ready(self, task: Model) -> bool:
        return (
            (task.state, task.held, task.parked_by, task.assignee) == ("open", None, None, None)
            and not self.waits(task)
            and task.rests <= self.now()
        )

    def first_offer(self, who) -> str | None:
        """What is assigned to the caller, what came back to it, then the rest, by age."""
        mine = [
            key
            for key, task in self.model.items()
            if task.assignee == who[0]
            and (task.held is None or task.held.session is None)
            and not self.waits(task)
        ]
        ready = [key for key, task in self.model.items() if self.is_ready(task)]
        back = [key for key in ready if self.model[key].preferred == who[0]]
        return next(
            (key for key in mine + back + ready if self.to_claim(self.model[key], who) is None),
            None,
        )

    @rule(who=anybody, sweeps=st.booleans())
    def next(self, who, sweeps) -> None:
        """By itself, or as it is typed: a sweep comes first."""
        if sweeps:
            self.swept(GRACE)
        key = None if self.paused else self.first_offer(who)
        expected = "paused" if self.paused else None if key else "nothing_ready"
        command = c.Next(ttl=60 * SECOND)
        try:
            if sweeps:
                outcome = next_task(self.bench.board, self.actors[who].identity, command)
            else:
                outcome = self.actors[who].do(command)
        except Refused as problem:
            assert problem.code == expected
            return
        assert (outcome.task.key, None) == (key, expected)
        self.taken(self.model[key], key, who, 60, start=True)

    @rule(who=anybody)
    def pause(self, who) -> None:
        self.attempt(who, c.Pause(reason="release day"), None)
        self.paused = True

    @rule(who=anybody)
    def resume(self, who) -> None:
        self.attempt(who, c.Resume(), None)
        self.paused = False

    # Who died, and what was left.

    @rule(key=tasks, ttl=TTLS, reserve=st.booleans())
    def a_worker_claims(self, key, ttl, reserve) -> None:
        """A new session that is tied to a process, as that of a `dibs run`."""
        self.workers += 1
        who = ("worker", f"w{self.workers}")
        machine = self.bench.machine
        process = Process(machine.boot_id, machine.space, 1_000 + self.workers, 7)
        self.actors[who] = self.bench.agent(*who, process=process)
        task = self.model[key]
        expected = self.to_claim(task, who, start=not reserve)
        if self.attempt(who, c.Claim(TaskKey(key), ttl=ttl * SECOND, reserve=reserve), expected):
            self.processes[who] = process.pid
            self.taken(task, key, who, ttl, start=not reserve)

    @rule(key=tasks)
    def a_worker_dies(self, key) -> None:
        held = self.model[key].held
        pid = held and self.processes.get((held.actor, held.session))
        if pid:
            self.bench.machine.dead.add(pid)

    @rule(grace=st.sampled_from([0, GRACE]), who=anybody)
    def sweep(self, grace, who) -> None:
        self.swept(grace)
        sweep(self.bench.board, self.actors[who].identity, grace * SECOND)

    def swept(self, grace: int) -> None:
        """The dead at once; what has expired is suspected first, and ended a grace later."""
        for task in self.model.values():
            if task.held is None:
                continue
            if self.dead(task):
                task.give_up_or_open()
            elif self.live(task):
                continue
            elif task.held.suspect is None:
                task.held.suspect = self.now()
            else:
                more = task.held.ttl if self.lives(task) else 0
                if self.now() >= task.held.suspect + grace * SECOND + more:
                    task.give_up_or_open()

    @rule(key=tasks, who=anybody, force=st.booleans())
    def retry(self, key, who, force) -> None:
        """The task is open again; downstream the late and the dead lose theirs, nobody else."""
        task = self.model[key]
        used_up = task.state != "open" and task.attempts >= task.most
        expected = None
        if task.state not in ("open", "in_progress", "failed"):
            expected = "final" if task.state in FINAL else "wrong_state"
        elif self.live(task) and not self.dead(task):
            expected = "held"
        elif force and not is_human(who[0]):
            expected = "people_only"
        elif used_up and not force:
            expected = "used_up"
        if not self.attempt(who, c.Retry(TaskKey(key), force=force, reason="once more"), expected):
            return
        if task.state != "open" or task.held is not None:
            attempts = task.attempts
            task.begin_anew()
            task.attempts, task.most = attempts, task.most + (force and used_up)
        for other in map(self.model.get, self.below(key)):
            if other.held is not None and (self.dead(other) or not self.live(other)):
                unbound = other.held.session is None and not is_human(other.held.actor)
                other.end()
                other.assignee = None if unbound else other.assignee
                other.state = "open" if other.state == "in_progress" else other.state

    @rule(
        key=tasks,
        who=anybody,
        only=st.booleans(),
        redo=st.booleans(),
        kept=st.sampled_from(["", "mine", "ana", "codex", "park"]),
    )
    def reset(self, key, who, only, redo, kept) -> None:
        """The task and all below it; in the same step it is kept from others, if that is asked."""
        below = [] if only else self.below(key)
        touched = [key] + [k for k in below if self.is_reset(self.model[k], redo=redo)]
        hurt = [
            k
            for k in touched
            if self.model[k].others(who)
            and self.live(self.model[k])
            and not self.dead(self.model[k])
        ]
        to = kept if kept in ("ana", "codex") else ""
        expected = "people_only" if hurt and not is_human(who[0]) else None
        if expected is None and (kept == "mine" or to):
            holder = who if kept == "mine" else (to, None)
            expected = self.kept_from_agents(self.model[key], who, holder[0])
            expected = expected or self.if_reserved(key, touched, holder)
        command = c.Reset(
            (TaskKey(key),),
            only=only,
            redo=redo,
            to=to,
            mine=kept == "mine",
            park=kept == "park",
            yes=True,
            reason="anew",
        )
        if not self.attempt(who, command, expected):
            return
        for each in touched:
            self.model[each].begin_anew()
        task = self.model[key]
        if kept == "mine" or to:
            name, session = who if kept == "mine" else (to, None)
            self.begin_lease(task, key, name, session, WEEK if is_human(name) else TWO_HOURS)
        if kept == "park":
            task.parked_by = task.parked_by or who[0]

    @staticmethod
    def kept_from_agents(task: Model, who, holder: str) -> str | None:
        """What a person keeps from agents an agent does not reset into anybody's hands."""
        if is_human(who[0]):
            return None
        if task.parked_by:
            return "parked"
        barred = task.assignee and is_human(task.assignee) and not is_human(holder)
        return "assigned_to_another" if barred else None

    @staticmethod
    def is_reset(task: Model, *, redo: bool) -> bool:
        """Downstream, what is complete stays unless it is to be done again; dropped always does."""
        return task.state != "dropped" and (redo or task.state != "complete")

    def if_reserved(self, key: str, touched: list[str], holder) -> str | None:
        """Leases that the reset itself ends are in nobody's way."""
        left = {k: task.held for k, task in self.model.items()}
        for each in touched:
            self.model[each].held = None
        barred = self.in_the_way(self.model[key], *holder)
        for k, held in left.items():
            self.model[k].held = held
        return "scope_held" if barred else None

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
        expected = expected or self.if_late(task, who)
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
        self.actors["ana", ""].do(
            c.Park(TaskKey(key))
        )  # what the model does not know is not offered

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
        if not self.history:
            return
        sent, command, request, outcome = data.draw(st.sampled_from(self.history))
        before = self.bench.snapshot()
        again = self.actors[sent].do(command, request)
        assert (again.task, again.entries, again.replayed) == (outcome.task, outcome.entries, True)
        assert again.current == self.bench.task(outcome.task.key)
        assert self.bench.snapshot() == before

    @rule(data=st.data(), who=anybody)
    def an_old_id_is_used_for_something_else(self, data, who) -> None:
        """24: refused, and nothing changes."""
        mine = [earlier for earlier in self.history if earlier[0] == who]
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
        assert self.actors[who].refused(c.Renew(TaskKey(key), token=token)) == "lease_lost"
        release = c.Release(TaskKey(key), token=token)
        if current.repeats(who, "release") and token.number == current.number:
            assert self.actors[who].do(release).repeats is not None
        else:
            assert self.actors[who].refused(release) == "lease_lost"
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
                assert names.get(row.preferred) == task.preferred
                assert (row.terms.max_attempts, row.rests_until or 0) == (
                    task.most,
                    task.rests and task.rests + tx.now - self.now(),
                )
                waiting = [k for k in task.after if self.model[k].state != "complete"]
                assert row.waits_on == len(waiting)
                if task.held is None:
                    assert row.lease is None
                else:
                    lease = row.lease
                    assert (names[lease.actor], lease.session) == (
                        task.held.actor,
                        task.held.session,
                    )
                    assert lease.ttl == task.held.ttl
                    assert (lease.stint is not None) == task.held.works
                    assert lease.live(tx.now) == self.live(task)
                    assert (lease.suspect is None) == (task.held.suspect is None)
                    assert lease.expires == lease.renewed + lease.ttl

    @invariant()
    def no_two_live_leases_of_different_sessions_overlap(self) -> None:
        if not hasattr(self, "bench"):
            return
        for task in self.model.values():
            if self.live(task):
                assert not self.in_the_way(task, task.held.actor, task.held.session)

    @invariant()
    def a_person_has_one_open_stint(self) -> None:
        if hasattr(self, "bench"):
            at_work = [
                task.held.actor for task in self.model.values() if task.held and task.held.works
            ]
            people = [name for name in at_work if is_human(name)]
            assert len(people) == len(set(people))

    @invariant()
    def nothing_waits_for_itself(self) -> None:
        if hasattr(self, "bench"):
            assert not any(key in self.below(key) for key in self.model)

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
    max_examples=soak.examples(60),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
OneOwnerOnAServer.TestCase.settings = settings(
    OneOwner.TestCase.settings, max_examples=soak.examples(8), stateful_step_count=30
)


@pytest.mark.parametrize("machine", [OneOwner, OneOwnerOnAServer])
@pytest.mark.parametrize("verb", ["complete", "submit", "fail", "drop", "release"])
def test_a_verb_that_is_given_again_changes_no_row(machine, verb):
    """A soak found it: a server keeps the answer, under a request id of its own."""
    one, bob, key = machine(), ("bob", ""), "T-2"
    one.begin()
    try:
        one.claim(key=key, reserve=False, ttl=60, who=bob)
        does = getattr(one, verb)
        does(key=key, who=bob, **({"rest": None} if verb == "release" else {}), text="result")
        named = {"reason" if verb in ("fail", "drop") else "note": "result"}
        one.repeat(one.model[key], bob, REPEATED[verb](TaskKey(key), **named))
    finally:
        one.teardown()


TestOneOwner = OneOwner.TestCase
TestOneOwnerOnAServer = OneOwnerOnAServer.TestCase
