"""`kill -9` of a run at any instant: no task is lost, none is worked on by two, none is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise

import apsw
import psycopg
import pytest

from dibs.board.liveness import mark_of, started_by
from dibs.domain.model import LeaseProcess
from dibs.machine import this_machine
from dibs.opening import open_board
from kit import soak
from kit.boards import of_a_file
from kit.dispatching import Ground, carrying
from kit.injection import points, struck, why_not
from kit.running import lives, process_behind, until
from kit.workshop import (
    ALONE,
    WITH_A_CHILD,
    WITH_A_HIDDEN_CHILD,
    Workshop,
    lines_of,
    two_at_once,
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent"
)

HEIR = ("--agent", "heir", "--session", "h1")
WORKERS = 3
TASKS = 6
GRACE = TTL = 1.0
NOTHING_READY = 75


@pytest.fixture
def shop(repo):
    with Workshop(repo) as shop:
        yield shop


def shown(repo, key):
    return repo.json("show", key)["task"]


def ended(repo, key) -> list[dict]:
    return [each for each in repo.json("log", key)["events"] if each["verb"] == "lease_ended"]


# At any instant.


def test_whoever_is_killed_at_any_instant_no_task_is_lost_and_none_is_worked_on_by_two(repo, shop):
    """Runs, their commands, and both; some work is done by children that outlive the command."""
    chance = random.Random(soak.seed())
    tasks = soak.times(TASKS, share=0.05, each=2)
    keys = {repo.add(f"task {n}", "--max-attempts", "100") for n in range(tasks)}
    runs: dict[int, object] = {}
    kills = 0
    deadline = time.monotonic() + 120 + 10 * tasks
    while not all_complete(repo, keys):
        assert time.monotonic() < deadline, repo.ok("status").out
        for n in range(WORKERS):
            if n not in runs or runs[n].poll() is not None:
                script = chance.choice((ALONE, WITH_A_CHILD))
                runs[n] = shop.run("--next", "--agent", f"w{n}", script=script)
        if kills < 2 * tasks:
            time.sleep(chance.uniform(0, 0.4))
            kills += kill(chance, runs[chance.randrange(WORKERS)])
        else:
            time.sleep(0.1)
        retry_failed(repo, keys)
    for process in runs.values():
        process.wait(60)
    print(f"{kills} kills, {len(shop.lines())} lines")
    assert two_at_once(shop.lines()) == []
    for key in keys:
        ends = shop.tokens_of(key, "end")
        assert shown(repo, key)["token"] in [".".join(map(str, token)) for token in ends]
    assert repo.json("log", "--verify")["ok"]


def counts(repo) -> dict[str, int]:
    """By state. Read in this process: it is asked all the time."""
    board = open_board(str(repo.folder), environment=repo.environment())
    try:
        with board.read() as tx:
            return {state: count for state, count in tx.counts().items() if count}
    finally:
        board.store.close()


def all_complete(repo, keys: set[str]) -> bool:
    return counts(repo) == {"complete": len(keys)}


def kill(chance: random.Random, process) -> int:
    """The run, or what it started, or both: its children have a session of their own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        below = children(process.pid)
        if below and chance.random() < 0.3:
            os.killpg(below[0], signal.SIGKILL)
            return 1
        process.send_signal(signal.SIGKILL)
        return 1
    return 0


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def retry_failed(repo, keys: set[str]) -> None:
    """A command that was killed has failed; its run lives, and says so."""
    if "failed" not in counts(repo):
        return
    for task in repo.json("list", "--state", "failed")["tasks"]:
        repo.ok("retry", task["key"], "--as", "ana")


