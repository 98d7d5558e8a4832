"""`dibs uninstall --yes` deletes what dibs made in the folder of a board, and nothing else."""

from __future__ import annotations

import os
import stat

import pytest

from dibs.board import board_files
from kit.repositories import Repo

PERSON = ("--as", "ana")
DELETE = ("uninstall", "--yes", *PERSON)


@pytest.fixture
def chosen(tmp_path):
    """A repository whose board is in a folder that a person chose; its name is that of ours."""

    def make(name: str) -> tuple[Repo, os.PathLike[str]]:
        repo = Repo.create(tmp_path / "repo")
        place = tmp_path / "data" / name
        place.mkdir(parents=True)
        repo.around = {"DIBS_BOARD": str(place)}
        return repo, place

    return make


def names(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", ["dibs", ".dibs", "shared"])
def test_files_of_others_in_the_boards_folder_stay_and_are_named(chosen, name):
    repo, place = chosen(name)
    (place / "thesis.txt").write_text("mine")
    (place / "photos" / "2026").mkdir(parents=True)
    (place / "photos" / "2026" / "a.jpg").write_text("mine")
    (place / "board.db.bak").write_text("mine")
    theirs = names(place)
    repo.ok("init")
    dry = repo.ok("uninstall", "--dry-run", *PERSON)
    ran = repo.ok(*DELETE)
    assert names(place) == theirs
    for one in ("thesis.txt", "photos", "board.db.bak"):
        assert f"stays: {place / one}: not created by dibs" in ran.out
        assert f"stays: {place / one}: not created by dibs" in dry.out
    assert f"deleted: {place}\n" not in ran.out


def test_everything_that_dibs_makes_beside_a_board_goes_and_the_folder_with_it(chosen):
    repo, place = chosen("dibs")
    items = repo.folder / "_kano" / "backlog" / "items"
    items.mkdir(parents=True)
    (items / "KABC-TSK-0001_x.md").write_text(
        "---\nid: KABC-TSK-0001\ntitle: x\nstate: Ready\n---\n"
    )
    repo.ok("init")
    repo.ok("config", "ttl_agent", "1h")
    repo.ok("config", "agents.one.command", "true")
    repo.ok("config", "notify.command", "true")
    repo.ok("sync", *PERSON)
    key = repo.add("x")
    log_dir = str(place / "dispatch")
    repo.ok("run", key, "--log-dir", log_dir, *PERSON, "--", "true")
    repo.run("dispatch", "--once", *PERSON)
    backup = place.parent / "backup.db"
    repo.ok("board", "backup", str(backup), *PERSON)
    repo.ok("board", "restore", str(backup), "--reason", "test", *PERSON)
    for path in place.glob("board.db*"):
        path.write_bytes(b"damaged" * 1000)
    repo.ok("board", "restore", str(backup), "--reason", "test", *PERSON)
    made = names(place)
    for one in ("board.id", "backlog.lock", "backlog-index.json", "dispatch", "write.lock"):
        assert one in made
    for start in ("before-restore-", "board.db.damaged-", "dispatch/notif", f"dispatch/{key}-"):
        assert any(one.startswith(start) for one in made), (start, made)
    ran = repo.ok(*DELETE)
    assert not place.exists(), names(place)
    assert f"deleted: {place}" in ran.out
    assert backup.exists()


def test_a_link_beside_the_board_is_neither_followed_nor_removed(chosen, tmp_path):
    repo, place = chosen("dibs")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notify.log").write_text("mine")
    (outside / "mine.json").write_text("")
    repo.ok("init")
    (place / "dispatch").symlink_to(outside)
    (place / "backlog-index.json").symlink_to(outside / "mine.json")
    repo.ok(*DELETE)
    assert names(outside) == ["mine.json", "notify.log"]
    assert names(place) == ["backlog-index.json", "dispatch"]


def test_a_folder_that_is_a_link_is_refused(chosen, tmp_path):
    repo, place = chosen("dibs")
    repo.ok("init")
    link = tmp_path / "link"
    link.symlink_to(place)
    before = names(place)
    ran = repo.fails(74, *DELETE, DIBS_BOARD=str(link))
    assert "symbolic link" in ran.err
    assert names(place) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_board_in_the_folder_of_another_user_is_refused(chosen):
    repo, place = chosen("dibs")
    repo.ok("init")
    before = names(place)
    os.chown(place, 12345, 12345)
    for command in (DELETE, ("uninstall", "--dry-run", *PERSON)):
        ran = repo.fails(74, *command)
        assert "another user" in ran.err
    assert names(place) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_beside_the_board_stays(chosen):
    repo, place = chosen("dibs")
    repo.ok("init")
    (place / "board.id").write_text("theirs")
    os.chown(place / "board.id", 12345, 12345)
    repo.ok(*DELETE)
    assert names(place) == ["board.id"]


def test_a_folder_with_the_name_of_a_file_of_ours_stays(chosen):
    repo, place = chosen("dibs")
    repo.ok("init")
    (place / "board.id").mkdir()
    (place / "board.id" / "mine").write_text("")
    ran = repo.ok(*DELETE)
    assert names(place) == ["board.id", "board.id/mine"]
    assert f"stays: {place / 'board.id'}" in ran.out


def test_the_database_is_deleted_last_so_that_an_interrupted_uninstall_can_be_repeated(chosen):
    """Killed while it deletes: whatever is left, the next one finds the board, and deletes it."""
    repo, place = chosen("dibs")
    repo.ok("init")
    (place / "settings.toml").write_text("")
    with board_files.Folder(str(place)) as folder:
        order = board_files.contents(str(place)).ours
        assert order[-1] == "board.db"
        for name in order[:-1]:
            folder.remove(name)
    repo.ok(*DELETE)
    assert not place.exists()


def test_the_mode_of_what_is_left_is_not_changed(chosen):
    repo, place = chosen("dibs")
    (place / "mine").write_text("mine")
    place.chmod(0o750)
    repo.ok("init")
    repo.ok(*DELETE)
    assert stat.S_IMODE(place.stat().st_mode) == 0o750
