"""A board with item files beside it, on each kind of store."""

from __future__ import annotations

from contextlib import ExitStack
from os.path import isdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kit.backlogs import Yard


@pytest.fixture
def yard(tmp_path, kind):
    yard = Yard(tmp_path, kind)
    yield yard
    yard.close()


@pytest.fixture
def quick():
    """Makes yards in memory, where there is such a place; what survives a power cut is not tested with them."""
    with ExitStack() as stack:

        def made() -> Yard:
            where = "/dev/shm" if isdir("/dev/shm") else None
            return Yard(Path(stack.enter_context(TemporaryDirectory(dir=where))))

        yield made
