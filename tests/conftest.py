"""Fixtures: a board with a clock that stands still, and a repository with real processes."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

from kit.boards import STORES, Bench, new_address
from kit.postgres_ground import MEMORY, quickest_place
from kit.repositories import Repo

# Whoever runs the tests in the background may have switched signals off, which is inherited.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# The machine may be busy: no example is too slow. Where a change is judged, the examples are the
# same for everybody; at a desk they are new every time.
settings.register_profile("dibs", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("dibs")


def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: while a test waits for a process, another has work."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (os.cpu_count() or 1) + 1


# The folders of tests are in memory, as their servers are: a sync is asked for, and costs nothing.
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
