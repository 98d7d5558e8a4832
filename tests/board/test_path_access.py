"""What a board says to guards: who may touch which path, whom a person lets in, where links lead."""

from __future__ import annotations

import os

import pytest

from dibs.board import path_access, queries
from dibs.board.locate import find_repository
from dibs.board.settings import Settings, areas_of, from_text
from dibs.domain import commands as c
from dibs.domain.model import Terms
from dibs.domain.refusals import Refused
from dibs.domain.scopes.access import COMMIT, EDIT
from dibs.domain.scopes.policy import OFF, REFUSE, WARN
from dibs.domain.values import MINUTE
from dibs.integrations.harness.context import prime
from kit.repositories import Repo, git

A, B = "T-1", "T-2"


def add(bench, *scope, **terms):
    return bench.person("ana").do(c.Add(Terms("Work", **terms), scope=scope)).task.key


@pytest.fixture
def codex(bench):
    return bench.agent("codex", "s1")


@pytest.fixture
def claude(bench):
    return bench.agent("claude", "s9")


def code(actor, path: str, action: str = EDIT) -> str:
    """The code with which a guard would stop it, or ""."""
    found = path_access.check_paths(actor.bench.board, actor.identity, [path], action)
    return found.refusal.code if found.verdict.stops else ""


def test_a_path_is_held_as_long_as_the_lease_is_live(bench, codex, claude):
    add(bench, "src/**")
    assert code(claude, "src/a.py") == ""
    codex.claim(A, ttl=60_000_000)
    assert code(claude, "src/a.py") == "path_held"
    assert code(codex, "src/a.py") == ""
    assert code(bench.agent("codex", "s2"), "src/a.py") == "path_held"
    assert code(bench.agent("codex", "s1/sub"), "src/a.py") == ""
    bench.advance(60)
    assert code(claude, "src/a.py") == "path_held"
    bench.advance(0.000001)
    assert code(claude, "src/a.py") == ""


def test_nobody_in_particular_holds_nothing_and_is_barred_like_anyone(bench, codex):
    add(bench, "src/**")
    codex.claim(A)
    found = path_access.check_paths(bench.board, None, ["src/a.py", "docs/b"], COMMIT)
    assert [path for path, _ in found.verdict.held] == ["src/a.py"]
    assert "codex (session s1) with T-1 until" in found.refusal.message


def test_who_lost_its_lease_and_holds_nothing_does_not_commit_until_it_knows(bench, codex, claude):
    add(bench, "src/**"), add(bench)
    codex.claim(A, ttl=60_000_000)
    bench.advance(61)
    claude.claim(A)
    assert code(codex, "docs/b", COMMIT) == "work_lost"
    assert code(codex, "docs/b", EDIT) == ""
    codex.claim(B)
    assert code(codex, "docs/b", COMMIT) == ""
    codex.do(c.Release(B))
    assert code(codex, "docs/b", COMMIT) == "work_lost"
    codex.do(c.Release(A))
    assert code(codex, "docs/b", COMMIT) == ""


NEEDS = {
    # the setting, the mark of a harness: what stops
    ("", ""): "",
    ("", "CLAUDECODE"): "needs_task",
    ("allow", "CLAUDECODE"): "",
    ("warn", ""): "",
    (REFUSE, ""): "needs_task",
}


@pytest.mark.parametrize(("case", "expected"), NEEDS.items())
def test_whether_a_commit_needs_a_task_is_a_setting(bench, codex, case, expected):
    setting, harness = case
    bench.board.settings = bench.board.settings.but(commits_need_task=setting)
    codex.identity = codex.identity.but(harness=harness)
    assert code(codex, "a", COMMIT) == expected
    assert code(codex, "a", EDIT) == ""


# Areas, case, and what an overlap means.


