"""Fault injection for the demo: kills two agents at work, and suspends one beyond its lease."""

from __future__ import annotations

import time

from dibs.demo.crew import AGENTS, Crew
from dibs.library.board import Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from dibs.demo.crew import CrewReport

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
