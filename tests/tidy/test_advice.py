"""Advice is filled from the facts of a refusal: every place that refuses gives the facts it needs."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import dibs
from dibs.output.error_map import ERROR_MAP

SOURCE = Path(dibs.__file__).parent


class Place(NamedTuple):
    """Where a refusal with a literal code is made, and which facts it states."""

    where: str
    code: str
    facts: frozenset[str]


def places() -> list[Place]:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and is_refusal(node) and states_facts(node):
                where = f"{file.relative_to(SOURCE)}:{node.lineno}"
                found.append(Place(where, str(node.args[0].value), facts_of(node)))
    return found


def is_refusal(node: ast.Call) -> bool:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    literal = bool(node.args) and isinstance(node.args[0], ast.Constant)
    return literal and name in ("refused", "Refusal", "BoardMoved")


def states_facts(node: ast.Call) -> bool:
    """Whether the facts are written out there, and are not a variable."""
    spread = any(word.arg is None for word in node.keywords)
    return not spread and not any(isinstance(each, ast.Name) for each in node.args[2:])


def facts_of(node: ast.Call) -> frozenset[str]:
    """Keyword arguments, the keys of dictionaries, and the task that `_task(...)` states."""
    facts = {word.arg for word in node.keywords if word.arg}
    for argument in node.args[2:]:
        for inner in ast.walk(argument):
            if isinstance(inner, ast.Dict):
                facts |= {str(key.value) for key in inner.keys if isinstance(key, ast.Constant)}
            elif isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "_task":
                facts.add("task")
    return frozenset(facts)


def placeholders(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(ERROR_MAP[code].advice) if name}


def test_every_refusal_states_the_facts_that_its_advice_names():
    found = [place for place in places() if place.code in ERROR_MAP]
    assert len(found) > 100
    missing = [
        (place.where, place.code, sorted(placeholders(place.code) - place.facts))
        for place in found
        if placeholders(place.code) - place.facts
    ]
    assert missing == []
