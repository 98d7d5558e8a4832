"""A crowd that works through a graph of tasks: agents that ask for themselves, and runs with commands.

`python -m kit.crowd` is their nursery: it forks one when told to, sends signals to it and to what it
started, and says when one is gone. Everything is a line in one pipe, as in `kit.workers`.
"""

from __future__ import annotations

import contextlib
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
from dibs.cli.main import main as cli
from dibs.domain import commands as c
from dibs.domain.model import COMPLETE, Session, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND, Duration
from dibs.machine import this_machine
from dibs.opening import open_board
from dibs.workers.next import next_task
from kit.history import Answer, Operation
from kit.repositories import Repo
from kit.workers import NOT_YET, write_line
from kit.workshop import SAY

TTL = Duration(2 * SECOND)
AGENT, LOOSE, RUN = "agent", "loose", "run"
"""Its session is tied to its process; to none; it is a `dibs run`."""

FAILS = 'case "$DIBS_TASK $DIBS_TOKEN" in BAD*) exit 3;; ONCE*\\ 1.1) exit 4;; esac'
COMMAND = f"{SAY}; say start; for n in 1 2 3 4; do sleep 0.0$1; say tick; done; {FAILS}; say end"


def fails(key: str, token: Token) -> bool:
    """What is in the name: some tasks never succeed, some not at first."""
    return key.startswith("BAD") or (key.startswith("ONCE") and token.number == 1)


# One of them: a process of its own.


class Agent:
    """Asks for work, shows signs of life, and says how it ended; each is one operation."""

    def __init__(self, pipe: int, board: Board, orders: dict) -> None:
        self.pipe, self.board, self.session = pipe, board, orders["session"]
        self.chance = random.Random(orders["seed"])
        process = this_machine().process(os.getpid()) if orders["kind"] == AGENT else None
        self.who = Identity(
            self.session, False, self.session, "", Session(0, "", "here", process=process)
        )

    def work(self) -> None:
        while True:
            task = self.carry_out("claim", "", c.Next(ttl=TTL))
            if task is None:
                time.sleep(self.chance.uniform(0.05, 0.2))
                continue
            for _ in range(self.chance.randrange(1, 4)):
                time.sleep(self.chance.uniform(0, 0.2))
                self.carry_out("renew", task.key, c.Renew(task.key, token=task.token))
            if fails(task.key, task.token):
                self.carry_out(
                    "fail", task.key, c.Fail(task.key, token=task.token, reason="in vain")
                )
            else:
                self.carry_out("complete", task.key, c.Complete(task.key, token=task.token))

    def carry_out(self, verb: str, key: str, command: c.Command):
        stated = None if verb == "claim" else command.token.number
        line = {"session": self.session, "verb": verb, "key": key, "stated": stated}
        write_line(self.pipe, sends=line, pid=os.getpid(), at=time.monotonic_ns())
        task = None
        try:
            if verb == "claim":
                outcome = next_task(self.board, self.who, command)
            else:
                outcome = self.board.execute(self.who, command)
            task = outcome.task
            answer = {
                "key": task.key,
                "token": task.token.number,
                "holder": task.lease and task.lease.session,
                "final": task.state == COMPLETE,
                "renewals": task.lease.renewals if task.lease else 0,
                "seqs": [entry.seq for entry in outcome.entries],
                "failed": task.state == "failed",
            }
        except Refused as problem:
            answer = problem.code
        except Exception as error:
            answer = f"a bug: {error!r}"[:300]
        write_line(self.pipe, answered=answer, pid=os.getpid(), at=time.monotonic_ns())
        return task


def be(pipe: int, folder: str, orders: dict) -> None:
    """Never returns."""
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        if orders["kind"] == RUN:
            run_for_ever(orders)
        else:
            Agent(pipe, open_board(folder, environment=dict(os.environ)), orders).work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_for_ever(orders: dict) -> None:
    """One `dibs run` after another; each has a session of its own."""
    chance = random.Random(orders["seed"])
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while True:
        words = ["--agent", orders["session"], "--ttl", "2s", "--", "sh", "-c", COMMAND, "work"]
        with contextlib.suppress(SystemExit):
            cli(["run", "--next", "--wait", "5s", *words, str(chance.randrange(1, 6))])


# The nursery.


