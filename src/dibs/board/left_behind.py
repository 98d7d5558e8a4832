"""What a former holder left in its work tree: looked up before a takeover, outside the transaction."""

from __future__ import annotations

import os

FILES = 20
"""How many uncommitted files an event names."""

SECONDS = 5
"""How long git may take to tell."""


def uncommitted(worktree: str) -> tuple[str, ...]:
    """Files that are changed or new there, as git tells; nothing if it cannot."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "-C", worktree, "status", "--porcelain=v1", "-z", "--no-renames"],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    names = [line[3:] for line in done.stdout.decode(errors="replace").split("\0") if line]
    shown = tuple(names[:FILES])
    return shown if len(names) <= FILES else (*shown, f"and {len(names) - FILES} more")
