"""The trailers of a commit: `Dibs-Task` and `Dibs-Token`, of the lease that it is made under.

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

from dibs.board.guarding import look
from dibs.core.guarding import COMMIT
from dibs.git.acting import TASK, acting
from dibs.git.changes import paths_of, staged
from dibs.git_runner import git, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.board.execute import Board
    from dibs.board.guarding import Look
    from dibs.board.identity import Identity
    from dibs.board.locate import Repository

    Pair = tuple[str, str]
    """A task and a token, as a message states them."""

KEY, TOKEN = "Dibs-Task", "Dibs-Token"
NEW, AGAIN, REBASED = "new", "again", "rebased"
UNTOUCHED = ("merge", "squash")
LATER = ("", "template")
"""Messages that are still to be written. With trailers in it an empty one would not be empty."""
WRITTEN = "written"
"""What the message is once its author has left the editor."""
SCISSORS = b" ------------------------ >8 ------------------------"


def message(
    board: Board,
    who: Identity | None,
    repository: Repository | None,
    file: str,
    source: str,
    commit: str,
    environment: Mapping[str, str],
) -> str:
    """Sets the trailers in a file, or leaves it as it is; a line if it could not be decided."""
    if source in (*UNTOUCHED, *LATER) or (source == WRITTEN and is_blank(file)):
        return ""
    seen = look(board, who, (), COMMIT)
    stated = stated_in(file)
    mine = seen.known.mine
    kind = kind_of(repository, source, commit)
    if not mine and (not stated or kind != NEW):
        return ""
    wanted, said = pairs(kind, stated, {task.key: str(task.token) for task in mine}), ""
    if wanted is None:
        wanted, said = chosen(seen, repository, environment)
    if wanted != stated:
        write(file, len(stated), wanted)
    return said


def kind_of(repository: Repository | None, source: str, commit: str) -> str:
    """What git is doing stands in its own files: of a pick too it says `message`.

    What somebody commits while a rebase waits for them is new.
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
    """What the message is to state; `None`: that of the acting lease."""
    held = [(key, mine[key]) for key, _ in stated if key in mine]
    if kind == NEW:
        return held[:1] or None
    if stated or kind == REBASED:
        return [(key, mine.get(key, token)) for key, token in stated]
    return None


def chosen(
    seen: Look, repository: Repository | None, environment: Mapping[str, str]
) -> tuple[list[Pair], str]:
    """Of the lease that the commit is made under; a line if it may be any of several."""
    mine = seen.known.mine
    paths = list(paths_of(staged(), repository)) if len(mine) > 1 else ()
    task = acting(mine, paths, seen.known.ground, environment)
    if task is not None:
        return [(task.key, str(task.token))], ""
    keys = ", ".join(task.key for task in mine)
    said = f"the commit names no task: it may be for any of {keys} (export {TASK}=KEY)"
    return [], said if mine else ""


# The file.


def stated_in(file: str) -> list[Pair]:
    """What the trailers of a message say. git decides what a trailer is."""
    with open(file, "rb") as opened:
        if KEY.lower().encode() not in opened.read().lower():
            return []
    status, said = git("interpret-trailers", "--parse", "--no-divider", file)
    found: dict[str, list[str]] = {KEY.lower(): [], TOKEN.lower(): []}
    for text in said.decode("utf-8", "replace").splitlines() if status == 0 else ():
        name, _, value = text.partition(":")
        found.get(name.strip().lower(), []).append(value.strip())
    keys, tokens = found.values()
    return list(zip(keys, tokens + [""] * len(keys)))


def write(file: str, had: int, wanted: Sequence[Pair]) -> None:
    """Takes out the last `had` of each trailer, and adds what is wanted after all others."""
    if had:
        without(file, had)
    words = [
        word
        for key, token in wanted
        for word in ("--trailer", f"{KEY}: {key}", "--trailer", f"{TOKEN}: {token}")
    ]
    if words:
        end = ("--where", "end", "--if-exists", "add", "--if-missing", "add")
        git("interpret-trailers", "--in-place", "--no-divider", *end, *words, file)


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
    """Whether nothing was written: git gives such a commit up."""
    comment = (setting("core.commentChar") or "#")[:1].encode()
    with open(file, "rb") as opened:
        for text in opened:
            if SCISSORS in text:
                return True
            if text.strip() and not text.startswith(comment):
                return False
    return True
