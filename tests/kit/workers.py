"""A crew of real processes that work on one board, and write down what they ask and are answered.

`python -m kit.workers` is the nursery: a process that has loaded everything and opened nothing. It
forks a worker when told to, sends it signals, and waits for its end, so that no pid is ever a
stranger's. Nursery and workers write one line for each thing that happens into one pipe; a line is
shorter than what a pipe takes at once, so a kill cuts between lines only.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.domain import commands as c
from dibs.domain import guards as g
from dibs.domain.model import FINAL, TaskKey, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND, Duration
from dibs.domain.verbs import VERBS
from dibs.opening import open_board
from kit.history import Answer, Operation
from kit.repositories import clean_environment

TTL = Duration(SECOND)
"""The shortest there is, so that leases do expire."""

SILENT = 1_300_000_000
"""For so long (ns) a holder that goes silent leaves its task alone: longer than its lease."""

NOT_YET = 2**63
"""When an operation is answered that is still going on."""

COMMANDS = {
    "claim": c.Claim,
    "takeover": c.Takeover,
    "renew": c.Renew,
    "release": c.Release,
    "complete": c.Complete,
}


# The worker: a process of its own.


class Worker:
    """One session of one agent; it does what it does by chance, and not always by the rules."""

    def __init__(self, pipe: int, board: Board, orders: dict) -> None:
        self.pipe, self.board, self.session = pipe, board, orders["session"]
        self.chance = random.Random(orders["seed"])
        self.keys = orders["keys"]
        self.contested = orders["contested"]
        """So many of the tasks that are not final are worked on at a time."""
        self.tokens: dict[str, int] = {}
        """The last token of each task, kept after its lease has ended: a zombie does that too."""
        self.held: dict[str, int] = {}
        """Tasks that it believes to hold, and from when on it shows a sign of life again."""
        self.sent = 0
        self.done = False

    def work(self) -> None:
        while not self.done:
            own = [*self.held] if self.chance.random() < 0.5 else []
            key = self.chance.choice(own or self.keys[: self.contested])
            verb = self.verb_for(key)
            if verb:
                self.sent += 1
                request = f"{self.session}-{os.getpid()}-{self.sent}"
                request_line = {"key": key, "verb": verb, "request": request}
                self.carry_out(request_line | {"stated": self.token_for(key)})

    def verb_for(self, key: str) -> str | None:
        if key not in self.held:
            return self.chance.choices([*COMMANDS], [8, 4, 1, 1, 1])[0]
        if time.monotonic_ns() < self.held[key]:
            return None
        if self.chance.random() < 0.02:
            self.held[key] = time.monotonic_ns() + SILENT
            return None
        return self.chance.choices([*COMMANDS], [1, 1, 4, 9, 0.5])[0]

    def token_for(self, key: str) -> int | None:
        """What it states: nothing, its last token, or sometimes the one before or after."""
        if key not in self.tokens or self.chance.random() < 0.5:
            return None
        return self.tokens[key] + self.chance.choices((0, -1, 1), (8, 1, 1))[0]

    def carry_out(self, request: dict) -> None:
        """One operation: written down before it begins and after it has ended."""
        key, verb = request["key"], request["verb"]
        kind, fields = COMMANDS[verb], {}
        if "ttl" in kind.fields:
            fields["ttl"] = TTL
        if "token" in kind.fields and request["stated"] is not None:
            fields["token"] = Token(1, request["stated"])
        who = Identity(self.session, False, self.session)
        command = kind(TaskKey(key), **fields)
        write_line(
            self.pipe, sends=request, pid=os.getpid(), session=self.session, at=time.monotonic_ns()
        )
        try:
            answer = answer_of(self.board.execute(who, command, request["request"]))
        except Refused as problem:
            answer = problem.code
        except Exception as error:
            answer = f"a bug: {error!r}"[:200]
        at = time.monotonic_ns()
        write_line(self.pipe, answered=request["request"], pid=os.getpid(), answer=answer, at=at)
        self.learn(key, answer)

    def learn(self, key: str, answer: dict | str) -> None:
        if isinstance(answer, dict):
            if answer["holder"] == self.session:
                self.tokens[key] = answer["token"]
                self.held.setdefault(key, 0)
            else:
                self.held.pop(key, None)
        elif answer != "busy":
            self.held.pop(key, None)
        if answer == "final" or (isinstance(answer, dict) and answer["final"]):
            self.keys.remove(key)

    def end(self, *_: object) -> None:
        self.done = True


def answer_of(outcome) -> dict:
    task, lease = outcome.task, outcome.task.lease
    return {
        "token": task.token.number,
        "holder": lease and lease.session,
        "final": task.state in FINAL,
        "renewals": lease.renewals if lease else 0,
        "seqs": [entry.seq for entry in outcome.entries],
        "replayed": outcome.replayed,
    }


def write_line(pipe: int, **line: object) -> None:
    os.write(pipe, json.dumps(line).encode() + b"\n")


def be_worker(pipe: int, folder: str, orders: dict) -> None:
    """Never returns: what is in the buffers is the nursery's, and is written by it alone."""
    code = 1
    try:
        run_worker(pipe, folder, orders)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_worker(pipe: int, folder: str, orders: dict) -> None:
    sabotage(orders.get("broken", ""))
    board = open_board(folder)
    worker = Worker(pipe, board, orders)
    signal.signal(signal.SIGTERM, worker.end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if orders.get("again"):
        worker.carry_out(orders["again"])
    worker.work()
    board.store.close()


# Seeded faults: what the judges must find.


def sabotage(what: str) -> None:
    """Breaks the board in this process, and in this process only."""
    if what == "a guard is removed":
        for verb in ("claim", "takeover"):
            forget(verb, g.no_other_session_holds_it_live)
    elif what == "the token is not compared":
        for verb in ("renew", "release", "complete"):
            forget(verb, g.token_is_current)
    elif what == "neither token nor holder is compared":
        whose = (g.lease_is_not_lost, g.no_other_session_holds_it, g.caller_holds_it)
        forget("complete", g.token_is_current, *whose)
    elif what == "the lock is weakened: it is won after the decision":
        decide_too_early()


def forget(verb: str, *guards: object) -> None:
    names = {guard.__name__ for guard in guards}
    VERBS[verb].guards = tuple(name for name in VERBS[verb].guards if name not in names)


def decide_too_early() -> None:
    """Facts are read, time passes, then the lock is won and the old decision carried out."""
    from dibs.board import execute

    transact, decide = Board._transact, execute.decide
    early = []

    def too_early(self, who, command, request, evidence):
        with self.store.read() as tx:
            caller, _ = execute.caller_of(tx, who, self.settings)
            facts = execute.facts_for(tx, caller, command, self.settings, evidence)
        early[:] = [facts]
        time.sleep(0.002)
        return transact(self, who, command, request, evidence)

    Board._transact = too_early
    execute.decide = lambda facts: decide(early[0].but(now=facts.now))


# The nursery.


def nursery(folder: str, pipe: int) -> None:
    """Obeys one line at a time; when nobody is left to give orders, everybody is killed."""
    children: set[int] = set()
    # A signal that comes before its handler is installed is delivered later: the mask is inherited.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for line in sys.stdin:
        orders = json.loads(line)
        if "start" in orders:
            pid = os.fork()
            if pid == 0:
                be_worker(pipe, folder, orders["start"])
            children.add(pid)
            write_line(pipe, born=pid)
        else:
            pid = orders["pid"]
            os.kill(pid, orders["signal"])
            if orders["wait"]:
                _, status = os.waitpid(pid, 0)
                children.remove(pid)
                write_line(pipe, dead=pid, at=time.monotonic_ns(), status=status)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# The crew, as a test sees it.


class Crew:
    """The nursery and its workers. `with Crew(folder) as crew` leaves no process behind."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.read, write = os.pipe()
        tests = str(Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
        self.nursery = subprocess.Popen(
            [sys.executable, "-m", "kit.workers", str(folder), str(write)], cwd=folder,
            env=clean_environment(PYTHONPATH=path, **environment), stdin=subprocess.PIPE,
            text=True, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        self.rest = b""
        self.requests: dict[str, list[dict]] = {}
        """By request id: every time that it was asked."""
        self.open: dict[int, dict] = {}
        """By pid: what was asked last, and is not answered yet."""
        self.alive: dict[int, dict] = {}
        """By pid: the orders of every worker."""
        self.born = self.dead = 0
        self.status = 0

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.nursery.stdin.close()
        self.nursery.wait(60)
        os.close(self.read)

    # Orders.

    def start(self, **orders: object) -> int:
        self._order({"start": orders})
        self._until(lambda: self.born)
        pid, self.born = self.born, 0
        self.alive[pid] = orders
        return pid

    def signal(self, pid: int, number: int) -> None:
        self._order({"pid": pid, "signal": number, "wait": False})

    def kill(self, pid: int) -> dict | None:
        """Kills it, waits for its end, and says what it had asked without an answer, if anything."""
        before = self.alive[pid].get("again")
        self._end(pid, signal.SIGKILL)
        request = self.open.pop(pid, None)
        if request is not None:
            return request["sends"]
        return before if before and "answer" not in self.requests[before["request"]][-1] else None

    def finish(self) -> None:
        """Everybody ends what it is doing, and goes. First all go on: one may block the others."""
        for pid in self.alive:
            self.signal(pid, signal.SIGCONT)
        for pid in [*self.alive]:
            self._end(pid, signal.SIGTERM)
            assert self.status == 0, f"a worker ended with {self.status}"

    def listen(self, seconds: float) -> None:
        """Writes down what arrives for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._receive(left)

    def _order(self, orders: dict) -> None:
        self.nursery.stdin.write(json.dumps(orders) + "\n")
        self.nursery.stdin.flush()

    def _end(self, pid: int, number: int) -> None:
        self._order({"pid": pid, "signal": number, "wait": True})
        self._until(lambda: self.dead == pid)
        self.dead = 0
        del self.alive[pid]

    # What arrives from the nursery.

    def _until(self, happened) -> None:
        deadline = time.monotonic() + 60
        while not happened():
            assert time.monotonic() < deadline, "the nursery does not answer"
            self._receive(1)

    def _receive(self, seconds: float) -> None:
        if select.select([self.read], [], [], seconds)[0]:
            data = os.read(self.read, 1 << 20)
            assert data, "the nursery is gone"
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self._note(json.loads(line))

    def _note(self, line: dict) -> None:
        if "born" in line:
            self.born = line["born"]
        elif "dead" in line:
            self.dead, self.status = line["dead"], line["status"]
            if line["dead"] in self.open:
                self.open[line["dead"]]["until"] = line["at"]
        elif "sends" in line:
            self.open[line["pid"]] = line
            self.requests.setdefault(line["sends"]["request"], []).append(line)
        else:
            line["sends"] = self.open.pop(line["pid"])
            line["sends"].update(answer=line["answer"], until=line["at"])

    def operations(self) -> list[Operation]:
        """The history. A request that was asked again and again is one operation."""
        return [operation(attempts) for attempts in self.requests.values()]


def operation(attempts: list[dict]) -> Operation:
    """Done before it was cut, if the answer was an old one; else when it was asked last."""
    last = attempts[-1]
    answer, begun, until = last.get("answer"), last["at"], last.get("until", NOT_YET)
    if answer is None:
        begun = attempts[0]["at"]
    elif isinstance(answer, dict):
        answer = Answer(**answer | {"seqs": tuple(answer["seqs"])})
        if answer.replayed:
            begun, until = attempts[0]["at"], attempts[-2]["until"]
    request = last["sends"]
    return Operation(
        session=last["session"],
        key=request["key"],
        verb=request["verb"],
        stated=request["stated"],
        ttl=TTL * 1_000,
        request=request["request"],
        invoked=begun,
        returned=until,
        answer=answer,
    )


if __name__ == "__main__":
    nursery(sys.argv[1], int(sys.argv[2]))
