"""A damaged file: it is reported, or it makes no difference; never a bug, never a traceback."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import apsw
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
    """Everything that is printed about tasks and their history, but for what no ledger keeps."""
    replies = [run_here([*question]) for question in QUESTIONS]
    for _, answer in replies:
        answer.pop("at", None)  # `who` says for which instant it was asked: now
        for task in (answer.get("task"), *answer.get("tasks", ())):
            for field in NOT_IN_THE_LEDGER if isinstance(task, dict) else ():
                task.pop(field, None)
    return replies


def places(database: Path) -> list[list[int]]:
    """For each table and index, where in the file something of it is.

    Most of a small board's file is empty space, and most of the rest is the schema.
    """
    whole, found = database.read_bytes(), {}
    connection = apsw.Connection(str(database))
    for name, start, size in connection.execute("SELECT name, pgoffset, pgsize FROM dbstat"):
        found.setdefault(name, []).extend(at for at in range(start, start + size) if whole[at])
    connection.close()
    return [*found.values()]


def put(board: Path, content: bytes) -> None:
    """A board whose file has this content, and is private as a board's is."""
    shutil.rmtree(board, ignore_errors=True)
    board.mkdir(mode=0o700)
    (board / "board.db").touch(mode=0o600)
    (board / "board.db").write_bytes(content)


@pytest.fixture
def board(repo, monkeypatch):
    """The folder of a board that is put there by the test, and is the one of every command."""
    prepare(repo)
    board = repo.folder / "struck"
    for name in NOT_INHERITED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DIBS_BOARD", str(board))
    monkeypatch.chdir(repo.folder)
    return board


def struck(whole: bytes, written: list[list[int]], chance: random.Random) -> tuple[bytes, str]:
    """One to sixteen bytes are others: anywhere, or where something of some table is."""
    where = chance.choice(written) if chance.random() < 0.5 else range(len(whole))
    start, length = chance.choice(where), chance.choice((1, 1, 2, 4, 16))
    content = bytearray(whole)
    for at in range(start, min(start + length, len(whole))):
        content[at] ^= chance.randrange(1, 256)
    return bytes(content), f"bytes {start} to {start + length}"


def is_reported(doctor, verified) -> bool:
    """By an exit code; of the clock, which has no second witness, by a note of `doctor`."""
    findings = doctor[1].get("findings", ())
    off = any(found["what"] == "clock" and found["level"] != "ok" for found in findings)
    return doctor[0] != 0 or verified[0] != 0 or off


@of_a_file
@pytest.mark.parametrize("part", range(PARTS))
def test_flipped_bytes_are_found_or_make_no_difference(repo, board, part):
    """Many times, each time in a fresh copy.

    `doctor` or `log --verify` tells; or no answer is another one, unless it is 74 itself.
    """
    chance = random.Random(f"{soak.seed()} {part}")
    whole = repo.database.read_bytes()
    put(board, whole)
    true, written = answers(), places(board / "board.db")
    assert run_here(["doctor"])[0] == run_here(["log", "--verify"])[0] == 0
    blows, found = soak.times(FLIPS, share=0.2 / PARTS, each=0.06), 0
    for _ in range(blows):
        content, where = struck(whole, written, chance)
        put(board, content)
        checks = [run_here(["doctor"]), run_here(["log", "--verify"])]
        replies = answers()
        codes = [code for code, _ in (*checks, *replies, run_here(["claim", "T-5", *CODEX]))]
        assert set(codes) <= {0, 1, 2, 3, 4, 5, 74}, (where, codes, checks, replies)
        reported = is_reported(*checks)
        found += reported
        changed = [now for before, now in zip(true, replies) if before != now and now[0] != 74]
        assert reported or not changed, (where, changed)
    print(f"part {part}: {found} of {blows} were found, the others made no difference")
    assert found > blows / 10


@of_a_file
def test_a_file_that_was_cut_or_emptied_is_reported(repo, board):
    whole = repo.database.read_bytes()
    for size in (0, 1, 99, 100, 512, 4096, 8192, len(whole) // 2, len(whole) - 4096):
        put(board, whole[:size])
        for command in (["doctor"], ["log", "--verify"], ["list"], ["claim", "T-5", *CODEX]):
            code, output = run_here(command)
            assert code != 70, (size, command, output)
            if command[0] in ("doctor", "log") or size < len(whole) // 2:
                assert code != 0, (size, command, output)


@of_a_file
@pytest.mark.parametrize("missing", [1, 100])
def test_a_file_that_ends_within_a_page_is_told_by_the_doctor(repo, board, missing):
    """SQLite reads zeros in place of what is missing: where nothing was, every question has its answer."""
    put(board, repo.database.read_bytes()[:-missing])
    code, output = run_here(["doctor"])
    assert code != 0
    found = {line["what"]: line["found"] for line in output["findings"]}
    assert f"bytes missing at the end of the file: {missing}" in found["integrity"]
