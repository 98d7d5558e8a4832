"""A board that was replaced, restored or deleted under a process that goes on: it is noticed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.machine import this_machine
from dibs.storage.sqlite.write_lock import acquire_write_lock
from kit.boards import Bench
from kit.hands import Hand, status_of
from kit.repositories import Repo
from kit.running import Running, here, lives, until, waits_for_a_lock

ANA = ("--as", "ana")
LOST = ("lease_lost", "token_ahead")


@pytest.fixture
def repo(tmp_path):
    """What is tested here is the file."""
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    repo.add("first")
    repo.add("second")
    return repo


def saved_copy(repo: Repo, tmp_path: Path) -> Path:
    """Of the file as it is: nobody has it open, so there is no log beside it."""
    return Path(shutil.copy(repo.database, tmp_path / "saved.db"))


def folder_of(repo: Repo) -> Path:
    return repo.database.parent


def restore_a_damaged_one(repo: Repo, saved: Path) -> None:
    """The file is put aside, and another one takes its place."""
    with open(repo.database, "r+b") as file:
        file.write(b"damaged " * 512)
    repo.ok("board", "restore", str(saved), "--reason", "the disk", *ANA)


def put_an_old_copy_in_place(repo: Repo, saved: Path) -> None:
    """Another file: the one that is open loses its name."""
    for name in ("board.db-wal", "board.db-shm"):
        (folder_of(repo) / name).unlink()
    shutil.copy(saved, repo.database.with_name("old"))
    os.replace(repo.database.with_name("old"), repo.database)


def copy_an_old_one_over_it(repo: Repo, saved: Path) -> None:
    """The file keeps its inode; the log beside it does not."""
    shutil.copyfile(saved, repo.database)
    for name in ("board.db-wal", "board.db-shm"):
        (folder_of(repo) / name).unlink()


def make_another(repo: Repo, _: Path) -> None:
    shutil.rmtree(folder_of(repo))
    repo.ok("init")
    repo.add("first")
    repo.add("second")


def delete(repo: Repo, _: Path) -> None:
    shutil.rmtree(folder_of(repo))


replaced = pytest.mark.parametrize(
    "replace", [restore_a_damaged_one, put_an_old_copy_in_place, copy_an_old_one_over_it]
)


@replaced
def test_who_held_a_task_of_a_board_that_was_replaced_has_lost_it(repo, tmp_path, replace):
    saved = saved_copy(repo, tmp_path)
    with Hand(repo.folder, "codex") as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        replace(repo, saved)
        assert codex.do("command", "Renew", task="T-1", token="1.1") in LOST
        assert repo.json("show", "T-1")["task"]["assignee_agent"] is None


@replaced
def test_what_is_acknowledged_afterwards_is_in_the_board_that_is_there(repo, tmp_path, replace):
    saved = saved_copy(repo, tmp_path)
    with Hand(repo.folder, "codex") as codex, Hand(repo.folder, "other") as other:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        assert other.do("command", "Claim", task="T-2") == "1.1"
        replace(repo, saved)
        assert codex.do("command", "Claim", task="T-2").endswith(".1")
        assert other.do("command", "Claim", task="T-2") == "held"
        assert repo.json("show", "T-2")["task"]["assignee_agent"] == "codex"
        for hand in (codex, other):
            assert hand.do("close") is None, "which leaves the files of the new board alone"
        assert repo.json("show", "T-2")["task"]["assignee_agent"] == "codex"
        assert repo.json("log", "--verify")["ok"]


@replaced
def test_who_closes_a_board_that_was_replaced_writes_nothing_to_the_new_one(
    repo, tmp_path, replace
):
    """The last one that closes a file writes its log to it, and removes the log by its name."""
    saved = saved_copy(repo, tmp_path)
    with Hand(repo.folder, "codex") as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        replace(repo, saved)
        assert codex.do("close") is None
        assert repo.json("show", "T-1")["task"]["assignee_agent"] is None
        assert repo.json("log", "--verify")["ok"]


def test_another_board_at_the_same_place_is_not_taken_for_the_one_that_was_opened(repo, tmp_path):
    with Hand(repo.folder, "codex") as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        make_another(repo, tmp_path)
        for name in ("Renew", "Claim", "Complete"):
            assert codex.do("command", name, task="T-1") == "board_replaced"
        assert codex.do("remaining", "T-1") == "board_replaced"
        assert repo.json("show", "T-1")["task"]["assignee_agent"] is None


def test_a_board_that_was_deleted_is_not_made_again(repo, tmp_path):
    with Hand(repo.folder, "codex") as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        delete(repo, tmp_path)
        assert codex.do("command", "Renew", task="T-1") == "no_board"
        assert codex.do("remaining", "T-1") == "no_board"
        assert not folder_of(repo).exists()


def test_a_board_without_its_log_is_not_written_behind_the_back_of_others(repo):
    """Who opens it now gets a log of its own: two writers would not see each other."""
    with Hand(repo.folder, "codex") as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        for name in ("board.db-wal", "board.db-shm"):
            (folder_of(repo) / name).unlink()
        repo.ok("list")
        codex.do("command", "Claim", task="T-2")
        assert repo.json("show", "T-2")["task"]["assignee_agent"] == "codex"


@pytest.mark.parametrize("replace", [make_another, delete, restore_a_damaged_one])
def test_a_run_ends_its_work_when_its_board_is_gone(repo, tmp_path, replace):
    saved = saved_copy(repo, tmp_path)
    script = f"{here('work')}; exec sleep 600"
    with Running(repo, "T-1", script, "--agent", "codex", "--session", "s1") as run:
        work = run.pid_of("work")
        replace(repo, saved)
        ran = run.ended()
        assert ran.code == 5, (ran.out, ran.err)
        assert not lives(work)


@pytest.mark.parametrize(
    "verb", [("watch",), ("wait", "T-1", "--for", "complete"), ("dispatch", *ANA)]
)
@pytest.mark.parametrize(("replace", "code"), [(make_another, 74), (delete, 2)])
def test_who_waits_learns_that_the_board_is_gone(repo, tmp_path, verb, replace, code):
    repo.personal(repo.json("init")["board"], '[agents.codex]\ncommand = ["false"]\n')
    repo.ok("park", "T-1", *ANA)
    repo.ok("park", "T-2", *ANA)
    waiting = repo.start(*verb)
    try:
        until(lambda: has_open(waiting.pid, repo.database) and rests(waiting.pid))
        waiting.send_signal(signal.SIGSTOP)
        replace(repo, tmp_path)
        waiting.send_signal(signal.SIGCONT)
        _, err = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    assert waiting.returncode == code, err
    assert str(folder_of(repo)) in err


def has_open(pid: int, path: Path) -> bool:
    return any(
        os.path.realpath(f"/proc/{pid}/fd/{name}") == str(path)
        for name in os.listdir(f"/proc/{pid}/fd")
    )


def rests(pid: int) -> bool:
    """Whether it waits between two looks: it has read the board."""
    for _ in range(20):
        if status_of(pid) != "S":
            return False
        time.sleep(0.01)
    return True


# The lock.


def test_a_lock_file_that_was_replaced_is_no_lock(tmp_path):
    """Who waited for the old one waits for the new one."""
    path, machine = str(tmp_path / "write.lock"), this_machine()
    order: list[str] = []

    def wait() -> None:
        turn = acquire_write_lock(path, "waiter", 30, machine)
        order.append("waiter")
        turn.end()

    first = acquire_write_lock(path, "first", 5, machine)
    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: waits_for_a_lock(os.getpid()))
    os.unlink(path)
    second = acquire_write_lock(path, "second", 5, machine)
    first.end()
    waiter.join(0.3)
    order.append("second")
    second.end()
    waiter.join(30)
    assert order == ["second", "waiter"]


def test_a_board_that_is_replaced_while_a_writer_waits_is_not_written(tmp_path):
    bench = Bench(tmp_path / "dibs")
    bench.add()
    codex = bench.agent()
    codex.claim()
    turn = acquire_write_lock(bench.store.lock, "a person", 5, this_machine())
    codes: list[str] = []

    def renew() -> None:
        try:
            codex.do(c.Renew(TaskKey("T-1")))
        except Refused as problem:
            codes.append(problem.code)

    writer = threading.Thread(target=renew)
    writer.start()
    until(lambda: waits_for_a_lock(os.getpid()))
    shutil.rmtree(tmp_path / "dibs")
    other = Bench(tmp_path / "dibs")
    turn.end()
    writer.join(30)
    assert codes == ["board_replaced"]
    other.close()
