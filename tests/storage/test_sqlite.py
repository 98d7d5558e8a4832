"""The file: who may see it, what it refuses to be, how writers queue, what it does when ill."""

from __future__ import annotations

import _thread
import fcntl
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from dibs.board.execute import Board
from dibs.board.settings import Settings
from dibs.board.transfer import move
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.machine import Linux
from dibs.storage.sqlite import write_lock
from dibs.storage.sqlite.health import SAFE_SQLITE, version_tuple
from dibs.storage.sqlite.store import UNSAFE_FILE_SYSTEMS, SqliteStore
from dibs.storage.store import Finding
from kit.boards import Bench, FakeMachine
from kit.running import until

K = TaskKey("T-1")


@pytest.fixture
def kind():
    """What is tested here is the file."""
    return "sqlite"


def code_of(call) -> str:
    with pytest.raises(Refused) as problem:
        call()
    return problem.value.code


# The file.


def test_the_folder_and_the_files_are_private(bench):
    bench.add()
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(bench.store.folder).iterdir()
    }
    assert stat.S_IMODE(os.stat(bench.store.folder).st_mode) == 0o700
    assert set(modes) >= {"board.db", "board.db-wal", "write.lock"}
    assert set(modes.values()) == {0o600}


def test_a_loose_umask_does_not_loosen_them(tmp_path):
    before = os.umask(0)
    try:
        bench = Bench(tmp_path / "x" / "dibs")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(bench.store.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(bench.store.folder).st_mode) == 0o700
    bench.close()


@pytest.mark.parametrize("name", ["board.db", "write.lock", "board.db-wal"])
def test_no_link_is_followed(tmp_path, name):
    bench = Bench(tmp_path / "dibs")
    bench.close()
    target = tmp_path / "elsewhere"
    path = tmp_path / "dibs" / name
    if path.exists():
        path.rename(target)
    else:
        target.write_bytes(b"")
    path.symlink_to(target)
    store = SqliteStore(str(tmp_path / "dibs"), machine=FakeMachine())
    assert code_of(lambda: store.read().__enter__()) == "unsafe_storage"


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    bench = Bench(tmp_path / "real")
    bench.close()
    (tmp_path / "dibs").symlink_to(tmp_path / "real")
    store = SqliteStore(str(tmp_path / "dibs"), machine=FakeMachine())
    assert code_of(lambda: store.read().__enter__()) == "unsafe_storage"
    assert code_of(lambda: store.create("x")) == "unsafe_storage"


def test_a_repository_below_a_link_is_fine(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bench = Bench(tmp_path / "link" / "dibs")
    bench.add()
    bench.close()


@pytest.mark.parametrize("kind", UNSAFE_FILE_SYSTEMS)
def test_a_network_or_vm_file_system_is_refused(tmp_path, kind):
    machine = FakeMachine()
    machine.kind = kind
    store = SqliteStore(str(tmp_path / "dibs"), machine=machine)
    with pytest.raises(Refused) as problem:
        store.create("x")
    assert (problem.value.code, problem.value.refusal.facts["file_system"]) == (
        "network_file_system",
        kind,
    )


def test_the_file_system_comes_from_the_kernel(tmp_path):
    assert Linux().file_system("/proc") == "proc"
    assert Linux().file_system(str(tmp_path))


def test_where_there_is_no_board_nothing_is_made(tmp_path):
    store = SqliteStore(str(tmp_path / "dibs"), machine=FakeMachine())
    assert code_of(lambda: store.write("x").__enter__()) == "no_board"
    assert not list(tmp_path.iterdir())


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    bench = Bench(tmp_path / "dibs")
    bench.store.connection.pragma("user_version", 99)
    bench.close()
    store = SqliteStore(str(tmp_path / "dibs"), machine=FakeMachine())
    assert code_of(lambda: store.read().__enter__()) == "newer_schema"


def test_a_claim_survives_the_loss_of_power(bench):
    """WAL, and every commit is synced."""
    health = {finding.what: finding for finding in bench.store.health()}
    assert health["journal"] == Finding("journal", "wal, synchronous 2")
    assert health["sqlite"].level == "ok" and version_tuple(health["sqlite"].found) >= SAFE_SQLITE


def test_creating_twice_keeps_the_board(bench):
    bench.add()
    before = uid_of(bench)
    assert bench.store.create("other") is False
    assert uid_of(bench) == before


def uid_of(bench) -> str:
    with bench.store.read() as tx:
        return tx.board.uid


def posix_locks_on(path: str) -> int:
    """How many locks this process has on a file."""
    inode = f":{os.stat(path).st_ino}"
    lines = Path("/proc/locks").read_text().splitlines()
    found = [line.split() for line in lines]
    return sum(
        line[1] == "POSIX" and line[4] == str(os.getpid()) and line[5].endswith(inode)
        for line in found
    )


def test_who_makes_or_restores_a_board_drops_no_lock_of_its_own_process(bench, tmp_path):
    """A lock of a process on a file is gone as soon as any descriptor of that file is closed."""
    bench.add()
    with bench.store.read():
        assert posix_locks_on(bench.store.path) == 1
        assert bench.store.another().create("other") is False
        assert posix_locks_on(bench.store.path) == 1
        saved = str(tmp_path / "saved.db")
        other = Board(bench.store.another(), Settings())
        move.backup(other, saved)
        move.restore(other, saved, bench.person().identity, "why")
        assert posix_locks_on(bench.store.path) == 1
        other.store.close()
        assert posix_locks_on(bench.store.path) == 1


def test_the_file_of_the_board_itself_is_no_backup(bench):
    bench.add()
    with pytest.raises(Refused, match="the board's own file"):
        move.restore(bench.board, bench.store.path, bench.person().identity, "why")
    assert posix_locks_on(bench.store.path) == 1


def test_eight_processes_create_one_board(tmp_path):
    script = (
        "import sys; from dibs.storage.sqlite.store import SqliteStore;"
        "print(SqliteStore(sys.argv[1]).create(sys.argv[2]))"
    )
    folder = str(tmp_path / "dibs")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, folder, f"uid-{n}"], stdout=subprocess.PIPE, text=True
        )
        for n in range(8)
    ]
    made = [process.communicate(timeout=60)[0].strip() for process in started]
    assert sorted(made) == ["False"] * 7 + ["True"]


