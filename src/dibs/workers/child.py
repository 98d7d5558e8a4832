"""A command in a process group of its own: its output passes through, its last words are kept."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

CHUNK = 65_536
TAIL_BYTES = 8_192
TAIL_LINES = 20
TAIL_LENGTH = 1_800
"""Characters: it fits into a reason, with a few words before it."""

SILENCE = 0.25
"""Seconds: who holds the command's output open after its end, and says nothing, is not waited for."""

PR_SET_PDEATHSIG = 1
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[^\n\t\x20-\U0010ffff]|\x7f"
)
"""Colours, titles and other control characters: they say nothing where they are kept."""


class Child:
    """A running command. It is signalled and looked after by the thread that started it."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        out: int,
        log: str,
        wake: Callable[[None], None],
    ) -> None:
        """`out` gets its standard output; `wake` is called when there is no more to come."""
        self._tail = b""
        self._silent = 0
        self._turn = threading.Lock()
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
                preexec_fn=dying_with(os.getpid()),  # noqa: PLW1509 - see there
            )
        except BaseException:
            self._close_log()
            raise
        for source, to in ((self._process.stdout, out), (self._process.stderr, 2)):
            threading.Thread(target=self._pass_on, args=(source, to), daemon=True).start()

    @property
    def pid(self) -> int:
        """It leads a session and a process group of this number."""
        return self._process.pid

    def status(self) -> int | None:
        """How it ended: an exit code, or a signal below zero; nothing while it runs."""
        if self._status is None:
            self._status = seen(self._process)
        return self._status

    @property
    def speaks(self) -> bool:
        """Whether output of it may still be on its way."""
        return self._silent < 2

    def signal(self, number: int) -> None:
        """To the whole group, also when the command itself has ended."""
        if self._process.returncode is None:  # not reaped: nobody else has got its number
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def end(self) -> None:
        """At once, if it still runs. After this nothing can be sent to it."""
        if self.status() is None:
            self.signal(signal.SIGKILL)
        self._process.wait()
        with self._turn:
            self._close_log()

    def tail(self) -> str:
        """The last lines of its output, as text that can be kept."""
        with self._turn:
            text = self._tail.decode("utf-8", "backslashreplace")
        lines = [line.rstrip().rpartition("\r")[2] for line in text.splitlines(keepends=False)]
        said = ESCAPES.sub("", "\n".join(lines).strip())
        return "\n".join(said.splitlines()[-TAIL_LINES:])[-TAIL_LENGTH:].strip()

    def _pass_on(self, source: IO[bytes], to: int) -> None:
        """If nobody reads what we write, we read no more: the command learns it as without us."""
        with source:
            while chunk := self._read(source):
                self._keep(chunk)
                if not write_all(to, chunk):
                    break
        with self._turn:
            self._silent += 1
        self._wake(None)

    def _read(self, source: IO[bytes]) -> bytes:
        """What there is. Nothing at the end, or when only a straggler could still say something."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while not poll.poll(SILENCE * 1_000):
            if self._status is not None and not poll.poll(0):  # its last words may just have come
                return b""
        return source.read(CHUNK)

    def _keep(self, chunk: bytes) -> None:
        with self._turn:
            self._tail = (self._tail + chunk)[-TAIL_BYTES:]
            if self._log >= 0 and not write_all(self._log, chunk):
                self.log_broken = True
                self._close_log()

    def _close_log(self) -> None:
        if self._log >= 0:
            os.close(self._log)
            self._log = -1


def seen(process: subprocess.Popen[bytes]) -> int | None:
    """How a process ended, which is left to be reaped: so its group can be told apart from others."""
    if sys.platform == "darwin":  # there is no way to look without reaping
        return process.poll()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def open_log(path: str) -> int:
    """For its owner alone: a command may print what nobody else should read."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)


def write_all(to: int, chunk: bytes) -> bool:
    """Whether everything was written."""
    left = memoryview(chunk)
    while left:
        try:
            left = left[os.write(to, left) :]
        except BlockingIOError:
            select.select([], [to], [])
        except OSError:
            return False
    return True


def dying_with(parent: int) -> Callable[[], None] | None:
    """On Linux the kernel kills the command when we are gone, even by `kill -9`.

    What runs after the fork was found before it, takes no lock and imports nothing.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # gone before we could say so
            os._exit(1)

    return before_exec
