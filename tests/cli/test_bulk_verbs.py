"""The verbs of dependencies and recovery on the command line, and in Python."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from dibs import Refused, open_board
from kit.repositories import git

ANA = ("--as", "ana")
A = ("--agent", "codex", "--session", "s1")
B = ("--agent", "claude", "--session", "s9")


def add(repo, *options):
    return repo.json("add", "work", *options, *ANA)["task"]["key"]


def test_a_chain_of_tasks_from_beginning_to_end(repo):
    first = add(repo)
    second = add(repo, "--after", first)
    repo.fails(3, "claim", second, *A)
    assert repo.json("next", *A)["task"]["key"] == first
    repo.fails(75, "next", *A)
    assert [step["key"] for step in repo.json("why", second)["steps"]] == [second, first]
    repo.ok("complete", first, *A)
    assert repo.json("list", "--ready")["tasks"][0]["key"] == second
    assert repo.json("next", *A)["task"]["key"] == second
    shown = repo.json("show", second)
    assert shown["waits_for"] == [{"key": first, "state": "complete"}]
    assert repo.json("show", first)["waited_for_by"] == [{"key": second, "state": "in_progress"}]


def test_depend_and_not(repo):
    first, second = add(repo), add(repo)
    repo.ok("depend", second, "--on", first, *ANA)
    ran = repo.fails(1, "depend", first, "--on", second, *ANA, "--json")
    assert ran.error["facts"]["cycle"] == [first, second, first]
    repo.ok("depend", second, "--not-on", first, *ANA)
    repo.fails(2, "depend", second, *ANA)
    repo.fails(2, "depend", second, "--on", "T-99", *ANA)
    assert repo.json("show", second)["waits_for"] == []


def test_nothing_ready_is_75_with_a_line_of_why(repo):
    add(repo, "--tier", "5")
    ran = repo.fails(75, "next", *A)
    assert "T-1 is ready, but not for you: dibs why T-1" in ran.err


def test_next_waits_for_work(repo):
    waiting = repo.start("next", "--wait", "60s", "--json", *A)
    key = add(repo)
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert json.loads(out)["task"]["key"] == key


def test_next_does_not_wait_longer_than_its_limit(repo):
    repo.fails(75, "next", "--wait", "1s", *A)


def test_reset_names_everyone_whom_it_interrupts(repo):
    first = add(repo)
    add(repo, "--after", first)
    repo.ok("claim", first, *A)
    repo.fails(1, "reset", first, *B)
    repo.fails(2, "reset", first, *ANA)
    reply = repo.json("reset", first, "--dry-run", "--reason", "wrong", *ANA)
    assert (reply["dry_run"], reply["changes"][0]["from"]["session"]) == (True, "s1")
    assert repo.json("show", first)["task"]["state"] == "in_progress"
    ran = repo.ok("reset", first, "--reason", "wrong", *ANA)
    assert "T-1 is reset; it was held by codex (session s1)" in ran.out
    repo.fails(5, "complete", first, *A)


def test_reset_of_several_needs_a_yes(repo):
    first = add(repo)
    second = add(repo, "--after", first)
    for key in (first, second):
        repo.ok("claim", key, *A)
        repo.ok("complete", key, *A)
    ran = repo.fails(2, "reset", first, "--redo", *ANA)
    assert "changes 2 tasks: T-1, T-2" in ran.err
    reply = repo.json("reset", first, "--redo", "--yes", "--park", *ANA)
    assert [(c["key"], c["event"]) for c in reply["changes"]] == [
        ("T-1", "reset"),
        ("T-1", "parked"),
        ("T-2", "reset"),
    ]


@pytest.mark.parametrize("how", [("--mine",), ("--assign", "ana")], ids=["mine", "assign"])
def test_a_reset_of_several_is_shown_before_and_after(repo, how):
    first, second = add(repo), add(repo)
    words = ("reset", first, second, *how, "--yes", *ANA)
    before = repo.ok(*words, "--dry-run").out.splitlines()[1:]
    done = repo.ok(*words, "--request-id", "r1").out.splitlines()
    again = repo.ok(*words, "--request-id", "r1").out.splitlines()
    assert before == done == again
    assert len(done) == 4


@pytest.mark.parametrize(
    "options", [("--mine", "--park"), ("--assign", "ana", "--mine"), ("--only", "--downstream")]
)
def test_reset_asks_which_one_is_meant(repo, options):
    repo.fails(2, "reset", add(repo), *options, *ANA)


def test_the_log_of_what_was_forced_has_resets_and_forced_retries(repo):
    """A reset that ended nobody's live lease is none, and so is a retry within its attempts."""
    held, free, failed = add(repo), add(repo), add(repo)
    repo.ok("claim", held, *A)
    repo.ok("reset", held, "--reason", "wrong branch", *ANA)
    repo.ok("reset", free, *ANA)
    for forced in ((), ("--force", "--reason", "the server is back")):
        repo.ok("claim", failed, *A)
        repo.ok("fail", failed, "--reason", "no luck", *A)
        repo.ok("retry", failed, *forced, *ANA)
    forced = repo.json("log", "--forced")["events"]
    assert [(one["task"], one["verb"], one["facts"]["reason"]) for one in forced] == [
        (held, "reset", "wrong branch"),
        (failed, "retried", "the server is back"),
    ]


