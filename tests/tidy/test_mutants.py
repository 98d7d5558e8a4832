"""What `make mutants` breaks is there to be broken: a table that names old text judges no test."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mutants()


def test_every_mutation_finds_its_text(table):
    stale = [
        one.name
        for one in table
        if one.before not in (ROOT / "src" / "dibs" / one.file).read_text()
        or one.before == one.after
    ]
    assert stale == []


def test_every_mutation_names_tests_that_are_there(table):
    named = {
        (one.name, *tests.partition("::")[::2]) for one in table for tests in one.tests.split()
    }
    missing = [
        (name, test)
        for name, path, test in sorted(named)
        if f"def {test.partition('[')[0]}(" not in (ROOT / path).read_text() and test
    ]
    assert missing == []