@of_a_file
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_run_that_is_killed_at_a_system_call_leaves_a_task_that_is_offered_or_complete(repo):
    """At each call on the board's files in turn; in the short form at some of them."""
    board = repo.database.parent
    chance = random.Random(soak.seed())
    [*all_points] = points(repo.folder, board, run_of(repo, repo.add()))
    some = chance.sample(all_points, min(len(all_points), soak.times(6, share=0.05, each=1)))
    reached = 0
    for point in some:
        key = repo.add("work", "--priority", "0")
        _, was_reached = struck(repo.folder, board, run_of(repo, key), point, "KILL")
        reached += was_reached
        if shown(repo, key)["state"] != "complete":
            assert repo.json("next", *HEIR)["task"]["key"] == key, point
            repo.ok("complete", key, *HEIR)
        assert repo.run("next", *HEIR).code == NOTHING_READY, point
    assert reached > 0
    assert repo.json("log", "--verify")["ok"]


def run_of(repo, key: str) -> tuple[str, ...]:
    return ("run", key, "--agent", "codex", "--", "true")


def test_a_dispatcher_that_is_killed_after_any_of_its_lines_loses_nothing(repo):
    """Every other time its workers are killed with it; the next dispatcher carries on."""
    with Ground(repo) as ground:
        log = ground.seen / "workshop"
        log.touch()
        work = f"WORKSHOP=$SEEN/workshop; set -- 5 0; {ALONE}"
        ground.agents('max_attempts = 100\nttl_keeper = "2s"', codex=work, claude=work)
        keys = {repo.add() for _ in range(6)}
        deadline, rounds = time.monotonic() + 240, 0
        while not all_complete(repo, keys):
            assert time.monotonic() < deadline, repo.ok("status").out
            dispatch, lines = ground.start(), 1 + rounds % 4
            while dispatch.output.count("\n") < lines and not all_complete(repo, keys):
                assert time.monotonic() < deadline, dispatch.output
                time.sleep(0.05)
            dispatch.kill()
            if rounds % 2:
                for pid in workers_of(ground):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            rounds += 1
        assert two_at_once(lines_of(log)) == []
        ends = {(line.key, line.token) for line in lines_of(log) if line.what == "end"}
        for key in keys:
            assert (key, tuple(map(int, shown(repo, key)["token"].split(".")))) in ends
    assert repo.json("log", "--verify")["ok"]


