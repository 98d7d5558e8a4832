"""A file that was damaged: it is told, or it makes no difference; never a bug, never a traceback."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from kit import soak
from kit.boards import of_a_file
from kit.racers import run_here
from kit.repositories import NOT_INHERITED, Repo

CODEX = ("--agent", "codex", "--session", "s1")
CLAUDE = ("--agent", "claude", "--session", "s9")
FLIPS = 60
PARTS = 4
QUESTIONS = (
    ("list",),
    ("log", "--limit", "1000"),
    ("who", "T-1"),
    ("show", "T-2"),
    ("show", "T-3"),
    ("show", "T-4"),
)

NOT_IN_THE_LEDGER = ("host", "worktree", "branch", "renewals")
"""Where a session works, and how often it showed a sign of life."""


def prepare(repo: Repo) -> None:
    """Some of everything: leases that run and that ended, notes, requests, refusals, actors."""
    for n in range(1, 9):
        repo.ok("add", f"task {n}", "--as", "ana", "--request-id", f"add-{n}")
    repo.ok("claim", "T-1", *CODEX, "--request-id", "r1")
    repo.run("claim", "T-1", *CLAUDE)
    repo.ok("note", "T-1", "a note of some length " * 20, "--as", "ana")
    repo.ok("complete", "T-1", *CODEX, "--note", "done")
    repo.ok("claim", "T-2", *CLAUDE, "--ttl", "7d")
    repo.ok("assign", "T-3", "--to", "codex", "--as", "ana")
    repo.ok("claim", "T-4", *CODEX)
    repo.ok("release", "T-4", *CODEX)
    repo.ok("actor", "set", "codex", "--tier", "3", "--as", "ana")


def answers() -> list:
    """Everything that is said about tasks and their history, but for what no ledger keeps."""
    said = [run_here([*question]) for question in QUESTIONS]
    for _, answer in said:
        answer.pop("at", None)  # `who` says for which instant it was asked: now
        for task in (answer.get("task"), *answer.get("tasks", ())):
            for field in NOT_IN_THE_LEDGER if isinstance(task, dict) else ():
                task.pop(field, None)
    return said


def put(board: Path, content: bytes) -> None:
    """A board whose file has this content, and is private as a board's is."""
    shutil.rmtree(board, ignore_errors=True)
    board.mkdir(mode=0o700)
    (board / "board.db").touch(mode=0o600)
    (board / "board.db").write_bytes(content)


@of_a_file
@pytest.mark.parametrize("part", range(PARTS))
def test_41_flipped_bytes_are_found_or_make_no_difference(repo, monkeypatch, part):
    """One to sixteen bytes anywhere in the file, many times, each time in a fresh copy.

    `doctor` or `log --verify` tells; or no answer is another one, unless it is 74 itself.
    """
    chance = random.Random(f"{soak.seed()} {part}")
    prepare(repo)
    whole = repo.database.read_bytes()
    board = repo.folder / "struck"
    for name in NOT_INHERITED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DIBS_BOARD", str(board))
    monkeypatch.chdir(repo.folder)
    put(board, whole)
    true = answers()
    assert run_here(["doctor"])[0] == run_here(["log", "--verify"])[0] == 0
    # Much of a small board's file is empty space: half of the blows go where something is.
    places = chance.choices(range(len(whole)), k=1000)
    places += chance.choices([at for at, byte in enumerate(whole) if byte], k=1000)
    found = 0
    for _ in range(soak.times(FLIPS, share=0.2 / PARTS, each=0.06)):
        struck = bytearray(whole)
        # Never the same byte: each is another one afterwards.
        start, length = chance.choice(places), chance.choice((1, 1, 2, 4, 16))
        for at in range(start, min(start + length, len(whole))):
            struck[at] ^= chance.randrange(1, 256)
        put(board, bytes(struck))
        where = f"bytes {start} to {start + length}"
        doctor, verified = run_here(["doctor"]), run_here(["log", "--verify"])
        said = answers()
        written = run_here(["claim", "T-5", *CODEX])
        codes = [code for code, _ in (doctor, verified, *said, written)]
        assert 70 not in codes, (where, doctor, verified, said, written)
        assert set(codes) <= {0, 1, 2, 3, 4, 5, 74}, (where, codes)
        told = doctor[0] != 0 or verified[0] != 0
        found += told
        changed = [now for before, now in zip(true, said) if before != now and now[0] != 74]
        assert told or not changed, (where, changed)
    print(f"part {part}: {found} were found, the others made no difference")


@of_a_file
def test_a_file_that_was_cut_or_emptied_is_told(repo, monkeypatch):
    prepare(repo)
    whole = repo.database.read_bytes()
    board = repo.folder / "struck"
    for name in NOT_INHERITED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DIBS_BOARD", str(board))
    monkeypatch.chdir(repo.folder)
    for size in (0, 1, 99, 100, 512, 4096, 8192, len(whole) // 2, len(whole) - 1):
        put(board, whole[:size])
        for command in (["doctor"], ["log", "--verify"], ["list"], ["claim", "T-5", *CODEX]):
            code, said = run_here(command)
            assert code != 70, (size, command, said)
            if command[0] in ("doctor", "log") or size < len(whole) // 2:
                assert code != 0, (size, command, said)