def test_an_area_means_its_globs(bench, codex, claude):
    web = {"@web": ("src/web/**", "assets")}
    bench.board.settings = bench.board.settings.but(areas=web)
    add(bench, "@web"), add(bench, "src/web/login.ts"), add(bench, "@api")
    codex.claim(A)
    assert claude.refused(c.Claim(B)) == "scope_held"
    assert claude.claim("T-3").task.state == "in_progress"
    assert code(bench.agent("other", "s3"), "assets/logo.svg") == "path_held"
    assert code(codex, "assets/logo.svg") == ""
    assert code(codex, "src/api/a") == "outside_scope"


def test_case_counts_unless_the_repository_ignores_it(bench, codex, claude):
    add(bench, "src/A.py"), add(bench, "SRC")
    codex.claim(A)
    assert claude.claim(B)
    claude.do(c.Release(B))
    bench.board.settings = bench.board.settings.but(ignore_case=True)
    assert claude.refused(c.Claim(B)) == "scope_held"
    assert code(claude, "Src/a.PY") == "path_held"


def test_a_board_may_only_warn_of_overlaps_or_not_look(bench, codex, claude):
    add(bench, "src/**"), add(bench, "src/a.py")
    codex.claim(A)
    bench.board.settings = bench.board.settings.but(scope_conflict=WARN)
    outcome = claude.claim(B)
    assert 'codex (session s1) holds "src/**" with T-1' in outcome.warnings[0]
    other = bench.agent("other", "s3")
    found = path_access.check_paths(bench.board, other.identity, ["src/a.py"], EDIT)
    assert found.refusal.code == "path_held"
    assert not found.verdict.stops
    claude.do(c.Release(B))
    bench.board.settings = bench.board.settings.but(scope_conflict=OFF)
    assert claude.claim(B).warnings == ()
    assert path_access.check_paths(bench.board, other.identity, ["src/a.py"], EDIT).verdict.is_clear


WRONG_AREAS = {
    "areas = 3": "areas is a table",
    "[areas]\nweb = 3": "it is a list of globs",
    "[areas]\nweb = ['../x']": "leads out of the repository",
    "[areas]\nweb = ['@api']": "not other areas",
    "[areas]\n'a b/../c' = ['x']": "leads out of the repository",
    "scope_conflict = 'perhaps'": "it is block, warn or off",
}


@pytest.mark.parametrize(("text", "expected"), WRONG_AREAS.items())
def test_a_wrong_setting_is_refused_with_its_place(text, expected):
    with pytest.raises(Refused, match="settings") as problem:
        from_text(text, "settings.toml")
    assert expected in str(problem.value)


def test_an_area_of_one_glob_may_be_written_as_text():
    assert areas_of("x", {"web": "src/web/**"}) == {"@web": ("src/web/**",)}
    assert Settings().rules.ground.patterns(("@web",)) == ("@web",)


# A person lets somebody in.


def test_a_person_lets_somebody_touch_what_another_holds_for_a_while(bench, codex, claude):
    ana = bench.person("ana")
    add(bench, "src/**")
    codex.claim(A)
    claude.do(c.Note(A, note="I need src/a.py"))
    command = c.Allow(A, ("src/a.py",), to="claude", span=15 * MINUTE, reason="hotfix")
    assert claude.refused(command) == "people_only"
    assert ana.refused(command.but(reason=" ")) == "reason_missing"
    assert ana.refused(command.but(to="nobody")) == "unknown_actor"
    outcome = ana.do(command)
    assert outcome.entries[0].verb == "allowed"
    assert code(claude, "src/a.py") == ""
    assert code(claude, "src/b.py") == "path_held"
    assert code(bench.agent("other", "s3"), "src/a.py") == "path_held"
    [(allowed, who)] = queries.show(bench.board, A).allowed
    assert (allowed.paths, who.name) == (("src/a.py",), "claude")
    bench.advance(15 * 60 + 1)
    assert code(claude, "src/a.py") == "path_held"
    assert queries.show(bench.board, A).allowed == ()
    codex.do(c.Release(A))
    assert ana.refused(command) == "not_held"


