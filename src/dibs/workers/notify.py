"""Tells somebody outside what needs a person: runs a command for each such event.

How far it was told stands in a file beside the workers' logs. Whoever has the lock on it tells, so
that several dispatchers of a machine tell each event once, and the next one carries on. It is
written after the command ended: who is killed in between tells that event once more, and none is
lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock

from dibs.board import views
from dibs.board.execute import Board
from dibs.board.watching import events_after, last_event
from dibs.core import events as e
from dibs.core.refusals import Refused
from dibs.opening import another
from dibs.workers.crew import Happened, environment
from dibs.workers.keeper import TRY_AGAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dibs.board.views import LogLine
    from dibs.workers.crew import Tell

SECONDS = 30.0
"""How long the command may take for one event."""

AGAIN = 1.0
"""Seconds until another look, where somebody else was telling, or the board could not be read."""

TELLING = frozenset(
    kind.verb for kind in (e.Blocked, e.Submitted, e.Failed, e.TakenOver, e.Forced, e.LeaseEnded)
)


def is_telling(line: LogLine) -> bool:
    """Somebody should know: it waits for a person, has failed, or was taken from its holder."""
    entry = line.entry
    return entry.verb in TELLING or (
        entry.verb == e.Released.verb and entry.event.named()["gives_up"]
    )


class Notifier:
    """Follows the ledger in a thread of its own, through a connection of its own."""

    def __init__(
        self,
        board: Board,
        command: tuple[str, ...],
        folder: str,
        as_json: Callable[[LogLine], str],
        tell: Tell,
    ) -> None:
        self.command = command
        self._board, self._folder, self._as_json, self._tell = another(board), folder, as_json, tell
        self._cursor = os.path.join(folder, f"notified-{views.uid(board)}")
        self._awake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_telling, name="notify", daemon=True)
        with self._turn():
            pass  # from now on, if there is no cursor yet

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something may have happened."""
        self._awake.set()

    def stop(self) -> None:
        """After the event that it is at. What is left is told by the next dispatcher."""
        self._over.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS)
        if not self._thread.is_alive():
            self._board.store.close()

    def _keep_telling(self) -> None:
        done = True
        while not self._over.is_set():
            self._awake.wait(None if done else AGAIN)
            self._awake.clear()
            done = self.catch_up()

    def catch_up(self) -> bool:
        """Tells what happened since; whether that is all there was."""
        try:
            with self._turn() as file:
                return file is not None and self._tell_from(file)
        except Refused as problem:
            if problem.code not in TRY_AGAIN:
                self._tell(Happened("notify", f"notify: {problem}"))
        except OSError as error:
            self._tell(Happened("notify", f"notify: {self._cursor}: {error.strerror}"))
        return False

    def _tell_from(self, file: int) -> bool:
        more = True
        while more and not self._over.is_set():
            page = events_after(self._board, reached(file))
            for line in page.lines:
                if self._over.is_set():
                    return False
                if is_telling(line) and self.command:
                    self._run(line)
                    reach(file, line.entry.seq)
            reach(file, page.reached)
            more = page.more
        return not more

    @contextmanager
    def _turn(self) -> Iterator[int | None]:
        """The file that says how far it was told; nothing if somebody else is telling."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self._cursor, flags, 0o600)
        try:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                yield None
                return
            if os.fstat(file).st_size == 0:
                reach(file, last_event(self._board))
            yield file
        finally:
            os.close(file)

    def _run(self, line: LogLine) -> None:
        """Bounded in time; what it leaves running is ended with it."""
        about = f"{line.entry.verb} {line.key}"
        log = os.path.join(self._folder, "notify.log")
        around = environment() | {"DIBS_EVENT": event_of(line), "DIBS_TASK": line.key}
        try:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                process = subprocess.Popen(
                    self.command, env=around, stdin=subprocess.PIPE, stdout=output, stderr=output,
                    start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(output)
        except OSError as error:
            self._tell(Happened("notify", f"notify: {self.command[0]}: {error.strerror}"))
            return
        try:
            process.communicate(self._as_json(line).encode() + b"\n", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            why = f"it took longer than {SECONDS:.0f} s, and was ended"
            self._tell(Happened("notify", f"notify ({about}): {why}"))
            return
        if process.returncode:
            why = f"it ended with {process.returncode} (see {log})"
            self._tell(Happened("notify", f"notify ({about}): {why}"))


def event_of(line: LogLine) -> str:
    """What happened, in one word: whatever used up the attempts has failed."""
    gives_up = getattr(line.entry.event, "gives_up", False)
    return e.Failed.verb if gives_up else line.entry.verb


def reached(file: int) -> int:
    text = os.pread(file, 32, 0).split()
    return int(text[0]) if text and text[0].isdigit() else 0


def reach(file: int, seq: int) -> None:
    """One write of a fixed size: it is there as a whole, or not at all."""
    os.pwrite(file, f"{seq:<20}\n".encode(), 0)
