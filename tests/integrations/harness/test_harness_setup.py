"""`dibs setup` and `dibs uninstall` as a person types them, in a home of their own."""

from __future__ import annotations

import json
import os

import pytest

from dibs.harness_table import HARNESSES
from kit.harnesses import claude_event, hook
from kit.repositories import Repo

NAMES = sorted(HARNESSES)


@pytest.fixture
def house(tmp_path):
    """A home with three harnesses in it, one of them by its program only; a repository without a board."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    for folder in (home / ".claude", home / ".codex", programs):
        folder.mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{\n    "model": "opus"\n}\n')
    (programs / "gemini").write_text("#!/bin/sh\n")
    repo = Repo.create(tmp_path / "repo")
    path = f"{programs}{os.pathsep}{os.defpath}"
    repo.around = {"HOME": str(home), "PATH": path, "XDG_CONFIG_HOME": str(home / ".config")}
    repo.home = home
    return repo


def files(*folders) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != "installed.json"
    }


def rows(ran) -> dict[tuple[str, str], str]:
    return {(row["part"], row["what"]): row["state"] for row in ran.json["parts"]}


def test_one_command_sets_up_a_board_and_every_harness_that_is_found(house):
    before = files(house.home, house.folder)
    missing = house.fails(1, "setup", "--check", "--json")
    assert set(rows(missing).values()) == {"missing"}
    assert files(house.home, house.folder) == before
    found = rows(house.ok("setup", "--json"))
    assert set(found.values()) == {"installed"}
    assert {part for part, _ in found} - {"git"} == {"board", "claude", "codex", "gemini"}
    assert rows(house.ok("setup", "--check", "--json")) == found
    assert house.ok("setup").code == 0  # again changes nothing
    assert json.loads((house.home / ".claude" / "settings.json").read_text())["model"] == "opus"
    assert not (house.home / ".cursor").exists()


def test_everything_is_taken_out_again_and_what_stays_is_named(house):
    before = files(house.home, house.folder)
    house.ok("setup")
    house.ok("setup", "cursor", "--project")
    there = files(house.home, house.folder)
    dry = house.ok("uninstall", "--dry-run")
    assert "would be deleted" in dry.out and "stays: the program itself" in dry.out
    reply = house.ok("uninstall", "--dry-run", "--json").json
    assert (reply["dry_run"], reply["removed"]) == (True, [])
    assert [f"would be {one}" for one in reply["would_be_removed"]] == [
        line for line in dry.out.splitlines() if line.startswith("would be ")
    ]
    assert files(house.home, house.folder) == there
    kept = house.ok("uninstall", "--keep-board")
    assert f"stays: the board in {house.database.parent}" in kept.out
    assert files(house.home, house.folder) == before
    assert house.database.exists()
    house.ok("uninstall", "--yes", "--as", "ana")
    assert not house.database.parent.exists()
    assert files(house.home, house.folder) == before
    assert not (house.home / ".config" / "dibs").exists()


@pytest.mark.parametrize("exists", ["first", "linked"])
def test_what_was_set_up_in_other_work_trees_is_taken_out_too(house, exists):
    (house.folder / "CLAUDE.md").write_text("# Rules\n")
    other = house.worktree("other")
    house.worktree("gone").folder.rename(house.folder.parent / "elsewhere")
    other.around = house.around
    before = files(house.folder, other.folder)
    for one in (house, other):
        one.ok("setup", "claude", "--project")
    here = house if exists == "first" else other
    ran = here.ok("uninstall", "--keep-board")
    for one in (house, other):
        assert f"deleted: {one.folder}/.claude/settings.json" in ran.out
    assert files(house.folder, other.folder) == before


def test_what_was_set_up_for_another_project_stays_and_is_named(house, tmp_path):
    other = Repo.create(tmp_path / "other")
    other.around = house.around
    other.ok("setup", "claude", "--project")
    house.ok("setup", "claude")
    ran = house.ok("uninstall", "--keep-board")
    for name in (".claude/settings.json", "CLAUDE.md"):
        assert f"stays: {other.folder}/{name}: set up for another project" in ran.out
        assert (other.folder / name).exists()
    other.ok("setup", "claude", "--project", "--remove")
    assert not (house.home / ".config" / "dibs").exists()


def test_a_lost_record_is_reported_by_check_doctor_and_removal(house):
    house.ok("init")
    house.ok("setup", "claude")
    assert house.ok("setup", "claude", "--check").err == ""
    assert "claude record" not in house.ok("doctor").out
    (house.home / ".config" / "dibs" / "installed.json").unlink()
    assert "no record" in house.ok("setup", "claude", "--check").err
    assert "no record" in house.run("setup", "--check").err
    assert "claude record" in house.ok("doctor").out
    assert "no record" in house.ok("uninstall", "--keep-board", "--dry-run").out
    assert "no record" in house.ok("setup", "claude", "--remove").err
    assert json.loads((house.home / ".claude" / "settings.json").read_text())["model"] == "opus"


@pytest.mark.parametrize(
    ("name", "variable"), [("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")]
)
def test_a_harness_whose_home_is_elsewhere_is_set_up_there(house, tmp_path, name, variable):
    house.around[variable] = str(tmp_path / "elsewhere")
    before = files(house.home)
    house.ok("setup", name)
    assert (tmp_path / "elsewhere" / HARNESSES[name].file).exists()
    assert files(house.home) == before
    house.ok("uninstall", "--keep-board")
    assert not (tmp_path / "elsewhere").exists()


def test_where_nothing_was_ever_set_up_nothing_is_taken_out(house):
    before = files(house.home, house.folder)
    assert "nothing to remove" in house.ok("uninstall").out
    assert files(house.home, house.folder) == before


def test_only_a_person_who_means_it_deletes_a_board(house):
    house.ok("init")
    house.fails(2, "uninstall")
    house.fails(1, "uninstall", "--yes", "--agent", "codex", "--session", "s1")
    house.fails(2, "uninstall", "--as", "ana")
    house.fails(1, "uninstall", "--yes", "--as", "ana", CLAUDECODE="1")
    assert house.database.exists()


def test_in_a_chosen_folder_the_files_of_others_stay(house, tmp_path):
    place = tmp_path / "chosen"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    house.around["DIBS_BOARD"] = str(place)
    house.ok("init")
    house.ok("uninstall", "--yes", "--as", "ana")
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", ["--user", "--project"])
def test_one_harness_is_set_up_checked_and_taken_out(house, name, level):
    house.ok("init")
    before = files(house.home, house.folder)
    shown = house.ok("setup", name, level, "--print").out
    assert files(house.home, house.folder) == before
    house.fails(1, "setup", name, level, "--check")
    house.ok("setup", name, level)
    for path, text in files(house.home, house.folder).items():
        if before.get(path) != text:
            assert f"# {path}\n{text.decode()}" in shown
    house.ok("setup", name, level, "--check")
    house.ok("setup", name, level, "--remove")
    if name == "codex" and level == "--project":  # the folder is this machine's, not the project's
        house.ok("setup", name, "--user", "--remove")
    assert files(house.home, house.folder) == before


def test_everything_that_would_be_written_is_shown_and_nothing_is(house):
    before = files(house.home, house.folder)
    shown = house.ok("setup", "--print")
    assert files(house.home, house.folder) == before
    assert f"# {house.database.parent}\na board would be created here" in shown.out
    assert not house.database.exists()
    house.ok("init")  # only then is there a folder that Codex may write
    shown, reply = (
        house.ok("setup", "--print"),
        house.ok("setup", "--print", "--json").json["files"],
    )
    house.ok("setup")
    after = files(house.home, house.folder)
    for path, text in after.items():
        if before.get(path) != text:
            assert reply[path] == text.decode()
            assert f"# {path}\n{text.decode()}" in shown.out
    assert str(house.folder / ".git" / "hooks" / "pre-commit") in reply
    assert "nothing to write" in house.ok("setup", "claude", "--print").out


@pytest.mark.parametrize("target", ["claude", None])
def test_what_cannot_be_merged_is_shown_to_be_put_in_by_hand(house, target):
    path = house.home / ".claude" / "settings.json"
    path.write_text("{ // mine\n}")
    words = ["setup", *([target] if target else []), "--print"]
    shown = house.ok(*words).out
    assert f"# {path} is not plain JSON (it may have comments" in shown
    assert "add by hand:\n{" in shown
    pieces = house.ok(*words, "--json").json["by_hand"]
    assert list(pieces) == [str(path)]
    assert pieces[str(path)] in shown
    hooks = json.loads(pieces[str(path)])["hooks"]
    assert list(hooks) == [one.event for one in HARNESSES["claude"].hooks]
    assert path.read_text() == "{ // mine\n}"


@pytest.mark.parametrize("name", NAMES)
def test_the_command_that_is_written_is_the_installed_one_and_runs(house, name):
    """By its whole path: no shim, no search."""
    house.ok("init")
    house.ok("setup", name)
    path = house.home / HARNESSES[name].folder / HARNESSES[name].file
    start = HARNESSES[name].hooks[0].event
    item = json.loads(path.read_text())["hooks"][start][0]
    handler = item.get("hooks", [item])[0]
    words = (
        [handler["command"], *handler["args"]] if "args" in handler else handler["command"].split()
    )
    assert os.path.isabs(words[0]) and os.access(words[0], os.X_OK)
    assert words[1:] == ["hook", name]


def test_doctor_says_what_is_set_up_trusted_and_whole(house):
    house.ok("init")
    assert "none is set up" in house.ok("doctor").out
    house.ok("setup", "codex")
    output = house.ok("doctor").out
    assert "codex hooks" in output and "codex writable folder" in output
    assert "reviewed and trusted" in output
    path = house.home / ".codex" / "hooks.json"
    path.write_text(path.read_text().replace("/bin/dibs", "/gone/dibs"))
    ran = house.fails(1, "doctor")
    assert "calls a dibs that does not exist" in ran.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_doctor_says_that_a_sandbox_keeps_the_board_out(house):
    house.ok("init")
    house.database.parent.chmod(0o500)
    try:
        assert (
            "the sandbox does not allow writing"
            in house.run("doctor", CODEX_SANDBOX="seatbelt").out
        )
    finally:
        house.database.parent.chmod(0o700)


def test_doctor_inside_a_harness_says_that_the_board_is_within_reach(house):
    house.ok("init")
    assert "can be written to" in house.ok("doctor", CODEX_SANDBOX="seatbelt").out


def test_what_setup_says_of_a_file_that_it_cannot_merge(house):
    """One broken file keeps nothing else from being set up."""
    path = house.home / ".claude" / "settings.json"
    path.write_text("{ // mine\n}")
    ran = house.fails(1, "setup", "--json")
    states = rows(ran)
    assert "comments" in states["claude", "hooks"]
    assert states["codex", "hooks"] == "installed"
    assert path.read_text() == "{ // mine\n}"
    house.fails(2, "setup", "claude")
    assert "is not plain JSON" in house.fails(2, "setup", "claude", "--check").err
    path.write_text("")
    assert rows(house.fails(1, "setup", "--check", "--json"))["claude", "hooks"] == "missing"


@pytest.mark.parametrize("level", ["--user", "--project"])
def test_the_hooks_of_git_have_no_level(house, level):
    problem = house.fails(2, "setup", "git", level, "--json").error
    assert f"{level} is for claude, codex, gemini or cursor, not for git" in problem["message"]


def test_hooks_of_a_person_print_nothing_where_there_is_no_board(house):
    house.ok("setup", "claude")
    ran = hook(house, claude_event("SessionStart", house, source="startup"))
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_files_that_were_never_ours_keep_nobody_from_anything(house):
    """Comments in settings that we never touched: doctor finds nothing wrong, uninstall has nothing to do."""
    house.ok("init")
    path = house.home / ".claude" / "settings.json"
    path.write_text("{ // mine\n}")
    (house.home / ".codex" / "config.toml").write_text("not toml")
    assert "none is set up" in house.ok("doctor").out
    assert "nothing to remove" in house.ok("uninstall", "--keep-board").out
    assert path.read_text() == "{ // mine\n}"


def test_what_cannot_be_taken_out_is_named_and_the_rest_goes(house):
    house.ok("setup")
    path = house.home / ".claude" / "settings.json"
    broken = path.read_text() + "// mine\n"
    path.write_text(broken)
    ran = house.fails(1, "uninstall", "--keep-board")
    assert "stays: " in ran.out and "comments" in ran.out
    assert path.read_text() == broken
    assert not (house.home / ".codex" / "hooks.json").exists()
