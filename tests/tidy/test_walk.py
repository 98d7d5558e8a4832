"""A newcomer can follow `dibs claim` through the code: few files, and no tower of calls named execute."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk.py"


def test_claim_walks_through_at_most_thirty_files():
    spec = importlib.util.spec_from_file_location("walk", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = script.walked("claim", script.SOURCE)
    assert "board/execute.py" in found["files"], "nothing was walked"
    assert len(found["files"]) <= 30, found["files"]
    assert 1 <= found["execute"] <= 3
