"""`dibs intake --from`: reads many requests from JSON lines and reports the result.

A bad line does not stop the rest. If a signal or a full disk ends it early, a summary of what was taken in
is printed first; running it again is safe, since intake is idempotent.
"""

from __future__ import annotations

import os
import signal
import stat
import sys

from dibs.board.outcome import task_events
from dibs.cli.call import VerbResult
from dibs.cli.output.progress import bar
from dibs.cli.output.text import count
from dibs.domain import commands as c
from dibs.domain.checks import TITLE_LENGTH
from dibs.domain.events import tasks as e
from dibs.domain.refusals import Refused, bad_argument, several
from dibs.intake.bulk import Problem, read_requests
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, Self

    from dibs.cli.call import Call
    from dibs.intake.request import IntakeRequest

BATCH = 500
"""Requests per transaction."""

SHOWN = 20


class Tally:
    """Counters and problems of the import so far."""

    def __init__(self) -> None:
        self.requests = self.added = self.cut = 0
        self.differing: dict[str, None] = {}
        self.problems: list[Problem] = []

    def take_in(self, call: Call, batch: list[c.Add]) -> None:
        """Takes in one batch in one transaction; counts new tasks, and notes those whose payload differs."""
        if not batch:
            return
        outcome = call.board.execute(call.who(), c.Intake(tuple(batch)))
        for key, _, event in task_events(outcome):
            if isinstance(event, e.Received) and event.differs:
                self.differing[key] = None
        self.requests += len(batch)
        self.added += sum(isinstance(event, e.Added) for event in outcome.events)

    def told(self, *, complete: bool) -> VerbResult:
        payload = {
            "requests": self.requests,
            "added": self.added,
            "known": self.requests - self.added,
            "differing": [*self.differing],
            "cut": self.cut,
            "problems": [one.named() for one in self.problems],
            "complete": complete,
        }
        lines = tuple(self.lines(complete=complete))
        return VerbResult(payloads.answer(intake=payload), lines, exit=1 if self.problems else 0)

    def lines(self, *, complete: bool) -> Iterator[str]:
        known = self.requests - self.added
        yield f"{count(self.requests, 'request')}: {self.added} new, {known} known already"
        if self.differing:
            yield f"  came with another payload than before: {several([*self.differing], SHOWN)}"
        if self.cut:
            yield f"  longer than {TITLE_LENGTH} characters, and cut: {count(self.cut, 'title')}"
        yield from (f"  line {one.line}: {one.what}" for one in self.problems[:SHOWN])
        if len(self.problems) > SHOWN:
            yield f"  and {len(self.problems) - SHOWN} more: --json lists them all"
        if not complete:
            yield "it was stopped: the rest was not taken in; to run it again is safe"


class Signals:
    """Defers SIGINT and SIGTERM until the current batch is committed; a second signal interrupts at once.

    While lines are only being read, the first signal interrupts at once too.
    """

    def __init__(self) -> None:
        self._came = 0
        self._waits = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        import threading

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _come(self, number: int, _frame: object) -> None:
        again, self._came = self._came, number
        if again or not self._waits:
            raise stopped_by(number)

    def after(self, act: Callable[[Call, list[c.Add]], None], *of: Any) -> None:
        """Runs `act` to its end before a pending signal is raised."""
        self._waits = True
        try:
            act(*of)
        finally:
            self._waits = False
        if self._came:
            raise stopped_by(self._came)


def stopped_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def in_bulk(
    call: Call, command_of: Callable[[Call, IntakeRequest], c.Add]
) -> VerbResult | Iterator[VerbResult]:
    tally = Tally()
    try:
        with Signals() as signals:
            read(call, command_of, tally, signals)
    except (Refused, KeyboardInterrupt, SystemExit) as problem:
        if isinstance(problem, Refused) and not tally.requests and not tally.problems:
            raise
        return cut_short(tally.told(complete=False), problem)
    return tally.told(complete=True)


def cut_short(summary: VerbResult, problem: BaseException) -> Iterator[VerbResult]:
    """Yields the summary, then raises what stopped the import."""
    yield summary
    raise problem


def read(
    call: Call, command_of: Callable[[Call, IntakeRequest], c.Add], tally: Tally, signals: Signals
) -> None:
    batch: list[c.Add] = []
    show = bar("bytes")
    with stream(call["file"]) as file:
        size = whole(file)
        try:
            for found in lines_of(file, call):
                if isinstance(found, Problem):
                    tally.problems.append(found)
                    continue
                batch.append(command_of(call, found))
                tally.cut += found.cut
                if len(batch) == BATCH:
                    signals.after(tally.take_in, call, batch)
                    batch = []
                    if show is not None and size:
                        show(file.tell(), size)
            signals.after(tally.take_in, call, batch)
        finally:
            if show is not None and size:
                show(size, size)


def lines_of(file: BinaryIO, call: Call) -> Iterator[IntakeRequest | Problem]:
    try:
        yield from read_requests(file, call["channel"] or "")
    except OSError as error:
        raise unreadable(call["file"], error) from None


def stream(path: str) -> BinaryIO:
    if path == "-":
        if sys.stdin is None:
            raise bad_argument("the lines are read from standard input, which is closed")
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> Refused:
    return bad_argument(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")


def whole(file: BinaryIO) -> int:
    """The size of the file in bytes; 0 if unknown (a pipe)."""
    there = os.fstat(file.fileno())
    return there.st_size if stat.S_ISREG(there.st_mode) else 0
