"""The registry of verbs is complete, names what is there, and has no rival."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dibs
from dibs.domain import commands as c
from dibs.domain.decide import decider
from dibs.domain.guards import CONDITIONS, named
from dibs.domain.verbs import SAME, VERBS, VerbSpec, commands

ROOT = Path(dibs.__file__).parent
COMMANDS = {kind.__name__ for kind in vars(c).values() if hasattr(kind, "verb")}


@pytest.mark.parametrize("spec", VERBS.values(), ids=lambda spec: spec.name)
def test_every_name_in_a_row_is_that_of_something(spec):
    assert set(vars(spec)) <= set(VerbSpec.__annotations__)
    assert all(named(guard).__doc__ for guard in (*spec.guards, *spec.own_guards))
    assert not spec.act or callable(decider(spec.act))
    assert not spec.when or spec.when in CONDITIONS
    assert bool(spec.act) == bool(spec.facts), "what changes the board needs facts and decides"


def test_a_command_has_a_target_only_if_it_is_about_tasks():
    states = {SAME, *(state for spec in commands() for state in spec.sources)}
    for spec in commands():
        assert bool(spec.sources) == bool(spec.target)
        assert not spec.target or spec.target in states


def test_who_needs_a_right_or_a_reason_is_asked_for_it():
    for spec in commands():
        guards = {*spec.guards, *(spec.own_guards or spec.guards)}
        assert spec.people_only == ("caller_has_the_right" in guards), spec.name
        assert spec.needs_reason == ("reason_is_given" in guards), spec.name


def test_there_is_no_second_list_of_verbs():
    """Neither of their names nor of their commands; only `cli/` has what each takes, in its `VERBS`."""
    found = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)[:60]}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != ROOT / "domain/verbs.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign | ast.AnnAssign) and lists_verbs(node.value)
        if not (path.is_relative_to(ROOT / "cli") and ast.unparse(node).startswith("VERBS = "))
    ]
    assert found == []


def lists_verbs(node: ast.expr | None) -> bool:
    """Whether it is a tuple, list, set or dict of three verbs or more, or of two commands or more."""
    if isinstance(node, ast.Dict):
        words: list[ast.expr | None] = [*node.keys]
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        words = [*node.elts]
    else:
        return False
    given = [ast.unparse(word).rpartition(".")[2] if word else "" for word in words]
    verbs = all(isinstance(word, ast.Constant) and word.value in VERBS for word in words)
    return (verbs and len(words) > 2) or sum(name in COMMANDS for name in given) > 1
