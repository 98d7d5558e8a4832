"""The event queue of a process that supervises another: signals first, then events of its threads."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections import deque

from dibs.domain.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the run: the command gets the same signal, then SIGKILL."""

INTERRUPTING = (signal.SIGINT, signal.SIGQUIT)
"""As typed on a terminal: the command decides how to handle them."""

PASSED_ON = (*INTERRUPTING, signal.SIGUSR1, signal.SIGUSR2)
HEARD = (*ENDING, *PASSED_ON, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)

NEWS = b"\0"
"""No signal has this number."""


class Inbox:
    """`with Inbox() as inbox`: queues signals and events, and interrupts nothing.

    A signal is a byte in a pipe, written at once (self-pipe): a handler in Python could be delayed until
    the
    next signal, if one arrives just before the process sleeps.
    """

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._news: deque[Refusal | None] = deque()
        self._turn = threading.Lock()
        self._open = True
        self._before: dict[int, Any] = {}
        self._woke = -1

    def __enter__(self) -> Self:
        self._woke = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in HEARD:
            # Signals that were ignored from the start stay ignored (nohup, a background job). Not SIGCHLD:
            # where it is ignored, exit codes are lost.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._woke)
        with self._turn:
            self._open = False
            os.close(self._out)
            os.close(self._in)

    def put(self, news: Refusal | None) -> None:
        """Thread-safe; `None` only wakes the reader."""
        with self._turn:
            if self._open:
                self._news.append(news)
                os.write(self._in, NEWS)

    def read(self, seconds: float | None) -> int | Refusal | None:
        """The next event: a signal number, or why the lease was lost. None after the timeout."""
        if not self._poll.poll(None if seconds is None else max(seconds, 0) * 1_000):
            return None
        return os.read(self._out, 1)[0] or self._news.popleft()
