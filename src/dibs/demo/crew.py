"""The crew of the demo: agent processes and simulated people, their reports, and signals to them."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time

from dibs.domain.values import Value
from dibs.machine import this_machine

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
    from dibs.harnesses import KNOWN

    marks = {mark for harness in KNOWN for mark in harness.marks}
    left_out = marks | {"DIBS_AGENT", "DIBS_SESSION", "DIBS_BOARD", "DIBS_URL"}
    return {name: value for name, value in os.environ.items() if name not in left_out}
