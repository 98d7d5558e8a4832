"""What wakes a process that looks after another one up: signals first, and news of its threads."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue

from dibs.core.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Self

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""End the run: the command is asked to end, and then killed."""

INTERRUPTING = (signal.SIGINT, signal.SIGQUIT)
"""As typed on a terminal: the command decides what it makes of them."""

PASSED_ON = (*INTERRUPTING, signal.SIGUSR1, signal.SIGUSR2)
HEARD = (*ENDING, *PASSED_ON, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)


class Inbox:
    """`with Inbox() as inbox`: nothing interrupts what is going on; it is read when it is time."""

    def __init__(self) -> None:
        self._news: SimpleQueue[int | Refusal | None] = SimpleQueue()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in HEARD:
            # What was ignored from the start stays so (nohup, a job in the background). Not the
            # end of a child: where that is ignored, nobody learns how it ended.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._news.put(number)

    def put(self, news: Refusal | None) -> None:
        """From any thread."""
        self._news.put(news)

    def read(self, seconds: float | None) -> int | Refusal | None:
        """The next news: a signal's number, or why the lease is lost. Nothing if time is over."""
        try:
            return self._news.get(timeout=None if seconds is None else max(seconds, 0.001))
        except Empty:
            return None
