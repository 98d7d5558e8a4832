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
    """Injects faults while the victims are at work; `tell` reports them to the viewer."""

    def __init__(
        self, crew: Crew, board: Board, chance: random.Random, tell: Callable[[str], None]
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
        self._tell = tell
        self._to_kill = victims[:KILLED]
        self._at_work: dict[str, tuple[str, float]] = {}
        self._asleep: tuple[str, float] | None = None
        self._is_awake = False

    def record(self, said: CrewReport) -> None:
        if said.what in ("works", "forced"):
            self.reports.append(said)
        if said.what in ("holds", "took"):
            self._at_work[said.name] = (said.key, time.monotonic())
        elif said.what in ("completed", "lost"):
            self._at_work.pop(said.name, None)
        if said.what == "took":
            self.takeovers += 1
            self._tell(f"{said.name} takes over {said.key}: its holder's lease has expired")
        elif said.what == "forces":
            self._tell(f"{said.name}, a person, takes {said.key} by force")
        elif said.what.startswith("refused"):
            self.refusals += 1
        elif said.what == "lost":
            self._loses(said)

    def _loses(self, said: CrewReport) -> None:
        self.refusals += 1
        if self._asleep is not None and (said.name, said.key) == (self.zombie, self._asleep[0]):
            self.zombie_knows = True
            self._tell(f"{said.name} wakes up, and is refused: {said.key} is not its task any more")
        else:
            self._tell(f"{said.name} learns that it lost {said.key}, and stops")

    def inject(self) -> None:
        for name in tuple(self._to_kill):
            key = self._works_on(name)
            if key:
                self._crew.kill(name)
                self._to_kill.remove(name)
                self.killed.append(name)
                self._tell(f"{name} is killed at work on {key}")
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
        self._tell(f"{self.zombie} is stopped at work on {key}")

    def _wakes(self, key: str, since: float) -> None:
        if time.monotonic() - since > ZOMBIE_SLEEPS_SECONDS and self._holder(key) != self.zombie:
            self._is_awake = True
            self._crew.wake(self.zombie)
