"""`dibs demo`: agents compete for tasks in a temporary repository; prints what happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from errno import ENOSPC

from dibs.cli.call import Call, Verb, VerbResult, argument
from dibs.cli.text import table
from dibs.demo.crew import (
    AGENTS,
    PEOPLE,
    Crew,
    FaultInjector,
    Story,
    at_once,
    double_owners,
    person_environment,
    verbs,
    worked,
)
from dibs.domain import checks
from dibs.domain.refusals import Refused, refused
from dibs.library.board import Board, open_board
from dibs.output import payloads
from dibs.output.error_map import REFUSED, STORAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

TASKS = 40
PATIENCE_SECONDS = 120
TICK = 0.2
COLUMNS = 80
"""Fallback for the width of the terminal."""

ENDED_BY = 128
"""Exit code of a process ended by a signal: 128 plus its number."""


def demo(call: Call) -> VerbResult:
    seed = checks.whole(
        call["seed"] or random.SystemRandom().randrange(10**6), "the seed", 0, 10**9
    )
    try:
        with signals_end_it(), tempfile.TemporaryDirectory(prefix="dibs-demo-") as folder:
            prepare(folder)
            with open_board(folder, person="founder", environment={}) as board:
                for number in range(1, TASKS + 1):
                    board.add(f"Task {number} of {TASKS}")
                story = play(folder, board, seed, quiet=call["json"])
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        raise refused("disk_full", f"the disk is full: {error}") from None
    facts = story.named() | {"worked": {n: w.total_seconds() for n, w in story.worked.items()}}
    payload = payloads.answer(ok=story.as_expected, seed=seed, **facts)
    return VerbResult(payload, pages(story, seed), exit=0 if story.as_expected else REFUSED)


@contextmanager
def signals_end_it() -> Iterator[None]:
    """Turns the first signal into an exception, so that the demo cleans up; ignores later ones."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in ends}
    handled = [number for number in ends if before[number] != signal.SIG_IGN]

    def end(number: int, _frame: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(ENDED_BY + number)

    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def prepare(folder: str) -> None:
    run("git", "init", "-q", folder)
    run(sys.executable, "-m", "dibs", "init", folder=folder)


def run(*command: str, folder: str | None = None) -> None:
    environment = person_environment() | {"LC_ALL": "C"}
    try:
        subprocess.run(
            command, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise refused(
            "bad_argument", f"the demo needs {command[0]}, which is not installed"
        ) from None
    except subprocess.CalledProcessError as error:
        raise failed(command[0], error) from None


def failed(program: str, error: subprocess.CalledProcessError) -> Refused:
    """A refusal with the program's own error message."""
    detail = checks.short(" ".join(str(error.stderr).split()) or f"exit {error.returncode}", 200)
    message = f"{os.path.basename(program)} failed: {detail}"
    if os.strerror(ENOSPC) in detail or "disk is full" in detail:
        return refused("disk_full", message)
    storage = error.returncode == STORAGE
    return refused("storage_failed" if storage else "bad_argument", message)


def play(folder: str, board: Board, seed: int, *, quiet: bool) -> Story:
    """Runs the crew until all tasks are done; kills two agents, and makes one a zombie."""
    began = time.monotonic()
    screen = Screen(quiet=quiet)
    crew = Crew(folder, seed)
    injector = FaultInjector(crew, board, random.Random(seed), screen.report)  # noqa: S311 - not for secrets
    try:
        crew.start()
        done = False
        while not done and time.monotonic() - began < PATIENCE_SECONDS:
            for report in crew.collect(TICK):
                injector.record(report)
            injector.inject()
            counts = board.status().counts
            screen.draw(progress(counts, injector), counts.get("complete", 0))
            done = counts.get("complete", 0) == TASKS and injector.zombie_knows
    finally:
        crew.end()
        screen.end()
    for report in crew.collect(0):
        injector.record(report)
    return story_of(board, crew, injector, time.monotonic() - began)


class Screen:
    """A status line, redrawn on a terminal (elsewhere printed now and then), with messages above it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._line = ""
        self._printed = 0

    def report(self, news: str) -> None:
        if self._quiet:
            return
        print(f"\r\033[K{self.cut(news)}" if sys.stderr.isatty() else news, file=sys.stderr)
        self._draw_again()

    def draw(self, line: str, done: int) -> None:
        if self._quiet:
            return
        self._line = line
        if sys.stderr.isatty():
            self._draw_again()
        elif done >= self._printed + 4:
            self._printed = done
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        if not self._quiet and sys.stderr.isatty():
            print(file=sys.stderr)

    def _draw_again(self) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{self.cut(self._line)}", end="", file=sys.stderr, flush=True)

    @staticmethod
    def cut(line: str) -> str:
        """Cuts the line to one row: a wrapped line cannot be redrawn."""
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        except (OSError, ValueError):
            columns = COLUMNS
        return line[: (columns or COLUMNS) - 1]


def progress(seen: Mapping[str, int], injector: FaultInjector) -> str:
    done = seen.get("complete", 0)
    bar = "#" * (done * 20 // TASKS)
    return (
        f"[{bar:<20}] {done}/{TASKS} done, {seen.get('in_progress', 0)} held, "
        f"{injector.takeovers} taken over, {injector.refusals} refused"
    )


def story_of(board: Board, crew: Crew, injector: FaultInjector, seconds: float) -> Story:
    events = board.log(limit=100_000)
    count = verbs(events)
    return Story(
        tasks=TASKS,
        complete=count["completed"],
        takeovers=count["taken_over"],
        forced=count["forced"],
        killed=tuple(injector.killed),
        zombie=injector.zombie,
        zombie_refused=injector.zombie_knows,
        double_owners=double_owners(events),
        at_once=at_once(injector.reports),
        refusals=refusals(crew),
        worked=worked(events),
        faults=board.verify(),
        seconds=seconds,
    )


def refusals(crew: Crew) -> dict[str, int]:
    import json

    _, output, _ = crew.dibs("log", "--refused", "--limit", "10000", "--json")
    found = Counter(line["code"] for line in json.loads(output)["refusals"])
    return dict(sorted(found.items()))


def pages(story: Story, seed: int) -> tuple[str, ...]:
    rows = [
        (name, str(timedelta(seconds=round(w.total_seconds())))) for name, w in story.worked.items()
    ]
    codes = ", ".join(f"{number} {code}" for code, number in story.refusals.items()) or "none"
    knows = "was refused when it woke" if story.zombie_refused else "WAS NOT REFUSED"
    sound = "sound" if not story.faults else f"NOT SOUND: {'; '.join(story.faults)}"
    owners = f"{story.double_owners} in the ledger, {story.at_once} by the workers' own clocks"
    return (
        f"{AGENTS} agents and {len(PEOPLE)} people, {story.seconds:.0f} s, seed {seed}",
        f"tasks done      {story.complete} of {story.tasks}",
        f"killed          {', '.join(story.killed)} (SIGKILL at work on a task)",
        f"zombie          {story.zombie} (stopped at work on a task) {knows}",
        f"takeovers       {story.takeovers} after expiry, {story.forced} forced by a person",
        f"refusals        {codes}",
        f"double owners   {owners}",
        f"ledger          {sound}",
        "",
        *table(rows, ("ACTOR", "WORKED")),
    )


VERBS = {
    "demo": Verb(
        demo,
        (argument("--seed", metavar="N", help="repeat the demo of this seed; else a new one"),),
    )
}
