"""What measures can be run: a bench that does not load is found here, not when it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_every_measurement_loads():
    names = sorted(path.stem for path in BENCH.glob("*.py"))
    assert "run" in names
    code = f"import sys; sys.path.insert(0, {str(BENCH)!r}); import {', '.join(names)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
