"""However a path is written, an edit of what another holds is denied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dibs.board.locate import find_repository
from kit.harnesses import denial, edit, hook
from kit.repositories import Repo, git


@pytest.fixture
def repo(tmp_path):
    """A repository whose src is held by another, with a file in it."""
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    repo.add("work", "--scope", "src/**")
    repo.ok("claim", "T-1", "--agent", "codex", "--session", "s1")
    (repo.folder / "src" / "deep").mkdir(parents=True)
    (repo.folder / "docs").mkdir()
    (repo.folder / "src" / "a.py").write_text("a\n")
    return repo


def denial_of(repo: Repo, path: object, **environment: str) -> str:
    """Why an edit of this path, as a tool names it, is denied; "" if it is not."""
    call = {**edit(repo, "x"), "tool_input": {"file_path": str(path)}}
    return denial(hook(repo, call, **environment))


# A folder that says that it is another repository.


def file_to_ours(folder: Path, repo: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {repo / '.git'}\n")


def file_to_another(folder: Path, repo: Path) -> None:
    git(repo.parent, "init", "-q", "another")
    (folder / ".git").write_text(f"gitdir: {repo.parent / 'another' / '.git'}\n")


def file_to_nothing(folder: Path, repo: Path) -> None:
    (folder / ".git").write_text("gitdir: /nowhere\n")


def empty_file(folder: Path, repo: Path) -> None:
    (folder / ".git").touch()


def link_to_ours(folder: Path, repo: Path) -> None:
    (folder / ".git").symlink_to(repo / ".git")


def directory_that_shares_ours(folder: Path, repo: Path) -> None:
    git(repo, "init", "-q", str(folder))
    (folder / ".git" / "commondir").write_text(f"{repo / '.git'}\n")
    (folder / ".git" / "gitdir").write_text(f"{folder / '.git'}\n")


def directory_with_a_pipe(folder: Path, repo: Path) -> None:
    """Whoever reads it waits for ever."""
    git(repo, "init", "-q", str(folder))
    os.mkfifo(folder / ".git" / "commondir")


def file_to_a_tree_elsewhere(folder: Path, repo: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "other", str(repo.parent / "other"))
    (folder / ".git").write_text((repo.parent / "other" / ".git").read_text())


@pytest.mark.parametrize(
    "made",
    [
        file_to_ours, file_to_another, file_to_nothing, empty_file, link_to_ours,
        directory_that_shares_ours, directory_with_a_pipe, file_to_a_tree_elsewhere,
    ],
    ids=lambda made: made.__name__,
)  # fmt: skip
def test_a_git_file_takes_nothing_out_of_the_work_tree_around_it(repo, made):
    made(repo.folder / "src" / "deep", repo.folder)
    assert '"src/deep/x.py" is held by codex' in denial_of(
        repo, repo.folder / "src" / "deep" / "x.py"
    )


def test_real_work_trees_and_submodules_are_found_where_they_are(repo, tmp_path):
    git(repo.folder, "worktree", "add", "-q", "-b", "inside", str(repo.folder / "inside"))
    git(repo.folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q",
        str(Repo.create(tmp_path / "module").folder), "sub module")  # fmt: skip
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept"), "apart")
    git(tmp_path, "init", "-q", str(repo.folder / "embedded"))
    for folder, common in (
        (repo.folder / "inside", repo.folder / ".git"),
        (repo.folder / "sub module", repo.folder / ".git" / "modules" / "sub module"),
        (tmp_path / "apart", tmp_path / "kept"),
        (repo.folder / "embedded", repo.folder / "embedded" / ".git"),
    ):
        found = find_repository(str(folder))
        assert (found.worktree, found.common_dir) == (str(folder), str(common))


def test_a_submodule_with_a_configuration_of_its_work_tree_is_found(repo, tmp_path):
    """As `git sparse-checkout` leaves it."""
    git(repo.folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q",
        str(Repo.create(tmp_path / "module").folder), "sub")  # fmt: skip
    config = repo.folder / ".git" / "modules" / "sub"
    git(config, "config", "--file", "config", "--unset", "core.worktree")
    git(config, "config", "--file", "config.worktree", "core.worktree", "../../../sub")
    assert find_repository(str(repo.folder / "sub")).worktree == str(repo.folder / "sub")


# Ways to write a path.


def test_a_path_in_the_home_folder_is_recognised(repo, tmp_path):
    home = {"HOME": str(tmp_path)}
    assert '"src/x.py" is held by codex' in denial_of(repo, "~/repo/src/x.py", **home)
    assert denial_of(repo, "~/repo/docs/x.py", **home) == ""


def test_a_folder_that_is_called_like_the_home_folder_is_recognised(repo):
    (repo.folder / "~").mkdir()
    (repo.folder / "~" / "src").symlink_to(repo.folder / "src")
    assert '"src/x.py" is held by codex' in denial_of(repo, "~/src/x.py", HOME="/nonexistent")


def test_dots_after_a_link_lead_to_where_the_system_goes(repo):
    (repo.folder / "docs" / "link").symlink_to(repo.folder / "src" / "deep")
    message = denial_of(repo, repo.folder / "docs" / "link" / ".." / "a.py")
    assert '"src/a.py" is held by codex' in message


def test_dots_after_a_link_lead_to_where_the_text_goes(repo, tmp_path):
    """A harness may shorten the path before it opens the file."""
    (tmp_path / "elsewhere").mkdir()
    (repo.folder / "src" / "out").symlink_to(tmp_path / "elsewhere")
    message = denial_of(repo, f"{repo.folder}/src/out/../a.py")
    assert '"src/a.py" is held by codex' in message


@pytest.mark.parametrize("name", ["folder", "file"])
def test_a_link_from_outside_of_the_repository_is_followed(repo, tmp_path, name):
    target = repo.folder / "src" if name == "folder" else repo.folder / "src" / "a.py"
    (tmp_path / name).symlink_to(target)
    path = tmp_path / name / "a.py" if name == "folder" else tmp_path / name
    assert '"src/a.py" is held by codex' in denial_of(repo, path)


@pytest.mark.parametrize("place", ["docs/other.py", "../other.py"])
def test_another_name_of_the_same_file_is_recognised(repo, place):
    """A hard link: whoever writes to it writes to the file that is held."""
    os.link(repo.folder / "src" / "a.py", repo.folder / place)
    message = denial_of(repo, os.path.normpath(repo.folder / place))
    assert '"src/a.py" is held by codex' in message


def test_a_tool_that_makes_several_edits_at_once_is_guarded(repo):
    given = {"file_path": str(repo.folder / "src" / "a.py"), "edits": []}
    call = {**edit(repo, "x"), "tool_name": "MultiEdit", "tool_input": given}
    assert '"src/a.py" is held by codex' in denial(hook(repo, call))
