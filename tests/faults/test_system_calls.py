"""Killed at a system call, or failed by it: nothing lost, nothing doubled, no repair.

One command, one fault: at each call on the board's files in turn. By default a kill comes at every
call but those that only read (what is on the disk is the same before and after them), and an error
at some of all calls; in a soak both come at all of them.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from kit import soak
from kit.injection import KILLED, Point, points, struck, why_not
from kit.racers import run_here
from kit.repositories import NOT_INHERITED, Repo

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

CODEX = ("--agent", "codex", "--session", "s1")
CLAUDE = ("--agent", "claude", "--session", "s9")
VERBS = {
    "claim": ["added", "claimed", "started"],
    "takeover": ["added", "claimed", "started", "taken_over"],
    "release": ["added", "claimed", "started", "released"],
    "complete": ["added", "claimed", "started", "completed"],
}
"""Each verb, and what the ledger says of the task when it was done once."""

ONLY_READS = ("pread64", "fstat", "stat", "lstat", "newfstatat", "statx")
WAITS = ("fcntl",)
"""A lock that fails is waited for, for as long as a lock is waited for: for good, or in a soak."""

CHUNKS = 3
EVERY = 8
TYPED = {74: ("disk_full", "read_only", "corrupt", "storage_failed"), 75: ("busy",)}


class Ground:
    """Boards that are ready for each verb, and a copy of one of them to strike."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = Repo.create(folder / "repo")
        for verb in VERBS:
            self.prepare(verb, {"DIBS_BOARD": str(folder / verb)})

    def prepare(self, verb: str, board: dict[str, str]) -> None:
        self.repo.ok("init", **board)
        (self.folder / verb / "settings.toml").write_text('write_wait = "1s"\n')
        self.repo.ok("add", "work", "--as", "ana", **board)
        if verb in ("release", "complete"):
            self.repo.ok("claim", "T-1", *CODEX, **board)
        if verb == "takeover":
            self.repo.ok("claim", "T-1", *CLAUDE, "--ttl", "1s", **board)
            self.repo.await_expiry("T-1", **board)

    def fresh(self, verb: str) -> Path:
        board = self.folder / "struck"
        shutil.rmtree(board, ignore_errors=True)
        return Path(shutil.copytree(self.folder / verb, board))


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture(autouse=True)
def _here(monkeypatch, ground):
    """What is looked at afterwards is looked at from this process, which is faster."""
    for name in NOT_INHERITED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DIBS_BOARD", str(ground.folder / "struck"))
    monkeypatch.chdir(ground.repo.folder)


def command(verb: str) -> tuple[str, ...]:
    return (verb, "T-1", *CODEX, "--request-id", "r1")


def strike(ground: Ground, verb: str, point: Point, fault: str) -> list[str]:
    """What is wrong after a fault at this point; nothing should be."""
    board = ground.fresh(verb)
    ran, reached = struck(ground.repo.folder, board, (*command(verb), "--json"), point, fault)
    wrong = ["it was not reached"] if not reached else []
    if fault == "KILL":
        wrong += [f"exit {ran.code}"] if ran.code != KILLED else []
    elif ran.code and (ran.code not in TYPED or ran.error["code"] not in TYPED[ran.code]):
        wrong.append(f"exit {ran.code}: {ran.err}")
    if "Traceback" in ran.err or "Exception ignored" in ran.err:
        wrong.append(ran.err)
    wrong += ["the ledger does not verify"] if run_here(["log", "--verify"])[0] else []
    code, again = run_here([*command(verb)])
    if code:
        wrong.append(f"asked again: exit {code}, {again}")
    elif ran.code == 0 and not again["replayed"]:
        wrong.append("it was acknowledged, and is lost")
    elif ran.code > 0 and again["replayed"]:
        wrong.append(f"exit {ran.code} says that nothing was changed, and it was done")
    done = [event["verb"] for event in run_here(["log", "T-1"])[1]["events"]]
    wrong += [f"the ledger says {done}"] if done != VERBS[verb] else []
    wrong += ["the ledger does not verify at the end"] if run_here(["log", "--verify"])[0] else []
    return [f"{verb}, {fault} at {point.call} {point.n}: {what}" for what in wrong]


def strike_all(ground: Ground, verb: str, chosen: list[Point], fault: str) -> None:
    begun = time.monotonic()
    wrong = [what for point in chosen for what in strike(ground, verb, point, fault)]
    took = time.monotonic() - begun
    print(f"{verb}: {fault} at {len(chosen)} points, {took:.1f} s")
    assert wrong == []
    assert chosen


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("verb", VERBS)
def test_a_command_killed_at_any_system_call_is_done_whole_or_not_at_all(ground, verb, chunk):
    """Asked again with its request id it succeeds, and the ledger has it once."""
    found = points(ground.repo.folder, ground.fresh(verb), command(verb))
    chosen = [point for point in found if soak.MINUTES or point.call not in ONLY_READS]
    strike_all(ground, verb, chosen[chunk::CHUNKS], "KILL")


@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "ENOSPC+", "EIO+"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_system_call_that_fails_is_74_or_75_and_then_nothing_was_changed(ground, verb, fault):
    """Once (a bad sector, a quota), or from then on (`+`: a full disk, a dead one)."""
    found = points(ground.repo.folder, ground.fresh(verb), command(verb))
    lasting = fault.endswith("+")
    waits = soak.MINUTES and not lasting
    chosen = [point for point in found if waits or point.call not in WAITS]
    if not soak.MINUTES:
        first = ([*VERBS].index(verb) * 2 + lasting) % EVERY
        chosen = chosen[first :: EVERY * (1 + lasting)]
    strike_all(ground, verb, chosen, fault)


@pytest.mark.parametrize("call", ["flock", "close"])
def test_a_turn_that_cannot_be_given_back_makes_no_failure_of_what_was_done(ground, call):
    """The commit is valid: an error of the lock file afterwards is not `nothing was changed`."""
    found = points(ground.repo.folder, ground.fresh("claim"), command("claim"))
    strike_all(ground, "claim", [point for point in found if point.call == call], "EIO")


def test_a_board_that_cannot_be_looked_at_is_not_taken_for_one_that_is_not_there(ground):
    """`no board` advises to make one: it comes only where there is none."""
    found = points(ground.repo.folder, ground.fresh("claim"), command("claim"))
    looks = [point for point in found if "stat" in point.call]
    strike_all(ground, "claim", looks, "EIO")
