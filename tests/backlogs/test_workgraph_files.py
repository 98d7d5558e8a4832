"""Beside the graph: which folder it is, its lock as another program takes it, and who still lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from dibs.backlogs.formats.workgraph import Workgraph
from dibs.backlogs.formats.workgraph_files import Registry, lock_path, locked, read_registry
from dibs.domain.refusals import Refused
from dibs.machine import this_machine
from dibs.output.error_map import AGAIN, ERROR_MAP

OTHER = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
fcntl.flock(fd, fcntl.LOCK_EX)
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_program(path):
    """A process that takes the lock as the tool does, and has it until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()


def free(path) -> bool:
    """Whether another process could take it, if only to share it."""
    attempt = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_SH | fcntl.LOCK_NB)"
    done = subprocess.run([sys.executable, "-c", attempt, path], capture_output=True, check=False)
    return done.returncode == 0


def graph_in(root, folder):
    (root / folder).mkdir()
    (root / folder / "graph.jsonl").write_text("")
    return str(root)


# Where.


def test_the_newer_folder_is_looked_at_first(tmp_path):
    assert list(Workgraph().paths(str(tmp_path))) == []
    graph_in(tmp_path, ".workgraph")
    assert list(Workgraph().paths(str(tmp_path))) == [".workgraph/graph.jsonl"]
    assert lock_path(str(tmp_path)) == str(tmp_path / ".workgraph" / "graph.lock")
    graph_in(tmp_path, ".wg")
    assert list(Workgraph().paths(str(tmp_path))) == [".wg/graph.jsonl"]
    assert lock_path(str(tmp_path)) == str(tmp_path / ".wg" / "graph.lock")


def test_a_folder_without_a_graph_is_none(tmp_path):
    (tmp_path / ".wg").mkdir()
    graph_in(tmp_path, ".workgraph")
    assert list(Workgraph().paths(str(tmp_path))) == [".workgraph/graph.jsonl"]


# The lock.


def test_while_it_is_held_no_other_program_has_the_lock(tmp_path):
    root = graph_in(tmp_path, ".wg")
    with locked(root, 1):
        assert not free(lock_path(root))
    assert free(lock_path(root))


def test_a_lock_that_stays_taken_is_refused_in_time_and_may_be_tried_again(tmp_path):
    root = graph_in(tmp_path, ".wg")
    with another_program(lock_path(root)) as other:
        assert other.stdout.readline() == "taken\n"
        files = len(os.listdir("/dev/fd"))
        begun = time.monotonic()
        with pytest.raises(Refused) as refusal, locked(root, 0.2):
            pytest.fail("two programs have it")
        assert 0.2 <= time.monotonic() - begun < 30
        assert (refusal.value.code, ERROR_MAP["busy"].exit) == ("busy", AGAIN)
        assert lock_path(root) in str(refusal.value)
        assert len(os.listdir("/dev/fd")) == files


def test_whoever_waits_gets_the_lock_when_it_is_given_back(tmp_path):
    root = graph_in(tmp_path, ".wg")
    with another_program(lock_path(root)) as other:
        assert other.stdout.readline() == "taken\n"
        other.stdin.close()
        with locked(root, 30):
            pass


def test_the_lock_is_given_back_when_the_work_goes_wrong_and_its_file_is_left_alone(tmp_path):
    root = graph_in(tmp_path, ".wg")
    (tmp_path / ".wg" / "graph.lock").write_text("not ours")
    with pytest.raises(KeyError), locked(root, 0):
        raise KeyError
    with locked(root, 0):
        pass
    assert (tmp_path / ".wg" / "graph.lock").read_text() == "not ours"


def test_the_lock_is_given_back_though_a_forked_process_shares_its_file(tmp_path):
    root = graph_in(tmp_path, ".wg")
    with locked(root, 0) as held:
        shared = os.dup(held._descriptor)
    assert free(lock_path(root))
    os.close(shared)


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path):
    root = graph_in(tmp_path, ".wg")
    (tmp_path / ".wg" / "graph.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), locked(root, 0):
        pytest.fail("it was followed")
    assert not (tmp_path / "elsewhere").exists()


# The registry.


@pytest.fixture(scope="module")
def gone():
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


ME = os.getpid()


@pytest.mark.parametrize("status", ["dead", "failed", "done", "stopped", "exited", "killed"])
def test_an_agent_that_is_over_by_the_registry_is_dead_whatever_runs(status):
    assert Registry({"a": {"pid": ME, "status": status}}).dead("a", this_machine()) is True


@pytest.mark.parametrize("status", ["starting", "working", "idle", "stopping", "odd", None])
def test_an_agent_lives_as_long_as_its_process(status, gone):
    registry = Registry({"a": {"pid": ME, "status": status}, "b": {"pid": gone, "status": status}})
    assert registry.dead("a", this_machine()) is False
    assert registry.dead("b", this_machine()) is True


@pytest.mark.parametrize(
    "entry", [{}, {"pid": 0}, {"pid": "7"}, {"pid": True}, {"pid": -1}, 7, None]
)
def test_of_an_agent_without_a_process_nothing_is_known(entry):
    assert Registry({"a": entry}).dead("a", this_machine()) is None
    assert Registry({}).dead("a", this_machine()) is None


def test_the_registry_lies_below_the_folder_of_the_graph(tmp_path):
    root = graph_in(tmp_path, ".workgraph")
    assert read_registry(root) is None
    (tmp_path / ".workgraph" / "service").mkdir()
    path = tmp_path / ".workgraph" / "service" / "registry.json"
    path.write_text(json.dumps({"agents": {"agent-1": {"pid": ME, "status": "working"}}}))
    registry = read_registry(root)
    assert registry.problem is None
    assert registry.dead("agent-1", this_machine()) is False


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"agents": []}', "\x00", "[" * 100_000])
def test_a_damaged_registry_is_not_none_and_says_so(tmp_path, text):
    root = graph_in(tmp_path, ".wg")
    (tmp_path / ".wg" / "service").mkdir()
    (tmp_path / ".wg" / "service" / "registry.json").write_text(text)
    registry = read_registry(root)
    assert registry.dead("agent-1", this_machine()) is None
    assert str(registry.problem).startswith(".wg/service/registry.json: the registry is of no use")
    assert registry.problem.warns


def test_a_registry_that_cannot_be_read_says_so(tmp_path):
    root = graph_in(tmp_path, ".wg")
    (tmp_path / ".wg" / "service" / "registry.json").mkdir(parents=True)
    assert read_registry(root).problem is not None
