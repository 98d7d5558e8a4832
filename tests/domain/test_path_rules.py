"""A guard lets touch what nobody else reserves, within what one holds oneself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.facts import ScopeReservation
from dibs.domain.model import Allowance, Task, Terms
from dibs.domain.scopes.access import COMMIT, EDIT, AccessFacts, ScopeIndex, check_access
from dibs.domain.scopes.overlap import matches
from dibs.domain.scopes.policy import REFUSE, WARN, ScopePolicy

GROUND = ScopePolicy({"@web": ("src/web/**",)})


def task(key: str, *scope: str, constraints: tuple[str, ...] = ()) -> Task:
    terms = Terms("Work", constraints=constraints)
    return Task(1, "uid", key, terms, created=0, updated=0, creator=1, scope=scope)


def rival(*scope: str, key: str = "T-9") -> ScopeReservation:
    return ScopeReservation(9, key, 2, "s2", expires=100, scope=scope)


CASES = {
    # what one holds, what others hold, the path: what forbids it
    ("", "", "a.py"): "",
    ("", "src", "src/a.py"): "held",
    ("", "src", "srcs/a.py"): "",
    ("", "src/*.py", "src/a.py"): "held",
    ("", "@web", "src/web/index.html"): "held",
    ("", "@web", "src/api/index.html"): "",
    ("src", "", "src/a.py"): "",
    ("src", "", "docs/a.md"): "outside",
    ("src", "docs", "docs/a.md"): "held",
    ("@web", "", "src/web/a.js"): "",
    ("@web", "", "src/a.js"): "outside",
    ("src/**", "", "src"): "outside",
    ("*", "", "any/where"): "outside",
}


@pytest.mark.parametrize(("case", "expected"), CASES.items())
def test_each_path_is_judged_by_what_reserves_it(case, expected):
    own, others, path = case
    facts = AccessFacts(
        GROUND,
        (task("T-1", own),) if own else (),
        (rival(others),) if others else (),
    )
    verdict = check_access(facts, [path], EDIT)
    found = [name for name in ("held", "outside", "forbidden") if getattr(verdict, name)]
    assert found == ([expected] if expected else [])
    assert verdict.stops == bool(expected)


def test_a_task_without_a_scope_allows_every_path_that_nobody_else_holds():
    facts = AccessFacts(GROUND, (task("T-1"), task("T-2", "docs")), (rival("src"),))
    verdict = check_access(facts, ["any.py", "docs/a.md", "src/b.py"], EDIT)
    assert [path for path, _ in verdict.held] == ["src/b.py"]
    assert not verdict.outside


def test_constraints_say_what_may_be_done_with_a_path():
    facts = AccessFacts(GROUND, (task("T-1", "src", constraints=("edit",)), task("T-2", "src/b")))
    assert not check_access(facts, ["src/a"], EDIT).stops
    assert check_access(facts, ["src/a", "src/b"], COMMIT).forbidden == (("src/a", "T-1"),)


def test_what_a_person_allowed_is_not_in_the_way_and_nothing_else_is_free():
    allowed = Allowance(7, "T-9", ("src/a.py",), 1, until=100)
    facts = AccessFacts(GROUND, (task("T-1", "docs"),), (rival("src"),), (allowed,))
    assert not check_access(facts, ["src/a.py"], EDIT).stops
    assert check_access(facts, ["src/b.py"], EDIT).stops
    other = facts.but(rivals=(rival("src", key="T-8"),))
    assert check_access(other, ["src/a.py"], EDIT).stops


def test_the_item_file_of_a_held_task_is_always_allowed():
    facts = AccessFacts(GROUND, (task("T-1", "src"),), items=frozenset({"backlog/T-1.md"}))
    assert check_access(facts, ["backlog/T-1.md"], COMMIT).is_clear


def test_only_a_commit_asks_what_was_lost_and_whether_a_task_is_held():
    facts = AccessFacts(GROUND, lost=("T-1",), needs=REFUSE)
    assert check_access(facts, ["a"], EDIT).is_clear
    verdict = check_access(facts, ["a"], COMMIT)
    assert (verdict.lost, verdict.needs) == (("T-1",), REFUSE)
    holder = facts.but(mine=(task("T-2"),))
    assert check_access(holder, ["a"], COMMIT).is_clear


def test_where_conflicts_only_warn_a_held_path_stops_nobody():
    facts = AccessFacts(GROUND.but(conflict=WARN), rivals=(rival("src"),))
    verdict = check_access(facts, ["src/a"], EDIT)
    assert verdict.held
    assert not verdict.stops


names = st.text("aAb*?[]!é-", min_size=1, max_size=4) | st.just("**")
patterns = st.lists(names, min_size=1, max_size=3).map("/".join) | st.just("@a")
paths = st.lists(st.text("aAbé", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)
scopes = st.lists(st.lists(patterns, max_size=3).map(tuple), max_size=4)


@given(scopes, paths, st.booleans())
def test_many_scopes_at_once_say_the_same_as_each_by_itself(scopes, path, fold):
    found = ScopeIndex(scopes, fold=fold).of(path)
    assert found == [n for n, one in enumerate(scopes) if matches(one, path, fold=fold)]
