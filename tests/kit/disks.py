"""Small file systems that a test can fill: a disk that is full, without filling anybody's disk."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[Path]:
    """The folder with this file system on it; without the right to mount one the test is skipped."""
    folder.mkdir()
    if not mount(*arguments, str(folder)):
        pytest.skip("a file system cannot be mounted here: a full disk cannot be tried")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def memory_disk(folder: Path, size: str):
    return mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")
