"""Files of others are changed together, and only as they were read."""

from __future__ import annotations

import pytest

from dibs.integrations.install.file_changes import FileChanges, NotWritten


def test_a_file_that_somebody_changed_meanwhile_is_left_as_they_wrote_it(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"before")
    with pytest.raises(NotWritten) as problem, FileChanges() as files:
        files.write(str(second), b"new")
        files.write(str(first), b"ours", seen=b"before")
        first.write_bytes(b"theirs")
    assert problem.value.code == "busy"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("first", b"theirs")]


def test_after_an_error_in_the_block_nothing_is_changed_and_folders_are_gone(tmp_path):
    with pytest.raises(ZeroDivisionError), FileChanges() as files:
        files.make_folder(str(tmp_path / "a" / "b"))
        files.write(str(tmp_path / "a" / "b" / "c"), b"new")
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_replaced_keeps_its_rights_and_a_new_one_gets_those_of_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    (tmp_path / "plain").write_bytes(b"")
    with FileChanges() as files:
        files.write(str(old), b"x")
        files.write(str(new), b"x")
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode == (tmp_path / "plain").stat().st_mode
