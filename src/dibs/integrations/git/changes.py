"""Lists the paths that a commit changes: staged ones, or those of existing commits."""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board.path_access import forms
from dibs.domain.values import Value
from dibs.git_runner import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.board.locate import Repository

RAW = (
    "--raw", "-z", "--no-renames", "--ignore-submodules=none", "--no-relative", "--no-color",
    "--no-ext-diff", "--no-textconv",
)  # fmt: skip
"""Output with paths as bytes and both sides of renames, whatever the caller's configuration."""

LINK = b"120000"
HEX = frozenset("0123456789abcdef")


class GitQueryFailed(Exception):  # noqa: N818 - unknown, so not an error
    """Raised when git fails to answer a query."""


class PathChange(Value):
    """A changed path, and whether it is, or was, a symbolic link."""

    path: str
    link: bool = False


def staged() -> list[PathChange]:
    """What the next commit changes, from the index that git commits."""
    status, out = git("diff", "--cached", *RAW)
    if status != 0:
        raise GitQueryFailed("git cannot list the staged paths")
    fields = iter(out.split(b"\0"))
    return list(changes(fields))


def changes(fields: Iterator[bytes]) -> Iterator[PathChange]:
    """Parses pairs of `:MODE MODE ID ID STATUS` and path; stops at anything else."""
    for field in fields:
        if not field.startswith(b":"):
            return
        yield PathChange(os.fsdecode(next(fields)), LINK in field[:15])


def paths_of(changed: Iterable[PathChange], repository: Repository | None) -> dict[str, str]:
    """Maps each path to "", and the target of a link inside the repository to the link's path."""
    found: dict[str, str] = {}
    for change in changed:
        found[change.path] = ""
        if change.link and repository is not None and repository.worktree:
            path = join(repository.worktree, change.path)
            for form in forms(path, repository.worktree, repository):
                found.setdefault(form, change.path)
    return found


def is_merge(repository: Repository | None) -> bool:
    """Whether the next commit concludes a merge: its paths are the work of others."""
    return repository is not None and exists(join(repository.git_dir, "MERGE_HEAD"))


def moved_to(updates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields commit and name of each created or moved ref, from lines of `OLD NEW REF`."""
    for update in updates:
        _, _, rest = update.rstrip("\n").partition(" ")
        new, _, ref = rest.partition(" ")
        if ref and set(new) <= HEX and new.strip("0"):
            yield new, ref
