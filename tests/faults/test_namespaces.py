"""Who cannot see the host's boot or processes, or has others, ends nobody's lease: only expiry counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from kit.boards import of_a_file
from kit.confined import KINDS, confined
from kit.repositories import DIBS
from kit.running import DEADLINE, Running, here, process_behind, until, wait_for

A = ("--agent", "codex", "--session", "s1")
OTHER = ("--agent", "claude", "--session", "s9")
MINUTE = 60


@pytest.fixture(params=sorted(KINDS))
def inside(request, tmp_path, repo):
    """Runs dibs there."""
    folder = tmp_path / "confined"
    folder.mkdir()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = confined(request.param, folder, repo.folder, [DIBS, *arguments])
        return subprocess.run(
            command, env=repo.environment(), capture_output=True, text=True, check=False,
            timeout=DEADLINE,
        )  # fmt: skip

    return run


def swept(ran) -> list:
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["changes"]


def seconds(instant: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(instant).timestamp()


@of_a_file
def test_a_live_lease_with_a_process_is_neither_taken_nor_swept(repo, inside):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *A) as run:
        run.pid_of("it")
        assert inside("claim", key, *OTHER).returncode == 4
        assert inside("takeover", key, *OTHER).returncode == 4
        assert swept(inside("--json", "sweep", "--grace", "1s", *OTHER)) == []
        assert "stale" not in inside("status").stdout
        run.signal_word("word")
        assert run.ended().code == 0
    assert repo.json("show", key)["task"]["token"] == "1.1"


@of_a_file
def test_the_boards_clock_goes_on_and_is_not_moved(repo, inside):
    """Whoever writes last: those inside and those outside are told nearly the same time."""
    key = repo.add()
    repo.ok("claim", key, *A, "--ttl", "1h")
    begun = seconds(repo.json("status")["now"])
    for _ in range(2):
        noted = inside("--json", "note", key, "from inside", *OTHER)
        assert noted.returncode == 0, noted.stderr
        reply = seconds(json.loads(inside("--json", "status").stdout)["now"])
        assert begun <= reply < begun + MINUTE
        repo.ok("note", key, "from outside", *OTHER)
        after = seconds(repo.json("status")["now"])
        assert reply <= after < begun + MINUTE
        assert after > seconds(repo.json("show", key)["notes"][0]["at"])
    assert inside("claim", key, *OTHER).returncode == 4
    assert repo.json("log", "--verify")["ok"]


@of_a_file
def test_a_run_works_there_and_a_second_one_of_it_is_refused(repo, inside):
    key, other = repo.add(), repo.add()
    ran = inside("run", key, *A, "--", "sh", "-c", f"{DIBS} run {key} -- true; echo $?")
    assert (ran.returncode, ran.stdout) == (0, "4\n"), ran.stderr
    assert inside("run", other, "--as", "ana", "--", "false").returncode == 1
    assert repo.json("show", key)["task"]["state"] == "complete"


@of_a_file
@pytest.mark.parametrize("kind_of_place", sorted(KINDS))
def test_a_run_that_is_confined_is_not_taken_for_dead_from_outside(tmp_path, repo, kind_of_place):
    folder = tmp_path / "confined"
    folder.mkdir()
    key, started, word = repo.add(), repo.folder / "started", repo.folder / "word"
    script = f"touch {started}; while [ ! -e {word} ]; do sleep 0.05; done"
    command = [DIBS, "run", key, *A, "--", "sh", "-c", script]
    run = subprocess.Popen(
        confined(kind_of_place, folder, repo.folder, command), env=repo.environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(started.exists, "it does not begin")
        assert process_behind(repo, key).runs
        assert repo.run("claim", key, *OTHER).code == 4
        assert repo.json("sweep", "--grace", "1s", *OTHER)["changes"] == []
        assert repo.run("run", key, *A, "--", "true").code == 4
        word.touch()
        assert run.wait(DEADLINE) == 0
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert repo.json("show", key)["task"]["state"] == "complete"


@of_a_file
def test_the_processes_of_another_namespace_are_not_taken_for_ours(tmp_path, repo):
    """With the host's /proc, the own number is somebody else's there: nothing is believed."""
    folder = tmp_path / "confined"
    folder.mkdir()
    script = (
        "import os; from dibs.machine import this_machine; here = this_machine();"
        "print(here.process(os.getpid()), here.boot(), here.carrying('1.1'))"
    )
    kind = "pids of its own, and the host's /proc"
    command = confined(kind, folder, repo.folder, [sys.executable, "-c", script])
    ran = subprocess.run(
        command, env=repo.environment(), capture_output=True, text=True, check=False,
        timeout=DEADLINE,
    )  # fmt: skip
    assert ran.stdout == "None unknown []\n", ran.stderr


@of_a_file
def test_who_sees_no_processes_is_told_what_that_means_for_its_run(tmp_path, repo):
    folder = tmp_path / "confined"
    folder.mkdir()
    command = [DIBS, "run", repo.add(), *A, "--", "true"]
    ran = subprocess.run(
        confined("no /proc", folder, repo.folder, command), env=repo.environment(),
        capture_output=True, text=True, check=False, timeout=DEADLINE,
    )  # fmt: skip
    assert ran.returncode == 0
    assert "if this run is killed, its task becomes free only when the lease expires" in ran.stderr
