"""The crew of the demo: agent processes and simulated people, faults among them, and what came of it."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta

from dibs.domain.values import Value
from dibs.library.board import Board
from dibs.machine import this_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dibs.library.records import Event

AGENTS = 8
PEOPLE = ("ana", "ben")
PERSON_SECONDS = 2.0


class CrewReport(Value):
    """A report: something that a member of the crew did, or that happened to it."""

    name: str
    what: str
    key: str
    began: int = 0
    until: int = 0
    """The interval worked, by its own clock: from acquiring the task to the last check that passed."""


class Crew:
    """Eight agents and two people who work in one repository."""

    def __init__(self, folder: str, seed: int) -> None:
        self.folder = folder
        self.reports: queue.Queue[CrewReport] = queue.Queue()
        self._chance = random.Random(seed)  # noqa: S311 - a demo needs no secrets
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._seed = seed
        self._clock = this_machine().boottime

    def start(self) -> None:
        for number in range(1, AGENTS + 1):
            self._start_agent(f"agent-{number}")
        for name in PEOPLE:
            self._follow(threading.Thread(target=self._person, args=(name,), daemon=True))

    def _start_agent(self, name: str) -> None:
        command = [sys.executable, "-m", "dibs.demo.agent", self.folder, name]
        process = subprocess.Popen(
            [*command, f"{self._seed}-{name}"],
            stdin=subprocess.PIPE,  # its end of file ends the agent when we exit
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C in the terminal must not reach the agents
        )
        self._processes[name] = process
        self._follow(threading.Thread(target=self._read, args=(name, process), daemon=True))

    def _follow(self, thread: threading.Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None, "it is a pipe"
        with process.stdout as lines:
            for line in lines:
                fields = line.split()
                if (
                    line.endswith("\n") and len(fields) == len(CrewReport.fields) - 1
                ):  # a complete line
                    what, key, began, until = fields
                    self.reports.put(CrewReport(name, what, key, int(began), int(until)))

    def _person(self, name: str) -> None:
        """A person who uses the command line; the last one forces a takeover once."""
        chance = random.Random(f"{self._seed}-{name}")  # noqa: S311
        has_forced = name != PEOPLE[-1]
        while not self._over.wait(0.2):
            which = "--free" if has_forced else "--held"
            keys = [line.split()[0] for line in self.dibs("list", which)[1].splitlines()[1:]]
            if not keys:
                continue
            key = chance.choice(keys)
            how = (
                ("claim", key)
                if has_forced
                else ("takeover", key, "--force", "--reason", "a customer waits")
            )
            code, _, warned = self.dibs(*how, "--as", name)
            if code == 0:
                how_it_began = ("took" if warned else "holds") if has_forced else "forces"
                self._person_works(name, key, chance, how_it_began)
                has_forced = True

    def _person_works(self, name: str, key: str, chance: random.Random, how: str) -> None:
        began = self._clock()
        self.reports.put(CrewReport(name, how, key))
        self._over.wait(chance.uniform(0.5, 1) * PERSON_SECONDS)
        done = "forced" if how == "forces" else "works"
        self.reports.put(CrewReport(name, done, key, began, self._clock()))
        self.dibs("complete", key, "--as", name)

    def collect(self, seconds: float) -> list[CrewReport]:
        """The reports of the next `seconds`, and those pending since the last call."""
        self._over.wait(seconds)
        return [self.reports.get_nowait() for _ in range(self.reports.qsize())]

    def dibs(self, *arguments: str) -> tuple[int, str, str]:
        """Runs the command line as a person would; returns exit code, stdout and stderr."""
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *arguments],
            cwd=self.folder,
            env=person_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    # Signals.

    def kill(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGKILL)

    def stop(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGSTOP)

    def wake(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kills and reaps every agent, also stopped ones."""
        self._over.set()
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
            assert process.stdin is not None, "it is a pipe"
            process.stdin.close()
        deadline = time.monotonic() + 10
        for thread in self._threads:
            thread.join(max(0, deadline - time.monotonic()))


def person_environment() -> dict[str, str]:
    """This environment without the variables that mark an agent: the people are simulated."""
    from dibs.harness_table import KNOWN

    marks = {mark for harness in KNOWN for mark in harness.marks}
    left_out = marks | {"DIBS_AGENT", "DIBS_SESSION", "DIBS_BOARD", "DIBS_URL"}
    return {name: value for name, value in os.environ.items() if name not in left_out}


# Fault injection: kills two agents at work, and suspends one beyond its lease.


KILLED = 2
WORKED_SECONDS = 0.7
"""How long a victim works before the fault."""

ZOMBIE_SLEEPS_SECONDS = 4.0