def test_a_dry_run_needs_neither_a_reason_nor_a_yes(repo):
    first = add(repo)
    second = add(repo, "--after", first)
    repo.ok("claim", first, *A)
    repo.ok("block", first, "--reason", "waits", "--keep", *A)
    repo.ok("block", second, "--reason", "waits", *ANA)
    changes = repo.json("reset", first, "--dry-run", *ANA)["changes"]
    assert [change["key"] for change in changes] == [first, second]
    assert repo.fails(2, "reset", first, *ANA, "--json").error["code"] == "reason_missing"
    assert repo.json("show", first)["task"]["holder"]["name"] == "codex"


def test_retry_and_its_end(repo):
    key = add(repo, "--max-attempts", "1")
    repo.ok("claim", key, *A)
    repo.ok("fail", key, "--reason", "no luck", *A)
    repo.fails(1, "retry", key, *ANA)
    repo.fails(1, "retry", key, "--force", *A)
    assert repo.fails(2, "retry", key, "--force", *ANA, "--json").error["code"] == "reason_missing"
    forced = ("retry", key, "--force", "--reason", "the server is back", *ANA)
    assert repo.json(*forced)["changes"][0]["event"] == "retried"
    assert repo.json("show", key)["task"]["max_attempts"] == 2


def test_a_sweep_says_what_it_ended_in_one_line_and_what_it_left(repo):
    for _ in range(2):
        repo.ok("claim", add(repo), "--ttl", "1s", *A)
    repo.await_expiry("T-2")
    first = repo.json("sweep", "--grace", "0s", *ANA)
    assert (first["changes"], first["suspect"]) == ([], 2)
    ran = repo.ok("sweep", "--grace", "0s", *ANA)
    assert ran.out.startswith("2 leases ended: 2 expired\n")
    assert repo.json("sweep", *ANA)["changes"] == []


def test_a_later_time_is_typed_in_local_time_or_from_now(repo):
    key = add(repo, "--not-before", "2h")
    repo.fails(75, "next", *A)
    assert repo.json("show", key)["task"]["not_before"] is not None
    repo.ok("edit", key, "--not-before", "", *ANA)
    assert repo.json("next", *A)["task"]["not_before"] is None


# A work tree for a task.


def test_next_makes_a_work_tree_which_goes_when_its_task_is_complete(repo):
    key = add(repo)
    reply = repo.json("next", "--worktree", *A)
    path, branch = reply["worktree"], reply["branch"]
    assert branch == f"dibs/{key}"
    assert subprocess.check_output(["git", "-C", path, "branch", "--show-current"], text=True) == (
        f"{branch}\n"
    )
    assert repo.json("show", key)["task"]["worktree"] == path
    ran = repo.ok("complete", key, *A)
    assert f"removed the work tree {path}" in ran.out
    assert not os.path.exists(path)


def test_a_work_tree_with_something_to_commit_stays(repo):
    key = add(repo)
    path = repo.json("next", "--worktree", *A)["worktree"]
    with open(os.path.join(path, "new.txt"), "w") as file:
        file.write("not committed")
    repo.ok("complete", key, *A)
    assert os.path.exists(path)


def test_where_no_work_tree_can_be_made_the_claim_is_given_back(repo):
    key = add(repo)
    os.mkdir(f"{repo.folder}-{key}")
    other = add(repo)
    repo.fails(1, "next", "--worktree", *A)
    task = repo.json("show", key)["task"]
    assert (task["holder"], task["attempts"]) == (None, 0)
    assert repo.json("next", "--worktree", *A)["task"]["key"] == other, "it stands in nobody's way"


def test_without_a_commit_no_task_is_claimed_for_a_work_tree(repo):
    """Git can make no work tree then: it is refused before the claim, in one line."""
    key = add(repo)
    git(repo.folder, "update-ref", "-d", "HEAD")
    ran = repo.fails(1, "next", "--worktree", *A)
    assert f"{repo.folder} has no commit yet" in ran.err.splitlines()[0]
    assert f"check {repo.folder}" in ran.err.splitlines()[1]
    assert "\\n" not in ran.err
    assert [line["verb"] for line in repo.json("log", key)["events"]] == ["added"]


# From Python.


def test_the_same_from_python(repo):
    with (
        open_board(repo.folder, person="ana", environment=repo.environment()) as ana,
        open_board(
            repo.folder, agent="codex", session="s1", environment=repo.environment()
        ) as codex,
    ):
        first = ana.add("one").task.key
        second = ana.add("two", after=[first]).task.key
        assert ana.why(second) == ("T-2 waits for T-1 (open)", "T-1 ready")
        assert codex.next().task.key == first
        assert [task.key for task in codex.list(ready=True)] == []
        with pytest.raises(Refused, match="nothing is ready"):
            codex.next(wait="0s")
        [changed] = ana.reset(first, reason="wrong design")
        assert (changed.task, changed.event, changed.taken_from.holder.session) == (
            "T-1",
            "reset",
            "s1",
        )
        codex.next()
        codex.fail(first, "no luck")
        assert [change.event for change in ana.retry(first)] == ["retried"]
        ana.depend(second, not_on=first)
        assert codex.next().task.key == first
        assert codex.sweep() == ()
        assert ana.verify() == ()
