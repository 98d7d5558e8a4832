"""The pool of workers that a dispatcher started: each is a separate `dibs run --next`, and outlives it.

The ledger says which of them has a task: a worker is identified by its session. Its exit code says how it
ended. A worker claims for itself, so nothing here can give one task to two.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

from dibs.board.execute import Board
from dibs.board.queries import task_by_key
from dibs.board.watch import events_after, last_event
from dibs.domain.checks import short
from dibs.domain.events import tasks as e
from dibs.domain.model import TaskKey
from dibs.domain.refusals import shown
from dibs.domain.values import Value
from dibs.workers.child import open_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from dibs.board.settings import Agent

    Emit = Callable[["DispatchEvent"], None]

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 60.0
"""Backoff in seconds for an agent whose worker ended without a task; it doubles each time."""

KEPT = ("DIBS_BOARD", "DIBS_URL", "DIBS_HOOK_SECONDS", "DIBS_DEBUG")
"""What a worker learns from the dispatcher's environment: where the board is, not who it is."""

STARTING_VERBS = frozenset(kind.verb for kind in (e.Claimed, e.TakenOver, e.Bound))
"""The first event of a worker on its task. It may have swept before, which concerns other tasks."""

NOTHING_TO_DO = 75
AS_EXPECTED = (0, 1)
LAST_BYTES = 4_096


class DispatchEvent(Value):
    """One event of the dispatcher, as a line and as facts."""

    what: str
    line: str
    facts: Mapping[str, Any] = {}


class Worker:
    """A process that claims one task and works on it."""

    def __init__(
        self, agent: Agent, session: str, process: subprocess.Popen[bytes], log: str
    ) -> None:
        self.agent, self.session, self.process, self.log = agent, session, process, log
        self.key = ""

    @property
    def facts(self) -> dict[str, Any]:
        return {"agent": self.agent.name, "session": self.session, "task": self.key or None}

    def last_message(self) -> str:
        """The last line of its output."""
        with suppress(OSError), open(self.log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            lines = file.read().decode("utf-8", "backslashreplace").split("\n")
            messages = [line.strip() for line in lines if line.strip().startswith("dibs:")]
            return short(messages[-1].removeprefix("dibs:").strip()) if messages else ""
        return ""


class WorkerPool:
    """Starts workers, tracks how they end, and backs off from an agent that cannot start."""

    def __init__(self, board: Board, folder: str, emit: Emit) -> None:
        self._board, self._emit = board, emit
        self.folder = folder
        self.workers: dict[str, Worker] = {}
        self._seen = last_event(board)
        self._backoffs: dict[str, tuple[int, float]] = {}

    def starting(self) -> dict[str, int]:
        """Workers per agent that were started and have no task yet."""
        found: dict[str, int] = {}
        for worker in self.workers.values():
            if not worker.key:
                found[worker.agent.name] = found.get(worker.agent.name, 0) + 1
        return found

    def backing_off(self) -> frozenset[str]:
        now = time.monotonic()
        return frozenset(name for name, (_, until) in self._backoffs.items() if now < until)

    def start(self, agent: Agent) -> None:
        """Starts a worker in its own process session, so that it survives the end of the dispatcher."""
        session = f"dispatch-{os.urandom(5).hex()}"
        log = os.path.join(self.folder, f"{session}.log")
        try:
            output = open_log(log)
            try:
                process = subprocess.Popen(
                    command_of(agent, session, self.folder),
                    env=environment() | dict(agent.env),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            finally:
                os.close(output)
        except OSError as error:
            self._back_off(agent, f"a worker of {agent.name} cannot be started: {error}")
            return
        self.workers[session] = Worker(agent, session, process, log)

    def somebody_ended(self) -> bool:
        return any(worker.process.poll() is not None for worker in self.workers.values())

    def look(self) -> None:
        """Reports workers that got a task, and workers that ended."""
        over = [worker for worker in self.workers.values() if worker.process.poll() is not None]
        self._follow()  # after checking the processes: the ledger then has all they did
        for worker in over:
            del self.workers[worker.session]
            self._report_end(worker)

    def _follow(self) -> None:
        more = True
        while more:
            page = events_after(self._board, self._seen)
            for line in page.lines:
                worker = self.workers.get(line.entry.session)
                if worker is not None and line.entry.verb in STARTING_VERBS:
                    self._report_start(worker, line.key)
            self._seen, more = page.reached, page.more

    def _report_start(self, worker: Worker, key: str) -> None:
        worker.key = key
        self._backoffs.pop(worker.agent.name, None)
        line = f"started {key} with {worker.agent.name} (session {worker.session})"
        self._emit(DispatchEvent("started", line, worker.facts))

    def _report_end(self, worker: Worker) -> None:
        code, name, message = worker.process.returncode, worker.agent.name, worker.last_message()
        how = f"ended with {code}" if code >= 0 else f"was ended by signal {-code}"
        if code in AS_EXPECTED or (code == NOTHING_TO_DO and not worker.key):
            with suppress(OSError):
                os.unlink(worker.log)  # the command's output is in the log of its attempt
        else:
            how += f" ({message}; see {worker.log})" if message else f" (see {worker.log})"
        if worker.key:
            state = task_by_key(self._board, TaskKey(worker.key)).state
            line = f"{name} on {worker.key} {how}: {worker.key} is {shown(state)}"
            facts = {**worker.facts, "exit": code, "state": state}
            self._emit(DispatchEvent("ended", line, facts))
        elif code == NOTHING_TO_DO:
            self._back_off(
                worker.agent, f"{name} found nothing to do: {message or 'nothing is ready'}"
            )
        else:
            self._back_off(worker.agent, f"{name} {how} before it had a task")

    def _back_off(self, agent: Agent, why: str) -> None:
        """Backs off exponentially, whatever the cause."""
        count, _ = self._backoffs.get(agent.name, (0, 0.0))
        seconds = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2**count)
        self._backoffs[agent.name] = (min(count + 1, 10), time.monotonic() + seconds)
        line = f"{why}; next attempt of {agent.name} in {seconds:.0f} s"
        self._emit(DispatchEvent("rests", line, {"agent": agent.name, "seconds": seconds}))


def command_of(agent: Agent, session: str, folder: str) -> list[str]:
    """`-P`: does not import modules from the current folder."""
    return [
        sys.executable, "-P", "-m", "dibs", "run", "--next", "--most", str(agent.max),
        "--agent", agent.name, "--session", session, "--on-fail", "release", "--log-dir", folder,
        "--", *agent.command,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    """The dispatcher's environment, without its identity and its task."""
    return {n: v for n, v in os.environ.items() if not n.startswith("DIBS_") or n in KEPT}
