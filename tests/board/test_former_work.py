"""What a former holder left is looked at without running anything of theirs, or not looked at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dibs.board.identity import Identity
from dibs.board.locate import locate
from dibs.domain.commands import Claim
from dibs.domain.model import Session
from dibs.opening import open_at
from kit.boards import of_a_file
from kit.canaries import Canaries, hostile_submodule
from kit.repositories import Repo, clean_environment, git

HOLDER = ("--agent", "codex", "--session", "s1")
OTHER = ("--agent", "claude", "--session", "s9")
ANA = ("--as", "ana")
WHY = ("--reason", "urgent")
NOT_OURS = "it is not a work tree of this repository"

EXPIRED = {
    "claim": ("claim", "T-1", *OTHER),
    "start": ("start", "T-1", *OTHER),
    "takeover": ("takeover", "T-1", *OTHER),
    "assign": ("assign", "T-1", "--to", "claude", *ANA, *WHY),
    "retry": ("retry", "T-1", *ANA, *WHY),
    "sweep": ("sweep", *ANA),
    "run": ("run", "T-1", *OTHER, "--", "true"),
}
LIVE = {
    "force": ("takeover", "T-1", "--force", *ANA, *WHY),
    "drop": ("drop", "T-1", *ANA, *WHY),
    "reset": ("reset", "T-1", *ANA, *WHY),
    "reset --mine": ("reset", "T-1", "--mine", *ANA, *WHY),
    "handoff": ("handoff", "T-1", *HOLDER, "--to", "claude"),
    "release": ("release", "T-1", *HOLDER),
    "complete": ("complete", "T-1", *HOLDER),
    "fail": ("fail", "T-1", *HOLDER, *WHY),
    "block": ("block", "T-1", *HOLDER, *WHY),
    "submit": ("submit", "T-1", *HOLDER),
}


@pytest.fixture
def canaries(tmp_path):
    return Canaries(tmp_path / "canaries")


def whole_board(repo: Repo) -> dict[str, str]:
    """How somebody in another folder reaches the board of `repo`."""
    return repo.around or {"DIBS_BOARD": str(repo.folder / ".git" / "dibs")}


@pytest.fixture
def foreign(repo, tmp_path, canaries):
    """A repository of the holder's own, in which every setting starts a program."""
    other = Repo.create(tmp_path / "foreign")
    other.around = whole_board(repo)
    canaries.commit_filtered_files(other.folder)
    hostile_submodule(other.folder, tmp_path / "inner", canaries)
    canaries.configure(other.folder)
    canaries.touch_filtered_files(other.folder)
    (other.folder / "half-done.py").write_text("x = 1\n")
    canaries.clear()
    return other


@pytest.fixture
def topic(repo, canaries, tmp_path):
    """A work tree of our own repository; its own configuration and the shared one start programs."""
    canaries.commit_filtered_files(repo.folder)
    topic = repo.worktree("topic")
    hostile_submodule(topic.folder, tmp_path / "inner", canaries)
    git(repo.folder, "config", "extensions.worktreeConfig", "true")
    canaries.configure(repo.folder)
    canaries.configure(topic.folder, "--worktree")
    canaries.touch_filtered_files(topic.folder)
    (topic.folder / "half-done.py").write_text("x = 1\n")
    canaries.clear()
    return topic


def ends(repo: Repo, place: Repo, name: str) -> None:
    """Held by a session in `place`, then ended by the named verb."""
    repo.add()
    repo.ok("actor", "set", "claude", "--kind", "agent", *ANA)
    place.ok("claim", "T-1", *HOLDER, *(("--ttl", "1s") if name in EXPIRED else ()))
    if name in EXPIRED:
        repo.await_expiry("T-1")
    line = (EXPIRED | LIVE)[name]
    (place if line[2:6] == HOLDER else repo).ok(*line)
    if name == "sweep":
        repo.ok("claim", "T-1", *OTHER)


def test_the_canaries_are_alive(foreign, canaries):
    """Else nothing below would say anything."""
    around = clean_environment()
    for words in (
        ["status"],
        ["diff"],
        ["-c", "diff.external=", "diff"],
        ["log", "-p"],
        ["update-index", "-q", "--refresh"],
    ):
        subprocess.run(
            ["git", *words], cwd=foreign.folder, env=around, capture_output=True, check=False
        )
    assert {
        "fsmonitor", "clean", "clean-equals", "process", "submodule-clean", "submodule-fsmonitor", "external-diff",
        "hook-post-index-change",
    } <= set(canaries.sang)  # fmt: skip


@pytest.mark.parametrize("name", [*EXPIRED, *LIVE])
def test_no_verb_that_ends_a_lease_runs_what_the_holders_repository_names(
    repo, foreign, canaries, name
):
    ends(repo, foreign, name)
    assert canaries.sang == []


@of_a_file
@pytest.mark.parametrize("name", [*EXPIRED, *LIVE])
def test_no_verb_that_ends_a_lease_runs_what_a_work_tree_of_ours_names(repo, topic, canaries, name):
    ends(repo, topic, name)
    assert canaries.sang == []


# What the output says instead.


def taken_from(repo: Repo, worktree: str, *, host: str | None = None) -> dict[str, object]:
    """What a takeover says of a holder that stated this folder as its place, whatever is there."""
    repo.add()
    board = open_at(locate(str(repo.folder), repo.environment()))
    place = Session(actor=0, name="", host=host or os.uname().nodename, worktree=worktree)
    board.execute(Identity("codex", False, "s1", place=place), Claim("T-1"))
    board.store.close()
    ran = repo.ok("takeover", "T-1", "--force", *ANA, *WHY, "--json")
    event = repo.json("log", "T-1")["events"][-1]
    former = ran.json["lease"]["taken_over_from"]
    assert event["facts"]["ending"]["uncommitted"] == former["uncommitted"]
    assert event["facts"]["ending"]["not_looked_at"] == (former["not_looked_at"] or "")
    warned = [
        text for text in ran.json["warnings"] if "uncommitted files there are unknown" in text
    ]
    assert [text.partition(": ")[2] for text in warned] == (
        [former["not_looked_at"]] if former["not_looked_at"] else []
    )
    return former


