"""Fixtures: a board with a clock that stands still, and a repository with real processes."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from kit.boards import Bench
from kit.repositories import Repo

# The machine may be busy: no example is too slow. Where a change is judged, the examples are the
# same for everybody; at a desk they are new every time.
settings.register_profile("dibs", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("dibs")


@pytest.fixture
def bench(tmp_path):
    """A board on a real store, at an instant that only the test moves."""
    bench = Bench(tmp_path / "dibs")
    yield bench
    bench.close()


@pytest.fixture
def repo(tmp_path):
    """A real git repository with a board in it, reached through real processes."""
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    return repo
