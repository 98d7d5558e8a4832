"""A disk that is full, or cannot be written: 74, nothing changed; afterwards no repair."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

import pytest

from kit.boards_on_disk import board_with
from kit.disks import memory_disk, mount, mounted
from kit.hands import Hand
from kit.repositories import DIBS, Repo, clean_environment

MINE = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def small(tmp_path):
    """A file system of its own, of half a megabyte."""
    with memory_disk(tmp_path / "small", "600k") as folder:
        yield folder


@pytest.fixture
def small_blocks(tmp_path):
    """A file system of its own whose blocks are smaller than a page of memory."""
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(4 << 20)
    make = ["mkfs.ext4", "-q", "-b", "1024", "-O", "^has_journal", "-m", "0", str(image)]
    if (
        not shutil.which("mkfs.ext4")
        or subprocess.run(make, capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system cannot be made here: small blocks cannot be tried")
    with mounted(tmp_path / "blocks", "-o", "loop", str(image)) as folder:
        yield folder


def leave(folder, kibibytes: int) -> None:
    """Takes all of the disk but so much."""
    disk = os.statvfs(folder)
    take = disk.f_bavail * disk.f_frsize - (kibibytes << 10)
    with contextlib.suppress(OSError), open(folder / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, take))


@pytest.mark.parametrize("first", [0, 8])
def test_a_nearly_full_disk_with_small_blocks_ends_no_process(small_blocks, first):
    """The index of the log is mapped into memory: a page without a block would be a SIGBUS."""
    key, other = board_with(small_blocks, tasks=2)
    repo = Repo(small_blocks)
    (small_blocks / "filler").touch()
    for left in (*range(7, 14), *range(first, 128, 16)):
        leave(small_blocks, left)
        for line in (("note", key, "x" * 200, "--as", "ana"), ("list",)):
            assert repo.run(*line).code in (0, 74), (left, line)
        (small_blocks / "filler").unlink()
    for left in range(72 + first, 144, 4):
        leave(small_blocks, left)
        assert repo.run("note", key, "x" * 20_000, "--as", "ana").code in (0, 74), left
        (small_blocks / "filler").unlink()
    with Hand(small_blocks, "holder") as holder:
        assert holder.do("command", "Claim", task=key) == "1.1"
        for left in range(first, 128, 16):
            leave(small_blocks, left)
            for note in ("x", "x" * 9000):
                assert holder.do("command", "Note", task=key, note=note) in ("1.1", "disk_full")
            (small_blocks / "filler").unlink()
        assert holder.do("command", "Complete", task=key, token="1.1") == "1.1"
    assert repo.json("log", "--verify")["ok"]
    assert repo.json("show", other)


def fill(folder) -> None:
    """Writes until nothing fits any more."""
    with (
        contextlib.suppress(OSError),
        open(folder / "filler", "wb", buffering=0) as file,
    ):
        while True:
            file.write(b"x" * 512)


def test_on_a_full_disk_a_running_process_is_told_74_and_goes_on_when_there_is_room(small):
    first, second = board_with(small, tasks=2)
    with Hand(small, "holder") as holder, Hand(small, "other") as other:
        assert holder.do("command", "Claim", task=first) == "1.1"
        fill(small)
        codes = {other.do("command", "Claim", task=second) for _ in range(3)}
        codes |= {holder.do("command", "Note", task=first, note="x" * 9000)}
        assert codes == {"disk_full"}
        assert holder.do("remaining", first) > 0
        repo = Repo(small)
        assert repo.json("show", first)["task"]["assignee_agent"] == "holder"
        (small / "filler").unlink()
        assert other.do("command", "Claim", task=second) == "1.1"
        assert holder.do("command", "Complete", task=first, token="1.1") == "1.1"
        assert repo.json("log", "--verify")["ok"]


def test_a_process_that_cannot_write_does_not_keep_the_lock(tmp_path):
    """It fails when it has just won the lock; everybody else writes at once, and it does later."""
    first, second = board_with(tmp_path, tasks=2)
    (tmp_path / ".dibs" / "settings.toml").write_text('write_wait = "1s"\n')
    with Hand(tmp_path, "full") as full, Hand(tmp_path, "other") as other:
        assert full.do("command", "Claim", task=first) == "1.1"
        full.do("write_nothing_more")
        assert full.do("command", "Renew", task=first) in ("storage_failed", "disk_full")
        assert other.do("command", "Claim", task=second) == "1.1"
        full.do("write_again")
        assert full.do("command", "Renew", task=first) == "1.1"
        assert other.do("command", "Renew", task=second) == "1.1"


def test_on_a_read_only_file_system_everything_is_74_until_it_can_be_written_again(small):
    [key] = board_with(small, tasks=1)
    repo = Repo(small)
    before = repo.json("show", key)
    assert mount("-o", "remount,ro", str(small))
    for command in (("claim", key, *MINE), ("note", key, "x", "--as", "ana"), ("init",)):
        refused = repo.run(*command, "--json")
        assert (refused.code, refused.out) == (74, ""), command
        assert refused.error["code"] in ("read_only", "storage_failed"), command
    for command in (("show", key), ("list",), ("log", "--verify"), ("doctor",)):
        assert repo.run(*command).code in (0, 74), command
    assert mount("-o", "remount,rw", str(small))
    assert repo.json("show", key) == before
    repo.ok("claim", key, *MINE)
    assert repo.json("log", "--verify")["ok"]


def test_where_others_keep_the_board_open_it_can_be_read_through_a_read_only_mount(small):
    """As in a container that sees its host's repository read-only."""
    [key] = board_with(small, tasks=1)
    view = small.parent / "view"
    view.mkdir()
    assert mount("--bind", str(small), str(view))
    try:
        assert mount("-o", "remount,ro,bind", str(view))
        with Hand(small, "holder") as holder:
            holder.do("command", "Claim", task=key)
            outside, inside = Repo(small), Repo(view)
            assert inside.json("show", key)["task"] == outside.json("show", key)["task"]
            assert inside.json("log", "--verify")["ok"]
            refused = inside.run("note", key, "x", "--as", "ana", "--json")
            assert (refused.code, refused.error["code"]) == (74, "read_only")
            assert holder.do("command", "Complete", task=key) == "1.1"
    finally:
        subprocess.run(["umount", "-l", str(view)], check=True)


def test_in_a_folder_that_may_not_be_written_everything_is_74_until_it_may(tmp_path):
    """As root: without root's capabilities, since nothing is forbidden to them."""
    bare = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if bare and (
        shutil.which("setpriv") is None
        or subprocess.run([*bare, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("root's capabilities cannot be given up: a forbidden folder cannot be tried")
    [key] = board_with(tmp_path, tasks=1)
    board = tmp_path / ".dibs"

    def run(*arguments: str) -> int:
        ran = subprocess.run(
            [*bare, DIBS, *arguments], cwd=tmp_path, env=clean_environment(), capture_output=True,
            check=False,
        )  # fmt: skip
        return ran.returncode

    board.chmod(0o500)
    try:
        assert run("claim", key, *MINE) == 74
        assert run("show", key) in (0, 74)
        (board / "board.db").chmod(0o400)
        assert run("claim", key, *MINE) == 74
    finally:
        board.chmod(0o700)
        (board / "board.db").chmod(0o600)
    assert run("claim", key, *MINE) == 0
    assert run("log", "--verify") == 0
