"""A file is replaced whole or not at all, and never over somebody else's change."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from dibs.backlogs import files
from dibs.safe_files import Unreadable

PATH = "items/0000/T-1.md"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "backlog" / "items" / "0000").mkdir(parents=True)
    folder = tmp_path / "backlog"
    (folder / PATH).write_bytes(b"old\n")
    return folder


def read(root, path: str = PATH, limit: int = files.LIMIT):
    return files.read(str(root), path, limit)


def replace(root, seen, data: bytes, path: str = PATH) -> bool:
    return files.replace(str(root), path, seen, data)


def names(root) -> list[str]:
    return sorted(os.listdir((root / PATH).parent))


def python(code: str, *arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


# Reading.


def test_a_file_is_read_with_what_tells_it_apart(root):
    seen, now = read(root), os.stat(root / PATH)
    assert seen.data == b"old\n"
    assert (seen.mtime_ns, seen.ctime_ns, seen.size) == (now.st_mtime_ns, now.st_ctime_ns, 4)
    assert (seen.inode, seen.mode) == (now.st_ino, stat.S_IMODE(now.st_mode))
    assert read(root) == seen
    assert read(root, "./items//0000/T-1.md") == seen


def test_a_file_above_the_limit_is_refused_and_at_the_limit_it_is_not(root):
    assert read(root, limit=4).size == 4
    with pytest.raises(Unreadable, match="4 bytes; at most 3"):
        read(root, limit=3)
    (root / PATH).write_bytes(b"x" * (files.LIMIT + 1))
    with pytest.raises(Unreadable, match="at most"):
        read(root)
    assert read(root, limit=files.GRAPH_LIMIT).size == files.LIMIT + 1


@pytest.mark.parametrize(
    "path", ["", ".", "/etc/passwd", "../x", "items/../../x", "items/\0", "a/.."]
)
def test_a_path_that_is_not_below_the_root_is_refused(root, path):
    with pytest.raises(Unreadable, match="not a path below"):
        read(root, path)


@pytest.mark.parametrize("kind", ["folder", "fifo", "socket"])
def test_what_is_not_a_file_is_refused_at_once(root, kind, monkeypatch):
    (root / PATH).unlink()
    monkeypatch.chdir((root / PATH).parent)
    if kind == "folder":
        os.mkdir("T-1.md")
    elif kind == "fifo":
        os.mkfifo("T-1.md")
    else:
        with socket.socket(socket.AF_UNIX) as plug:
            plug.bind("T-1.md")
    with pytest.raises(Unreadable, match="not a file"):
        read(root)


def test_a_file_that_is_not_there_says_so(root):
    with pytest.raises(FileNotFoundError):
        read(root, "items/none.md")
    with pytest.raises(NotADirectoryError):
        read(root, PATH + "/x")


def test_a_link_inside_is_followed_and_its_target_is_replaced(root):
    (root / "items" / "link.md").symlink_to("0000/T-1.md")
    (root / "short").symlink_to(root / "items" / "0000")
    for path in ("items/link.md", "short/T-1.md"):
        seen = read(root, path)
        assert replace(root, seen, seen.data + b"more\n", path)
    assert (root / "items" / "link.md").is_symlink()
    assert (root / PATH).read_bytes() == b"old\nmore\nmore\n"
    assert names(root) == ["T-1.md"]
    through = root.parent / "through"
    through.symlink_to(root)
    assert read(through).data == b"old\nmore\nmore\n"
    assert read(through, "short/T-1.md").data == b"old\nmore\nmore\n"


@pytest.mark.parametrize("where", ["file", "folder", "beside"])
def test_a_link_that_leads_outside_is_refused(root, where):
    outside = root.parent / ("backlog-2" if where == "beside" else "outside")
    outside.mkdir()
    (outside / "T-1.md").write_bytes(b"secret\n")
    seen = read(root)
    (root / PATH).unlink()
    if where == "folder":
        (root / PATH).parent.rmdir()
        (root / PATH).parent.symlink_to(outside)
    else:
        (root / PATH).symlink_to(outside / "T-1.md")
    with pytest.raises(Unreadable, match="leads out"):
        read(root)
    with pytest.raises(Unreadable, match="leads out"):
        replace(root, seen, b"x")
    assert (outside / "T-1.md").read_bytes() == b"secret\n"


def test_a_link_that_leads_nowhere_is_refused(root):
    (root / "loop.md").symlink_to("loop.md")
    (root / "gone.md").symlink_to("none.md")
    with pytest.raises((Unreadable, OSError)):
        read(root, "loop.md")
    with pytest.raises(FileNotFoundError):
        read(root, "gone.md")


def test_no_descriptor_is_left_open(root):
    (root / "out").symlink_to("/")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    seen = read(root)
    for _ in range(5):
        for path in (PATH, "none/x", "items/none", "out/etc", "items"):
            with contextlib.suppress(OSError, Unreadable):
                read(root, path)
            with contextlib.suppress(OSError, Unreadable):
                replace(root, seen, b"x", path)
    assert not before or len(os.listdir("/proc/self/fd")) == before


# Replacing.


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o664, 0o755, 0o444])
def test_a_file_is_replaced_with_its_mode(root, mode):
    os.chmod(root / PATH, mode)
    previous = os.umask(0o077)
    try:
        assert replace(root, read(root), b"new\n")
    finally:
        os.umask(previous)
    now = os.stat(root / PATH)
    assert (root / PATH).read_bytes() == b"new\n"
    assert stat.S_IMODE(now.st_mode) == mode
    assert names(root) == ["T-1.md"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner_and_group(root):
    os.chown(root / PATH, 12345, 54321)
    assert replace(root, read(root), b"new\n")
    now = os.stat(root / PATH)
    assert (now.st_uid, now.st_gid) == (12345, 54321)


def written_in_place(path):
    path.write_bytes(b"hers\n")


def replaced_by_rename(path):
    other = path.with_name("other")
    other.write_bytes(b"hers\n")
    other.rename(path)


def same_bytes_renamed(path):
    other = path.with_name("other")
    other.write_bytes(b"old\n")
    other.rename(path)


def same_size_and_time(path):
    now = os.stat(path)
    path.write_bytes(b"new!")
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def other_mode(path):
    path.chmod(0o640)


def became_a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change",
    [written_in_place, replaced_by_rename, same_bytes_renamed, same_size_and_time, other_mode,
     os.unlink, became_a_folder],
)  # fmt: skip
def test_what_somebody_changed_meanwhile_is_not_replaced(root, change):
    seen = read(root)
    change(root / PATH)
    data = (root / PATH).read_bytes() if (root / PATH).is_file() else None
    assert not replace(root, seen, b"mine\n")
    assert ((root / PATH).read_bytes() if (root / PATH).is_file() else None) == data
    assert [name for name in names(root) if name.startswith(files.TEMPORARY)] == []


def test_bytes_are_compared_even_if_the_fingerprint_is_the_same(root):
    seen = read(root)
    assert not replace(root, seen.but(data=b"odd\n"), b"mine\n")
    assert replace(root, seen, b"mine\n")


def test_a_file_whose_folder_went_is_not_replaced(root):
    seen = read(root)
    (root / PATH).unlink()
    (root / PATH).parent.rmdir()
    assert not replace(root, seen, b"mine\n")


EDITOR = """
import sys
path = sys.argv[1]
for line in sys.stdin:
    with open(path, "a") as file:
        file.write(line)
    print("saved", flush=True)
