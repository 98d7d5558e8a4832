"""`dibs setup` on a disk that cannot be written, and one that was killed: all or nothing, then whole."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kit.disks import memory_disk, mount
from kit.injection import why_not
from kit.repositories import DIBS, Repo, git

SETTINGS = '{\n  "model": "opus"\n}\n'


@pytest.fixture
def small(tmp_path):
    """A file system of its own with a home and a repository; its last bytes can be taken."""
    with memory_disk(tmp_path / "small", "2m") as folder:
        yield house_in(folder)


def house_in(folder: Path) -> Repo:
    """A repository with a hook of somebody else, and a home with settings that nobody else may read."""
    repo = Repo.create(folder / "repo")
    repo.home = folder / "home"
    (repo.home / ".claude").mkdir(parents=True)
    settings = repo.home / ".claude" / "settings.json"
    settings.write_text(SETTINGS)
    settings.chmod(0o600)
    repo.around = {
        "HOME": str(repo.home),
        "PATH": os.defpath,
        "XDG_CONFIG_HOME": str(repo.home / ".config"),
    }
    hook = repo.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    return repo


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "filler"
    }


def fill(folder: Path, leave: int) -> None:
    """Takes all but so many bytes."""
    free = os.statvfs(folder)
    with open(folder / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - leave)


PARTS = {
    "git, as files": ("setup", "git"),
    "git, by path": ("setup", "git"),
    "claude": ("setup", "claude"),
    "claude in a project": ("setup", "claude", "--project"),
}


def prepared(repo: Repo, part: str) -> tuple[str, ...]:
    if part == "git, by path":
        git(repo.folder, "config", "core.hooksPath", ".husky")
    return PARTS[part]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("leave", [0, 4096, 3 * 4096])
def test_on_a_full_disk_a_setup_is_74_and_nothing_is_written(small, part, leave):
    command, place = prepared(small, part), small.folder.parent
    before = contents(place)
    fill(place, leave)
    ran = small.run(*command, "--json")
    if ran.code == 0:
        assert leave
        return
    assert (ran.code, ran.error["code"]) == (74, "disk_full"), ran.err
    assert contents(place) == before
    (place / "filler").unlink()
    small.ok(*command)
    small.ok(*command, "--check")


@pytest.mark.parametrize("part", PARTS)
def test_on_a_full_disk_a_removal_is_74_and_nothing_is_written(small, part):
    command, place = prepared(small, part), small.folder.parent
    start = contents(place)
    small.ok(*command)
    before = contents(place)
    fill(place, 0)
    ran = small.run(*command, "--remove", "--json")
    if ran.code != 0:
        assert (ran.code, ran.error["code"]) == (74, "disk_full"), ran.err
        assert contents(place) == before
        (place / "filler").unlink()
        small.ok(*command, "--remove")
    assert contents(place) == start


@pytest.mark.parametrize("part", PARTS)
def test_on_a_read_only_disk_setup_and_removal_are_74(small, part):
    command, place = prepared(small, part), small.folder.parent
    for more in ((), ("--remove",)):
        before = contents(place)
        assert mount("-o", "remount,ro", str(place))
        ran = small.run(*command, *more, "--json")
        assert mount("-o", "remount,rw", str(place))
        assert (ran.code, ran.error["code"]) == (74, "read_only"), (more, ran.err, ran.out)
        assert contents(place) == before
        small.ok(*command)


def test_setup_of_everything_on_a_read_only_disk_is_74(small):
    place = small.folder.parent
    small.ok("init")
    assert mount("-o", "remount,ro", str(place))
    ran = small.run("setup", "--json")
    assert mount("-o", "remount,rw", str(place))
    assert ran.code == 74, ran.err


# Killed.

CALLS = (
    "rename",
    "linkat",
    "mkdir",
    "unlink",
    "fsync",
    "fdatasync",
    "fchmod",
    "ftruncate",
    "flock",
)
PERSON = ("--as", "ana")


def killed(repo: Repo, call: str, number: int) -> bool:
    """Runs `dibs setup`, and kills it at one of its system calls; False if it ended before that."""
    fault = f"inject={call}:signal=KILL:when={number}"
    watched = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", fault]
    done = subprocess.run(
        [*watched, DIBS, "setup"],
        cwd=repo.folder, env=repo.environment(), capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode in (-9, 137)


def readable_by_others(folder: Path) -> list[str]:
    """Copies of the settings that are not private."""
    found = contents(folder).items()
    return [name for name, (mode, data) in found if b"opus" in data and mode & 0o077]


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("call", CALLS)
def test_a_setup_that_was_killed_anywhere_is_made_whole_by_the_next(tmp_path, call):
    for number in range(1, 50):
        repo = house_in(tmp_path / str(number))
        before = contents(repo.home), contents(repo.folder)
        if not killed(repo, call, number):
            assert number > 1, f"{call} is never called"
            return
        assert not readable_by_others(repo.home), number
        states = {row["what"]: row["state"] for row in repo.ok("setup", "--json").json["parts"]}
        assert set(states.values()) == {"installed"}, (number, states)
        repo.ok("uninstall", "--yes", *PERSON)
        assert (contents(repo.home), contents(repo.folder)) == before, number
    pytest.fail(f"there was no end of {call}")
