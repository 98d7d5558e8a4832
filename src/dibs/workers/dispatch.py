"""`dibs dispatch`: every tick sweeps dead leases, then starts workers for ready tasks.

No important state is kept in here: leases, attempts and backoff are on the board, and each worker claims
for itself. So a dispatcher may die at any instant, and any number of them may run.
"""

from __future__ import annotations

import os
import signal
import time

from dibs.board import queries, watch
from dibs.board.execute import Board
from dibs.board.identity import Identity
from dibs.board.matching import check_agents, matches
from dibs.board.settings import Settings
from dibs.domain.model import SWEPT_AT_ONCE
from dibs.domain.refusals import Refused, refused, several
from dibs.domain.values import SECOND, Duration, Value
from dibs.workers.keeper import TRY_AGAIN
from dibs.workers.notify import Notifier
from dibs.workers.pool import DispatchEvent, WorkerPool
from dibs.workers.sweep import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Self

    from dibs.board.outcome import Outcome
    from dibs.board.queries import LogLine
    from dibs.workers.pool import Emit

BREATH = 0.1
"""Minimum seconds between two ticks, however busy the board is."""

SLICE = 0.5
"""Maximum seconds until a signal is noticed."""

PATIENCE = 20
"""While the board does not change, an empty search is repeated after this many times its own duration.

Where very many tasks fit nobody, searching must not saturate the machine.
"""

NEVER = (0, 0.0)
"""No search has come up empty yet: the change counter at the last one, and until when it is valid."""

NAMED = 20
"""How many ended leases one line lists."""

BEGINNING = 60.0
"""Seconds within which a worker must have claimed a task."""


class Options(Value):
    """Command-line options; they override the settings."""

    tick: Duration | None = None
    most: int | None = None