"""


def test_an_editor_that_saves_between_reading_and_replacing_loses_nothing(root):
    editor = python(EDITOR, str(root / PATH))
    with editor:
        for number in range(20):
            seen = read(root)
            editor.stdin.write(f"hers {number}\n")
            editor.stdin.flush()
            assert editor.stdout.readline() == "saved\n"
            assert not replace(root, seen, seen.data + b"lost\n")
            seen = read(root)
            assert replace(root, seen, seen.data + f"mine {number}\n".encode())
        editor.stdin.close()
    lines = (root / PATH).read_text().splitlines()
    assert lines == [
        "old",
        *[f"{who} {number}" for number in range(20) for who in ("hers", "mine")],
    ]


COUNTER = """
import sys
from dibs.backlogs import files
root, path = sys.argv[1:]
done = 0
while done < 40:
    seen = files.read(root, path)
    if files.replace(root, path, seen, b"%d\\n" % (int(seen.data) + 1)):
        done += 1
"""


def test_two_writers_lose_no_update(root):
    """Each adds one, forty times: without the folder's lock some would be lost."""
    (root / PATH).write_bytes(b"0\n")
    for writer in [python(COUNTER, str(root), PATH) for _ in range(3)]:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
    assert (root / PATH).read_bytes() == b"120\n"
    assert names(root) == ["T-1.md"]


def test_threads_lose_no_update(root):
    (root / PATH).write_bytes(b"0\n")

    def count() -> None:
        done = 0
        while done < 20:
            seen = read(root)
            done += replace(root, seen, b"%d\n" % (int(seen.data) + 1))

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / PATH).read_bytes() == b"60\n"


