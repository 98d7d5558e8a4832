"""`dibs setup` alone, and `dibs uninstall`: a board, git, and every harness that is found."""

from __future__ import annotations

import os
import sys

from dibs.board.file_changes import FileChanges
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.harness import textfile
from dibs.harness.install import INSTALLED, MISSING, PROJECT, USER, is_found, stage
from dibs.harness.table import HARNESSES
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.call import Answer, Call
from dibs.interfaces.cli.setup_harness import (
    RESTART,
    board_folder,
    home,
    line_of,
    rows_of,
    setup_of,
    shown,
)
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.manifest import Contents
    from dibs.git.install import Setup as GitSetup
    from dibs.harness.install import Setup

HEAD = ("PART", "WHAT", "STATE", "WHERE")
NOTHING = "no harness was found: dibs setup claude (codex, gemini, cursor) sets one up all the same"


def everything(call: Call) -> Answer:
    """What is there is looked at; what is missing is made, unless one only asks."""
    if call["remove"]:
        raise bad_argument(
            "dibs uninstall takes everything out; dibs setup TARGET --remove one part"
        )
    if call["print"]:
        return printed(call)
    changes = not call["check"]
    rows = [board_row(call, changes=changes)]
    found = setups(call, PROJECT if call["project"] else USER)
    notes = put_in(call, found) if changes else []
    rows += git_rows(call)
    for setup in found:
        try:
            rows += rows_of(setup, setup.findings())
        except Refused as problem:
            rows.append((setup.harness.name, "hooks", str(problem), setup.settings))
    whole = all(state == INSTALLED for _, _, state, _ in rows)
    notes = [RESTART, *notes] if changes and found else notes
    lines = (*say.table(rows, HEAD), *(() if found else (NOTHING,)), *notes)
    told = [dict(zip(("part", "what", "state", "where"), row)) for row in rows]
    return Answer(payloads.answer(ok=whole, parts=told), lines, exit=0 if whole else REFUSED)


def put_in(call: Call, setups: list[Setup]) -> list[str]:
    """All hooks at once, but for files that cannot be changed; what a person still has to do."""
    notes: list[str] = []
    hooks = git_hooks(call)
    with FileChanges() as files:
        if hooks is not None:
            hooks.stage(files)
        for setup in setups:
            try:
                planned = setup.planned()
            except Refused:
                continue  # its findings say why
            stage(planned, files)
            notes += [setup.harness.trust] if setup.harness.trust else []
    return notes


def printed(call: Call) -> Answer:
    """Every file that would be written; a board that would be made is named."""
    _, _, state, where = board_row(call, changes=False)
    hooks = git_hooks(call)
    files = {} if state == INSTALLED else {where: "a board would be made here"}
    files |= {} if hooks is None else dict(hooks.planned())
    return shown(files, setups(call, PROJECT if call["project"] else USER))


def setups(call: Call, level: str) -> list[Setup]:
    """Of every harness that is found."""
    path = os.environ.get("PATH", "")
    found = [name for name, each in HARNESSES.items() if is_found(each, home(), path)]
    return [setup_of(call, name, level) for name in found]


# The board.


def board_row(call: Call, *, changes: bool) -> tuple[str, str, str, str]:
    from dibs.opening import create_at

    state, where = board_state(call)
    if changes and state == MISSING and not call.place.server:
        from dibs.interfaces.cli.own_board import check_not_lost

        check_not_lost(call)
        call.adopt(create_at(call.place)[0])
        state, where = board_state(call)
    return "board", "tasks", state, where


def board_state(call: Call) -> tuple[str, str]:
    """Whether it can be read: a database that somebody began, and was killed, is none."""
    try:
        with call.board.read():
            return INSTALLED, call.board.store.where
    except Refused as problem:
        if problem.code != "no_board":
            raise
        return MISSING, call.place.folder


# git.


def git_rows(call: Call) -> list[tuple[str, str, str, str]]:
    hooks = git_hooks(call)
    states = [] if hooks is None else hooks.states()
    return [("git", each.hook, each.state, each.note) for each in states]


def git_hooks(call: Call) -> GitSetup | None:
    """The hooks of the repository; nothing outside of one."""
    from dibs.git.install import setup_of as hooks_of

    return (
        None if call.place.repository is None else hooks_of(call.place.repository, sys.executable)
    )


# Everything out again.


