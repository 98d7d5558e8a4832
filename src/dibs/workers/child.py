"""A command in its own process group, and the event queue of the process that supervises it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress

from dibs.domain.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any, Self

CHUNK = 65_536
TAIL_BYTES = 8_192
TAIL_LINES = 20
TAIL_LENGTH = 1_800
"""Characters: fits into a reason, after a short prefix."""

SILENCE = 0.25
"""Timeout in seconds after the command's end, for a process that holds its output open and prints nothing."""

PR_SET_PDEATHSIG = 1
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[^\n\t\x20-\U0010ffff]|\x7f"
)
"""Colours, titles and other control characters: removed from stored output."""


class Child:
    """A running command. Only the thread that started it signals it and waits for it."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        out: int,
        log: str,
        wake: Callable[[None], None],
    ) -> None:
        """`out` receives its standard output; `wake` is called when the output ends."""
        self._tail = b""
        self._ended_streams = 0
        self._lock = threading.Lock()
        self._status: int | None = None
        self._wake = wake
        self.log_broken = False
        self._log = open_log(log) if log else -1
        try:
            self._process = subprocess.Popen(
                argv,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                preexec_fn=killed_with_parent(os.getpid()),  # noqa: PLW1509 - see there
            )
        except BaseException:
            self._close_log()
            raise
        for source, to in ((self._process.stdout, out), (self._process.stderr, 2)):
            threading.Thread(target=self._pass_on, args=(source, to), daemon=True).start()

    @property
    def pid(self) -> int:
        """Its pid, also the id of its session and process group."""
        return self._process.pid

    def status(self) -> int | None:
        """Its exit code, or a negative signal number; None while it runs."""
        if self._status is None:
            self._status = exit_status_unreaped(self._process)
        return self._status

    @property
    def has_output(self) -> bool:
        """Whether output may still arrive."""
        return self._ended_streams < 2

    def signal(self, number: int) -> None:
        """Signals the whole group, even after the command itself has ended."""
        if self._process.returncode is None:  # not reaped: its pid cannot be reused
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def end(self) -> None:
        """Kills it if it still runs. Afterwards it cannot be signalled."""
        if self.status() is None:
            self.signal(signal.SIGKILL)
        self._process.wait()
        with self._lock:
            self._close_log()

    def tail(self) -> str:
        """The last lines of its output, as text that can be stored."""
        with self._lock:
            text = self._tail.decode("utf-8", "backslashreplace")
        lines = [line.rstrip().rpartition("\r")[2] for line in text.splitlines(keepends=False)]
        text = ESCAPES.sub("", "\n".join(lines).strip())
        return "\n".join(text.splitlines()[-TAIL_LINES:])[-TAIL_LENGTH:].strip()

    def _pass_on(self, source: IO[bytes], to: int) -> None:
        """Stops reading when our own output is closed: the command gets SIGPIPE, as it would without us."""
        with source:
            while chunk := self._read(source):
                self._keep(chunk)
                if not write_all(to, chunk):
                    break
        with self._lock:
            self._ended_streams += 1
        self._wake(None)

    def _read(self, source: IO[bytes]) -> bytes:
        """The available output. Empty at the end, or when only an orphan process holds the pipe open."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while not poll.poll(SILENCE * 1_000):
            # Its last output may just have arrived.
            if self._status is not None and not poll.poll(0):
                return b""
        return source.read(CHUNK)

    def _keep(self, chunk: bytes) -> None:
        with self._lock:
            self._tail = (self._tail + chunk)[-TAIL_BYTES:]
            if self._log >= 0 and not write_all(self._log, chunk):
                self.log_broken = True
                self._close_log()

    def _close_log(self) -> None:
        if self._log >= 0:
            os.close(self._log)
            self._log = -1


def exit_status_unreaped(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a process without reaping it: so its group id cannot be reused."""
    if sys.platform == "darwin":  # macOS cannot wait without reaping
        return process.poll()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def open_log(path: str, flags: int = os.O_WRONLY | os.O_APPEND) -> int:
    """Opens a log with mode 0600: a command may print secrets.

    The folder may be beside the board, where an agent's sandbox can write: no link to it or in it is followed.
    """
    folder, name = os.path.split(path)
    os.makedirs(folder or ".", exist_ok=True)
    within = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.open(
            name, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=within
        )
    finally:
        os.close(within)


def write_all(to: int, chunk: bytes) -> bool:
    """Returns whether everything was written."""
    left = memoryview(chunk)
    while left:
        try:
            left = left[os.write(to, left) :]
        except BlockingIOError:
            select.select([], [to], [])
        except OSError:
            return False
    return True


def killed_with_parent(parent: int) -> Callable[[], None] | None:
    """On Linux, makes the kernel kill the command when we die, even by `kill -9`.

    The code after the fork uses only what was loaded before it, takes no lock and imports nothing.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)

    return before_exec


# The event queue: signals first, then events of threads.


ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the run: the command gets the same signal, then SIGKILL."""

INTERRUPTING = (signal.SIGINT, signal.SIGQUIT)
"""As typed on a terminal: the command decides how to handle them."""

PASSED_ON = (*INTERRUPTING, signal.SIGUSR1, signal.SIGUSR2)
HANDLED = (*ENDING, *PASSED_ON, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)

EVENT = b"\0"
"""No signal has this number."""


class Inbox:
    """`with Inbox() as inbox`: queues signals and events, and interrupts nothing.

    A signal is a byte in a pipe, written at once (self-pipe): a handler in Python could be delayed until the
    next signal, if one arrives just before the process sleeps.
    """

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._events: deque[Refusal | None] = deque()
        self._lock = threading.Lock()
        self._open = True
        self._before: dict[int, Any] = {}
        self._woke = -1

    def __enter__(self) -> Self:
        self._woke = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in HANDLED:
            # Signals that were ignored from the start stay ignored (nohup, a background job). Not SIGCHLD:
            # where it is ignored, exit codes are lost.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._woke)
        with self._lock:
            self._open = False
            os.close(self._out)
            os.close(self._in)

    def put(self, event: Refusal | None) -> None:
        """Thread-safe; `None` only wakes the reader."""
        with self._lock:
            if self._open:
                self._events.append(event)
                os.write(self._in, EVENT)

    def read(self, seconds: float | None) -> int | Refusal | None:
        """The next event: a signal number, or why the lease was lost. None after the timeout."""
        if not self._poll.poll(None if seconds is None else max(seconds, 0) * 1_000):
            return None
        return os.read(self._out, 1)[0] or self._events.popleft()