def is_not_looked_at(former: dict[str, object], why: str) -> None:
    assert (former["uncommitted"], former["not_looked_at"]) == (None, why)


def test_a_folder_of_another_repository_is_not_looked_at(repo, foreign, canaries):
    is_not_looked_at(taken_from(repo, str(foreign.folder)), NOT_OURS)
    assert canaries.sang == []


def test_a_person_reads_that_nobody_inspected_a_folder(repo, foreign):
    repo.add()
    foreign.ok("claim", "T-1", *HOLDER)
    ran = repo.ok("takeover", "T-1", "--force", *ANA, *WHY)
    assert f'its work is in "{foreign.folder}" on branch "main"' in ran.err
    assert f"uncommitted files there are unknown: {NOT_OURS}" in ran.err


def test_a_work_tree_of_ours_is_looked_at_without_its_filters(repo, topic, canaries):
    former = taken_from(repo, str(topic.folder))
    assert former["not_looked_at"] is None
    assert {"half-done.py", *canaries.FILTERED} <= set(former["uncommitted"])
    assert canaries.sang == []


@pytest.mark.parametrize("name", [".", "topic"])
def test_a_clean_work_tree_of_ours_has_nothing_uncommitted(repo, name):
    tree = repo if name == "." else repo.worktree(name)
    former = taken_from(repo, str(tree.folder))
    assert (former["uncommitted"], former["not_looked_at"]) == ([], None)


def bare_looking(folder: Path, canaries: Canaries) -> None:
    """As a commit can bring one: git takes it for a repository when somebody works in it."""
    git(folder.parent, "init", "-q", "--bare", str(folder))
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", str(folder.parent))
    canaries.configure(folder)
    canaries.clear()


def forged_file(folder: Path, canaries: Canaries) -> None:
    """It points to our repository, which does not list it."""
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {folder.parent / '.git'}\n")


def forged_link(folder: Path, canaries: Canaries) -> None:
    folder.mkdir()
    (folder / ".git").symlink_to(folder.parent / ".git")


def forged_directory(folder: Path, canaries: Canaries) -> None:
    """A git directory of its own, that states ours as the shared one."""
    git(folder.parent, "init", "-q", str(folder))
    canaries.configure(folder)
    canaries.clear()
    (folder / ".git" / "commondir").write_text(f"{folder.parent / '.git'}\n")
    (folder / ".git" / "gitdir").write_text(f"{folder / '.git'}\n")


def replaced_tree(folder: Path, canaries: Canaries) -> None:
    """A work tree that we list, in whose place there is another repository now."""
    git(folder.parent, "worktree", "add", "-q", "-b", "there", str(folder))
    (folder / ".git").unlink()
    git(folder.parent, "init", "-q", str(folder))
    canaries.configure(folder)
    canaries.clear()


def a_plain_folder(folder: Path, canaries: Canaries) -> None:
    folder.mkdir()


@pytest.mark.parametrize(
    "made",
    [bare_looking, forged_file, forged_link, forged_directory, replaced_tree, a_plain_folder],
    ids=lambda made: made.__name__,
)
def test_a_folder_that_our_repository_does_not_list_is_not_looked_at(repo, canaries, made):
    made(repo.folder / "there", canaries)
    is_not_looked_at(taken_from(repo, str(repo.folder / "there")), NOT_OURS)
    assert canaries.sang == []


def test_a_folder_on_another_host_is_not_looked_at(repo):
    is_not_looked_at(taken_from(repo, str(repo.folder), host="far"), "it is on the host 'far'")


def test_a_folder_that_is_gone_is_not_looked_at(repo, tmp_path):
    is_not_looked_at(taken_from(repo, str(tmp_path / "gone")), "the folder is not there")


def test_a_folder_that_depends_on_where_the_caller_is_is_not_looked_at(repo):
    is_not_looked_at(taken_from(repo, "."), "the folder is not there")


def test_a_caller_outside_of_every_repository_looks_nowhere(repo, tmp_path):
    far = Repo(tmp_path)
    far.around = whole_board(repo)
    is_not_looked_at(taken_from(far, str(repo.folder)), "the caller is in no repository")


def test_a_folder_that_git_cannot_read_is_not_looked_at(repo):
    topic = repo.worktree("topic")
    (repo.folder / ".git" / "worktrees" / "topic" / "index").write_bytes(b"no index")
    is_not_looked_at(taken_from(repo, str(topic.folder)), "git could not read it")


def test_variables_of_git_lead_nowhere_else(repo, foreign, canaries):
    """Whatever the caller's shell exports, or a hook that calls dibs."""
    around = {
        "GIT_DIR": str(foreign.folder / ".git"),
        "GIT_WORK_TREE": str(foreign.folder),
        "GIT_INDEX_FILE": str(foreign.folder / ".git" / "index"),
        "GIT_EXTERNAL_DIFF": canaries.program("variable"),
    }
    topic = repo.worktree("topic")
    (topic.folder / "new.py").touch()
    repo.add()
    topic.ok("claim", "T-1", *HOLDER)
    ran = repo.ok("takeover", "T-1", "--force", *ANA, *WHY, **around)
    assert 'uncommitted there: "new.py"\n' in ran.err
    assert canaries.sang == []
