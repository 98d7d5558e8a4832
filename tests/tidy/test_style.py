"""The code reads as CONTRIBUTING says: small files, small functions, a promise at the top."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dibs

ROOT = Path(dibs.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FILE_LINES = 600
FUNCTION_LINES = 60


def test_no_file_is_too_long_to_be_read_at_once():
    long = {
        path.name: count
        for path in FILES
        if (count := len(path.read_text().splitlines())) > FILE_LINES
    }
    assert long == {}


def test_no_function_is_too_long_to_be_seen_at_once():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < FUNCTION_LINES, (path.name, node.name)


def test_every_module_says_what_it_is_for():
    for path in FILES:
        text = path.read_text()
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path


@pytest.mark.parametrize("room", ["storage", "timesheets", "workers"])
def test_no_import_cycle_inside_a_room(room):
    """Imports inside functions and for types count too. `prepare` raises `CycleError`, which names the cycle."""
    modules = {name_of(path): path for path in FILES}
    rooms = {name: path for name, path in modules.items() if name.startswith(f"dibs.{room}.")}
    graph = {name: imported_by(path, rooms) - {name} for name, path in rooms.items()}
    assert graph
    TopologicalSorter(graph).prepare()


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_by(path: Path, known: dict[str, Path]) -> set[str]:
    found = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    named = {f"{node.module}.{alias.name}" for node in found for alias in node.names}
    return (named | {node.module for node in found}) & {*known}
