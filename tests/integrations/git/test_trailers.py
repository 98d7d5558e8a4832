"""A commit names the lease that it was made under, and goes on naming it whatever becomes of it."""

from __future__ import annotations

import pytest

from kit.guarded import TWO, taken_over

FIRST = ["Dibs-Task: T-1", "Dibs-Token: 1.1"]
SECOND = ["Dibs-Task: T-2", "Dibs-Token: 1.1"]
WRITES = 'sh -c \'printf "subject\\n\\nbody\\n" | cat - "$0" > "$0.new" && mv "$0.new" "$0"\''
"""An editor whose user writes a message above what is there."""


@pytest.fixture
def holder(tree):
    """The first session holds T-1, for `src`; T-2 is for `docs`."""
    tree.task("src")
    tree.task("docs")
    tree.ok("claim", "T-1")
    return tree


def renewed_token(tree, key="T-1"):
    """The session gives a task back and claims it again: a lease of its own, with a token of its own."""
    tree.ok("release", key)
    tree.ok("claim", key)


# New commits.


def test_a_commit_names_task_and_token_of_the_lease(holder):
    holder.commit("src/a", message="subject\n\nbody\n\nSigned-off-by: T <t@example.org>")
    assert holder.message() == (
        "subject\n\nbody\n\nSigned-off-by: T <t@example.org>\nDibs-Task: T-1\nDibs-Token: 1.1"
    )


def test_who_holds_nothing_names_nothing(tree):
    tree.commit("a", message="subject")
    assert tree.message() == "subject"


def test_the_task_is_the_one_in_whose_scope_the_paths_lie(holder):
    holder.ok("claim", "T-2")
    holder.commit("docs/a")
    assert holder.trailers() == SECOND
    holder.commit("src/a")
    assert holder.trailers() == FIRST


def test_among_several_the_one_that_is_named_counts_and_without_a_name_none(holder):
    holder.ok("claim", "T-2")
    holder.write("src/a", "docs/a")
    ran = holder.try_git("commit", "-m", "both")
    assert "it may be for any of T-1, T-2" in ran.err
    assert holder.trailers() == []
    holder.write("src/b", "docs/b")
    holder.git("commit", "-q", "-m", "both", DIBS_TASK="T-2")
    assert holder.trailers() == SECOND


def test_a_task_without_a_scope_takes_what_no_other_has(holder):
    holder.task()
    holder.ok("claim", "T-3")
    holder.commit("anywhere")
    assert holder.trailers() == ["Dibs-Task: T-3", "Dibs-Token: 1.1"]
    holder.commit("src/a")
    assert holder.trailers() == FIRST


def test_what_the_author_wrote_counts_if_it_is_held(holder):
    holder.ok("claim", "T-2")
    holder.write("src/a", "docs/a")
    holder.git("commit", "-q", "-m", "both", "-m", "dibs-task: T-2")
    assert holder.trailers() == SECOND


@pytest.mark.parametrize(
    "stated", ["Dibs-Task: T-2\nDibs-Token: 1.1", "Dibs-Task: T-1\nDibs-Token: 9.9"]
)
def test_trailers_that_are_not_true_are_replaced(holder, stated):
    holder.commit("src/a", message=f"subject\n\n{stated}\nReviewed-by: ben")
    assert sorted(holder.trailers()) == [*FIRST, "Reviewed-by: ben"]


def test_who_holds_nothing_cannot_name_a_lease(tree):
    tree.commit("a", message="subject\n\nDibs-Task: T-1\nDibs-Token: 1.1")
    assert tree.message() == "subject"


def test_words_that_only_look_like_trailers_stay(holder):
    words = (
        "subject\n\nDibs-Task: is how a commit names its task,\nas this text says.\n\nMore text."
    )
    holder.commit("src/a", message=words)
    assert holder.message() == f"{words}\n\nDibs-Task: T-1\nDibs-Token: 1.1"


def test_words_that_only_look_like_trailers_stay_also_beside_false_ones(holder):
    words = "subject\n\nDibs-Task: is how a commit names its task,\nas this text says."
    holder.commit("src/a", message=f"{words}\n\nDibs-Task: T-9\nDibs-Token: 9.9")
    assert holder.message() == f"{words}\n\nDibs-Task: T-1\nDibs-Token: 1.1"


