"""The weekend of the page `docs/explanation/a-weekend-of-work.md`: what it shows is what comes of it.

An agent crashes, is taken over, and comes back. A person works over midnight, while the clocks go back;
forgets to stop; and puts that right. Another person approves it.
"""

from __future__ import annotations

import os
import re
import shlex
from datetime import datetime
from importlib import import_module
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from dibs.cli import verbs
from dibs.cli.call import Call, parse_arguments
from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR
from dibs.output.error_map import advice, mapping_of
from kit.boards import Bench

PAGE = Path(__file__).parents[2] / "docs/explanation/a-weekend-of-work.md"
BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = "2026-10-26"


def instant(day: str, clock: str, fold: int = 0) -> int:
    local = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=BERLIN, fold=fold)
    return round(local.timestamp()) * 1_000_000


class Weekend:
    """A board whose clock is moved from one local time to the next."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.codex = bench.agent("codex", "s1")
        self.again = bench.agent("codex", "s2")
        self.claude = bench.agent("claude", "s9")
        self.ana = bench.person("ana")
        self.bo = bench.person("bo")

    def at(self, day: str, clock: str) -> None:
        self.bench.advance((instant(day, clock) - self.bench.now()) / 1_000_000)

    def output_of(self, line: str) -> str:
        """What `dibs` prints, with the exit code if it is not 0."""
        name, *words = shlex.split(line)
        verb = import_module(verbs.MODULES[name]).VERBS[name]
        call = Call(parse_arguments(name, "", verb.arguments, words))
        call.adopt(self.bench.board)
        try:
            answer = verb.run(call)
        except Refused as problem:
            refusal = problem.refusal
            shown = f"dibs: {refusal.message}\n  next: {advice(refusal)}\n"
            return f"{shown}exit {mapping_of(refusal).exit}\n"
        return "".join(f"{line}\n" for line in answer.lines) or answer.file


@pytest.fixture
def weekend(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("kit.boards.START", instant("2026-10-24", "08:55"))
    for variable in [name for name in os.environ if name.startswith("DIBS_")]:
        monkeypatch.delenv(variable)
    bench = Bench(tmp_path / "dibs", kind=kind)
    story = Weekend(bench)
    happens(story)
    yield story
    bench.close()


def happens(story: Weekend) -> None:
    saturday, sunday = "2026-10-24", "2026-10-25"
    for title in ("Fix login", "Plan the release", "Write the notes"):
        story.bench.person("bo").do(c.Add(story.bench.terms(title)))
    story.bo.do(c.SetActor("ana", kind="human", zone="Europe/Berlin"))
    story.at(saturday, "09:00")
    story.codex.claim("T-1", ttl=2 * HOUR)
    story.at(saturday, "09:40")
    story.codex.do(c.Renew("T-1"))  # its last sign of life
    story.at(saturday, "11:45")
    story.claude.claim("T-1")
    story.at(saturday, "12:30")
    story.claude.do(c.Release("T-1", note="the test of the token still fails"))
    story.at(saturday, "14:00")
    story.again.claim("T-1")
    story.at(saturday, "15:00")
    story.again.do(c.Complete("T-1", note="the token was cut off"))
    story.at(saturday, "22:00")
    story.ana.claim("T-2")
    story.at(sunday, "04:00")  # the clocks went back at three
    story.ana.do(c.Complete("T-2"))
    story.at(sunday, "14:00")
    story.ana.claim("T-3")
    story.at(MONDAY, "08:30")  # she had forgotten
    story.ana.do(c.Complete("T-3"))


def blocks() -> list[tuple[str, str]]:
    """The commands of the page, each with what it prints."""
    found = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    parts = [part for block in found for part in re.split(r"^\$ dibs ", block, flags=re.MULTILINE)]
    return [tuple(part.split("\n", 1)) for part in parts if part]


def test_the_page_shows_the_weekend_as_it_is(weekend):
    shown = blocks()
    assert len(shown) >= 6
    for command, printed in shown:
        assert weekend.output_of(command) == printed, command
    assert weekend.bench.faults() == ()
