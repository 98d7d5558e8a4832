"""A commit is refused if its paths are not the session's to change, whatever git is asked to do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dibs.board.locate import find_repository
from dibs.integrations.git.hook_context import is_verified_commit
from dibs.integrations.install.git import GitHooksSetup
from kit.guarded import ONE, PERSON, TWO, Tree, taken_over
from kit.repositories import clean_environment

# Two sessions, two work trees.


def test_the_second_cannot_claim_an_overlapping_scope_nor_commit_into_it(tree):
    tree.task("src/auth/**")
    tree.task("src/**")
    tree.task("docs")
    other = tree.beside("other", TWO)
    tree.ok("claim", "T-1")
    assert other.fails(4, "claim", "T-2", "--json").error["code"] == "scope_held"
    message = other.cannot_commit("src/auth/login.py")
    assert '"src/auth/login.py" is held by codex (session s1) with T-1' in message
    other.git("rm", "-q", "--cached", "src/auth/login.py")
    other.ok("claim", "T-3")
    other.commit("docs/a.md")
    tree.commit("src/auth/login.py")


def test_a_commit_outside_of_ones_own_scope_is_refused(tree):
    tree.task("src")
    tree.ok("claim", "T-1")
    tree.commit("src/a.py")
    assert '"docs/a.md" is outside the scope' in tree.cannot_commit("docs/a.md", "src/b.py")


def test_whoever_lost_its_lease_cannot_commit_until_it_says_that_it_knows(tree):
    tree.task("src")
    tree.ok("claim", "T-1")
    tree.commit("src/a.py")
    taken_over(tree, "T-1")
    assert "the lease of T-1 was taken from this session" in tree.cannot_commit("docs/b.md")
    assert tree.fails(5, "guard", "commit", "--json").error["code"] == "work_lost"
    tree.ok("release", "T-1")
    tree.git("commit", "-q", "-m", "change")


def test_a_commit_renews_the_lease_that_it_is_for_and_no_other(tree):
    tree.task("src")
    tree.task("docs")
    tree.ok("claim", "T-1")
    tree.ok("claim", "T-2")
    tree.commit("src/a.py")
    assert tree.json("show", "T-1")["task"]["renewals"] == 1
    assert tree.json("show", "T-2")["task"]["renewals"] == 0


def test_a_guard_that_refuses_renews_nothing(tree):
    tree.task("src")
    tree.ok("claim", "T-1")
    tree.cannot_commit("docs/a.md")
    assert tree.json("show", "T-1")["task"]["renewals"] == 0


# What a commit changes.


@pytest.fixture
def held(tree):
    """The second session holds `held`, the first is free to change everything else."""
    tree.task("held")
    tree.commit("held/old.py", "free/old.py")
    tree.by(TWO).ok("claim", "T-1")
    return tree


def test_a_deletion_is_a_change(held):
    held.git("rm", "-q", "held/old.py")
    assert '"held/old.py" is held by claude' in held.git_fails("commit", "-m", "gone")


@pytest.mark.parametrize(("old", "new"), [("held/old.py", "free/x"), ("free/old.py", "held/x")])
def test_both_sides_of_a_rename_are_changed(held, old, new):
    held.git("config", "diff.renames", "copies")
    held.git("mv", old, new)
    assert "is held by claude" in held.git_fails("commit", "-m", "moved")


def test_only_what_is_committed_is_judged(held):
    held.write("held/new.py", "free/new.py")
    held.git("commit", "-q", "-m", "part", "--", "free/new.py")
    assert "held/new.py" in held.git_fails("commit", "-m", "part", "--", "held/new.py")
    held.git("rm", "-q", "--cached", "held/new.py")
    (held.folder / "held/old.py").write_text("changed\n")
    assert "held/old.py" in held.git_fails("commit", "-am", "all")


def test_what_is_changed_and_not_staged_is_not_judged(held):
    (held.folder / "held/old.py").write_text("changed\n")
    held.commit("free/new.py")


def test_a_change_of_mode_is_a_change(held):
    (held.folder / "held/old.py").chmod(0o755)
    assert "held/old.py" in held.git_fails("commit", "-am", "mode")


def test_a_commit_in_a_subfolder_is_judged_by_paths_from_the_root(held):
    (held.folder / "held/old.py").write_text("changed\n")
    inner = Tree(held.folder / "free", ONE)
    held.git("config", "diff.relative", "true")
    assert "held/old.py" in inner.git_fails("commit", "-am", "from below")


def test_names_that_are_not_plain_text_are_paths_like_all_others(held):
    held.by(TWO).ok("scope", "T-1", "--add", "odd")
    os.makedirs(os.fsencode(held.folder) + b"/odd")
    for name in (b"new\nline", b'tab\t"quote"', b"\xff\xfe", b"\x1b]0;x\x07"):
        with open(os.fsencode(held.folder) + b"/odd/" + name, "w") as file:
            file.write("x")
    held.git("add", "odd")
    message = held.git_fails("commit", "-m", "odd")
    assert "3 more are held too" in message
    assert "Traceback" not in message
    assert "\x1b" not in message


def test_the_link_and_what_it_leads_to_are_both_held(held):
    os.symlink("../held", held.folder / "free/link")
    held.git("add", "free/link")
    message = held.git_fails("commit", "-m", "link")
    assert '"held" is held by claude' in message
    assert '("free/link" leads to "held")' in message


def test_a_link_that_leads_out_of_ones_own_scope_is_named(tree):
    tree.task("docs")
    tree.ok("claim", "T-1")
    (tree.folder / "docs").mkdir()
    os.symlink("../src/b", tree.folder / "docs/link")
    tree.git("add", "docs/link")
    message = tree.git_fails("commit", "-m", "link")
    assert '"src/b" is outside the scope' in message
    assert '("docs/link" leads to "src/b")' in message


def test_a_link_that_leads_elsewhere_is_only_itself(held):
    os.symlink("/etc/passwd", held.folder / "free/link")
    held.git("add", "free/link")
    held.git("commit", "-q", "-m", "link")


# Whatever git does.


def test_the_first_commit_of_a_repository_is_judged_too(tmp_path):
    new = Tree.at(tmp_path / "new", ONE)
    new.ok("init")
    new.ok("setup", "git")
    new.task("held")
    new.by(TWO).ok("claim", "T-1")
    assert '"held/a" is held by claude' in new.cannot_commit("held/a", "free/a")
    new.git("rm", "-q", "--cached", "held/a")
    new.git("commit", "-q", "-m", "first")


def test_amending_is_judged_by_what_is_new(held):
    held.commit("free/a")
    held.git("commit", "-q", "--amend", "-m", "better words")
    held.write("held/a")
    assert "held/a" in held.git_fails("commit", "--amend", "--no-edit")


def test_a_merge_brings_the_work_of_others_and_goes_through(held):
    held.by(TWO).ok("scope", "T-1", "--add", "both")
    other = held.beside("other", TWO)
    other.commit("held/new.py", "both", text="theirs\n")
    held.by(TWO).ok("scope", "T-1", "--remove", "both")
    held.commit("both", text="mine\n")
    held.try_git("merge", "other")
    held.write("both", text="both\n")
    held.git("commit", "-q", "--no-edit")
    assert held.git("log", "-1", "--format=%P").count(" ") == 1


def test_who_lost_its_lease_does_not_end_a_merge_either(tree):
    tree.task("src")
    other = tree.beside("other", TWO)
    other.commit("both", text="theirs\n")
    tree.commit("both", text="mine\n")
    tree.ok("claim", "T-1")
    tree.try_git("merge", "other")
    taken_over(tree, "T-1")
    tree.write("both", text="both\n")
    assert "was taken from this session" in tree.git_fails("commit", "--no-edit")


def test_a_cherry_picked_conflict_is_judged_like_any_change(held):
    other = held.beside("other", TWO)
    theirs = other.commit("held/old.py", text="theirs\n")
    held.by(TWO).commit("held/old.py", text="mine\n")
    held.try_git("cherry-pick", theirs)
    held.write("held/old.py", text="both\n")
    assert '"held/old.py" is held by claude' in held.git_fails("commit", "--no-edit")


def test_a_stash_is_no_commit(held):
    (held.folder / "held/old.py").write_text("changed\n")
    held.git("stash")
    held.git("stash", "pop")
    assert (held.folder / "held/old.py").read_text() == "changed\n"


def test_a_detached_head_is_guarded_like_a_branch(held):
    held.git("checkout", "-q", "--detach")
    assert "held/new.py" in held.cannot_commit("held/new.py")
    held.git("rm", "-q", "--cached", "held/new.py")
    held.commit("free/new.py")


def test_a_submodule_is_a_path_and_its_own_commits_are_its_own(held, plain):
    allow = ("-c", "protocol.file.allow=always")
    held.git(*allow, "submodule", "add", "-q", str(plain.folder), "held/sub")
    held.git("config", "diff.ignoreSubmodules", "all")
    assert '"held/sub" is held by claude' in held.git_fails("commit", "-m", "sub")
    inner = Tree(held.folder / "held/sub", ONE)
    inner.commit("anything")


def test_a_sparse_checkout_judges_what_is_staged_though_it_is_not_there(held):
    held.git("sparse-checkout", "set", "free")
    assert not (held.folder / "held").exists()
    held.git("rm", "-q", "--cached", "--sparse", "held/old.py")
    assert "held/old.py" in held.git_fails("commit", "-m", "gone")
    held.git("reset", "-q")
    held.commit("free/new.py")


def test_a_repository_of_fifty_thousand_files(held):
    """Written into the index as git would have it, with one file of them changed by the commit."""
    blob = held.git("hash-object", "-w", "README").strip()
    listed = "".join(f"100644 {blob}\tbig/{n % 97}/{n}.txt\n" for n in range(50_000))
    assert held.try_git("update-index", "--index-info", fed=listed).code == 0
    held.by({}).git("commit", "-q", "-m", "big")
    held.write("held/new.py")
    assert '"held/new.py" is held by claude' in held.git_fails("commit", "-m", "change")
    last = f"100644 {blob}\theld/49999.txt\n"
    assert held.try_git("update-index", "--index-info", fed=last).code == 0
    assert "1 more is held too" in held.git_fails("commit", "-m", "change")


# Who commits.


def test_an_agent_in_a_harness_that_names_nobody_needs_a_task(tree):
    mute = tree.by({"CLAUDECODE": "1"})
    assert "export DIBS_AGENT and DIBS_SESSION" in mute.cannot_commit("a")
    assert "'codex-2' has no session here: export DIBS_SESSION" in (
        tree.by({"DIBS_AGENT": "codex-2"}).cannot_commit("a")
    )
    mute.git("commit", "-q", "-m", "change", **ONE | {"CLAUDECODE": ""})


@pytest.mark.parametrize("who", [{"DIBS_AGENT": "codex"}, {"DIBS_AGENT": "agent"}])
def test_an_agent_without_a_session_or_a_name_of_its_own_holds_nothing(tree, who):
    assert "you hold no task" in tree.by(who).cannot_commit("a")


def test_who_takes_a_persons_name_as_an_agent_holds_nothing(tree):
    tree.task("src")
    tree.ok("claim", "T-1", "--as", "ana", DIBS_AGENT="", DIBS_SESSION="")
    message = tree.by({"DIBS_AGENT": "ana", "DIBS_SESSION": "s1"}).cannot_commit("src/a")
    assert '"src/a" is held by ana' in message


@pytest.mark.parametrize(("level", "stops"), [("allow", False), ("warn", False), ("refuse", True)])
def test_whether_a_commit_needs_a_task_is_a_setting(tree, level, stops):
    tree.settings(f'commits_need_task = "{level}"\n')
    tree.write("a")
    ran = tree.try_git("commit", "-m", "change")
    assert (ran.code != 0) == stops
    assert ("you hold no task" in ran.err) == (level != "allow")


def test_a_person_is_known_by_the_address_that_git_has(tree):
    tree.task("src")
    person = tree.by({})
    person.git("config", "user.email", "ana@example.org")
    person.ok("claim", "T-1", "--as", "ana")
    message = person.cannot_commit("src/a")
    assert '"src/a" is held by ana' in message
    assert (
        "git says you are 'ana@example.org', whom the board does not know; if you are ana"
        in message
    )
    assert "dibs actor set ana --alias ana@example.org" in message
    person.ok("actor", "set", "ana", "--alias", "ana@example.org", "--as", "ana")
    person.git("commit", "-q", "-m", "change")
    assert person.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.1"]


def test_under_strict_identity_too_a_person_is_known_by_the_address_that_git_has(tree):
    """Somebody made the address known: that is no guess. Inside a harness it counts for nothing."""
    tree.task("src")
    tree.settings('identity = "strict"\n')
    person = tree.by({})
    person.git("config", "user.email", "ana@example.org")
    person.ok("claim", "T-1", "--as", "ana")
    assert "dibs actor set ana --alias ana@example.org" in person.cannot_commit("src/a")
    person.ok("actor", "set", "ana", "--alias", "ana@example.org", "--as", "ana")
    assert '"src/a" is held by ana' in tree.by({"CLAUDECODE": "1"}).cannot_commit("src/a")
    person.git("commit", "-q", "-m", "change")
    assert person.trailers() == ["Dibs-Task: T-1", "Dibs-Token: 1.1"]


@pytest.mark.parametrize("identity", ["normal", "strict"])
def test_an_agent_that_nobody_can_name_learns_what_to_set(tree, identity):
    """Its own lease bars it then: that alone would make no sense to it."""
    tree.task("src")
    tree.settings(f'identity = "{identity}"\n')
    tree.ok("claim", "T-1", "--agent", "claude", "--session", "c1")
    nameless = tree.by({"CLAUDECODE": "1"})
    for path, why in (("src/a", '"src/a" is held by claude'), ("docs/a", "you hold no task")):
        message = nameless.cannot_commit(path)
        nameless.git("reset", "-q")
        assert why in message
        assert "export DIBS_AGENT and DIBS_SESSION" in message


def test_areas_that_cannot_be_read_warn_or_refuse_as_the_setting_says(tree):
    (tree.folder / "dibs.toml").write_text("[areas]\nweb = ['web/**']\n")
    tree.task("@web")
    tree.by(TWO).ok("claim", "T-1")
    assert '"web/a" is held by claude' in tree.cannot_commit("web/a")
    (tree.folder / "dibs.toml").write_text("[areas\n")
    tree.settings('guard_failure = "refuse"\n')
    assert 'cannot resolve "@web"' in tree.git_fails("commit", "-m", "change")
    tree.settings("")
    ran = tree.try_git("commit", "-m", "change")
    assert (ran.code, "not guarded by the board: dibs.toml: " in ran.err) == (0, True)


def test_somebody_whom_the_board_does_not_know_is_barred_only_by_what_others_hold(held):
    stranger = held.by({})
    stranger.commit("free/a")
    message = stranger.cannot_commit("held/a")
    assert '"held/a" is held by claude' in message
    assert "git has no user.email here" in message
    stranger.git("config", "user.email", "eve@example.org")
    message = stranger.git_fails("commit", "-m", "change")
    assert "git says you are 'eve@example.org'" in message
    assert "dibs actor set NAME --alias eve@example.org" in message
    assert "git says" not in held.git_fails("commit", "-m", "change")


# What cannot be asked.


def test_a_board_that_cannot_be_read_warns_and_lets_through_unless_a_setting_closes_it(held):
    held.database.write_bytes(b"not a database, and longer than a header would be" * 100)
    held.write("held/a")
    ran = held.try_git("commit", "-m", "change")
    assert ran.code == 0
    assert "not guarded by the board" in ran.err
    assert "Traceback" not in ran.err
    held.settings('guard_failure = "refuse"\n')
    held.write("held/b")
    message = held.git_fails("commit", "-m", "change")
    assert "guard_failure is refuse" in message
    assert "Traceback" not in message


@pytest.mark.parametrize("left", ["", "settings.toml", "board.id", "an empty board.db"])
def test_a_board_that_is_gone_is_reported_if_anything_of_it_is_left(held, left):
    for path in held.database.parent.iterdir():
        path.unlink()
    if left:
        (held.database.parent / left.split()[-1]).touch()
    held.write("held/a")
    ran = held.try_git("commit", "-m", "change")
    assert ran.code == 0
    assert ("not guarded by the board: there is no board in" in ran.err) == bool(left)


@pytest.mark.parametrize("how", ["deleted", "empty", "elsewhere"])
def test_a_board_that_is_gone_stops_a_commit_where_a_setting_says_so(held, how):
    held.settings('guard_failure = "refuse"\n')
    around = {"DIBS_BOARD": "/nonexistent"} if how == "elsewhere" else {}
    if not around:
        for path in held.database.parent.glob("board.*"):
            path.unlink()
    if how == "empty":
        held.database.touch()
    held.write("held/a")
    assert "guard_failure is refuse" in held.git_fails("commit", "-m", "change", **around)


def test_a_board_that_the_environment_names_and_that_is_not_there_is_reported(held):
    held.write("held/a")
    ran = held.try_git("commit", "-m", "change", DIBS_BOARD="/nonexistent")
    assert ran.code == 0
    assert "not guarded by the board: there is no board in /nonexistent" in ran.err


ONE_COMMIT = [
    ("commit", "-m", "change"), ("commit", "-am", "change"), ("commit",), ("commit", "-v"),
    ("commit", "--amend", "--no-edit"), ("-c", "core.abbrev=12", "commit", "-m", "no doubt"),
    ("-C", ".", "commit", "-m", "words -n and --no-verify"), ("commit", "--no-verify", "-m", "change"),
    ("commit", "-nm", "change"), ("commit", "--no-verify"),
]  # fmt: skip


@pytest.mark.parametrize("setting", ["", "fence_refs = true\n"], ids=["", "fenced"])
@pytest.mark.parametrize("words", ONE_COMMIT, ids=" ".join)
def test_a_commit_that_is_not_guarded_says_so_once(held, words, setting):
    """Up to four hooks ask the board; if the first was skipped, a later one says it."""
    held.settings(setting)
    held.database.write_bytes(b"broken" * 100)
    held.write("held/a")
    ran = held.try_git(*words, GIT_EDITOR="echo words >")
    assert ran.code == 0, ran.err
    unseen = words == ("commit", "--no-verify") and not setting  # no hook that asks is left to it
    assert ran.err.count("not guarded by the board") == (0 if unseen else 1)


@pytest.mark.parametrize(
    ("words", "verified"),
    [
        ("commit", True), ("commit -a -m x", True), ("-c a=b -C d --no-pager commit --amend", True),
        ("--git-dir x commit", True), ("commit --no-edit", True), ("commit --no-verify", False),
        ("commit --no-v", False), ("commit -n", False), ("commit -anm x", False), ("", False),
        ("rebase commit", False), ("cherry-pick commit", False), ("-c commit fetch", False),
    ],
)  # fmt: skip
def test_the_input_of_git_says_whether_it_ran_the_first_hook(words, verified):
    assert is_verified_commit(words.split()) is verified


def test_settings_that_cannot_be_read_warn_and_let_through(held):
    held.settings("guard_failure = \n")
    held.write("held/a")
    assert "not guarded" in held.try_git("commit", "-m", "change").err


def test_where_there_is_no_board_nothing_is_printed_and_nothing_is_started(plain, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho started >&2\n")
    python.chmod(0o755)
    GitHooksSetup(find_repository(str(plain.folder)), str(python)).install()
    plain.write("a")
    ran = plain.try_git("commit", "-q", "-m", "change")
    assert (ran.code, ran.err) == (0, "")
    assert plain.ok("guard", "commit").err == ""


def test_a_board_of_somebody_else_is_not_taken_for_none(held):
    folder = held.folder / ".git/dibs"
    held.write("held/a")
    folder.chmod(0)
    if os.access(folder, os.X_OK):
        pytest.skip("root may look into every folder")
    ran = held.try_git("commit", "-m", "change")
    folder.chmod(0o700)
    assert ran.code == 0
    assert "not guarded by the board" in ran.err


def test_from_a_subfolder_the_same_is_asked(held):
    held.git("config", "diff.relative", "true")
    held.write("held/a")
    Tree(held.folder / "free", ONE).fails(4, "guard", "commit")


def test_a_work_tree_away_from_its_git_directory_is_guarded_by_its_own_board(held, tmp_path):
    """As with a repository for the files of a home folder, with another repository in it."""
    away = Tree.at(tmp_path / "away", ONE)
    apart = {"GIT_DIR": str(held.folder / ".git"), "GIT_WORK_TREE": str(away.folder)}
    (away.folder / "held").mkdir()
    (away.folder / "held/old.py").write_text("changed\n")
    away.git("add", "held/old.py", **apart)
    assert '"held/old.py" is held by claude' in away.git_fails("commit", "-m", "change", **apart)


def test_nothing_from_the_work_tree_is_run(held):
    """A file named like a module of ours, or of Python, or like git, is only a file."""
    for name in ("dibs.py", "apsw.py", "os.py", "gc.py", "tomllib.py", "dibs/__init__.py"):
        held.write(name, text="open('.git/ran', 'w')\n")
    (held.folder / "git").write_text("#!/bin/sh\n: > .git/ran\nexit 9\n")
    (held.folder / "git").chmod(0o755)
    ran = held.try_git("commit", "-q", "-m", "change")
    assert (ran.code, ran.err) == (0, "")
    assert not (held.folder / ".git/ran").exists()


def test_the_environment_does_not_say_which_code_is_run(held, tmp_path):
    """A guard that reads PYTHONPATH is any guard that the one who commits likes."""
    for name in ("dibs", "apsw", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    held.write("held/a")
    around = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nonexistent"}
    assert '"held/a" is held by claude' in held.git_fails("commit", "-m", "change", **around)
    assert not (tmp_path / "ran").exists()


def test_the_guard_loads_no_more_than_it_needs(held):
    """Start-up is a feature: neither processes nor patterns nor JSON are loaded."""
    held.write("free/new.py")
    code = "import sys; from dibs.cli.main import main; main(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "guard", "commit"], cwd=held.folder,
        env=clean_environment(**PERSON | ONE), capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert not loaded & {"subprocess", "re", "json", "argparse", "tempfile", "shlex", "typing"}
    assert sum(name.startswith("dibs") for name in loaded) <= 70  # 13 are empty files of packages
