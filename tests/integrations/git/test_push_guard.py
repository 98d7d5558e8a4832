"""Where others build on it, work arrives only under a lease that still counts."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from dibs.board.locate import locate
from dibs.domain import commands as c
from dibs.domain.values import MINUTE, Duration
from dibs.integrations.git.hook_context import place_of
from dibs.integrations.git.push_guard import Commit, judged
from kit.guarded import TWO, agent, clone, taken_over
from kit.repositories import git


def is_refused(tree, *words, reason):
    message = tree.git_fails("push", "origin", "HEAD:main", *words)
    assert reason in message, message
    assert "Traceback" not in message


def test_a_zombie_cannot_push_and_the_new_holder_can_with_the_formers_commits(shared, one):
    former = one.commit("src/a")
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    is_refused(
        one, reason=f"{former[:10]} was made under T-1 1.1, which was lost: it is 1.2 by now"
    )
    is_refused(one, "--force", reason="was lost")
    is_refused(one, "--no-verify", reason="was lost")
    two = clone(shared, "two", TWO)
    two.ok("claim", "T-2")
    shared.ok("handoff", "T-1", "--to", "claude", "--as", "ana")
    two.ok("claim", "T-1")
    two.git("fetch", "-q", str(one.folder), "HEAD")
    two.git("merge", "-q", "--ff-only", "FETCH_HEAD")
    is_refused(two, reason="which was lost: it is 1.3 by now")
    two.commit("src/b")
    assert two.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.3"]
    two.git("push", "-q", "origin", "HEAD:main")


@pytest.mark.parametrize(
    "ends", ["complete", "submit", "release", "block --reason r", "fail --reason r"]
)
def test_commit_end_push_works(one, ends):
    one.commit("src/a")
    verb, *options = ends.split()
    one.ok(verb, "T-1", *options)
    one.git("push", "-q", "origin", "HEAD:main")


@pytest.mark.parametrize("ends", ["reset T-1 --reason r", "drop T-1 --reason r"])
def test_a_lease_that_somebody_else_ended_does_not_count(shared, one, ends):
    one.commit("src/a")
    shared.ok(*ends.split(), "--as", "ana")
    is_refused(one, reason=f"which was lost: ended ({ends.split()[0]})")


def test_what_is_pushed_is_in_the_scope_of_its_task(one):
    one.write("docs/a", "src/b")
    one.git("commit", "-q", "--no-verify", "-m", "change")
    is_refused(one, reason='changes "docs/a", outside the scope of what it names (T-1: "src")')


def test_constraints_may_leave_pushing_to_others(shared, one):
    shared.ok("edit", "T-1", "--allow", "edit", "--allow", "commit", "--as", "founder")
    one.commit("src/a")
    is_refused(one, reason="do not allow it to push")


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ("Dibs-Task: T-99\nDibs-Token: 1.1", "names 'T-99', which is no task of this board"),
        ("Dibs-Task: T-1\nDibs-Token: 9.9", "which the board never gave"),
        ("Dibs-Task: T-1\nDibs-Token: high", "with the token 'high'"),
        ("Dibs-Task: T-1", "with the token ''"),
        ("Dibs-Token: 1.1", "names no task with the token '1.1'"),
        ("Dibs-Task: T-2\nDibs-Token: 1.1", "which the board never gave"),
        ("Dibs-Task: T-1, T-2\nDibs-Token: 1.1", "names T-1, T-2 with the token"),
        ("Dibs-Task: \x1b]52;c;eA==\x07\nDibs-Token: 1.1", "which is no task"),
    ],
)
def test_a_forged_name_is_refused(one, stated, reason):
    one.write("src/a")
    tree = one.git("write-tree").strip()
    forged = one.git("commit-tree", "-p", "HEAD", "-m", f"forged\n\n{stated}", tree).strip()
    message = one.git_fails("push", "origin", f"{forged}:main")
    assert reason in message
    assert "\x1b" not in message


def test_a_path_that_looks_like_a_commit_hides_nothing(one):
    """What git prints is recognised by its form, not by marks that a path may hold too."""
    name = b"\x01" + b"0" * 40 + b"\x02\x02T-1\x021.1"
    with open(os.fsencode(one.folder) + b"/" + name, "w") as file:
        file.write("x")
    one.git("add", ".")
    one.git("commit", "-q", "--no-verify", "-m", "odd")
    is_refused(one, reason="outside the scope")


def test_what_a_person_let_the_holder_touch_arrives_also_after_its_end(shared, one):
    """It was let through when it was made; it is pushed when the task is done."""
    two = clone(shared, "two", agent("s9", "claude"))
    two.ok("claim", "T-2")
    shared.task("lib")
    three = clone(shared, "three", agent("s8", "gemini"))
    three.ok("claim", "T-3")
    allow = ("guard", "allow", "src/hot", "--reason", "hotfix", "--as", "ana")
    one.by({}).ok(*allow, "--to", "claude")
    two.commit("docs/a", "src/hot")
    assert two.trailers()[0] == "Dibs-Task: T-2"
    assert two.json("guard", "range", "HEAD~1..HEAD")["findings"] == []
    two.ok("done", "T-2", "--note", "x")
    two.git("push", "-q", "origin", "HEAD:refs/heads/two")
    three.write("src/hot")
    three.git("commit", "-q", "--no-verify", "-m", "x\n\nDibs-Task: T-3\nDibs-Token: 1.1")
    is_refused(three, reason='changes "src/hot", outside the scope')


def test_leave_counts_for_its_holder_while_its_lease_runs(bench):
    """And longer than it was given for: nobody can prove when a commit was made."""
    bench.add(scope=("src",))
    bench.add(scope=("docs",))
    bench.agent("codex", "s1").claim("T-1")
    claude = bench.agent("claude", "c1")
    claude.claim("T-2")
    bench.advance(1)

    def found(token="1.1", path="src/hot"):
        commit = Commit("0" * 40, (), ("T-2",), (token,), (path,))
        return [one.refusal.code for one in judged(bench.board, [commit])]

    leave = c.Allow("T-1", ("src/hot",), "claude", Duration(15 * MINUTE), "hotfix")
    assert found() == ["outside_scope"]
    bench.person("ana").do(leave.but(to="codex"))
    bench.advance(1)
    assert found() == ["outside_scope"]
    bench.person("ana").do(leave)
    bench.advance(1)
    assert found() == []
    assert found(path="src/cold") == ["outside_scope"]
    bench.advance(3600)
    assert found() == []
    claude.do(c.Release("T-2"))
    assert found() == []
    claude.claim("T-2")
    assert found("1.2") == ["outside_scope"]


@pytest.mark.parametrize(("level", "stops"), [("allow", False), ("warn", False), ("refuse", True)])
def test_whether_commits_name_a_task_is_a_setting_and_merges_need_none(shared, one, level, stops):
    (shared.folder / "dibs/settings.toml").write_text(f'commits_need_task = "{level}"\n')
    two = clone(shared, "two", agent("s9", "claude"))
    two.ok("claim", "T-2")
    two.commit("docs/a")
    one.commit("src/a")
    one.git("push", "-q", "origin", "HEAD:main")
    two.git("fetch", "-q")
    two.git("merge", "-q", "--no-edit", "origin/main")
    two.git("push", "-q", "origin", "HEAD:main")
    two.git(
        "commit", "-q", "--allow-empty", "--no-verify", "-m", "x", DIBS_AGENT="z", DIBS_SESSION="z"
    )
    ran = two.try_git("push", "origin", "HEAD:main")
    assert (ran.code != 0) == stops, ran.err
    assert ("you hold no task" in ran.err) == (level != "allow")


def test_a_push_that_is_right_is_not_talked_about(one):
    one.commit("src/a")
    assert one.try_git("push", "-q", "origin", "HEAD:main").err == ""


def test_deletions_tags_and_what_is_there_already_go_through(shared, one):
    one.git("push", "-q", "origin", "HEAD:refs/heads/other")
    one.git("push", "-q", "origin", ":refs/heads/other")
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    one.git("push", "-q", "origin", "HEAD~0:refs/heads/again")
    one.git("tag", "-a", "-m", "v1", "v1")
    one.git("push", "-q", "origin", "v1")


def test_what_came_with_a_tag_is_new_to_a_branch(shared, one):
    one.commit("src/a")
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    one.git("push", "-q", "origin", "HEAD:refs/tags/early")
    is_refused(one, reason="was lost")


def test_an_existing_hook_sees_what_is_pushed_and_its_word_counts(shared, one):
    shared.ok("setup", "git", "--remove")
    hook = shared.folder / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\ncat > seen\n! grep -q forbidden seen\n")
    hook.chmod(0o755)
    shared.ok("setup", "git")
    new = one.commit("src/a")
    one.git("push", "-q", "origin", "HEAD:main")
    assert new in (shared.folder / "seen").read_text()
    one.git_fails("push", "-q", "origin", "HEAD:forbidden")
    one.commit("src/b")
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    is_refused(one, reason="was lost")


def test_a_board_that_cannot_be_read_lets_a_push_through_unless_a_setting_closes_it(shared, one):
    (shared.folder / "dibs/board.db").write_bytes(b"broken" * 100)
    one.write("src/a")
    one.git("commit", "-q", "--no-verify", "-m", "x")
    ran = one.try_git("push", "origin", "HEAD:main")
    assert ran.code == 0
    assert "not guarded" in ran.err
    (shared.folder / "dibs/settings.toml").write_text('guard_failure = "refuse"\n')
    one.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "x")
    is_refused(one, reason="guard_failure is refuse")


def test_a_bare_repository_inside_of_another_work_tree_is_one_only_if_git_names_it(
    tree, monkeypatch
):
    """It may have been committed. A hook that git runs in it has its name in GIT_DIR."""
    inner = tree.folder / "shared.git"
    inner.mkdir()
    git(inner, "init", "-q", "--bare")
    around = locate(str(inner), {})
    assert around.repository.worktree == str(tree.folder)
    monkeypatch.chdir(inner)
    found = place_of(".", around, {})
    assert (found.folder, found.repository.worktree) == (str(inner / "dibs"), "")


# Commits that name no task.


def unnamed(tree, *paths, text="text\n"):
    """A commit that went past the hooks in the clone, and so names nothing."""
    tree.write(*paths, text=text)
    tree.git("commit", "-q", "--no-verify", "-m", "change", **agent("nobody", "nobody"))
    assert tree.trailers() == []
    return tree.git("rev-parse", "HEAD").strip()


def test_a_zombie_cannot_push_into_what_is_held_by_naming_no_task(shared, one):
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    new = unnamed(one, "src/a", "free")
    is_refused(one, reason=f'{new[:10]} names no task, and "src/a" is held by ana with T-1')
    reply = json.loads(one.fails(4, "guard", "range", "HEAD~1..HEAD", "--json").out)
    assert [each["code"] for each in reply["findings"]] == ["path_held"]
    one.git("reset", "-q", "--hard", "HEAD~1")
    unnamed(one, "free")
    one.git("push", "-q", "origin", "HEAD:main")


def test_the_holder_may_push_what_names_no_task_below_a_commit_of_its_own(shared, one):
    unnamed(one, "src/a")
    is_refused(one, reason="who holds T-1 puts a commit of their own on top")
    one.commit("src/b")
    one.git("push", "-q", "origin", "HEAD:main")
    one.commit("src/c")
    unnamed(one, "src/d")
    is_refused(one, reason='"src/d" is held by codex')


def test_a_commit_on_top_speaks_for_its_own_task_only(shared, one):
    shared.ok("claim", "T-2", "--as", "ana")
    unnamed(one, "src/a", "docs/a")
    one.commit("src/b")
    is_refused(one, reason='"docs/a" is held by ana with T-2')


def test_what_names_no_task_goes_through_when_nobody_holds_it_any_more(shared, one):
    unnamed(one, "src/a")
    is_refused(one, reason='"src/a" is held by codex')
    one.ok("release", "T-1")
    one.git("push", "-q", "origin", "HEAD:main")


@pytest.mark.parametrize(("level", "stops"), [("block", True), ("warn", False), ("off", False)])
def test_how_much_a_held_path_weighs_in_a_push_is_a_setting(shared, one, level, stops):
    unnamed(one, "src/a")
    (shared.folder / "dibs/settings.toml").write_text(f'scope_conflict = "{level}"\n')
    ran = one.try_git("push", "origin", "HEAD:main")
    assert (ran.code != 0) == stops, ran.err
    assert ("is held by codex" in ran.err) == (level != "off")


def test_what_a_person_lets_through_may_be_pushed_while_that_lasts(shared, one):
    shared.ok("actor", "set", "ana", "--kind", "human", "--as", "ana")
    shared.ok("guard", "allow", "src/a", "--reason", "hotfix", "--as", "ana")
    unnamed(one, "src/a")
    one.git("push", "-q", "origin", "HEAD:main")
    unnamed(one, "src/b")
    is_refused(one, reason='"src/b" is held by codex')


def test_the_advice_to_a_new_holder_says_what_helps(shared, one):
    one.commit("src/a")
    shared.ok("takeover", "T-1", "--force", "--reason", "urgent", "--as", "ana")
    is_refused(one, reason="puts a commit of their own on top, which names its token 1.2;")
    shared.ok("reset", "T-1", "--reason", "r", "--as", "ana")
    is_refused(one, reason="next: dibs claim T-1, and put a commit of your own on top")


# A range of commits, in CI.


def test_a_range_is_judged_in_text_and_json_with_the_exit_code_of_the_worst(one):
    base = one.git("rev-parse", "HEAD").strip()
    assert one.ok("guard", "range", f"{base}..HEAD").out == "0 commits, nothing in the way\n"
    good = one.commit("src/a")
    assert one.ok("guard", "range", f"{base}..HEAD").out == "1 commit, nothing in the way\n"
    one.write("docs/a")
    one.git("commit", "-q", "--no-verify", "-m", "change")
    ran = one.fails(1, "guard", "range", f"{base}..HEAD", "--json")
    reply = json.loads(ran.out)
    assert (reply["ok"], reply["commits"]) == (False, 2)
    [finding] = reply["findings"]
    assert finding["code"] == "outside_scope"
    assert finding["commit"] != good
    taken_over(one, "T-1")
    text = one.fails(5, "guard", "range", f"{base}..HEAD").out
    assert "was made under T-1 1.1, which was lost" in text
    assert "  next: " in text


def test_a_range_that_cannot_be_checked_is_an_error(one):
    assert "git does not know" in one.fails(2, "guard", "range", "main..nowhere").err
    (one.folder.parent / "shared.git/dibs/board.db").write_bytes(b"broken" * 100)
    one.fails(74, "guard", "range", "HEAD~0..HEAD")


SIGNS = """#!/bin/sh
cat > /dev/null
case $* in *--verify*) echo "gpg: a good signature" >&2; echo "[GNUPG:] GOODSIG 1 T"; exit ;; esac
echo "[GNUPG:] SIG_CREATED D" >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nabc\\n-----END PGP SIGNATURE-----\\n'
"""


def test_what_git_is_set_to_show_changes_nothing(one, tmp_path):
    (tmp_path / "gpg").write_text(SIGNS)
    (tmp_path / "gpg").chmod(0o755)
    for setting in ("log.showSignature=true", "diff.renames=copies", "log.showRoot=false",
                    "diff.ignoreSubmodules=all", "core.quotePath=true", "log.diffMerges=separate",
                    f"gpg.program={tmp_path / 'gpg'}"):  # fmt: skip
        one.git("config", *setting.split("="))
    one.write("docs/a")
    one.git("commit", "-q", "-S", "--no-verify", "-m", "change")
    one.fails(1, "guard", "range", "HEAD~1..HEAD")
    one.fails(1, "guard", "range", "HEAD")
    words = "merge\n\nDibs-Task: T-1\nDibs-Token: 1.1"
    parents = ("-p", "HEAD~1", "-p", "HEAD")
    merge = one.git("commit-tree", *parents, "-m", words, "HEAD^{tree}").strip()
    assert "1 commit, nothing" in one.ok("guard", "range", f"HEAD..{merge}").out


def test_squashed_work_of_several_tasks_is_in_the_scopes_of_all(shared, one):
    one.ok("claim", "T-2")
    one.write("src/a", "docs/a")
    words = "both\n\nDibs-Task: T-1\nDibs-Task: T-2\nDibs-Token: 1.1\nDibs-Token: 1.1"
    made = one.git("commit-tree", "-p", "HEAD", "-m", words, one.git("write-tree").strip()).strip()
    one.ok("guard", "range", f"HEAD..{made}")
    one.write("elsewhere")
    made = one.git("commit-tree", "-p", "HEAD", "-m", words, one.git("write-tree").strip()).strip()
    assert 'changes "elsewhere"' in one.fails(1, "guard", "range", f"HEAD..{made}").out


MANY = 9000
"""More commits than fit on a command line of a quarter of a megabyte."""


def test_a_push_with_more_branches_than_a_command_line_holds_is_checked(shared, one):
    """What is not checked is not let through: the pusher decides how much that is."""
    two = clone(shared, "two", TWO)
    two.write("src/theirs")
    two.git("commit", "-q", "--no-verify", "-m", "theirs")
    commit = "commit refs/many/{0}\ncommitter a <a@b.example> {0} +0000\ndata 1\nx\n"
    lines = "\n".join(commit.format(n) for n in range(MANY))
    assert two.try_git("fast-import", "--quiet", fed=lines).code == 0
    words = ("push", "-q", "origin", "HEAD:main", "refs/many/*:refs/heads/many/*")
    limited = 'ulimit -s 1024; exec git "$@"'
    ran = subprocess.run(
        ["sh", "-c", limited, "sh", *words], cwd=two.folder, env=two.environment(),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode != 0, ran.stderr
    assert "src/theirs" in ran.stderr
    assert "not guarded" not in ran.stderr


def test_a_push_that_cannot_be_checked_is_refused(shared, one):
    """An object that git does not have: nobody can say what it changes."""
    ran = shared.run("guard", "receive", fed=f"{'0' * 40} {'d' * 40} refs/heads/main\n")
    assert (ran.code, ran.out) == (1, "")
    assert "this push cannot be checked" in ran.err
