"""Payloads as the channels write them."""

from __future__ import annotations

from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def payload():
    """A payload by the name of its file."""
    return lambda name: (FIXTURES / name).read_bytes()