def test_a_writer_that_never_gets_its_turn_gives_up_and_changes_nothing(root, monkeypatch):
    import fcntl

    monkeypatch.setattr(files, "TURN_WAIT", 0.05)
    folder = os.open((root / PATH).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert not replace(root, read(root), b"new\n")
    finally:
        os.close(folder)
    assert names(root) == ["T-1.md"]
    assert replace(root, read(root), b"new\n")


# Crashes and full disks.

FULL = """
import resource, signal, sys
from dibs.backlogs import files
root, path = sys.argv[1:]
seen = files.read(root, path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    files.replace(root, path, seen, b"x" * 5000)
except OSError as why:
    print("refused", why.errno)
"""


def test_on_a_full_disk_the_old_file_stays_and_no_other_is_left(root):
    done = python(FULL, str(root), PATH)
    out, err = done.communicate(timeout=30)
    assert out.startswith("refused"), err
    assert (root / PATH).read_bytes() == b"old\n"
    assert names(root) == ["T-1.md"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_folder_that_cannot_be_written_is_an_error_and_changes_nothing(root):
    seen, folder = read(root), (root / PATH).parent
    if os.geteuid():
        folder.chmod(0o555)
        undo = lambda: folder.chmod(0o755)
    else:
        for command in (
            ["mount", "--bind", folder, folder],
            ["mount", "-o", "remount,ro,bind", folder],
        ):
            if subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip("root cannot mount here: a folder cannot be made read-only")
        undo = lambda: subprocess.run(["umount", "-l", folder], check=True)
    try:
        with pytest.raises(OSError):
            replace(root, seen, b"new\n")
        assert names(root) == ["T-1.md"]
    finally:
        undo()
    assert (root / PATH).read_bytes() == b"old\n"


WRITER = """
import sys
from dibs.backlogs import files
root, path = sys.argv[1:]
print("begun", flush=True)
number = 0
while True:
    number += 1
    seen = files.read(root, path)
    files.replace(root, path, seen, b"%06d" % number * 20_000)
"""


def test_a_killed_writer_leaves_the_old_file_or_the_new_one_whole(root):
    for round_ in range(25):
        writer = python(WRITER, str(root), PATH)
        assert writer.stdout.readline() == "begun\n"
        time.sleep(0.001 * round_)  # somewhere in the middle, each time elsewhere
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        data = (root / PATH).read_bytes()
        assert data == b"old\n" or data == data[:6] * 20_000
    seen = read(root)
    assert replace(root, seen, b"new\n")


def test_what_a_killed_writer_left_is_removed_by_the_next_one(root, monkeypatch):
    folder = (root / PATH).parent
    chance = "0123456789abcdef"
    left, written = folder / f".dibs-1-{chance}", folder / f".dibs-2-{chance}"
    others = [folder / name for name in (".dibs-notes", f".dibs-x-{chance}", f"dibs-3-{chance}")]
    for file in (left, written, *others):
        file.write_bytes(b"half")
    link = folder / f".dibs-4-{chance}"
    link.symlink_to(left)
    monkeypatch.setattr(files, "_swept", {})
    with open(written, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert replace(root, read(root), b"new\n")
    assert not left.exists()
    assert all(file.exists() for file in (written, *others))
    assert link.is_symlink()


AT_SYNC = """
import os, sys
from dibs.backlogs import files
root, path = sys.argv[1:]
os.fsync = lambda _: os.kill(os.getpid(), 9)
files.replace(root, path, files.read(root, path), b"new")
"""


def test_a_writer_that_is_killed_while_it_writes_leaves_nothing(root):
    writer = python(AT_SYNC, str(root), PATH)
    writer.communicate(timeout=30)
    assert writer.returncode == -signal.SIGKILL
    assert names(root) == ["T-1.md"]
    assert (root / PATH).read_bytes() == b"old\n"


STOPPED = """
import os, sys
from dibs.backlogs import files
root, path = sys.argv[1:]
os.replace = lambda *_, **__: os.kill(os.getpid(), 9)
files.replace(root, path, files.read(root, path), b"new")
"""


def test_what_a_writer_leaves_that_is_killed_before_it_renames_is_found_again(root, monkeypatch):
    """The name that is written is the name that is looked for."""
    writer = python(STOPPED, str(root), PATH)
    writer.communicate(timeout=30)
    assert writer.returncode == -signal.SIGKILL
    [left] = [name for name in names(root) if name != "T-1.md"]
    assert left.startswith(files.TEMPORARY)
    assert (root / PATH).read_bytes() == b"old\n"
    monkeypatch.setattr(files, "_swept", {})
    assert replace(root, read(root), b"new\n")
    assert names(root) == ["T-1.md"]


@pytest.mark.parametrize("lacks", ["proc", "files without a name"])
def test_where_no_file_can_be_without_a_name_it_is_written_under_one(root, monkeypatch, lacks):
    """And what is left then is found by its lock, like everything else."""
    if lacks == "proc":
        monkeypatch.setattr(files, "_OWN_FILES", "/nowhere")
    else:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)
    assert replace(root, read(root), b"new\n")
    assert ((root / PATH).read_bytes(), names(root)) == (b"new\n", ["T-1.md"])
    assert not replace(root, read(root).but(data=b"other"), b"newer\n")
    assert names(root) == ["T-1.md"]


def test_a_file_that_grows_while_it_is_read_is_read_whole_or_refused(root):
    """An appending program writes lines; each reading is some whole state of the file."""
    code = "import sys\nwith open(sys.argv[1], 'ab', 0) as f:\n while True: f.write(b'line\\n')"
    grower = python(code, str(root / PATH))
    try:
        for _ in range(50):
            with contextlib.suppress(Unreadable):
                seen = read(root, limit=files.GRAPH_LIMIT)
                assert len(seen.data) == seen.size
    finally:
        grower.kill()
        grower.communicate()
    assert read(root, limit=files.GRAPH_LIMIT).size == os.path.getsize(root / PATH)
