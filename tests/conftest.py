"""Fixtures: a board with a stopped clock, and a repository with real processes."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from hypothesis import settings

from kit import soak
from kit.boards import STORES, Bench, new_address
from kit.postgres_ground import MEMORY, quickest_place
from kit.repositories import Repo, home

# The tests start dibs thousands of times: each module is compiled once, also where the machine's own
# configuration says that nothing compiled is kept. A start would cost four times as much.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Nothing of the machine's own configuration is read or written, also by what runs in this process.
os.environ["HOME"], os.environ["XDG_CONFIG_HOME"] = home(), f"{home()}/.config"

# Whoever runs the tests in the background may have switched signals off, which is inherited.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# The machine may be busy: no example is too slow. The suite tries the same examples each time, so that it
# gives the same result each time; `make soak` tries new ones, from a seed that it prints.
settings.register_profile("suite", deadline=None, derandomize=True, database=None)
settings.register_profile("soak", deadline=None, derandomize=False, database=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("suite"), max_examples=soak.FEW)
settings.load_profile("soak" if soak.MINUTES else "quick" if soak.QUICK else "suite")


def pytest_addoption(parser, pluginmanager):
    if not pluginmanager.has_plugin("xdist"):  # then its options in pyproject.toml mean nothing
        group = parser.getgroup("xdist")
        group._addoption("-n")
        group._addoption("--dist")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: while a test waits for a process, another has work."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (os.cpu_count() or 1) + 1


# What `make quick` leaves out, by three rules: the folders of long tests, every test that starts a process
# (of dibs, of git, of a server), and most examples of a property.

LONG = ("acceptance", "faults", "simulation")
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")


def pytest_ignore_collect(collection_path):
    return True if soak.QUICK and collection_path.name in LONG else None


def pytest_collection_finish():
    if soak.QUICK:
        sys.addaudithook(start_nothing)


def start_nothing(event, _arguments):
    if event in STARTS:
        pytest.skip("it starts a process")


def pytest_terminal_summary(terminalreporter):
    if soak.QUICK:
        skipped = len(terminalreporter.stats.get("skipped", ()))
        terminalreporter.write_line(
            f"left out: tests/{', tests/'.join(LONG)}; {skipped} tests, most of which start a process; "
            f"all but {soak.FEW} examples of each property"
        )


# The folders of tests are in memory, as their servers are: a sync is requested, and costs nothing.
# Where nothing may be executed there, as in many containers, hooks and scripts could not run.
if quickest_place() == MEMORY and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


@pytest.fixture(params=STORES)
def kind(request):
    """Every test of the board runs on each kind of store."""
    return request.param


@pytest.fixture
def bench(tmp_path, kind):
    """A board on a real store, at an instant that only the test moves."""
    bench = Bench(tmp_path / "dibs", kind=kind)
    yield bench
    bench.close()


@pytest.fixture
def apart(tmp_path, kind):
    """A board that is alone in its database: the test may change rows by hand."""
    bench = Bench(tmp_path / "dibs", kind=kind, apart=True)
    yield bench
    bench.close()


@pytest.fixture
def repo(tmp_path, kind):
    """A real git repository with a board of its own, reached through real processes."""
    repo = Repo.create(tmp_path / "repo", new_address(kind))
    repo.ok("init")
    return repo
