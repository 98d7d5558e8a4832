"""Fixtures: a board with a clock that stands still, and a repository with real processes."""

from __future__ import annotations

import pytest

from kit.boards import Bench
from kit.repositories import Repo


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
