"""Scopes that would take long to compare: nobody waits for them, and no guard opens because of them."""

from __future__ import annotations

import itertools
import time

import pytest

from dibs.domain.facts import ScopeReservation
from dibs.domain.model import ActorId, TaskId, TaskKey
from dibs.domain.scopes.access import EDIT, AccessFacts, check_access
from dibs.domain.scopes.overlap import StepBudget
from dibs.domain.scopes.policy import ScopePolicy
from dibs.domain.values import Instant
from kit.boards import of_a_file
from kit.guarded import ONE, TWO, Tree
from kit.harnesses import context, denial, edit, hook

ANA = ("--as", "ana")
PAIRS = ["".join(pair) for pair in itertools.product("abcdefgh", repeat=2)]
DEEP = "src/**/" + "".join(f"*{pair}*/" for pair in PAIRS[:46])
"""A glob of many segments, each of which has to be compared with each name of a path."""
NAME = "".join(
    f"{one}{''.join(one + other for other in 'abcdefgh' if other > one)}" for one in "abcdefgh"
)
LONG = "src/" + "/".join(f"{NAME}{number}" for number in range(46))
"""A path each of whose names has many of these pairs."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CLASSES = "".join(f"[!{letter}]" for letter in LETTERS + "01234")
PATIENCE = 30.0
"""Seconds of a whole command on a busy machine; without a limit these take more than a minute."""
UNDECIDED = "too many wildcards"


def many(start: str, end: str) -> list[str]:
    """As many scopes as a task may have."""
    return [word for number in range(64) for word in ("--scope", f"{start}{number}{end}")]


@pytest.fixture
def repo(repo):
    (repo.folder / ".git/dibs").mkdir(exist_ok=True)
    repo.ok("add", "Hold all", *many(DEEP, "x"), *ANA)
    repo.ok("add", "Hold more", *many(DEEP, "y"), *ANA)
    repo.ok("add", "Write docs", "--scope", "docs/**", *ANA)
    repo.ok("claim", "T-1", "--agent", "codex", "--session", "s9")
    return repo


def test_an_overlap_that_takes_too_long_to_find_out_counts_as_one(repo):
    begun = time.monotonic()
    ran = repo.fails(4, "claim", "T-2", "--agent", "claude", "--session", "c1")
    assert time.monotonic() - begun < PATIENCE
    assert "too many wildcards to compare them, so they count as overlapping" in ran.err
    ran = repo.ok("next", "--agent", "claude", "--session", "c1", "--json")
    assert ran.json["task"]["key"] == "T-3"


@of_a_file
def test_an_edit_that_cannot_be_judged_in_time_obeys_the_setting(repo):
    repo.ok("claim", "T-3", "--agent", "gemini", "--session", "g1")
    begun = time.monotonic()
    message = context(hook(repo, edit(repo, LONG)))
    assert time.monotonic() - begun < PATIENCE
    assert UNDECIDED in message
    assert "not guarded" in message
    assert "is held by gemini" in denial(hook(repo, edit(repo, "docs/a.md")))
    (repo.folder / ".git/dibs/settings.toml").write_text('guard_failure = "refuse"\n')
    assert UNDECIDED in denial(hook(repo, edit(repo, LONG)))
    assert denial(hook(repo, edit(repo, "README.md"))) == ""


def test_a_commit_is_given_more_time_than_an_edit(tmp_path):
    tree = Tree.at(tmp_path / "repo")
    tree.ok("init")
    tree.ok("setup", "git")
    tree.ok("add", "Hold all", *many(DEEP, "x"), *ANA)
    tree.by(TWO).ok("claim", "T-1")
    mine = tree.by(ONE)
    mine.ok("add", "Mine")
    mine.ok("claim", "T-2")
    assert UNDECIDED in context(hook(mine, edit(mine, LONG)))
    (tree.folder / LONG).parent.mkdir(parents=True)
    (tree.folder / LONG).write_text("a\n")
    mine.git("add", ".")
    ran = mine.try_git("commit", "-q", "-m", "deep")
    assert (ran.code, ran.err) == (0, "")


def test_what_was_decided_before_the_steps_were_used_up_counts():
    rival = ScopeReservation(
        TaskId(1), TaskKey("T-1"), ActorId(1), "s9", Instant(9), (f"{DEEP}x", "docs")
    )
    facts = AccessFacts(ScopePolicy(), rivals=(rival,))
    verdict = check_access(facts, ("docs/a", LONG, "docs/b"), EDIT, StepBudget(1_000))
    assert verdict.held == (("docs/a", rival), ("docs/b", rival))
    assert verdict.undecided == (LONG,)
    assert verdict.stops
    assert not check_access(facts, (LONG,), EDIT, StepBudget(1_000)).stops


@of_a_file
def test_many_classes_where_case_does_not_count_do_not_hold_the_lock(repo):
    (repo.folder / ".git/dibs/settings.toml").write_text("ignore_case = true\n")
    repo.ok("release", "T-1", "--agent", "codex", "--session", "s9")
    for name in ("one", "two"):
        repo.ok("add", name, *many(CLASSES, f"{name}[!q]"), *ANA)
    repo.ok("claim", "T-4", "--agent", "claude", "--session", "c1")
    begun = time.monotonic()
    repo.fails(4, "claim", "T-5", "--agent", "gemini", "--session", "g1")
    assert time.monotonic() - begun < PATIENCE


@of_a_file
@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("[ab]" * 33, "has 33 classes like [a-z]; the most is 32"),
        (f"src/[{'ab' * 33}]", "has a class of 66 characters; the most is 64"),
    ],
)
def test_a_scope_has_few_and_short_classes(repo, scope, message):
    assert message in repo.fails(2, "add", "x", "--scope", scope, *ANA).err
    assert message in repo.fails(2, "scope", "T-3", "--add", scope, *ANA).err
    repo.ok("add", "x", "--scope", "[ab]" * 32, "--scope", f"[{'ab' * 32}]", *ANA)
    repo.ok("add", "x", "--scope", "[" * 200, *ANA)