def test_a_line_of_dashes_does_not_end_a_message(holder):
    holder.commit("src/a", message="subject\n\n---\nnot a patch")
    assert holder.message() == "subject\n\n---\nnot a patch\n\nDibs-Task: T-1\nDibs-Token: 1.1"


# Messages that are still to be written.


def test_a_message_gets_its_trailers_when_it_is_written_comments_and_diff_are_kept(holder):
    holder.write("src/a")
    seen = holder.folder.parent / "seen"
    holder.git("commit", "-q", "-v", GIT_EDITOR=f'{WRITES} "$1" && cp "$1" {seen} ;:')
    assert holder.message() == "subject\n\nbody\n\nDibs-Task: T-1\nDibs-Token: 1.1"
    shown = seen.read_text()
    assert "# Please enter the commit message" in shown
    assert "diff --git a/src/a" in shown
    assert "Dibs-" not in shown


@pytest.mark.parametrize("char", ["#", ";"])
def test_an_empty_message_is_still_empty_and_gives_the_commit_up(holder, char):
    holder.git("config", "core.commentChar", char)
    holder.write("src/a")
    assert "Aborting commit" in holder.git_fails("commit", GIT_EDITOR="true")
    assert "Aborting commit" in holder.git_fails("commit", "-v", GIT_EDITOR="true")
    emptied = "sh -c 'echo > \"$0\"'"
    assert "Aborting commit" in holder.git_fails("commit", GIT_EDITOR=emptied)
    shortened = "sh -c 'sed -i -e 1,2d \"$0\"'"
    assert "Aborting commit" in holder.git_fails("commit", "-v", GIT_EDITOR=shortened)
    holder.git("commit", "-q", "-m", "words")
    assert holder.trailers() == FIRST


def test_a_template_that_nobody_touched_gives_the_commit_up(holder):
    (holder.folder.parent / "template").write_text("what and why\n")
    holder.git("config", "commit.template", str(holder.folder.parent / "template"))
    holder.write("src/a")
    assert "did not edit the message" in holder.git_fails("commit", GIT_EDITOR="true")
    holder.git("commit", "-q", GIT_EDITOR=WRITES)
    assert holder.trailers() == FIRST


# Commits that are made again.


def test_an_amended_commit_has_the_current_token(holder):
    holder.commit("src/a")
    renewed_token(holder)
    holder.git("commit", "-q", "--amend", "--no-edit")
    assert holder.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.2"]
    holder.git("commit", "-q", "--amend", "-m", "other words")
    assert holder.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.2"]


def test_an_amended_commit_of_a_task_that_is_done_keeps_its_name(holder):
    holder.commit("src/a")
    holder.ok("complete", "T-1")
    holder.git("commit", "-q", "--amend", "--no-edit", GIT_EDITOR="true")
    assert holder.trailers() == FIRST
    holder.ok("claim", "T-2")
    holder.git("commit", "-q", "--amend", "--no-edit")
    assert holder.trailers() == FIRST


def test_a_picked_commit_of_ones_own_has_the_current_token(holder):
    mine = holder.commit("src/a")
    holder.git("checkout", "-q", "-b", "other", "HEAD~1")
    renewed_token(holder)
    holder.git("cherry-pick", mine)
    assert holder.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.2"]


def test_a_picked_commit_without_a_name_gets_the_name_of_who_picks_it(holder):
    nameless = (
        holder.by({}).git("commit-tree", "-p", "HEAD", "-m", "nameless", "HEAD^{tree}").strip()
    )
    holder.git("cherry-pick", "--allow-empty", nameless)
    assert holder.trailers() == FIRST


@pytest.mark.parametrize("again", ["pick", "rebase"])
def test_a_commit_of_somebody_else_keeps_its_own_name(holder, again):
    other = holder.beside("other", TWO)
    other.ok("claim", "T-2")
    theirs = other.commit("docs/a")
    holder.commit("src/a")
    if again == "pick":
        holder.git("cherry-pick", theirs)
    else:
        holder.git("checkout", "-q", "-b", "again", theirs)
        holder.git("rebase", "-q", "main")
    assert holder.trailers() == SECOND
    assert holder.git("log", "-1", "--format=%s") == "change\n"


