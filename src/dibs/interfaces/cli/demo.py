"""`dibs demo`: shows the main job in a throw-away repository, and counts what happened."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta

from dibs.core import checks
from dibs.core.refusals import refused
from dibs.core.values import Value
from dibs.interfaces import payloads
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb
from dibs.interfaces.cli.say import table
from dibs.interfaces.demo.crew import AGENTS, PEOPLE, Crew
from dibs.interfaces.library import Board, open_board
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.interfaces.demo.crew import Said
    from dibs.interfaces.records import Event

TASKS = 40
KILLED = 2
PATIENCE_SECONDS = 120
ZOMBIE_SLEEPS_SECONDS = 4.0
TICK = 0.2


class Story(Value):
    """What the ledger says about the demo when it is over."""

    tasks: int
    complete: int
    takeovers: int
    forced: int
    killed: tuple[str, ...]
    zombie: str
    zombie_refused: bool
    double_owners: int
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
            and not self.faults
        )


def demo(call: Call) -> Answer:
    seed = checks.whole(
        call["seed"] or random.SystemRandom().randrange(10**6), "the seed", 0, 10**9
    )
    with tempfile.TemporaryDirectory(prefix="dibs-demo-") as folder:
        prepare(folder)
        with open_board(folder, person="founder", environment={}) as board:
            for number in range(1, TASKS + 1):
                board.add(f"Task {number} of {TASKS}")
            story = play(folder, board, seed, quiet=call["json"])
    told = story.named() | {"worked": {n: w.total_seconds() for n, w in story.worked.items()}}
    payload = payloads.answer(ok=story.as_expected, seed=seed, **told)
    return Answer(payload, pages(story, seed), exit=0 if story.as_expected else REFUSED)


def prepare(folder: str) -> None:
    try:
        subprocess.run(["git", "init", "-q", folder], check=True, capture_output=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise refused("bad_argument", f"the demo needs git: {error}") from None
    subprocess.run(
        [sys.executable, "-m", "dibs", "init"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "DIBS_BOARD"},
        check=True,
        capture_output=True,
    )


def play(folder: str, board: Board, seed: int, *, quiet: bool) -> Story:
    """Lets the crew work until all is done; kills two agents, and makes one a zombie."""
    began = time.monotonic()
    crew = Crew(folder, seed)
    victims = random.Random(seed).sample([f"agent-{n}" for n in range(1, AGENTS + 1)], KILLED + 1)  # noqa: S311
    fate = Fate(crew, victims[:KILLED], victims[-1])
    crew.start()
    try:
        for said in heard(crew):
            if said is not None:
                fate.meets(said)
            fate.wakes_the_zombie()
            counts = board.status().counts
            if not quiet:
                progress(counts, fate)
            done = counts.get("complete", 0) == TASKS and fate.zombie_knows
            if done or time.monotonic() - began > PATIENCE_SECONDS:
                break
    finally:
        crew.end()
    if not quiet:
        print(file=sys.stderr)
    return told(board, fate, time.monotonic() - began)


def heard(crew: Crew) -> Iterator[Said | None]:
    import queue

    while True:
        try:
            yield crew.said.get(timeout=TICK)
        except queue.Empty:
            yield None


class Fate:
    """What happens to some: two are killed while they hold a task, one sleeps and wakes too late."""

    def __init__(self, crew: Crew, to_kill: list[str], zombie: str) -> None:
        self.crew = crew
        self.zombie = zombie
        self.killed: list[str] = []
        self.zombie_knows = False
        self.printed = 0
        self._to_kill = to_kill
        self._asleep_since: float | None = None
        self._task = ""

    def meets(self, said: Said) -> None:
        if said.what == "holds" and said.name in self._to_kill:
            self._to_kill.remove(said.name)
            self.killed.append(said.name)
            self.crew.kill(said.name)
        elif said.name == self.zombie and said.what == "holds" and self._asleep_since is None:
            self._asleep_since, self._task = time.monotonic(), said.key
            self.crew.stop(said.name)
        elif said.name == self.zombie and said.what == "lost" and said.key == self._task:
            self.zombie_knows = True

    def wakes_the_zombie(self) -> None:
        since = self._asleep_since
        if since is not None and time.monotonic() - since > ZOMBIE_SLEEPS_SECONDS:
            owner = self.crew.dibs("who", self._task)[1]
            if self.zombie not in owner:
                self.crew.wake(self.zombie)


def progress(seen: Mapping[str, int], fate: Fate) -> None:
    """One line, drawn again and again on a terminal; else one for every four tasks."""
    done = seen.get("complete", 0)
    bar = "#" * (done * 30 // TASKS)
    killed = f", killed {', '.join(fate.killed)}" if fate.killed else ""
    line = f"[{bar:<30}] {done}/{TASKS} done, {seen.get('in_progress', 0)} in progress{killed}"
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif done >= fate.printed + 4:
        fate.printed = done
        print(line, file=sys.stderr, flush=True)


# What the ledger says.


def told(board: Board, fate: Fate, seconds: float) -> Story:
    events = board.log(limit=100_000)
    verbs = Counter(event.verb for event in events)
    return Story(
        tasks=TASKS,
        complete=verbs["completed"],
        takeovers=verbs["taken_over"],
        forced=verbs["forced"],
        killed=tuple(fate.killed),
        zombie=fate.zombie,
        zombie_refused=fate.zombie_knows,
        double_owners=double_owners(events),
        refusals=refusals(fate.crew),
        worked=worked(events),
        faults=board.verify(),
        seconds=seconds,
    )


def double_owners(events: tuple[Event, ...]) -> int:
    """Leases that began while another of the same task had not ended; ends by a stranger."""
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


def worked(events: tuple[Event, ...]) -> dict[str, timedelta]:
    """The stints of each actor, added up."""
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


def refusals(crew: Crew) -> dict[str, int]:
    import json

    _, said = crew.dibs("log", "--refused", "--limit", "10000", "--json")
    found = Counter(line["code"] for line in json.loads(said)["refusals"])
    return dict(sorted(found.items()))


def pages(story: Story, seed: int) -> tuple[str, ...]:
    rows = [
        (name, str(timedelta(seconds=round(w.total_seconds())))) for name, w in story.worked.items()
    ]
    codes = ", ".join(f"{number} {code}" for code, number in story.refusals.items()) or "none"
    knows = "was refused when it woke" if story.zombie_refused else "WAS NOT REFUSED"
    sound = "sound" if not story.faults else f"NOT SOUND: {'; '.join(story.faults)}"
    return (
        f"{AGENTS} agents and {len(PEOPLE)} people, {story.seconds:.0f} s, seed {seed}",
        f"tasks done      {story.complete} of {story.tasks}",
        f"killed          {', '.join(story.killed)} (SIGKILL while holding a task)",
        f"zombie          {story.zombie} (stopped while holding a task) {knows}",
        f"takeovers       {story.takeovers} after expiry, {story.forced} forced by a person",
        f"refusals        {codes}",
        f"double owners   {story.double_owners}",
        f"ledger          {sound}",
        "",
        *table(rows, ("ACTOR", "WORKED")),
    )


VERBS = {
    "demo": Verb(
        demo, (argument("--seed", metavar="N", help="play the same demo again; else a new one"),)
    )
}
