"""Where work is: each lease has its own location, and keeps it after its end."""

from __future__ import annotations

import signal
import subprocess

import pytest

from kit.repositories import git
from kit.running import Running, here

CODEX = ("--agent", "codex", "--session", "s1")
CHILD = ("--agent", "codex", "--session", "s1/sub")
CLAUDE = ("--agent", "claude", "--session", "s9")
ANA = ("--as", "ana")


@pytest.fixture
def tree(repo):
    return repo.worktree("tree")


def place(repo, key):
    task = repo.json("show", key)["task"]
    return task["worktree"], task["branch"]


def at(repo):
    return str(repo.folder), git(repo.folder, "branch", "--show-current").strip()


def test_two_leases_of_one_session_have_two_places(repo, tree):
    first, second = repo.add(), repo.add()
    repo.ok("claim", first, *CODEX)
    tree.ok("claim", second, *CODEX)
    assert (place(repo, first), place(repo, second)) == (at(repo), at(tree))
    assert f"works in     {tree.folder}, branch tree" in repo.ok("show", second).out
    assert repo.json("log", "--verify")["ok"]


@pytest.mark.parametrize("verb", ["claim", "start"])
def test_who_goes_on_in_another_worktree_says_so_by_claim_and_start(repo, tree, verb):
    key = repo.add()
    repo.ok("claim", key, *CODEX)
    tree.ok("renew", key, *CODEX)
    assert place(repo, key) == at(repo), "a renewal is no sign of where the work lies"
    tree.ok(verb, key, *CODEX)
    assert place(repo, key) == at(tree)
    tree.ok(verb, key, *CODEX)
    verbs = [event["verb"] for event in repo.json("log", key)["events"]]
    assert verbs.count("placed") == 1
    assert repo.json("log", "--verify")["ok"]


def test_a_subagent_elsewhere_does_not_move_the_lease_of_its_parent(repo, tree):
    key = repo.add()
    repo.ok("claim", key, *CODEX)
    tree.ok("claim", key, *CHILD)
    assert place(repo, key) == at(repo)


def test_a_commit_says_where_the_work_is(repo, tree):
    key = repo.add()
    repo.ok("claim", key, *CODEX)
    repo.ok("setup", "git")
    (tree.folder / "new.py").write_text("x = 1\n")
    around = tree.environment(DIBS_AGENT="codex", DIBS_SESSION="s1")
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for words in (("add", "new.py"), ("commit", "-q", "-m", "new")):
        subprocess.run(["git", *who, *words], cwd=tree.folder, env=around, check=True)
    assert place(repo, key) == at(tree)


def test_a_takeover_points_to_the_former_holders_worktree_and_never_to_ones_own(repo, tree):
    """The former holder went on with something else meanwhile, in the other's worktree."""
    key, other = repo.add(), repo.add()
    tree.ok("claim", key, *CODEX)
    repo.ok("claim", other, *CODEX)
    (tree.folder / "half.py").write_text("x = 1\n")
    ran = repo.ok("takeover", key, "--force", "--reason", "urgent", *ANA)
    assert f'its work is in "{tree.folder}" on branch "tree"' in ran.err
    assert 'uncommitted there: "half.py"' in ran.err
    assert place(repo, key) == at(repo)


def test_the_place_stays_after_the_end_of_the_lease(repo, tree):
    key = repo.add()
    tree.ok("claim", key, *CODEX)
    tree.ok("submit", key, "--note", "look at it", *CODEX)
    assert place(repo, key) == at(tree)
    shown = repo.json("show", key)
    [ended] = shown["ended_leases"]
    assert (ended["worktree"], ended["branch"]) == at(tree)
    assert f"work is in   {tree.folder}, branch tree" in repo.ok("show", key).out
    event = repo.json("log", key)["events"][-1]
    assert event["facts"]["ending"]["worktree"] == str(tree.folder)
    assert repo.json("log", "--verify")["ok"]


def test_what_a_sweep_freed_still_says_where_its_work_is(repo, tree):
    key, other = repo.add(), repo.add()
    tree.ok("claim", key, *CODEX, "--ttl", "1s")
    repo.ok("claim", other, *CODEX)
    repo.await_expiry(key)
    for _ in range(2):
        repo.ok("sweep", "--grace", "0s", *ANA)
    ran = repo.ok("claim", key, *CLAUDE)
    assert f'its work is in "{tree.folder}" on branch "tree"' in ran.err


# A release by hand is no attempt.


def test_what_is_given_back_by_hand_counts_as_no_attempt(repo):
    key = repo.add("work", "--max-attempts", "3")
    for _ in range(4):
        repo.ok("claim", key, *CODEX)
        repo.ok("release", key, *CODEX)
    assert repo.json("show", key)["task"]["attempts"] == 0
    repo.ok("claim", key, *CODEX)
    repo.ok("fail", key, "--reason", "no luck", *CODEX)
    assert repo.json("show", key)["task"]["attempts"] == 1
    assert repo.json("log", "--verify")["ok"]


def test_what_a_run_gives_back_counts_as_an_attempt(repo):
    key = repo.add()
    repo.run("run", key, "--on-fail", "release", *CODEX, "--", "false")
    task = repo.json("show", key)["task"]
    assert (task["state"], task["attempts"]) == ("open", 1)


def test_what_an_interrupted_run_gives_back_counts_as_an_attempt(repo):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; sleep 600", *CODEX) as run:
        run.pid_of("it")
        run.send(signal.SIGTERM)
        run.ended()
    task = repo.json("show", key)["task"]
    assert (task["state"], task["attempts"]) == ("open", 1)


def test_what_was_only_reserved_was_no_attempt_either(repo):
    key = repo.add()
    repo.ok("claim", key, *CODEX)
    repo.ok("fail", key, "--reason", "no luck", *CODEX)
    repo.ok("retry", key, *ANA)
    repo.ok("claim", key, "--reserve", *CODEX)
    repo.ok("release", key, *CODEX)
    assert repo.json("show", key)["task"]["attempts"] == 1
