"""Which paths a commit is about: those that are staged, or those of commits that are there."""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board.guarding import forms
from dibs.core.values import Value
from dibs.git_runner import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.board.locate import Repository

RAW = (
    "--raw", "-z", "--no-renames", "--ignore-submodules=none", "--no-relative", "--no-color",
    "--no-ext-diff", "--no-textconv",
)  # fmt: skip
"""Paths as bytes, both sides of a rename, whatever the caller's git is set to show."""

LINK = b"120000"
HEX = frozenset("0123456789abcdef")


class Unasked(Exception):  # noqa: N818 - nothing is known, so nothing is wrong
    """git did not say what was asked of it."""


class Change(Value):
    """A path of a commit, and whether it is, or was, a symbolic link."""

    path: str
    link: bool = False


def staged() -> list[Change]:
    """What the next commit changes, as the index has it that git commits from."""
    status, said = git("diff", "--cached", *RAW)
    if status != 0:
        raise Unasked("git does not say what is staged")
    fields = iter(said.split(b"\0"))
    return list(changes(fields))


def changes(fields: Iterator[bytes]) -> Iterator[Change]:
    """From pairs of `:MODE MODE ID ID STATUS` and a path. Ends before what is no such pair."""
    for field in fields:
        if not field.startswith(b":"):
            return
        yield Change(os.fsdecode(next(fields)), LINK in field[:15])


def paths_of(changed: Iterable[Change], repository: Repository | None) -> dict[str, str]:
    """Each path, and where a link leads, if that is in the repository: with the link's path then."""
    found: dict[str, str] = {}
    for change in changed:
        found[change.path] = ""
        if change.link and repository is not None and repository.worktree:
            path = join(repository.worktree, change.path)
            for form in forms(path, repository.worktree, repository):
                found.setdefault(form, change.path)
    return found


def is_merge(repository: Repository | None) -> bool:
    """Whether the next commit ends a merge: its paths are the work of others."""
    return repository is not None and exists(join(repository.git_dir, "MERGE_HEAD"))


def moved_to(updates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The commit and the name of each reference that is made or moved, from `OLD NEW REF`."""
    for update in updates:
        _, _, rest = update.rstrip("\n").partition(" ")
        new, _, ref = rest.partition(" ")
        if ref and set(new) <= HEX and new.strip("0"):
            yield new, ref