def workers_of(ground: Ground) -> list[int]:
    """The runs that its dispatchers have started."""
    found = []
    for pid in carrying(f"SEEN={ground.seen}"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if b"--next" in words:
                found.append(pid)
    return found


# What outlives its run.


@pytest.mark.parametrize("way", ["next", "KEY"])
def test_what_a_killed_run_left_at_work_is_ended_before_its_heir_begins(repo, shop, way):
    """The command dies with its run; its children are found by the mark that they carry."""
    key = repo.add()
    first = shop.run(key, "--agent", "codex", ticks=100_000, script=WITH_A_CHILD)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    mark = mark_of(this_machine().process(first.pid))
    first.kill()
    first.wait()
    if way == "next":
        assert swept(repo) and not this_machine().carrying(mark)
    heir = shop.run("--next" if way == "next" else key, *HEIR)
    assert heir.wait(60) == 0
    assert two_at_once(shop.lines()) == []
    assert shop.tokens_of(key, "end") == [(1, 2)]
    assert shown(repo, key)["state"] == "complete"


@pytest.mark.parametrize("who", [("--agent", "codex"), ("--agent", "codex", "--session", "s1")])
@pytest.mark.parametrize("way", ["next", "KEY"])
def test_what_hides_its_mark_is_ended_by_the_session_of_its_command(repo, shop, way, who):
    """It cleared its environment and stayed in the group; its run and its command were killed."""
    key = repo.add()
    if "--session" in who:
        repo.ok("claim", repo.add("held beside it", "--for", "agent"), *who)
    first = shop.run(key, *who, ticks=100_000, script=WITH_A_HIDDEN_CHILD)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    run = until(lambda: command_of(repo, key), "the board does not know its command")
    first.kill()
    first.wait()
    until(lambda: not lives(run.command), "the command outlives its run")
    assert left_of(run), "nothing was left: the test shows nothing"
    if way == "next":
        assert swept(repo) and not left_of(run)
    heir = shop.run("--next" if way == "next" else key, *HEIR)
    assert heir.wait(60) == 0
    assert left_of(run) == [] and two_at_once(shop.lines()) == []
    assert shown(repo, key)["state"] == "complete"


@pytest.mark.parametrize("who", [("--agent", "codex", "--session", "s1"), ("--as", "ana")])
def test_what_a_killed_run_left_is_ended_before_the_same_holder_runs_again(repo, shop, who):
    key = repo.add()
    first = shop.run(key, *who, ticks=100_000, script=WITH_A_HIDDEN_CHILD)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    run = until(lambda: command_of(repo, key), "the board does not know its command")
    first.kill()
    first.wait()
    assert shop.run(key, *who, ticks=0).wait(60) == 0
    assert left_of(run) == []
    assert shown(repo, key)["token"] == "1.1"


@pytest.mark.parametrize("verb", [("claim", *HEIR), ("drop", "--as", "ana", "--reason", "over")])
def test_what_a_killed_run_left_is_ended_when_its_expired_lease_is_taken(repo, shop, verb):
    """Nobody swept, and whoever takes the task starts no command in its place."""
    key = repo.add()
    first = shop.run(
        key, "--agent", "codex", "--ttl", "1s", ticks=100_000, script=WITH_A_HIDDEN_CHILD
    )
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    run = until(lambda: command_of(repo, key), "the board does not know its command")
    first.kill()
    first.wait()
    repo.await_expiry(key)
    assert left_of(run), "nothing was left: the test shows nothing"
    repo.ok(verb[0], key, *verb[1:])
    assert left_of(run) == []


def test_nothing_is_ended_that_is_not_provably_of_the_run(repo, shop):
    """Its number may have been given again: another start, or too many processes since."""
    key = repo.add()
    run = shop.run(key, "--agent", "codex", ticks=100_000, script=WITH_A_HIDDEN_CHILD)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    known = until(lambda: command_of(repo, key), "the board does not know its command")
    another = (known.command, known.command_started + 1, known.forks)
    assert this_machine().in_session(*another) == []
    nobody = known.but(process=known.process.but(started=1))
    run.kill()
    run.wait()
    until(lambda: not os.path.exists(f"/proc/{known.command}"), "the command is not reaped")
    assert started_by(this_machine(), nobody.but(forks=known.forks - 10**8)) == []
    assert started_by(this_machine(), nobody.but(forks=0)) == []
    assert started_by(this_machine(), nobody.but(process=nobody.process.but(boot="other"))) == []
    assert started_by(this_machine(), nobody) != []


@pytest.mark.parametrize("pid", [4194000, os.getpid()], ids=["nobody", "its parent"])
def test_the_board_cannot_name_any_process_for_the_command_of_a_run(repo, pid):
    """Whoever can write to it would end what the next holder has running: a shell, an editor."""
    key = repo.add()
    repo.ok("claim", key, "--agent", "codex", "--session", "s1", "--pid", str(os.getpid()))
    machine = this_machine()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as victim:
        try:
            started = machine.started(victim.pid)
            named = (
                f"command = {victim.pid}, command_started = {started}, forks = {machine.forks()}"
            )
            gone = f"pid = {pid}, pid_started = 5, runs = 1"
            change(repo, f"UPDATE {{}}lease_process SET {gone}, {named}")
            repo.ok("claim", key, *HEIR)
            assert victim.poll() is None
            alive = LeaseProcess(machine.process(os.getppid()), "", True, victim.pid, started)
            assert started_by(machine, alive) == []
        finally:
            victim.kill()


def change(repo, statement: str) -> None:
    """Somebody writes to the board by SQL of their own."""
    address = repo.around.get("DIBS_URL", "").partition("#")[0]
    if address:
        with psycopg.connect(address) as server:
            server.execute(statement.format("dibs."))
    else:
        with contextlib.closing(apsw.Connection(str(repo.database))) as file:
            file.execute(statement.format(""))


def command_of(repo, key: str):
    """What the board knows of the run, once it knows the command too."""
    run = process_behind(repo, key)
    return run if run is not None and run.command else None


def left_of(run) -> list[int]:
    """Processes in the session of the command, looked for without the code under test."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            state, _, _, session, *_ = file.read().rpartition(")")[2].split()
            if int(session) == run.command and state not in "ZX":
                found.append(int(name))
    return found


def test_what_a_stopped_run_left_at_work_is_ended_before_its_heir_begins(repo, shop):
    """Its process lives and cannot look after its command: the sweep does, one ttl later."""
    key = repo.add()
    run = shop.run(key, "--agent", "codex", "--ttl", "1s", ticks=100_000)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    stop(repo, key, run)
    until(lambda: swept(repo), "the sweep does not end it")
    assert not this_machine().carrying(mark_of(this_machine().process(run.pid)))
    heir = shop.run("--next", *HEIR)
    assert heir.wait(60) == 0
    run.send_signal(signal.SIGCONT)
    assert run.wait(60) == 5
    assert two_at_once(shop.lines()) == []
    assert shown(repo, key)["token"] == "1.2"


def test_what_a_stopped_run_left_at_work_is_ended_before_a_claim_of_its_task_begins(repo, shop):
    """Its lease has expired, and nobody swept: the run that takes the task over ends the command."""
    key = repo.add()
    run = shop.run(key, "--agent", "codex", "--ttl", "1s", ticks=100_000)
    until(lambda: shop.tokens_of(key, "tick"), "it does not begin")
    stop(repo, key, run)
    until(lambda: shop.run(key, *HEIR).wait(60) == 0, "nobody can take it over")
    run.send_signal(signal.SIGCONT)
    assert run.wait(60) == 5
    assert two_at_once(shop.lines()) == []
    assert shown(repo, key)["token"] == "1.2"


def stop(repo, key: str, run) -> None:
    """Where it does not keep others from writing: a process that is stopped inside a transaction does that."""
    while True:
        run.send_signal(signal.SIGSTOP)
        until(lambda: this_machine().is_stopped(run.pid))
        if repo.run("note", key, "it stands still", "--as", "ana").code == 0:
            return
        run.send_signal(signal.SIGCONT)


def swept(repo) -> list[dict]:
    return repo.json("sweep", "--grace", "1s", "--agent", "tick", "--session", "t")["changes"]


# In time.


def test_nothing_is_left_behind_after_ttl_and_grace_and_two_ticks(repo, shop):
    """One more ttl for a process that lives; at once for one that is dead."""
    dead, silent, stopped = (repo.add() for _ in range(3))
    repo.ok("claim", silent, "--ttl", "1s", "--agent", "codex", "--session", "s1")
    runs = {
        key: shop.run(key, "--agent", key, "--ttl", "1s", ticks=100_000) for key in (dead, stopped)
    }
    for key in runs:
        until(lambda key=key: shop.tokens_of(key, "tick"), "it does not begin")
    runs[dead].kill()
    runs[dead].wait()
    stop(repo, stopped, runs[stopped])
    leases = {key: shown(repo, key) for key in (silent, stopped)}
    begun, ticks = repo.json("status")["now"], [time.monotonic()]
    found: dict[str, int] = {}
    while len(found) < 3:
        assert ticks[-1] < ticks[0] + 60, found
        for change in swept(repo):
            assert found.setdefault(change["key"], len(ticks)) == len(ticks), "ended twice"
        ticks.append(time.monotonic())
    assert found[dead] == 1
    two = 2 * max(after - before for before, after in pairwise(ticks))
    for key, extra in ((silent, 0), (stopped, TTL)):
        [event] = ended(repo, key)
        expired = leases[key]["lease_expires_at"]
        assert seconds(expired, event["at"]) >= GRACE + extra
        assert seconds(max(expired, begun), event["at"]) <= GRACE + extra + two
        assert event["cause"] == "expired"
    assert not lives(runs[dead].pid)
    runs[stopped].send_signal(signal.SIGCONT)
    assert runs[stopped].wait(60) == 5


def seconds(begun: str, over: str) -> float:
    return (datetime.fromisoformat(over) - datetime.fromisoformat(begun)).total_seconds()