def test_the_holder_learns_who_else_may_touch_its_paths(bench, codex, claude):
    add(bench, "src/**")
    codex.claim(A)
    claude.do(c.Note(A, note="I need src/a.py"))
    command = c.Allow(A, ("src/a.py",), to="claude", span=15 * MINUTE, reason="hotfix")
    bench.person("ana").do(command)
    found = path_access.check_paths(bench.board, codex.identity, ["src/a.py"], EDIT)
    assert found.verdict.is_clear
    assert [(one.task, found.actors[one.actor].name) for one in found.shared] == [(A, "claude")]
    assert path_access.check_paths(bench.board, codex.identity, ["src/b.py"], EDIT).shared == ()
    assert 'claude may touch "src/a.py" of T-1 until' in prime(bench.board, codex.identity)
    bench.advance(15 * 60 + 1)
    assert path_access.check_paths(bench.board, codex.identity, ["src/a.py"], EDIT).shared == ()


def test_an_allowance_that_nobody_gave_is_found(apart):
    ana, codex = apart.person("ana"), apart.agent("codex", "s1")
    add(apart, "src/**")
    codex.claim(A)
    ana.do(c.Allow(A, ("src/a.py",), to="codex", span=15 * MINUTE, reason="hotfix"))
    assert apart.faults() == ()
    apart.tamper("UPDATE allowance SET paths = '[\"**\"]'")
    assert "its allowances are not those of the ledger" in apart.faults()[0]


# Where paths lead.


@pytest.fixture
def tree(tmp_path):
    repo = Repo.create(tmp_path / "repo")
    for name in ("src/auth/login.py", "docs/a.md"):
        (repo.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.folder / name).write_text("x")
    return repo


def test_a_path_is_what_it_is_within_the_repository(tree, tmp_path):
    repository = find_repository(str(tree.folder))
    other = tree.worktree("other").folder
    (tree.folder / "link").symlink_to("src/auth")
    (tree.folder / "docs/alias.md").symlink_to("../src/auth/login.py")
    (tree.folder / "out").symlink_to(tmp_path)
    (tmp_path / "way-in").symlink_to(tree.folder / "src")
    os.mkdir(tree.folder / "sub")

    def forms(path, start=""):
        return path_access.forms(str(path), str(tree.folder / start), repository)

    assert forms("docs/a.md") == ["docs/a.md"]
    assert forms("a.md", "docs") == ["docs/a.md"]
    assert forms("../docs/./a.md", "sub") == ["docs/a.md"]
    assert forms(tree.folder / "docs/new.md") == ["docs/new.md"]
    assert forms(other / "docs/a.md") == ["docs/a.md"]
    assert forms("link/login.py") == ["link/login.py", "src/auth/login.py"]
    assert forms("link/new/file.py") == ["link/new/file.py", "src/auth/new/file.py"]
    assert forms("docs/alias.md") == ["docs/alias.md", "src/auth/login.py"]
    assert forms(tmp_path / "way-in/auth/login.py") == ["src/auth/login.py"]
    assert forms("out/elsewhere.txt") == ["out/elsewhere.txt"]
    for outside in (tmp_path / "x.txt", "../x", "/etc/passwd", ".", ".git/config", tree.folder):
        assert forms(outside) == [], outside


def test_a_bare_repository_inside_another_work_tree_is_none(tree, tmp_path):
    """It may have been committed."""
    git(tree.folder, "init", "-q", "--bare", "shared.git")
    found = find_repository(str(tree.folder / "shared.git" / "hooks"))
    assert found.worktree == str(tree.folder)
    git(tmp_path, "init", "-q", "--bare", "shared.git")
    found = find_repository(str(tmp_path / "shared.git" / "hooks"))
    assert (found.worktree, found.common_dir) == ("", str(tmp_path / "shared.git"))
    inside = find_repository(str(tree.folder / ".git" / "hooks"))
    assert inside.worktree == str(tree.folder)


@pytest.mark.parametrize("written", ["true", "True", "yes", "1", ""])
def test_whether_case_counts_is_read_from_gits_own_file(tree, written):
    repository = find_repository(str(tree.folder))
    assert repository.ignores_case() is False
    git(tree.folder, "config", "core.ignorecase", written or "true")
    git(tree.folder, "config", "other.ignorecase", "false")
    assert repository.ignores_case() is True