# The queue of writers.


def test_a_stopped_writer_delays_others_by_one_timeout_and_its_pid_is_named(tmp_path):
    script = (
        "import sys, time; from dibs.machine import Linux; from dibs.storage.sqlite.write_lock import acquire_write_lock;"
        "turn = acquire_write_lock(sys.argv[1], 'claim T-7', 5, Linux()); print('won', flush=True); time.sleep(60)"
    )
    path = str(tmp_path / "write.lock")
    holder = subprocess.Popen(
        [sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "won\n"
        os.kill(holder.pid, signal.SIGSTOP)
        with pytest.raises(Refused) as problem:
            write_lock.acquire_write_lock(path, "claim T-1", 0.2, Linux())
        assert problem.value.code == "busy"
        assert f'process {holder.pid} ("claim T-7", stopped)' in problem.value.refusal.message
    finally:
        holder.kill()
        holder.communicate()
    write_lock.acquire_write_lock(path, "claim T-1", 5, Linux()).end()


def test_a_writer_that_is_gone_is_not_blamed(tmp_path):
    """The name of the last writer stays in the file; whoever has the lock now left none."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    path = tmp_path / "write.lock"
    path.write_text(f"{gone.pid} claim T-7\n")
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Refused) as problem:
            write_lock.acquire_write_lock(str(path), "claim T-1", 0.05, Linux())
    assert "another process has held its write lock" in problem.value.refusal.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{pid} x) has gone.\x1b[2J "Run this',
            r'process {pid} ("x) has gone.\\x1b[2J \"Run this") has',
        ),
        ("\u00b2 claim T-7", "another process has held"),
    ],
)
def test_what_somebody_wrote_into_the_lock_file_is_quoted(tmp_path, text, shown):
    path = tmp_path / "write.lock"
    path.write_text(text.format(pid=os.getpid()))
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Refused) as problem:
            write_lock.acquire_write_lock(str(path), "claim T-1", 0.05, Linux())
    assert shown.format(pid=os.getpid()) in problem.value.refusal.message


def test_a_pipe_in_the_place_of_the_lock_file_blocks_nobody(tmp_path):
    path = tmp_path / "write.lock"
    os.mkfifo(path)
    script = (
        "import sys; from dibs.machine import Linux; from dibs.storage.sqlite.write_lock import acquire_write_lock;"
        "acquire_write_lock(sys.argv[1], 'claim T-1', 0.05, Linux())"
    )
    with open(os.open(path, os.O_RDWR), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = subprocess.run(
            [sys.executable, "-c", script, path],
            check=False,
            timeout=60,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert "another process has held" in ran.stderr


def test_who_gave_up_waiting_does_not_take_the_lock_later(tmp_path):
    path, machine = str(tmp_path / "write.lock"), Linux()
    first = write_lock.acquire_write_lock(path, "first", 1, machine)
    assert code_of(lambda: write_lock.acquire_write_lock(path, "second", 0.05, machine)) == "busy"
    waiting = _thread._count()
    first.end()
    until(lambda: _thread._count() < waiting, "the one that gave up has had the lock")
    write_lock.acquire_write_lock(path, "third", 5, machine).end()


def test_a_waiting_writer_gets_its_turn_when_the_first_is_done(tmp_path):
    path, machine = str(tmp_path / "write.lock"), Linux()
    first = write_lock.acquire_write_lock(path, "first", 1, machine)
    import threading

    got = threading.Event()

    def second() -> None:
        write_lock.acquire_write_lock(path, "second", 30, machine).end()
        got.set()

    waiting = threading.Thread(target=second)
    waiting.start()
    assert not got.wait(0.05)
    first.end()
    assert got.wait(30)
    waiting.join()


def test_a_lock_that_a_fork_inherited_is_given_back_all_the_same(tmp_path):
    path, machine = str(tmp_path / "write.lock"), Linux()
    turn = write_lock.acquire_write_lock(path, "parent", 1, machine)
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        turn.end()
        write_lock.acquire_write_lock(path, "next", 5, machine).end()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# Fork.


def in_child(store, answers) -> None:
    try:
        with store.read():
            answers.put("read")
    except Refused as problem:
        answers.put(problem.code)


def test_no_connection_is_used_across_a_fork(bench):
    bench.add()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_child, args=(bench.store, answers))
    child.start()
    assert answers.get(timeout=30) == "forked"
    child.join()
    bench.agent().claim()
    assert bench.faults() == ()


# When the disk is ill.


def test_a_full_disk_is_74_and_nothing_is_changed_and_it_works_again_with_room(bench):
    bench.add()
    connection = bench.store.connection
    before = bench.snapshot()
    pages = connection.pragma("page_count")
    connection.pragma("max_page_count", pages)
    codex = bench.agent()
    codes = set()
    for n in range(200):
        try:
            codex.do(c.Note(K, note=f"{n} " + "x" * 5000))
        except Refused as problem:
            codes.add(problem.code)
            break
        before = bench.snapshot()
    assert codes == {"disk_full"}
    assert bench.snapshot() == before
    connection.pragma("max_page_count", pages + 10_000)
    codex.claim()
    assert bench.faults() == ()


def test_a_damaged_file_is_reported_and_left_as_it_is(tmp_path):
    bench = Bench(tmp_path / "dibs")
    bench.add()
    bench.close()
    path = tmp_path / "dibs" / "board.db"
    path.write_bytes(b"not a database at all" * 1000)
    before = path.read_bytes()
    store = SqliteStore(str(tmp_path / "dibs"), machine=FakeMachine())
    assert code_of(lambda: store.read().__enter__()) == "corrupt"
    assert code_of(lambda: store.write("x").__enter__()) == "corrupt"
    assert path.read_bytes() == before


def test_an_error_inside_a_transaction_leaves_nothing_and_gives_the_turn_back(bench):
    bench.add()
    before = bench.snapshot()
    with pytest.raises(ZeroDivisionError), bench.store.write("x") as tx:
        tx.give_out_key(77)
        tx.finish()
        raise ZeroDivisionError
    assert bench.snapshot() == before
    bench.agent().claim()


def test_one_transaction_does_not_disturb_another_of_the_same_connection(bench):
    bench.add()
    with bench.store.write("outer") as tx:
        tx.give_out_key(77)
        with pytest.raises(AssertionError):
            bench.store.read().__enter__()
        tx.finish()
    assert bench.store.board_and_anchor()[0].keys == 77


def test_check_and_effect_are_one_transaction(bench):
    """Nobody can write between a decision and its effect: the lock is won before the read."""
    bench.add()
    other = SqliteStore(bench.store.folder, machine=bench.machine, wait=0.1)
    with bench.store.write("decide"):
        assert code_of(lambda: other.write("sneak").__enter__()) == "busy"
    foreign = apsw.Connection(bench.store.path)
    foreign.set_busy_timeout(50)
    with bench.store.write("decide"), pytest.raises(apsw.BusyError):
        foreign.execute("UPDATE board SET keys = 9")
    foreign.close()
    other.close()


def test_who_meets_the_lock_of_another_program_learns_how_long_it_waited(bench):
    bench.add()
    other = SqliteStore(bench.store.folder, machine=bench.machine, wait=0.1)
    foreign = apsw.Connection(bench.store.path)
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(Refused) as problem:
        other.write("claim T-1").__enter__()
    foreign.close()
    other.close()
    assert problem.value.refusal.message.endswith("for more than 0.1 s")


def test_the_second_lock_refuses_a_row_that_is_not_in_the_version_that_was_read(bench):
    bench.add()
    with bench.store.write("x") as tx:
        task = tx.task(K)
        tx.save(task.but(blocked_on="a"))
        with pytest.raises(apsw.ConstraintError):
            tx.save(task.but(blocked_on="b"))


def test_a_reader_sees_what_was_acknowledged_and_never_waits_for_a_writer(bench):
    bench.add()
    other = SqliteStore(bench.store.folder, machine=bench.machine)
    with bench.store.write("x"), other.read() as tx:
        assert tx.task(K).state == "open"
    bench.agent().claim()
    with other.read() as tx:
        assert tx.task(K).state == "in_progress"
    other.close()
