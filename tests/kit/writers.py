"""Processes that work on the tasks of one board on a server, and write down what they are told.

`python -m kit.writers` loads everything, forks one process for each session, and ends them when
nobody gives orders any more. Each uses the library as a program would. All append to one file; a
line is written at once, so that they never mix.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import dibs
from dibs.board.identity import Identity
from dibs.board.locate import Place
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import FINAL, Terms
from dibs.domain.refusals import Refused
from dibs.opening import create_at, open_board
from kit.history import Answer, Operation, ledger_faults, violation
from kit.postgres_ground import until
from kit.repositories import clean_environment

NOT_YET = 2**63
CONTESTED = 8
"""So many of the tasks that are not final are worked on at a time."""

FREE = {"claim": 12, "takeover": 2, "renew": 1, "release": 1, "complete": 1}
HELD = {"claim": 1, "takeover": 0, "renew": 5, "release": 8, "complete": 1}


# The writer: a process of its own.


class Writer:
    """One session of one agent, which claims and lets go by chance, and not always by the rules."""

    def __init__(self, board: dibs.Board, session: str, orders: dict, out: int) -> None:
        self.board, self.session, self.out = board, session, out
        self.keys, self.ttl, self.ids = [*orders["keys"]], orders["ttl"], orders["ids"]
        self.chance = random.Random(f"{orders['seed']} {session}")
        self.tokens: dict[str, str] = {}
        """The last token of each task: a zombie states it too."""
        self.held: dict[str, float] = {}
        """Tasks that it believes to hold, and from when on it shows a sign of life again."""
        self.sent = 0
        self.done = False

    def work(self) -> None:
        while not self.done:
            now = time.monotonic()
            own = [key for key, at in self.held.items() if at < now]
            some = [key for key in self.keys[:CONTESTED] if self.held.get(key, 0) < now]
            if own and self.chance.random() < 0.6:
                key, ways = self.chance.choice(own), HELD
                if self.chance.random() < 0.1:
                    self.held[key] = now + 1.3  # longer than a lease of a second
                    continue
            elif some:
                key, ways = self.chance.choice(some), FREE
            else:
                time.sleep(0.01)  # it holds them all, and is silent about each
                continue
            if len(self.keys) <= CONTESTED:
                ways = {**ways, "complete": 0}  # so that there is something to do for ever
            self.carry_out(self.chance.choices([*ways], [*ways.values()])[0], key)

    def carry_out(self, verb: str, key: str) -> None:
        """One operation: written down before it begins and after it has ended."""
        options: dict[str, str] = {}
        if verb in ("claim", "takeover"):
            options["ttl"] = f"{self.ttl}s"
        elif key in self.tokens and self.chance.random() < 0.7:
            options["token"] = self.tokens[key]
        self.sent += 1
        name = f"{self.session}-{self.sent}"
        if verb == "renew" and self.ids:
            options["request_id"] = name
        self.write_line(request=name, verb=verb, key=key, stated=options.get("token"))
        try:
            answer = plain(getattr(self.board, verb)(key, **options))
        except Refused as problem:
            answer = problem.code
        except Exception as error:
            answer = f"a bug: {error!r}"[:500]
        self.write_line(answered=name, answer=answer)
        self.learn(key, answer)

    def learn(self, key: str, answer: dict | str) -> None:
        if isinstance(answer, dict) and answer["holder"] == self.session:
            self.tokens[key] = answer["token"]
            self.held.setdefault(key, 0)
        elif answer != "unreachable":
            self.held.pop(key, None)
        if answer == "final" or (isinstance(answer, dict) and answer["final"]):
            self.keys.remove(key)

    def write_line(self, **entry: object) -> None:
        line = json.dumps({"session": self.session, "at": time.monotonic_ns(), **entry})
        os.write(self.out, line.encode() + b"\n")

    def end(self, *_: object) -> None:
        self.done = True


def plain(answer: dibs.Answer) -> dict:
    lease = answer.lease
    return {
        "token": answer.token,
        "holder": lease and lease.holder.session,
        "final": answer.task.state in FINAL,
        "renewals": lease.renewals if lease else 0,
        "seqs": answer.events,
        "replayed": answer.replayed,
    }


def be_writer(session: str, orders: dict) -> None:
    """Never returns."""
    code = 1
    try:
        out = os.open(orders["file"], os.O_WRONLY | os.O_APPEND)
        with dibs.open_board(agent=session, session=session) as board:
            writer = Writer(board, session, orders, out)
            signal.signal(signal.SIGTERM, writer.end)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            writer.work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    children = []
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # inherited until it can be heard
    for session in orders["sessions"]:
        pid = os.fork()
        if pid == 0:
            be_writer(session, orders)
        children.append(pid)
    sys.stdin.read()
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    sys.exit(max(os.waitpid(pid, 0)[1] for pid in children))


# As a test sees them.


class Writers:
    """`with Writers(folder, url, keys) as writers`: they work until it is over."""

    def __init__(
        self, folder: Path, url: str, keys: list[str], *, sessions: int = 6, ttl: int = 3600,
        ids: bool = True, seed: int = 0,
    ) -> None:  # fmt: skip
        """`ids`: renewals state a request id, so that one that was cut off is not counted twice."""
        self.file = folder / "history"
        self.file.touch()
        self.sessions = [f"w{n}" for n in range(sessions)]
        self.ttl = ttl
        orders = {"keys": keys, "ttl": ttl, "ids": ids, "seed": seed, "file": str(self.file)}
        tests = str(Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kit.writers"], cwd=folder, text=True, stdin=subprocess.PIPE,
            env=clean_environment(PYTHONPATH=path, DIBS_URL=url),
        )  # fmt: skip
        self.process.stdin.write(json.dumps({**orders, "sessions": self.sessions}) + "\n")
        self.process.stdin.flush()

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()

    def finish(self) -> None:
        """Everybody ends what it is doing, and goes."""
        self.process.stdin.close()
        assert self.process.wait(60) == 0, "a writer ended badly"

    def lines(self) -> list[dict]:
        whole, _, _ = self.file.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def successes(self) -> dict[str, int]:
        """By session: how often it got what it asked for."""
        counts = dict.fromkeys(self.sessions, 0)
        for line in self.lines():
            counts[line["session"]] += isinstance(line.get("answer"), dict)
        return counts

    def go_on(self, times: int) -> None:
        """Waits until every one of them has got so much more."""
        before = self.successes()
        until(
            lambda: all(now >= before[name] + times for name, now in self.successes().items()),
            f"{times} successes of every writer more than {before}",
        )

    def operations(self) -> list[Operation]:
        """The history. What the server did not answer to is not known."""
        lines = self.lines()
        answers = {line["answered"]: line for line in lines if "answered" in line}
        requests = [line for line in lines if "request" in line]
        return [operation(line, answers.get(line["request"]), self.ttl) for line in requests]

    def answered(self) -> list[tuple[dict, dict]]:
        """What was asked, and what was answered to it."""
        lines = self.lines()
        answers = {line["answered"]: line for line in lines if "answered" in line}
        return [
            (line, answers[line["request"]]) for line in lines if line.get("request") in answers
        ]

    def judge(self, url: str) -> list[Operation]:
        """One board could have said it all, and its ledger agrees."""
        operations = self.operations()
        with opened(url) as board:
            entries, faults = ledger_of(board)
        own = [entry for entry in entries if entry.task and entry.session in self.sessions]
        assert faults == ()
        assert [op for op in operations if is_strange(op)] == []
        assert ledger_faults(operations, own) == []
        assert violation(operations) is None
        return operations


CODES = ("held", "final", "lease_lost", "not_held")


def is_strange(op: Operation) -> bool:
    """Refused for a reason that no working board has."""
    return isinstance(op.answer, str) and op.answer not in CODES


def operation(request: dict, reply: dict | None, ttl: int) -> Operation:
    answer = reply and reply["answer"]
    known = reply is not None and answer != "unreachable"
    if isinstance(answer, dict):
        answer = Answer(**{**answer, "token": number(answer["token"])})
    return Operation(
        session=request["session"],
        key=request["key"],
        verb=request["verb"],
        stated=number(request["stated"]) if request["stated"] else None,
        ttl=ttl * 1_000_000_000,
        request=request["request"],
        invoked=request["at"],
        returned=reply["at"] if reply and known else NOT_YET,
        answer=answer if known else None,
    )


def number(token: str) -> int:
    """It rises also where the epoch does."""
    return int(token.partition(".")[2])


# The board.


@contextmanager
def opened(url: str):
    board = open_board("/", environment={"DIBS_URL": url})
    try:
        yield board
    finally:
        board.store.close()


def board_with(url: str, tasks: int) -> list[str]:
    """Makes a board; the keys of its tasks."""
    board, made = create_at(Place("/nowhere", url=url))
    assert made
    ana = Identity("ana", True, "")
    keys = [board.execute(ana, c.Add(Terms(f"task {n}"))).task.key for n in range(tasks)]
    board.store.close()
    return keys


def ledger_of(board) -> tuple[list, tuple[str, ...]]:
    """Every event, and what is wrong with the ledger."""
    faults = verify(board).faults
    with board.read() as tx:
        return [*tx.events()], faults


def name_of(url: str) -> str:
    """The database that it names."""
    return url.partition("?")[0].rpartition("/")[2]


def opened_by(url: str, name: str) -> dibs.Board:
    """The library, as an agent whose session has its name."""
    return dibs.open_board("/", agent=name, session=name, environment={"DIBS_URL": url})


if __name__ == "__main__":
    main()
