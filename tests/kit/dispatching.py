"""A `dibs dispatch` that is going on, the agents that it starts, and what they did."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

from dibs.board.identity import Identity
from dibs.board.queries import task_by_key, uid
from dibs.board.settings import is_personal, leaves
from dibs.board.toml_files import shown
from dibs.domain import commands as c
from dibs.domain.ledger import Entry
from dibs.domain.model import Task, TaskKey, Terms
from dibs.machine import this_machine
from dibs.opening import open_board
from kit.repositories import DIBS, Repo
from kit.running import until

BEGIN = "echo $DIBS_TASK $DIBS_TOKEN $DIBS_AGENT >> $SEEN/begun; echo $$ > $SEEN/pid-$DIBS_TASK"
"""An agent's first words: one line for each time that work begins on a task."""

HOLD = "while [ ! -e $SEEN/go ] && [ ! -e $SEEN/go-$DIBS_TASK ]; do sleep 0.02; done"
"""It works until the test lets it go on."""


class Ground:
    """A board with agents in its settings, and everything that they left behind."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.seen = repo.folder.parent / f"seen-{time.monotonic_ns()}"
        self.state = repo.folder.parent / "state"
        self.seen.mkdir()
        self.processes: list[Dispatch] = []
        self.board = open_board(str(repo.folder), environment=repo.environment())
        self.uid = uid(self.board)

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever carries this ground in its environment is ended."""
        for dispatch in self.processes:
            dispatch.kill()
        mark = f"SEEN={self.seen}"
        until(lambda: not [kill(pid) for pid in carrying(mark)], "a process cannot be ended")
        self.board.store.close()

    # Settings.

    def agents(self, more: str = "", **scripts: str) -> None:
        """Each agent runs a script of the shell; `more` are lines of TOML before them."""
        tables = (
            f"[agents.{name}]\ncommand = {json.dumps(['sh', '-c', script])}\nmax = 2\n"
            for name, script in scripts.items()
        )
        self.settings("\n".join((more, *tables)))

    def settings(self, text: str) -> None:
        """Each line goes where it counts: to the user's own file, or beside the board."""
        stated = dict(leaves(tomllib.loads(text)))
        self.repo.personal(
            self.uid, as_toml({key: stated.pop(key) for key in [*stated] if is_personal(key)})
        )
        shared = as_toml(stated)
        if not self.repo.around:
            (self.repo.database.parent / "settings.toml").write_text(shared)
            return
        file = self.repo.folder.parent / "settings.toml"
        file.write_text(shared)
        self.repo.ok("config", "--load", str(file), "--as", "ana")

    # Dispatchers.

    @property
    def environment(self) -> dict[str, str]:
        return {"SEEN": str(self.seen), "XDG_STATE_HOME": str(self.state)}

    def start(self, *options: str) -> Dispatch:
        dispatch = Dispatch(self, *options)
        self.processes.append(dispatch)
        return dispatch

    def once(self, *options: str) -> str:
        return self.repo.ok("dispatch", "--once", "--as", "ana", *options, **self.environment).out

    # What was seen.

    def begun(self) -> list[str]:
        """The keys on which work began, in that order; a key twice if it began twice."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split()[0] for line in (self.seen / "begun").read_text().splitlines()]
        return []

    def go(self, key: str = "") -> None:
        (self.seen / (f"go-{key}" if key else "go")).touch()

    # The board, without a process for each look.

    def add(self, title: str = "work", scope: tuple[str, ...] = (), **terms) -> str:
        founder = Identity("founder", person=True, session="")
        return self.board.execute(founder, c.Add(Terms(title, **terms), scope)).task.key

    def task(self, key: str) -> Task:
        return task_by_key(self.board, TaskKey(key))

    def state_of(self, key: str) -> str:
        return self.task(key).state

    def counts(self) -> dict[str, int]:
        with self.board.read() as tx:
            return {state: n for state, n in tx.counts().items() if n}

    def events(self, verb: str = "") -> list[Entry]:
        with self.board.read() as tx:
            return [entry for entry in tx.events() if verb in ("", entry.verb)]

    @property
    def logs(self) -> Path:
        if not self.repo.around:
            return self.repo.database.parent / "dispatch"
        [folder] = (self.state / "dibs").iterdir()
        return folder


def as_toml(stated: dict[str, object]) -> str:
    return "".join(f"{key} = {shown(value)}\n" for key, value in stated.items())


class Dispatch:
    """One dispatcher; what it says goes to a file."""

    def __init__(self, ground: Ground, *options: str) -> None:
        self.file = ground.seen / f"output-{time.monotonic_ns()}"
        with self.file.open("wb") as output:
            self.process = subprocess.Popen(
                [DIBS, "dispatch", "--as", "ana", "--tick", "1s", *options],
                cwd=ground.repo.folder, env=ground.repo.environment(**ground.environment),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self.file.read_text()

    def prints(self, *words: str) -> None:
        try:
            until(lambda: all(word in self.output for word in words))
        except AssertionError:
            raise AssertionError(f"{words} are not in: {self.output}") from None

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def ends(self) -> int:
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def kill(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return pid


def carrying(text: str) -> list[int]:
    """The living processes with this in their environment."""
    wanted, machine, found = text.encode(), this_machine(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(int(pid))
    return [pid for pid in found if machine.process(pid) is not None]
