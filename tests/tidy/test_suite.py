"""The suite gives the same answer each time, runs without its plugins, and is quick where it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from kit import soak

ROOT = Path(__file__).parent.parent.parent


def pytest_run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=ROOT, env=around | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(bool(soak.MINUTES), reason="a soak tries new examples")
def test_the_same_examples_are_tried_each_time_and_none_is_remembered(capsys):
    assert settings().derandomize
    assert settings().database is None
    assert "DIBS_SEED" in os.environ or soak.seed() == soak.seed() == 1


PROPERTY = """
from hypothesis import given, strategies as st
@given(st.integers())
def test_any(number):
    with open({out!r}, "a") as file:
        print(number, file=file)
"""


def tried(tmp_path: Path, name: str, *words: str, **environment: str) -> str:
    """The examples that a property in a folder of its own is tried with."""
    folder, out = tmp_path / name, tmp_path / f"{name}.out"
    folder.mkdir()
    (folder / "test_any.py").write_text(PROPERTY.format(out=str(out)))
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    environment["PYTHONPATH"] = str(ROOT / "tests")
    ran = pytest_run("-n0", "--rootdir", str(folder), str(folder), *words, **environment)
    assert ran.returncode == 0, ran.stdout
    return out.read_text()


def test_a_soak_tries_new_examples_and_the_same_ones_for_the_same_seed(tmp_path):
    minutes = {"DIBS_SOAK_MINUTES": "1"}
    first = tried(tmp_path, "first", "--hypothesis-seed=1", **minutes)
    assert tried(tmp_path, "second", "--hypothesis-seed=2", **minutes) != first
    assert tried(tmp_path, "third", "--hypothesis-seed=1", **minutes) == first


@pytest.mark.parametrize("words", [("-p", "no:xdist"), ("-n0",)])
def test_the_suite_runs_without_its_plugin_for_many_processes(words):
    ran = pytest_run(*words, "tests/domain/test_values.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_is_quick_starts_no_process_and_says_what_it_leaves_out():
    ran = pytest_run(
        "-n0",
        "tests/faults",
        "tests/integrations/git/test_git_setup.py",
        "tests/domain/test_values.py",
        DIBS_QUICK="1",
    )
    assert ran.returncode == 0, ran.stdout
    assert "left out: tests/acceptance, tests/faults, tests/simulation; " in ran.stdout
    assert "most of which start a process" in ran.stdout