def test_a_rebased_commit_of_ones_own_has_the_current_token_and_a_nameless_one_none(holder):
    holder.git("checkout", "-q", "-b", "topic")
    holder.commit("src/a")
    holder.by({}).git("commit", "-q", "--allow-empty", "-m", "nameless")
    holder.git("checkout", "-q", "main")
    holder.commit("src/b")
    renewed_token(holder)
    holder.git("checkout", "-q", "topic")
    holder.git("rebase", "-q", "main")
    assert holder.trailers() == []
    assert holder.trailers("HEAD~1") == ["Dibs-Task: T-1", "Dibs-Token: 1.2"]


def test_what_is_committed_while_a_rebase_waits_is_new_and_what_it_amends_is_not(holder):
    holder.by({}).git("commit", "-q", "--allow-empty", "-m", "nameless")
    holder.try_git("rebase", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i s/^pick/edit/")
    holder.git("commit", "-q", "--allow-empty", "--amend", "--no-edit")
    assert holder.trailers() == []
    holder.commit("src/a")
    holder.git("rebase", "--continue")
    assert holder.trailers() == FIRST
    assert holder.trailers("HEAD~1") == []


@pytest.mark.parametrize("how", ["fixup", "squash"])
def test_commits_that_a_rebase_joins_keep_their_names(holder, how):
    other = holder.by(TWO)
    other.ok("claim", "T-2")
    other.commit("docs/a", message="theirs")
    other.commit("docs/b", message=f"{how}! theirs")
    holder.git("rebase", "-q", "-i", "--autosquash", "HEAD~2", GIT_EDITOR=":")
    assert holder.git("log", "-1", "--format=%s") == "theirs\n"
    assert holder.trailers() == SECOND


def test_after_a_takeover_the_formers_commits_are_renamed_by_who_makes_them_again(holder):
    theirs = holder.commit("src/a")
    taken_over(holder, "T-1")
    person = holder.by({})
    other = holder.beside("other", TWO)
    other.ok("claim", "T-2")
    person.ok("handoff", "T-1", "--to", "claude", "--as", "ana")
    other.ok("claim", "T-1")
    other.git("reset", "-q", "--hard", f"{theirs}~1")
    other.git("cherry-pick", theirs)
    assert other.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.3"]


def test_merges_and_squashes_are_untouched(holder):
    other = holder.beside("other", TWO)
    other.commit("elsewhere")
    holder.git("merge", "-q", "--no-ff", "--no-edit", "other")
    assert holder.trailers() == []
    other.commit("further")
    holder.git("merge", "-q", "--squash", "other")
    holder.git("commit", "-q", "--no-edit", "--no-verify")
    assert holder.trailers() == []


def test_a_revert_is_new_work(holder):
    holder.commit("src/a")
    renewed_token(holder)
    holder.git("revert", "--no-edit", "HEAD")
    assert holder.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.2"]


def test_a_message_is_written_though_the_board_cannot_be_read(holder):
    holder.settings('guard_failure = "refuse"\n')
    holder.database.write_bytes(b"broken" * 100)
    holder.write("src/a")
    ran = holder.try_git("commit", "--no-verify", "-m", "words")
    assert ran.code == 0
    assert "not guarded" in ran.err
    assert holder.message() == "words"


def test_the_tool_that_passes_the_source_on_as_a_variable_is_understood(holder, tmp_path):
    (tmp_path / "message").write_text("Merge branch\n")
    environment = {"PRE_COMMIT_COMMIT_MSG_SOURCE": "merge"}
    holder.ok("guard", "message", str(tmp_path / "message"), **environment)
    assert (tmp_path / "message").read_text() == "Merge branch\n"
    environment = {"PRE_COMMIT_COMMIT_MSG_SOURCE": "message"}
    holder.ok("guard", "message", str(tmp_path / "message"), **environment)
    assert "Dibs-Task: T-1" in (tmp_path / "message").read_text()


def test_no_program_of_the_configuration_runs_for_a_trailer_and_comments_stay_below_it(
    holder, tmp_path
):
    canary = tmp_path / "canary"
    for key in ("command", "cmd"):
        holder.git("config", f"trailer.{key}.{key}", f"touch {canary}; echo")
    holder.git("config", "core.commentChar", ";")
    holder.write("src/a")
    holder.git("commit", "-q", "-v", GIT_EDITOR=WRITES)
    assert holder.message() == "subject\n\nbody\n\nDibs-Task: T-1\nDibs-Token: 1.1"
    assert not canary.exists()
