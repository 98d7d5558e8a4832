"""A process at the end of a wire: it has a board open, and does one thing at a time when told to."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from dibs.board.identity import Identity
from dibs.domain import commands as c
from dibs.domain.model import Token
from dibs.domain.refusals import Refused
from dibs.opening import open_board
from kit.repositories import clean_environment


class Hand:
    """One session of an agent in a process of its own."""

    def __init__(self, folder: Path, session: str, **environment: str) -> None:
        path = os.pathsep.join(
            filter(None, (str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")))
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kit.hands", str(folder), session], text=True, cwd=folder,
            env=clean_environment(PYTHONPATH=path, **environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        self.pid = self.process.pid

    def __enter__(self) -> Hand:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, what: str, *arguments: object, **options: object) -> None:
        self.process.stdin.write(json.dumps([what, arguments, options]) + "\n")
        self.process.stdin.flush()

    def receive(self):
        assert select.select([self.process.stdout], [], [], 60)[0], "it does not answer"
        return json.loads(self.process.stdout.readline())

    def do(self, what: str, *arguments: object, **options: object):
        """The answer: the task's token, or the code of the refusal."""
        self.send(what, *arguments, **options)
        return self.receive()

    def stop(self) -> None:
        """Stopped when this returns, wherever it was."""
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_until_stopped()

    def wait_until_stopped(self) -> None:
        while status_of(self.pid) != "T":
            time.sleep(0.001)

    def wait_until_it_queues(self) -> None:
        """A writer waits for its turn in a thread of its own."""
        while len(os.listdir(f"/proc/{self.pid}/task")) == 1:
            time.sleep(0.001)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Puppet:
    """The other end of the wire."""

    def __init__(self, folder: str, session: str) -> None:
        self.board = open_board(folder)
        self.who = Identity(session, False, session)

    def command(self, name: str, **fields) -> str:
        if isinstance(fields.get("token"), str):
            fields["token"] = Token(*map(int, fields["token"].split(".")))
        outcome = self.board.execute(self.who, getattr(c, name)(**fields))
        return str(outcome.task.token)

    def close(self) -> None:
        self.board.store.close()

    def wall(self) -> float:
        return time.time()

    def remaining(self, key: str) -> int:
        """Microseconds that a lease has left, on the board's clock."""
        with self.board.store.read() as tx:
            return tx.task(key).lease.expires - tx.now

    def write_nothing_more(self) -> None:
        """From now on no file can be written: as with a full disk, for this process alone."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def write_again(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    def stop_inside(self, what: str) -> str:
        """Wins the write lock, begins, and is stopped there."""
        with self.board.store.write(what):
            print(json.dumps("inside"), flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        return "out again"


def main(folder: str, session: str) -> None:
    puppet = Puppet(folder, session)
    for line in sys.stdin:
        what, arguments, options = json.loads(line)
        try:
            answer = getattr(puppet, what)(*arguments, **options)
        except Refused as problem:
            answer = problem.code
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