def uninstall(call: Call) -> Answer:
    """Hooks, instructions and the board. Everything is known before anything is done."""
    from dibs.board.manifest import contents

    dry, folder = call["dry_run"], board_folder(call)
    found = contents(folder) if folder and not call["keep_board"] else None
    if found is not None and not dry:
        check_may_delete(call, folder)
    with FileChanges() as files:
        lines, left = harnesses_out(call, files, dry=dry)
        lines += git_out(call, files, dry=dry)
    others: list[str] = []
    if found is not None:
        if not dry:
            delete_board(call, found)
        others = [os.path.join(folder, name) for name in found.others]
        lines.append(f"gone: {folder}" if not others else f"gone: the board in {folder}")
    stays = [*left, *(f"{path}: not made by dibs" for path in others)]
    stays += what_stays(call, "" if found is not None else folder)
    said = [f"would be {line}" for line in lines] if dry else lines
    shown = (*(said or ["nothing of dibs was set up"]), *(f"stays: {one}" for one in stays))
    done, would_be = ([], lines) if dry else (lines, [])
    payload = payloads.answer(removed=done, would_be_removed=would_be, stays=stays, dry_run=dry)
    return Answer(payload, tuple(shown), exit=REFUSED if left else 0)


def harnesses_out(call: Call, files: FileChanges, *, dry: bool) -> tuple[list[str], list[str]]:
    """What is taken out, and what has to be left as it is."""
    lines: list[str] = []
    left: list[str] = []
    for setup in every_setup(call):
        try:
            changes = setup.unplanned()
        except Refused as problem:
            left.append(str(problem))
            continue
        lines += [line_of(change) for change in changes]
        if not dry:
            stage(changes, files)
    return lines, left


def every_setup(call: Call) -> Iterator[Setup]:
    """Of every harness: the person's own, and the project's in each of its work trees."""
    for name in HARNESSES:
        yield setup_of(call, name, USER)
    for root in work_trees(call):
        for name in HARNESSES:
            yield setup_of(call, name, PROJECT).but(root=root)


def work_trees(call: Call) -> list[str]:
    """The work trees that are there: the one around us, the first one, and those that are linked."""
    repository = call.place.repository
    if repository is None or not in_a_project(call):
        return []
    common, found = repository.common_dir, [repository.worktree]
    if os.path.basename(common) == ".git":
        found.append(os.path.dirname(common))
    linked = os.path.join(common, "worktrees")
    for name in sorted(os.listdir(linked)) if os.path.isdir(linked) else ():
        pointer = (textfile.read(os.path.join(linked, name, "gitdir")) or "").strip()
        found.append(os.path.dirname(os.path.join(linked, name, pointer)))
    there = {os.path.realpath(root): root for root in reversed(found) if is_tree(root)}
    return list(reversed(there.values()))


def is_tree(root: str) -> bool:
    return os.path.lexists(os.path.join(root, ".git"))


def in_a_project(call: Call) -> bool:
    return call.place.repository is not None and bool(call.place.repository.worktree)


def git_out(call: Call, files: FileChanges, *, dry: bool) -> list[str]:
    hooks = git_hooks(call)
    if hooks is None:
        return []
    if dry:
        there = [each for each in hooks.states() if each.state != "missing"]
        return [f"taken out: git hook {each.hook}" for each in there]
    return [f"taken out: {path}" for path in hooks.stage_removal(files)]


def check_may_delete(call: Call, folder: str) -> None:
    """A board is deleted by a person who means it."""
    if not call.who().person:
        raise refused("people_only", "only a person may delete a board; --keep-board keeps it")
    if not call["yes"]:
        with call.board.read() as tx:
            held = len(tx.tasks_held(MANY))
        what = f"{folder} would be deleted with all its tasks and its ledger (held now: {held})"
        raise refused("unconfirmed", f"{what}: say --yes, or --keep-board", board=folder)


MANY = 1_000


def delete_board(call: Call, found: Contents) -> None:
    from dibs.board.manifest import delete

    call.close()
    delete(found)


def what_stays(call: Call, folder: str) -> Iterator[str]:
    if folder:
        yield f"the board in {folder}"
    if call.place.server:
        yield "the board on its server"
    if in_a_project(call):
        yield "item files and dibs.toml of this repository, and other repositories' boards"
    yield "the program itself: remove it as you installed it (pip uninstall dibs)"