class Dispatcher:
    """One dispatcher: `run` until it is stopped, or `once`."""

    def __init__(
        self,
        board: Board,
        who: Identity,
        emit: Emit,
        as_json: Callable[[LogLine], str],
        options: Options,
    ) -> None:
        self.board, self.who, self.options, self._emit = board, who, options, emit
        folder = log_folder(board)
        self._report_differences(board.settings)
        self.pool = WorkerPool(board, folder, emit)
        self.notifier = Notifier(board, board.settings.notify_command, folder, as_json, emit)
        self._draining = False
        self._paused = ""
        self._trouble = ""
        self._idle = NEVER

    @property
    def settings(self) -> Settings:
        return self.board.settings

    @property
    def most(self) -> int:
        return self.options.most or self.settings.dispatch_max

    # Main loop.

    def once(self) -> None:
        """One tick; returns when each worker that it started has a task or has ended."""
        self._tick(watch.change_counter(self.board))
        deadline = time.monotonic() + BEGINNING
        while self.pool.starting() and time.monotonic() < deadline:
            time.sleep(BREATH)
            self.pool.look()
        self.notifier.catch_up()
        self.notifier.stop()

    def run(self, reread: Callable[[], Settings]) -> None:
        """Runs until a signal stops it and its workers have ended, or until a second signal."""
        with Signals() as signals:
            self.notifier.start()
            self._report_agents()
            try:
                while not (self._draining and not self.pool.workers):
                    self._wait(self._try(), signals)
                    for number in signals.take_pending():
                        if number == signal.SIGHUP:
                            self._reread(reread)
                        elif self._draining:
                            self._report("left", f"left {self._workers()} running")
                            return
                        else:
                            self._drain()
            finally:
                self.notifier.stop()

    def _try(self) -> int | None:
        """Runs a tick; returns the change counter from before it, or None if the board was unreachable."""
        try:
            counter = watch.change_counter(self.board)
            self._tick(counter)
        except Refused as problem:
            if problem.code not in TRY_AGAIN:
                raise
            if self._trouble != problem.code:
                self._trouble = problem.code
                self._report("trouble", f"{problem}; retrying", code=problem.code)
            return None
        if self._trouble:
            self._trouble = ""
            self._report("well", "the board is reachable again")
        return counter

    def _wait(self, counter: int | None, signals: Signals) -> None:
        """Waits until the board changes, a worker ends, a signal arrives, or the tick is due."""
        tick = (self.options.tick or self.settings.dispatch_tick) / SECOND
        end = time.monotonic() + tick
        time.sleep(BREATH)
        while not signals.waiting and (left := end - time.monotonic()) > 0:
            if self.pool.somebody_ended():
                return
            if counter is None:
                time.sleep(min(left, SLICE))
            elif watch.wait_for_change(self.board, counter, min(left, SLICE)) != counter:
                return

    def _drain(self) -> None:
        self._draining = True
        count = len(self.pool.workers)
        line = "draining: no new workers are started"
        if count:
            line += f"; waits for {self._workers()}; a second signal leaves them running"
        self._report("draining", line, workers=count)

    def _workers(self) -> str:
        workers = self.pool.workers.values()
        return ", ".join(worker.key or worker.session for worker in workers) or "nobody"

    def _reread(self, reread: Callable[[], Settings]) -> None:
        """Reloads the settings; reports an invalid file and keeps the old ones."""
        try:
            settings = reread()
            self._report_differences(settings)
        except Refused as problem:
            self._report("settings", f"settings not reloaded: {problem}", code=problem.code)
            return
        self.board.settings, self._idle = settings, NEVER
        self.notifier.command = settings.notify_command
        self._report("settings", "settings reloaded")
        self._report_agents()

    # One tick.

    def _tick(self, counter: int) -> None:
        self.pool.look()
        self._read_files()
        self._sweep()
        if not self._draining and not self._is_idle(counter):
            self._offer(counter)
        self.notifier.wake()

    def _read_files(self) -> None:
        """Syncs changed item files; reports corrected claims of dead sessions in one line."""
        backlog = self.board.backlog
        if backlog is None:
            return
        taken_in = backlog.read(self.board, self.who)
        if taken_in:
            self._report("synced", taken_in)

    def _sweep(self) -> None:
        """Sweeps all dead leases at once, and reports them in one line."""
        ended: list[tuple[str, str]] = []
        while True:
            outcome = sweep(self.board, self.who, self.settings.dispatch_grace)
            ended += [] if outcome is None else causes(outcome)
            if outcome is None or len(outcome.entries) < SWEPT_AT_ONCE:
                break
        if ended:
            tasks = [{"task": key, "cause": cause} for key, cause in ended]
            self._report("swept", swept(ended), leases=tasks)

    def _is_idle(self, counter: int) -> bool:
        """Whether nothing was startable, and nothing has changed since."""
        pulse, until = self._idle
        return pulse == counter and time.monotonic() < until

    def _offer(self, counter: int) -> None:
        pool, agents, before = self.pool, self.settings.agents, time.monotonic()
        found = matches(self.board, agents, self.most, pool.starting(), pool.backing_off())
        if found.paused != self._paused:
            self._paused = found.paused
            line = f"paused by {found.paused}" if found.paused else "resumed"
            self._report("paused" if found.paused else "resumed", line)
        for agent, _ in found.starts:
            pool.start(agent)
        took = time.monotonic() - before
        self._idle = (counter, time.monotonic() + PATIENCE * took)

    # Output.

    def _report_agents(self) -> None:
        agents = [f"{agent.name} (at most {agent.max})" for agent in self.settings.agents]
        who = ", ".join(agents) or "nobody"
        self._report("dispatches", f"dispatches {who}; {self.most} together at most")

    def _report_differences(self, settings: Settings) -> None:
        for line in check_agents(self.board, settings.agents):
            self._report("differs", line)

    def _report(self, what: str, line: str, **facts: Any) -> None:
        self._emit(DispatchEvent(what, line, facts))


class Signals:
    """`with Signals() as signals`: collects signals without interrupting; they are handled in turn."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.waiting.append(number)

    def take_pending(self) -> list[int]:
        """The signals since the last call."""
        numbers = self.waiting[:]
        del self.waiting[: len(numbers)]
        return numbers


def causes(outcome: Outcome) -> list[tuple[str, str]]:
    """The tasks whose leases were ended, and why."""
    return [
        (outcome.keys[entry.task], entry.cause + ("; failed" if gives_up(entry.event) else ""))
        for entry in outcome.entries
        if entry.task is not None
    ]


def gives_up(event: Any) -> bool:
    return bool(event.named().get("gives_up"))


def swept(ended: list[tuple[str, str]]) -> str:
    noun = "lease" if len(ended) == 1 else "leases"
    named = several([f"{key} ({cause})" for key, cause in ended], NAMED)
    return f"{len(ended)} {noun} ended: {named}"


def log_folder(board: Board) -> str:
    """The folder for worker logs: from the settings, else beside the board; readable only by its owner."""
    folder = board.settings.dispatch_log_dir or beside(board)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        what = f"the folder for logs, {folder}, cannot be created: {error.strerror}"
        raise refused("bad_setting", what, setting="dispatch.log_dir") from None
    return folder


def beside(board: Board) -> str:
    if not board.store.remote:
        return os.path.join(board.store.where, "dispatch")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "dibs", queries.uid(board))
