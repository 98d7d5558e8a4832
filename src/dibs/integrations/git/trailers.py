"""The commit trailers `Dibs-Task` and `Dibs-Token`, which name the lease of a commit.

| the commit is | names a task that I hold | names another task | names none |
|---|---|---|---|
| new | its token becomes the current one | replaced by mine, or removed | mine is added |
| amended or picked | its token becomes the current one | stays | mine is added |
| rebased | its token becomes the current one | stays | stays |
| a merge or a squash | stays | stays | stays |
"""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board.path_access import check_paths
from dibs.domain.scopes.access import COMMIT
from dibs.git_runner import edit_trailers, setting
from dibs.integrations.git.commit_guard import TASK, acting, paths_of, staged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.board.path_access import PathVerdict

    Pair = tuple[str, str]
    """A task key and a token, as in the message."""

KEY, TOKEN = "Dibs-Task", "Dibs-Token"
NEW, AGAIN, REBASED = "new", "again", "rebased"
UNTOUCHED = ("merge", "squash")
LATER = ("", "template")
"""Sources of messages still to be edited: trailers would make an empty message look non-empty."""
WRITTEN = "written"
"""Our own source: the message after its author left the editor."""
SCISSORS = b" ------------------------ >8 ------------------------"


def set_trailers(
    board: Board,
    who: Identity | None,
    repository: Repository | None,
    file: str,
    source: str,
    commit: str,
    environment: Mapping[str, str],
) -> str:
    """Sets the trailers of a message file, if needed; returns a warning if the task is ambiguous."""
    if source in (*UNTOUCHED, *LATER) or (source == WRITTEN and is_blank(file)):
        return ""
    seen = check_paths(board, who, (), COMMIT)
    stated = stated_in(file)
    mine = seen.known.mine
    kind = kind_of(repository, source, commit)
    if not mine and (not stated or kind != NEW):
        return ""
    wanted, warning = pairs(kind, stated, {task.key: str(task.token) for task in mine}), ""
    if wanted is None:
        wanted, warning = chosen(seen, repository, environment)
    if wanted != stated:
        write(file, len(stated), wanted)
    return warning


def kind_of(repository: Repository | None, source: str, commit: str) -> str:
    """New, repeated or rebased, judged by git's state files: for a cherry-pick too the source is `message`.

    A commit made by hand while a rebase is stopped counts as new.
    """
    folder = repository.git_dir if repository else ""
    picks = exists(join(folder, "CHERRY_PICK_HEAD"))
    joins = exists(join(folder, "rebase-merge", "current-fixups"))
    amends = source == "commit" and commit == "HEAD"
    rebases = any(exists(join(folder, name)) for name in ("rebase-merge", "rebase-apply"))
    if rebases and (picks or joins or amends):
        return REBASED
    return AGAIN if picks or amends else NEW


def pairs(kind: str, stated: Sequence[Pair], mine: Mapping[str, str]) -> list[Pair] | None:
    """The wanted trailers; `None` means those of the acting lease."""
    held = [(key, mine[key]) for key, _ in stated if key in mine]
    if kind == NEW:
        return held[:1] or None
    if stated or kind == REBASED:
        return [(key, mine.get(key, token)) for key, token in stated]
    return None


def chosen(
    seen: PathVerdict, repository: Repository | None, environment: Mapping[str, str]
) -> tuple[list[Pair], str]:
    """The trailers of the acting lease; and a warning if several leases are possible."""
    mine = seen.known.mine
    paths = list(paths_of(staged(), repository)) if len(mine) > 1 else ()
    task = acting(mine, paths, seen.known.ground, environment)
    if task is not None:
        return [(task.key, str(task.token))], ""
    keys = ", ".join(task.key for task in mine)
    warning = f"the commit names no task: it may be for any of {keys} (export {TASK}=KEY)"
    return [], warning if mine else ""


# The message file.


def stated_in(file: str) -> list[Pair]:
    """The pairs in the message's trailers, as parsed by git."""
    with open(file, "rb") as opened:
        if KEY.lower().encode() not in opened.read().lower():
            return []
    status, out = edit_trailers("--parse", "--no-divider", file, comment=comment_char())
    found: dict[str, list[str]] = {KEY.lower(): [], TOKEN.lower(): []}
    for text in out.decode("utf-8", "replace").splitlines() if status == 0 else ():
        name, _, value = text.partition(":")
        found.get(name.strip().lower(), []).append(value.strip())
    keys, tokens = found.values()
    return list(zip(keys, tokens + [""] * len(keys)))


def write(file: str, had: int, wanted: Sequence[Pair]) -> None:
    """Removes the last `had` of each trailer, and appends the wanted ones after all others."""
    if had:
        without(file, had)
    words = [
        word
        for key, token in wanted
        for word in ("--trailer", f"{KEY}: {key}", "--trailer", f"{TOKEN}: {token}")
    ]
    if words:
        end = ("--where", "end", "--if-exists", "add", "--if-missing", "add")
        edit_trailers("--in-place", "--no-divider", *end, *words, file, comment=comment_char())


def without(file: str, had: int) -> None:
    with open(file, "rb") as opened:
        lines = opened.read().splitlines(keepends=True)
    end = next((place for place, text in enumerate(lines) if SCISSORS in text), len(lines))
    for name in (KEY, TOKEN):
        start = f"{name}:".lower().encode()
        places = [place for place in range(end) if lines[place].lower().startswith(start)]
        for place in places[-had:]:
            lines[place] = b""
    own = f"{file}.{os.getpid()}"
    with open(own, "wb") as opened:
        opened.write(b"".join(lines))
    os.replace(own, file)


def is_blank(file: str) -> bool:
    """Whether nothing was written: then git aborts the commit."""
    comment = comment_char().encode()
    with open(file, "rb") as opened:
        for text in opened:
            if SCISSORS in text:
                return True
            if text.strip() and not text.startswith(comment):
                return False
    return True


def comment_char() -> str:
    """What lines of comment start with. git chooses a character itself where `auto` is set."""
    stated = setting("core.commentChar")
    return "#" if stated in ("", "auto") else stated
