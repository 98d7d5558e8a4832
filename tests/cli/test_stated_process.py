"""A lease that states its process: `hold`, and `claim --pid`. Real processes, on both stores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dibs.domain import commands as c
from dibs.domain.model import LeaseProcess
from dibs.domain.values import SECOND
from dibs.storage.transaction import PROCESSES_KEPT, PRUNES_EVERY
from kit.repositories import DIBS
from kit.running import DEADLINE, process_behind, until

A = ("--agent", "codex", "--session", "s1")
OTHER = ("--agent", "claude", "--session", "s9")

HOLDS = """
import sys, time, dibs
with dibs.open_board(agent="codex", session="s1").hold(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def script():
    """A process that lives until the test ends it."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def status(repo) -> str:
    return repo.ok("status").out


def test_a_script_that_was_killed_inside_a_hold_is_shown_as_stale_and_taken_over(repo):
    key = repo.add()
    held = subprocess.Popen(
        [sys.executable, "-c", HOLDS, key], cwd=repo.folder, env=repo.environment(),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert held.stdout.readline() == "held\n"
        assert "stale" not in status(repo)
        assert repo.run("claim", key, *OTHER).code == 4
    finally:
        held.kill()
        held.communicate()
    assert "stale: process gone" in status(repo)
    repo.ok("claim", key, *OTHER)


def test_a_claim_that_states_a_process_lives_as_long_as_that(repo, script):
    key, other = repo.add(), repo.add()
    repo.ok("claim", other, *A)
    repo.ok("claim", key, *A, "--pid", str(script.pid))
    assert process_behind(repo, key).process.pid == script.pid
    assert repo.run("claim", key, *OTHER).code == 4
    script.kill()
    script.wait()
    assert "stale: process gone" in status(repo)
    repo.ok("claim", key, *OTHER)
    assert repo.run("claim", other, *OTHER).code == 4, "the other lease stated none"


def test_a_claim_without_it_makes_the_lease_the_sessions_own_again(repo, script):
    key = repo.add()
    repo.ok("claim", key, *A, "--pid", str(script.pid))
    script.kill()
    script.wait()
    repo.ok("claim", key, *A)
    assert "stale" not in status(repo)
    assert repo.run("claim", key, *OTHER).code == 4


def test_the_library_states_it_in_the_same_way(repo, script):
    key = repo.add()
    claims = "import dibs, sys; dibs.open_board(agent='a', session='s').claim(sys.argv[1], pid=int(sys.argv[2]))"
    command = [sys.executable, "-c", claims, key, str(script.pid)]
    subprocess.run(command, cwd=repo.folder, env=repo.environment(), check=True, timeout=DEADLINE)
    assert process_behind(repo, key).process.pid == script.pid


def test_a_process_that_is_dead_or_no_number_is_a_usage_error(repo, script):
    key = repo.add()
    script.kill()
    script.wait()
    for stated in (str(script.pid), "0", "-1", "x", str(2**40)):
        ran = repo.run("--json", "claim", key, *A, f"--pid={stated}")
        assert (ran.code, ran.error["code"]) == (2, "bad_argument"), stated
    assert repo.json("show", key)["task"]["token"] == "0.0"


def test_a_person_states_no_process(repo, script):
    ran = repo.run("claim", repo.add(), "--as", "ana", "--pid", str(script.pid))
    assert ran.code == 2
    assert "people have no process" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="another user and another namespace need root")
@pytest.mark.parametrize(
    "around", [["setpriv", "--reuid", "65534", "--clear-groups"], ["unshare", "--pid", "--fork"]]
)
def test_the_process_of_another_user_or_namespace_is_a_usage_error(repo, around):
    other = subprocess.Popen([*around, "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
    try:
        assert other.stdout.read(1) == b"\n"
        [pid] = [other.pid] if around[0] == "setpriv" else children(other.pid)
        ran = repo.run("claim", repo.add(), *A, "--pid", str(pid))
        assert ran.code == 2
        assert "it must live, belong to you, and be in this pid namespace" in ran.err
    finally:
        for pid in (*children(other.pid), other.pid):
            os.kill(pid, 9)
        other.communicate()


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def test_a_run_that_has_ended_is_over_although_its_process_lives(bench):
    """Between its last change and its exit: the next run of the same session does not wait for it."""
    key = bench.add()
    runs = [LeaseProcess(bench.machine.own_process().but(pid=pid), runs=True) for pid in (100, 101)]
    first, second = (bench.agent() for _ in runs)
    for actor, run in zip((first, second), runs):
        actor.identity = actor.identity.but(behind=run)
    first.claim(key)
    assert second.refused(c.Claim(key)) == "already_running"
    first.do(c.Release(key))
    assert str(second.claim(key).task.token) == "1.2"


def test_the_process_of_an_ended_lease_is_forgotten_after_thirty_days(bench):
    ended, running = bench.add(), bench.add()
    codex = bench.agent()
    codex.identity = codex.identity.but(behind=LeaseProcess(bench.machine.own_process()))
    codex.claim(running)
    codex.claim(ended)
    codex.do(c.Release(ended))
    bench.advance(PROCESSES_KEPT // SECOND)
    bench.add()
    assert known_processes(bench, ended, running) == [True, True]
    bench.advance(PRUNES_EVERY // SECOND)
    bench.add()
    assert known_processes(bench, ended, running) == [False, True]


def known_processes(bench, *keys: str) -> list[bool]:
    with bench.store.read() as tx:
        tasks = [tx.task(key) for key in keys]
        return [tx.process_behind(task.id, task.token) is not None for task in tasks]


def test_who_states_a_process_while_its_run_is_on_is_refused(repo, script):
    key, word = repo.add(), repo.folder / "word"
    command = f"while [ ! -e {word} ]; do sleep 0.02; done"
    run = subprocess.Popen(
        [DIBS, "run", key, *A, "--", "sh", "-c", command], cwd=repo.folder, env=repo.environment(),
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: process_behind(repo, key))
        ran = repo.run("--json", "claim", key, *A, "--pid", str(script.pid))
        assert (ran.code, ran.error["code"]) == (4, "already_running")
        word.touch()
        assert run.wait(DEADLINE) == 0
    finally:
        run.kill()
        run.wait()
