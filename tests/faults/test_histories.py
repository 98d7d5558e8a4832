"""Eight processes and a nemesis: whatever they are told, one board could have said it.

The judges are `kit.history`: an order for the operations of each task, and the ledger. They are
judged too: a board that is broken on purpose must be found out by them.
"""

from __future__ import annotations

import random
import signal
import time

import pytest

from kit import clocks, soak
from kit.boards_on_disk import board_with, ledger_of, opened
from kit.history import Answer, ledger_faults, violation
from kit.workers import TTL, Crew

WORKERS = 8
CONTESTED = 12


class Nemesis:
    """Kills, stops and continues workers, and steps the wall clock, by chance."""

    def __init__(self, crew: Crew, chance: random.Random, keys: list[str], offset) -> None:
        self.crew, self.chance, self.keys, self.offset = crew, chance, keys, offset
        self.stopped: dict[int, float] = {}
        self.sessions = 0
        self.done = {"kill": 0, "stop": 0, "step": 0}

    def hire(self) -> None:
        """Whoever was killed does not come back: its session is gone, its lease runs out."""
        self.sessions += 1
        orders = {"session": f"s{self.sessions}", "seed": self.chance.random()}
        self.crew.start(**orders, keys=self.keys, contested=CONTESTED)

    def rage(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.crew.listen(self.chance.uniform(0, 0.15))
            for pid in [pid for pid, until in self.stopped.items() if until < time.monotonic()]:
                self.crew.signal(pid, signal.SIGCONT)
                del self.stopped[pid]
            deed = self.chance.choices([*self.done], [3, 2, 2])[0]
            self.done[deed] += getattr(self, deed)()

    def victim(self) -> int | None:
        awake = sorted(set(self.crew.alive) - set(self.stopped))
        return self.chance.choice(awake) if len(awake) > 2 else None

    def kill(self) -> bool:
        pid = self.victim()
        if pid is not None:
            self.crew.kill(pid)
            self.hire()
        return pid is not None

    def stop(self) -> bool:
        """For up to two lives of a lease, wherever it stands: also inside a transaction."""
        pid = self.victim()
        if pid is not None:
            self.crew.signal(pid, signal.SIGSTOP)
            lives = self.chance.uniform(0, 2)
            self.stopped[pid] = time.monotonic() + lives * TTL / 1e6
        return pid is not None

    def step(self) -> bool:
        if self.offset is not None:
            clocks.step(self.offset, self.chance.randint(-86_400, 86_400))
        return self.offset is not None


def test_eight_processes_under_a_nemesis_leave_a_history_that_one_board_could_have_made(
    tmp_path,
):
    """Kills, stops of up to two lives of a lease, steps of the wall clock of up to a day."""
    chance = random.Random(soak.seed())
    seconds = max(soak.seconds(10, share=0.4), 60 if soak.MINUTES else 0)
    keys = board_with(tmp_path / "board", tasks=100 + round(seconds * 5))
    shim = clocks.shim(tmp_path)
    with Crew(tmp_path / "board", **(shim.environment if shim else {})) as crew:
        nemesis = Nemesis(crew, chance, keys, shim and shim.offset)
        for _ in range(WORKERS):
            nemesis.hire()
        nemesis.rage(seconds)
        crew.finish()
        operations = crew.operations()
    entries, faults = ledger_of(tmp_path / "board")
    answered = [op for op in operations if isinstance(op.answer, Answer)]
    cut = [op for op in operations if op.answer is None]
    takeovers = sum(entry.verb == "taken_over" for entry in entries)
    print(
        f"{len(operations)} operations in {seconds:g} s, {len(answered)} successes, {len(cut)} cut"
    )
    print(f"{takeovers} takeovers, {nemesis.done}, clock steps {'on' if shim else 'off'}")
    begun = time.monotonic()
    assert violation(operations) is None
    print(f"judged in {time.monotonic() - begun:.1f} s")
    assert ledger_faults(operations, entries) == []
    assert faults == ()
    assert len(answered) > 100 and takeovers > 0


@pytest.mark.parametrize(
    "broken",
    [
        "a guard is removed",
        "the token is not compared",
        "neither token nor holder is compared",
        "the lock is weakened: it is won after the decision",
    ],
)
def test_a_board_that_is_broken_on_purpose_is_found_out_by_what_it_grants(tmp_path, broken):
    """The workers run the real board with one fault in it, until the judge objects.

    The judge is shown successes only: it is not the words of a refusal that give the fault away.
    The schema is a second lock; where it would stop the fault it is opened too.
    """
    chance = random.Random(soak.seed())
    keys = board_with(tmp_path, tasks=100)
    with opened(tmp_path) as board:
        board.store.connection.execute("DROP TRIGGER a_new_holder_has_a_new_token")
    found, deadline = None, time.monotonic() + 60
    with Crew(tmp_path) as crew:
        for n in range(4):
            orders = {"session": f"s{n}", "seed": chance.random(), "broken": broken}
            crew.start(**orders, keys=keys, contested=2)
        while found is None and time.monotonic() < deadline:
            crew.listen(0.3)
            found = violation([op for op in crew.operations() if not isinstance(op.answer, str)])
    assert found is not None, f"{broken}, and nobody noticed"
    print(found)


def test_a_board_that_is_not_broken_is_not_found_out(tmp_path):
    """The same run without a fault: the judge objects to nothing."""
    chance = random.Random(soak.seed())
    keys = board_with(tmp_path, tasks=100)
    with Crew(tmp_path) as crew:
        for n in range(4):
            crew.start(session=f"s{n}", seed=chance.random(), keys=keys, contested=2)
        crew.listen(2)
        crew.finish()
        operations = crew.operations()
    entries, faults = ledger_of(tmp_path)
    assert violation(operations) is None
    assert ledger_faults(operations, entries) == [] and faults == ()
