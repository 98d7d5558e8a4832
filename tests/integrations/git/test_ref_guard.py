"""A session that lost its lease moves no branch to work of its own; everything else goes through."""

from __future__ import annotations

import os
import subprocess

import pytest

from kit.guarded import ONE, TWO, Tree, taken_over


@pytest.fixture
def zombie(tree):
    """The first session works on, though a person has taken its task."""
    tree.settings("fence_refs = true\n")
    tree.task("src")
    tree.ok("claim", "T-1")
    tree.commit("src/a")
    taken_over(tree, "T-1")
    return tree


def test_it_cannot_commit_not_even_without_the_other_hooks(zombie):
    zombie.write("src/b")
    before = zombie.git("rev-parse", "HEAD")
    message = zombie.git_fails("commit", "--no-verify", "-m", "late")
    assert "the lease of T-1 was taken from this session" in message
    assert zombie.git("rev-parse", "HEAD") == before


@pytest.mark.parametrize("setting", ["fence_refs = false\n", "", "# fence_refs = is off\n"])
def test_without_the_setting_only_the_other_hooks_stand_in_the_way(zombie, setting):
    zombie.settings(setting)
    zombie.write("src/b")
    zombie.git("commit", "-q", "--no-verify", "-m", "late")


def test_it_cannot_amend_nor_bring_in_what_it_made_beside_its_branch(zombie):
    assert "taken" in zombie.git_fails("commit", "--amend", "--no-verify", "-m", "other words")
    zombie.git("checkout", "-q", "--detach")
    zombie.write("src/b")
    zombie.git("commit", "-q", "--no-verify", "-m", "beside")
    assert "taken" in zombie.git_fails("branch", "hidden")
    zombie.git("tag", "rescued")


def test_a_branch_whose_name_is_no_text_is_a_branch(zombie):
    name = os.fsdecode(b"odd-\xff")
    zombie.git("switch", "-q", "-c", name)
    zombie.write("src/b")
    assert "taken" in zombie.git_fails("commit", "--no-verify", "-m", "late")


def test_once_it_says_that_it_knows_it_goes_on(zombie):
    zombie.write("docs/b")
    zombie.git_fails("commit", "--no-verify", "-m", "late")
    zombie.ok("release", "T-1")
    zombie.git("commit", "-q", "--no-verify", "-m", "other work")


def test_it_may_still_leave_reset_stash_and_tidy_up(zombie):
    zombie.git("branch", "kept")
    zombie.git("switch", "-q", "-c", "other")
    zombie.git("reset", "-q", "--hard", "HEAD~1")
    zombie.git("reset", "-q", "--hard", "kept")
    (zombie.folder / "README").write_text("changed\n")
    zombie.git("stash")
    zombie.git("stash", "drop")
    zombie.git("branch", "-D", "main")


def test_what_is_kept_beside_a_branch_does_not_count_against_the_branch(zombie):
    zombie.git("checkout", "-q", "--detach")
    zombie.write("src/b")
    zombie.git("commit", "-q", "--no-verify", "-m", "beside")
    both = "create refs/tags/kept HEAD\ncreate refs/heads/known main\n"
    assert zombie.try_git("update-ref", "--stdin", fed=both).code == 0
    more = "create refs/tags/again HEAD\ncreate refs/heads/hidden HEAD\n"
    assert "taken" in zombie.try_git("update-ref", "--stdin", fed=more).err


def test_the_fence_asks_for_no_task(zombie):
    """That is what the guard in front of a commit does."""
    mute = zombie.by({"CLAUDECODE": "1"})
    mute.write("b")
    mute.git("commit", "-q", "--no-verify", "-m", "without a task")


def test_other_people_and_other_sessions_are_let_through(zombie):
    zombie.by({}).write("b")
    zombie.by({}).git("commit", "-q", "--no-verify", "-m", "a person's")
    other = zombie.beside("other", TWO)
    other.write("c")
    other.git("commit", "-q", "--no-verify", "-m", "another session's")


def test_the_work_of_colleagues_is_fetched_pulled_and_rebased_onto(zombie, tmp_path):
    shared = tmp_path / "shared.git"
    zombie.git("clone", "-q", "--bare", ".", str(shared))
    zombie.git("remote", "add", "origin", str(shared))
    zombie.git("clone", "-q", str(shared), str(tmp_path / "colleague"))
    colleague = Tree(tmp_path / "colleague", TWO)
    colleague.commit("src/theirs", message="honest\n\nDibs-Task: T-1\nDibs-Token: 1.2")
    colleague.git("push", "-q", "origin", "main")
    zombie.git("fetch", "-q")
    zombie.git("pull", "-q", "--ff-only", "origin", "main")
    assert (zombie.folder / "src/theirs").exists()
    zombie.git("switch", "-q", "-c", "mine", "main~1")
    zombie.git("rebase", "-q", "main")
    local = zombie.beside("local", TWO)
    local.commit("theirs-too")
    zombie.git("merge", "-q", "--ff-only", "local")


def test_where_it_holds_another_task_it_may(zombie):
    zombie.task("docs")
    zombie.ok("claim", "T-2")
    zombie.commit("docs/a")


def test_a_fence_that_cannot_be_asked_lets_through_unless_a_setting_closes_it(zombie):
    zombie.database.write_bytes(b"broken" * 100)
    zombie.write("src/b")
    ran = zombie.try_git("commit", "--no-verify", "-m", "late")
    assert ran.code == 0
    assert "not guarded" in ran.err
    zombie.settings('fence_refs = true\nguard_failure = "refuse"\n')
    zombie.write("src/c")
    assert "guard_failure is refuse" in zombie.git_fails("commit", "--no-verify", "-m", "late")


def test_on_every_kind_of_store(repo):
    """With the board's settings on a server the hook cannot read them by itself, and asks."""
    tree = Tree(repo.folder, ONE, repo.around.get("DIBS_URL", ""))
    if "DIBS_URL" in tree.around:
        (tree.folder.parent / "settings").write_text("fence_refs = true\n")
        tree.by({}).ok("config", "--load", str(tree.folder.parent / "settings"), "--as", "ana")
    else:
        tree.settings("fence_refs = true\n")
    tree.ok("setup", "git")
    tree.task("src")
    tree.ok("claim", "T-1")
    tree.commit("src/a")
    assert tree.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.1"]
    assert tree.json("show", "T-1")["task"]["renewals"] == 1
    taken_over(tree, "T-1")
    assert "was taken" in tree.cannot_commit("docs/b")
    assert "was taken" in tree.git_fails("commit", "--no-verify", "-m", "late")
    assert '"src/c" is held by ana' in tree.by(TWO).cannot_commit("src/c")


def test_a_pipe_in_the_place_of_the_settings_keeps_no_branch_from_moving(tree):
    """Nobody writes into it: whoever reads it waits for ever."""
    settings = tree.folder / ".git" / "dibs" / "settings.toml"
    settings.unlink(missing_ok=True)
    os.mkfifo(settings)
    branch = ["git", "branch", "new"]
    try:
        subprocess.run(branch, cwd=tree.folder, env=tree.environment(), timeout=60, check=True)
    finally:
        os.close(os.open(settings, os.O_RDWR | os.O_NONBLOCK))  # lets whoever waits go on
    assert tree.git("rev-parse", "new") == tree.git("rev-parse", "HEAD")
