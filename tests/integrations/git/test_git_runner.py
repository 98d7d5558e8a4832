"""git is started in one place only, and starts nothing that a repository names."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from dibs import git_runner
from dibs.machine import this_machine
from kit.canaries import Canaries
from kit.guarded import ONE, TWO, Tree
from kit.repositories import git

SOURCE = Path(git_runner.__file__).parent
RUN = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def canaries(tmp_path):
    return Canaries(tmp_path / "canaries")


@pytest.fixture
def hostile(tmp_path, canaries):
    """A repository of ours whose configuration starts a program wherever it can."""
    tree = Tree.at(tmp_path / "shop", ONE)
    canaries.commit_filtered_files(tree.folder)
    tree.ok("init")
    tree.task("src")
    canaries.configure(tree.folder)
    canaries.clear()
    return tree


def test_git_is_started_in_one_place():
    """The demonstration makes a repository of its own."""
    starts = re.compile(r"""(\[|run\(|spawnp\(\s*)["']git["']""")
    found = (path for path in SOURCE.rglob("*.py") if starts.search(path.read_text()))
    names = sorted(path.relative_to(SOURCE).as_posix() for path in found)
    assert names == ["cli/demo.py", "git_runner.py"]


def program(folder: Path, text: str) -> None:
    """A program that is found as `git`."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "git").chmod(0o755)


def test_a_git_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    program(tmp_path / "bin", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert git_runner.git("rev-parse", seconds=1) == (git_runner.TIMED_OUT, b"")
    child = int((tmp_path / "child").read_text())
    for _ in range(1000):
        if this_machine().process(child) is None:
            return
        time.sleep(0.01)
    pytest.fail("what it started goes on")


def test_without_git_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_runner.git("rev-parse") == (git_runner.NO_GIT, b"")
    assert git_runner.setting("user.email") == ""


def test_words_that_no_program_can_be_given_are_a_failure():
    assert git_runner.git("rev-parse", "a\0b") == (git_runner.NO_GIT, b"")


def test_a_work_tree_for_a_task_is_made_with_filters_and_without_hooks(hostile, canaries):
    """Without its filters it would have other files than a clone has."""
    hostile.ok("next", "--worktree")
    made = hostile.folder.parent / "shop-T-1"
    assert (made / "a.plain").read_text() == "one\n"
    assert "smudge" in canaries.sang
    assert not [name for name in canaries.sang if "hook" in name or name == "fsmonitor"]


def test_a_work_tree_is_removed_without_running_anything(hostile, canaries):
    hostile.ok("next", "--worktree")
    canaries.clear()
    hostile.ok("complete", "T-1")
    assert not (hostile.folder.parent / "shop-T-1").exists()
    assert canaries.sang == []


def test_a_work_tree_with_changes_is_kept_without_running_anything(hostile, canaries):
    hostile.ok("next", "--worktree")
    made = hostile.folder.parent / "shop-T-1"
    canaries.touch_filtered_files(made)
    canaries.clear()
    hostile.ok("complete", "T-1")
    assert (made / "a.plain").read_text() == "two\n"
    assert canaries.sang == []


@pytest.mark.parametrize(
    "line", ["guard commit", "guard range HEAD", "doctor", "setup git --check"]
)
def test_guards_and_checks_run_nothing_that_the_repository_names(hostile, canaries, line):
    (hostile.folder / "new").touch()
    git(
        hostile.folder, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "new"
    )
    canaries.touch_filtered_files(hostile.folder)
    canaries.clear()
    ran = hostile.by(TWO).run(*line.split())
    assert ran.code in (0, 1), ran.err
    assert canaries.sang == []


def test_what_is_missing_of_a_partial_clone_is_not_fetched(hostile, canaries, tmp_path):
    """That would start what the remote is configured with."""
    tree = Tree.at(tmp_path / "far")
    tree.commit("a")
    tree.git("config", "uploadpack.allowFilter", "true")
    subprocess.run(
        ["git", "clone", "-q", "--filter=tree:0", "--no-checkout", f"file://{tree.folder}", "part"],
        cwd=tmp_path, check=True, env=tree.environment(),
    )  # fmt: skip
    part = Tree(tmp_path / "part")
    part.git("config", "remote.origin.uploadpack", canaries.program("uploadpack", then="exit 1"))
    canaries.clear()
    where = git_runner.Tree(str(part.folder / ".git"), str(part.folder))
    status, _ = git_runner.git("status", "--porcelain", tree=where)
    assert status != 0
    assert canaries.sang == []
    part.try_git("status")
    assert canaries.sang == ["uploadpack"]