class FaultInjector:
    """Injects faults while the victims are at work; `report` shows them to the viewer."""

    def __init__(
        self, crew: Crew, board: Board, chance: random.Random, report: Callable[[str], None]
    ) -> None:
        victims = chance.sample([f"agent-{n}" for n in range(1, AGENTS + 1)], KILLED + 1)
        self.zombie = victims[-1]
        self.zombie_knows = False
        self.killed: list[str] = []
        self.takeovers = 0
        self.refusals = 0
        self.reports: list[CrewReport] = []
        self._crew = crew
        self._board = board
        self._report = report
        self._to_kill = victims[:KILLED]
        self._at_work: dict[str, tuple[str, float]] = {}
        self._asleep: tuple[str, float] | None = None
        self._is_awake = False

    def record(self, report: CrewReport) -> None:
        if report.what in ("works", "forced"):
            self.reports.append(report)
        if report.what in ("holds", "took"):
            self._at_work[report.name] = (report.key, time.monotonic())
        elif report.what in ("completed", "lost"):
            self._at_work.pop(report.name, None)
        if report.what == "took":
            self.takeovers += 1
            self._report(f"{report.name} takes over {report.key}: its holder's lease has expired")
        elif report.what == "forces":
            self._report(f"{report.name}, a person, takes {report.key} by force")
        elif report.what.startswith("refused"):
            self.refusals += 1
        elif report.what == "lost":
            self._loses(report)

    def _loses(self, report: CrewReport) -> None:
        self.refusals += 1
        if self._asleep is not None and (report.name, report.key) == (self.zombie, self._asleep[0]):
            self.zombie_knows = True
            self._report(
                f"{report.name} wakes up and is refused: {report.key} is no longer its task"
            )
        else:
            self._report(f"{report.name} learns that it lost {report.key}, and stops")

    def inject(self) -> None:
        for name in tuple(self._to_kill):
            key = self._works_on(name)
            if key:
                self._crew.kill(name)
                self._to_kill.remove(name)
                self.killed.append(name)
                self._report(f"{name} is killed at work on {key}")
        if self._asleep is None:
            self._puts_to_sleep(self._works_on(self.zombie))
        elif not self._is_awake:
            self._wakes(*self._asleep)

    def _works_on(self, name: str) -> str:
        """The task that it holds and has worked on for a while; else ""."""
        key, since = self._at_work.get(name, ("", 0.0))
        if not key or time.monotonic() - since < WORKED_SECONDS:
            return ""
        return key if self._holder(key) == name else ""

    def _holder(self, key: str) -> str:
        holder = self._board.who_owned(key).holder
        return holder.name if holder else ""

    def _puts_to_sleep(self, key: str) -> None:
        if not key:
            return
        self._crew.stop(self.zombie)
        if self._holder(key) != self.zombie:  # it has just finished
            self._crew.wake(self.zombie)
            return
        self._asleep = (key, time.monotonic())
        self._report(f"{self.zombie} is stopped at work on {key}")

    def _wakes(self, key: str, since: float) -> None:
        if time.monotonic() - since > ZOMBIE_SLEEPS_SECONDS and self._holder(key) != self.zombie:
            self._is_awake = True
            self._crew.wake(self.zombie)


# The result, by the ledger and by the reports of the workers.


class Story(Value):
    """The result of the demo."""

    tasks: int
    complete: int
    takeovers: int
    forced: int
    killed: tuple[str, ...]
    zombie: str
    zombie_refused: bool
    double_owners: int
    """According to the ledger."""
    at_once: int
    """According to the workers' own clocks: two who worked on the same task at the same time."""
    refusals: dict[str, int]
    worked: dict[str, timedelta]
    faults: tuple[str, ...]
    seconds: float

    @property
    def as_expected(self) -> bool:
        return (
            self.complete == self.tasks
            and self.takeovers > 0
            and self.zombie_refused
            and not self.double_owners
            and not self.at_once
            and not self.faults
        )


def verbs(events: tuple[Event, ...]) -> Counter[str]:
    return Counter(event.verb for event in events)


def double_owners(events: tuple[Event, ...]) -> int:
    """Counts leases that began before the previous one ended, and endings that name another token."""
    held: dict[str | None, str | None] = {}
    found = 0
    for event in events:
        ending = event.facts.get("ending")
        if ending:
            found += held.get(event.task) != ending["token"]  # type: ignore[index]
            held[event.task] = None
        if event.verb in ("claimed", "taken_over", "forced"):
            found += held.get(event.task) is not None
            held[event.task] = event.token
    return found


def at_once(reports: Iterable[CrewReport]) -> int:
    """How often a worker began on a task while another worked on it, by their own clocks.

    A forced takeover begins at once, and the former holder learns of it a little later: not counted.
    """
    until: dict[tuple[str, str, int], CrewReport] = {}
    for report in reports:
        until[report.key, report.name, report.began] = report
    found = 0
    for one in until.values():
        for other in until.values():
            later = one.key == other.key and one.name != other.name and one.began < other.began
            found += later and other.began < one.until and other.what != "forced"
    return found


def worked(events: tuple[Event, ...]) -> dict[str, timedelta]:
    """The total stint time of each actor."""
    total: dict[str, timedelta] = {}
    names = {e.facts["id"]: e.facts["name"] for e in events if e.verb == "actor_registered"}
    for event in events:
        ending = event.facts.get("ending") or {}
        stint = ending.get("stint")  # type: ignore[attr-defined]
        if stint:
            name = str(names[ending["actor"]])  # type: ignore[index]
            span = timedelta(microseconds=stint["ended"] - stint["started"])
            total[name] = total.get(name, timedelta()) + span
    return dict(sorted(total.items()))
