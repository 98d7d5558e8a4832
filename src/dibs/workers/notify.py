"""Notifies people of events that need them: runs a command for each such event.

A cursor file beside the workers' logs says which events were sent. Only the process that holds its lock
sends, so several dispatchers of a machine send each event once, and another one can carry on. The cursor is
written after the command ended: a kill in between repeats that event, and loses none (at least once).
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock

from dibs.board import queries
from dibs.board.execute import Board
from dibs.board.watch import events_after, last_event
from dibs.domain.events import tasks as e
from dibs.domain.refusals import Refused
from dibs.opening import second_connection
from dibs.workers.child import open_log
from dibs.workers.keeper import TRY_AGAIN
from dibs.workers.pool import DispatchEvent, environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.board.queries import LogLine
    from dibs.workers.pool import Emit

SECONDS = 30.0
"""Timeout of the command for one event."""

AGAIN = 1.0
"""Retry interval in seconds, when another process holds the lock or the board was unreachable."""

NOTIFIED_VERBS = frozenset(
    kind.verb for kind in (e.Blocked, e.Submitted, e.Failed, e.TakenOver, e.Forced, e.LeaseEnded)
)


def needs_a_person(line: LogLine) -> bool:
    """Whether a person should know: the task waits for a person, failed, or was taken from its holder."""
    entry = line.entry
    return entry.verb in NOTIFIED_VERBS or (
        entry.verb == e.Released.verb and entry.event.named()["gives_up"]
    )


class Notifier:
    """Follows the ledger in its own thread, through a separate connection."""

    def __init__(
        self,
        board: Board,
        command: tuple[str, ...],
        folder: str,
        as_json: Callable[[LogLine], str],
        emit: Emit,
    ) -> None:
        self.command = command
        self._board, self._folder, self._as_json, self._emit = (
            second_connection(board),
            folder,
            as_json,
            emit,
        )
        self._cursor = os.path.join(folder, f"notified-{queries.uid(board)}")
        self._awake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="notify", daemon=True)
        with self._locked_cursor():
            pass  # without a cursor, starts from now

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Wakes the thread: something may have happened."""
        self._awake.set()

    def stop(self) -> None:
        """Stops after the current event. The next dispatcher sends the rest."""
        self._over.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS)
        if not self._thread.is_alive():
            self._board.store.close()

    def _loop(self) -> None:
        done = True
        while not self._over.is_set():
            self._awake.wait(None if done else AGAIN)
            self._awake.clear()
            done = self.catch_up()

    def catch_up(self) -> bool:
        """Sends the events since the cursor; returns whether there are no more."""
        try:
            with self._locked_cursor() as file:
                return file is not None and self._send_from(file)
        except Refused as problem:
            if problem.code not in TRY_AGAIN:
                self._emit(DispatchEvent("notify", f"notify: {problem}"))
        except OSError as error:
            self._emit(DispatchEvent("notify", f"notify: {self._cursor}: {error.strerror}"))
        return False

    def _send_from(self, file: int) -> bool:
        more = True
        while more and not self._over.is_set():
            page = events_after(self._board, reached(file))
            for line in page.lines:
                if self._over.is_set():
                    return False
                if needs_a_person(line) and self.command:
                    self._run(line)
                    write_cursor(file, line.entry.seq)
            write_cursor(file, page.reached)
            more = page.more
        return not more

    @contextmanager
    def _locked_cursor(self) -> Iterator[int | None]:
        """The locked cursor file; None if another process holds the lock."""
        file = open_log(self._cursor, os.O_RDWR)
        try:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                yield None
                return
            if os.fstat(file).st_size == 0:
                write_cursor(file, last_event(self._board))
            yield file
        finally:
            os.close(file)

    def _run(self, line: LogLine) -> None:
        """Runs the command with a timeout; kills the processes that it leaves behind."""
        about = f"{line.entry.verb} {line.key}"
        log = os.path.join(self._folder, "notify.log")
        around = environment() | {"DIBS_EVENT": event_of(line), "DIBS_TASK": line.key}
        try:
            output = open_log(log)
            try:
                process = subprocess.Popen(
                    self.command, env=around, stdin=subprocess.PIPE, stdout=output, stderr=output,
                    start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(output)
        except OSError as error:
            self._emit(DispatchEvent("notify", f"notify: {self.command[0]}: {error.strerror}"))
            return
        try:
            process.communicate(self._as_json(line).encode() + b"\n", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            why = f"timed out after {SECONDS:.0f} s, killed"
            self._emit(DispatchEvent("notify", f"notify ({about}): {why}"))
            return
        if process.returncode:
            why = f"exited with {process.returncode} (see {log})"
            self._emit(DispatchEvent("notify", f"notify ({about}): {why}"))


def event_of(line: LogLine) -> str:
    """The name of the event: anything that used up the attempts is `failed`."""
    gives_up = getattr(line.entry.event, "gives_up", False)
    return e.Failed.verb if gives_up else line.entry.verb


def reached(file: int) -> int:
    text = os.pread(file, 32, 0).split()
    return int(text[0]) if text and text[0].isdigit() else 0


def write_cursor(file: int, seq: int) -> None:
    """Advances the cursor by one write of a fixed size, which is atomic."""
    os.pwrite(file, f"{seq:<20}\n".encode(), 0)
