"""Commands inside real namespaces and roots of their own: what a container or a unit sees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

BOOT_ID = "/proc/sys/kernel/random/boot_id"
OTHER_ID = "11111111-2222-4333-8444-555555555555"
AHEAD = 100_000
"""Seconds by which the clock of a time namespace is off."""

KINDS = {
    "another boot id": "mount --bind $DIR/boot_id " + BOOT_ID,
    "no boot id": "mount -t proc -o subset=pid proc /proc",
    "no /proc": "mount -t tmpfs none /proc",
    "a chroot without /proc or /dev": "mount --bind / $DIR/root; mount --rbind $REPO $DIR/root$REPO",
    "a container": f"mount -t proc proc /proc; mount --bind $DIR/boot_id {BOOT_ID}",
    "pids of its own, and the host's /proc": ":",
    "a time namespace ahead": ":",
    "a time namespace behind": ":",
    "a time namespace ahead without /proc": "mount -t tmpfs none /proc",
}
OPTIONS = {
    "a container": ["--pid", "--fork"],
    "pids of its own, and the host's /proc": ["--pid", "--fork"],
    "a time namespace ahead": ["--time", "--fork", "--boottime", str(AHEAD)],
    "a time namespace behind": ["--time", "--fork", "--boottime", "-100"],
    "a time namespace ahead without /proc": ["--time", "--fork", "--boottime", str(AHEAD)],
}


def confined(kind: str, folder: Path, repo: Path, command: list[str]) -> list[str]:
    """The command that runs `command` there. It sees the repository at the same path."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("namespaces need root and unshare")
    (folder / "root").mkdir(exist_ok=True)
    (folder / "boot_id").write_text(f"{OTHER_ID}\n")
    root = f"chroot {folder}/root " if "chroot" in kind else ""
    ground = "/" + repo.parts[1] if repo.parts[1] != "dev" else "/dev/shm"
    script = KINDS[kind].replace("$DIR", str(folder)).replace("$REPO", ground)
    there = shlex.quote(f'cd {repo} && exec "$@"')
    inner = f"set -e; {script}; exec {root}sh -c {there} sh "
    enter = ["unshare", "--mount", *OPTIONS.get(kind, []), "sh", "-c"]
    tried = subprocess.run(
        [*enter, f"set -e; {script}"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"{kind} cannot be made here: {tried.stderr.strip()}")
    return [*enter, inner + shlex.join(command)]
