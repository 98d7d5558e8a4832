"""A board with item files beside it, on each kind of store."""

from __future__ import annotations

import pytest

from kit.backlogs import Yard


@pytest.fixture
def yard(tmp_path, kind):
    yard = Yard(tmp_path, kind)
    yield yard
    yard.close()
