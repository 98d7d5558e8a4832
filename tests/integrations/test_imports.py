"""The rooms of integrations have no import cycle, lazy and typing imports included."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import dibs

SOURCE = Path(dibs.__file__).parent
ROOMS = (
    "dibs.integrations",
    "dibs.cli.setup",
    "dibs.cli.uninstall",
    "dibs.cli.hook",
    "dibs.cli.guard",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{one.name}" for one in node.names} & set(known)
            found |= inner or {node.module}
    return found & set(known)


def test_no_module_of_integrations_imports_one_that_imports_it():
    known = modules()
    graph = {
        name: {one for one in imports(path, known) if one.startswith(ROOMS)}
        for name, path in known.items()
        if name.startswith(ROOMS)
    }
    assert len(graph) > 15
    TopologicalSorter(graph).prepare()  # raises CycleError