def nursery(folder: str, pipe: int) -> None:
    """Obeys one line at a time; when nobody is left to give orders, everybody is killed."""
    children: set[int] = set()
    while True:
        if select.select([0], [], [], 0.02)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                break
            for line in data.splitlines():
                obey(json.loads(line), folder, pipe, children)
        while children and (gone := os.waitpid(-1, os.WNOHANG))[0]:
            children.remove(gone[0])
            write_line(pipe, gone=gone[0], status=gone[1], at=time.monotonic_ns())
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)


def obey(orders: dict, folder: str, pipe: int, children: set[int]) -> None:
    if "start" in orders:
        pid = os.fork()
        if pid == 0:
            be(pipe, folder, orders["start"])
        children.add(pid)
        write_line(pipe, born=pid)
    elif orders["pid"] in children:
        found = below(orders["pid"]) if orders["below"] else [orders["pid"]]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, orders["signal"])


def below(pid: int) -> list[int]:
    """The children of its first thread, which are not reaped while it does not look."""
    with contextlib.suppress(OSError):
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


# The crowd, as a test sees it.


class Crowd:
    """`with Crowd(repo) as crowd` leaves nobody behind."""

    def __init__(self, repo: Repo, workshop: Path, **environment: str) -> None:
        self.read, write = os.pipe()
        tests = str(Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
        around = repo.environment(PYTHONPATH=path, WORKSHOP=str(workshop), **environment)
        self.nursery = subprocess.Popen(
            [sys.executable, "-m", "kit.crowd", str(repo.folder), str(write)], cwd=repo.folder,
            env=around, stdin=subprocess.PIPE, text=True, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        self.rest = b""
        self.alive: dict[int, dict] = {}
        self.killed: dict[str, int] = {}
        """By session: when it was killed."""
        self.open: dict[int, dict] = {}
        self.done: list[dict] = []
        self.born: list[int] = []

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.nursery.stdin.close()
        self.nursery.wait(60)
        os.close(self.read)

    def start(self, **orders: object) -> None:
        self._order({"start": orders})
        deadline = time.monotonic() + 60
        while not self.born:
            assert time.monotonic() < deadline, "the nursery does not answer"
            self.listen(0.05)
        self.alive[self.born.pop()] = orders

    def signal(self, pid: int, number: int, *, below: bool = False) -> None:
        if number == signal.SIGKILL and not below:
            self.killed.setdefault(self.alive[pid]["session"], time.monotonic_ns())
        self._order({"pid": pid, "signal": number, "below": below})

    def listen(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.read], [], [], left)[0]:
                data = os.read(self.read, 1 << 20)
                assert data, "the nursery is gone"
                *lines, self.rest = (self.rest + data).split(b"\n")
                for line in lines:
                    self._note(json.loads(line))

    def _order(self, orders: dict) -> None:
        self.nursery.stdin.write(json.dumps(orders) + "\n")
        self.nursery.stdin.flush()

    def _note(self, line: dict) -> None:
        if "born" in line:
            self.born.append(line["born"])
        elif "gone" in line:
            self.alive.pop(line["gone"], None)
            if line["gone"] in self.open:
                self.open.pop(line["gone"])["until"] = line["at"]
        elif "sends" in line:
            self.open[line["pid"]] = line
            self.done.append(line)
        else:
            started = self.open.pop(line["pid"])
            started.update(answer=line["answered"], until=line["at"])

    def operations(self) -> list[Operation]:
        """What agents asked, where it is known which task it was about."""
        return [operation(n, line) for n, line in enumerate(self.done) if is_resolved(line)]

    def bugs(self) -> list[str]:
        answers = (line.get("answer") for line in self.done)
        return [a for a in answers if isinstance(a, str) and a.startswith("a bug")]


def is_resolved(line: dict) -> bool:
    """Answered, and not that nothing is ready; or a renewal: what else was cut is in the ledger."""
    answer, verb = line.get("answer"), line["sends"]["verb"]
    if answer is None:
        return verb == "renew"
    return verb != "claim" or isinstance(answer, dict)


def operation(number: int, line: dict) -> Operation:
    request, answer = line["sends"], line.get("answer")
    key = request["key"]
    if isinstance(answer, dict):
        key = answer.pop("key", key)
        answer = Answer(**answer | {"seqs": tuple(answer["seqs"])})
    return Operation(
        session=request["session"],
        key=key,
        verb=request["verb"],
        stated=request["stated"],
        ttl=TTL * 1_000,
        request=f"{request['session']}-{number}",
        invoked=line["at"],
        returned=line.get("until", NOT_YET),
        answer=answer,
    )


if __name__ == "__main__":
    nursery(sys.argv[1], int(sys.argv[2]))
