"""`dibs setup` without a target, and `dibs uninstall`: the board, git hooks, and all harnesses found."""

from __future__ import annotations

import os
import sys

from dibs.board.file_changes import FileChanges
from dibs.cli import text
from dibs.cli.call import Call, VerbResult
from dibs.cli.setup_harness import (
    RESTART,
    board_folder,
    home,
    line_of,
    rows_of,
    setup_of,
    shown,
)
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.harnesses import HARNESSES
from dibs.integrations.harness import text_edit
from dibs.integrations.harness.install import INSTALLED, MISSING, PROJECT, USER, is_found, stage
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.manifest import Contents
    from dibs.integrations.git.install import GitHooksSetup as GitSetup
    from dibs.integrations.harness.install import HarnessSetup

HEAD = ("PART", "WHAT", "STATE", "WHERE")
NOTHING = "no harness was found: dibs setup claude (codex, gemini, cursor) sets one up all the same"


def everything(call: Call) -> VerbResult:
    """Installs what is missing (with --check nothing) and reports the state of each part."""
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
    lines = (*text.table(rows, HEAD), *(() if found else (NOTHING,)), *notes)
    told = [dict(zip(("part", "what", "state", "where"), row)) for row in rows]
    return VerbResult(payloads.answer(ok=whole, parts=told), lines, exit=0 if whole else REFUSED)


def put_in(call: Call, setups: list[HarnessSetup]) -> list[str]:
    """Installs all hooks in one batch; returns what a person must still do.

    Skips files that cannot be edited.
    """
    notes: list[str] = []
    hooks = git_hooks(call)
    with FileChanges() as files:
        if hooks is not None:
            hooks.stage(files)
        for setup in setups:
            try:
                planned = setup.planned()
            except Refused:
                continue  # its findings give the reason
            stage(planned, files)
            notes += [setup.harness.trust] if setup.harness.trust else []
    return notes


def printed(call: Call) -> VerbResult:
    """Prints every file that would be written, and where a board would be created."""
    _, _, state, where = board_row(call, changes=False)
    hooks = git_hooks(call)
    files = {} if state == INSTALLED else {where: "a board would be made here"}
    files |= {} if hooks is None else dict(hooks.planned())
    return shown(files, setups(call, PROJECT if call["project"] else USER))


def setups(call: Call, level: str) -> list[HarnessSetup]:
    """The setups of all harnesses found on this machine."""
    path = os.environ.get("PATH", "")
    found = [name for name, each in HARNESSES.items() if is_found(each, home(), path)]
    return [setup_of(call, name, level) for name in found]


# The board.


def board_row(call: Call, *, changes: bool) -> tuple[str, str, str, str]:
    from dibs.opening import create_at

    state, where = board_state(call)
    if changes and state == MISSING and not call.place.server:
        from dibs.cli.board import check_not_lost

        check_not_lost(call)
        call.adopt(create_at(call.place)[0])
        state, where = board_state(call)
    return "board", "tasks", state, where


def board_state(call: Call) -> tuple[str, str]:
    """Installed if the board can be read; a database whose creation was interrupted counts as missing."""
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
    """The git hooks setup; `None` outside a repository."""
    from dibs.integrations.git.install import setup_of as hooks_of

    return (
        None if call.place.repository is None else hooks_of(call.place.repository, sys.executable)
    )


# Uninstall.


def uninstall(call: Call) -> VerbResult:
    """Removes hooks, instructions and the board. Collects and checks everything before the first change."""
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
    return VerbResult(payload, tuple(shown), exit=REFUSED if left else 0)


def harnesses_out(call: Call, files: FileChanges, *, dry: bool) -> tuple[list[str], list[str]]:
    """Stages the removal from all harness files; returns what is removed, and what cannot be edited."""
    lines: list[str] = []
    left: list[str] = []
    for setup in every_setup(call):
        try:
            changes = setup.planned_removal()
        except Refused as problem:
            left.append(str(problem))
            continue
        lines += [line_of(change) for change in changes]
        if not dry:
            stage(changes, files)
    return lines, left


def every_setup(call: Call) -> Iterator[HarnessSetup]:
    """Yields the user setup of every harness, and the project setups in each work tree."""
    for name in HARNESSES:
        yield setup_of(call, name, USER)
    for root in work_trees(call):
        for name in HARNESSES:
            yield setup_of(call, name, PROJECT).but(root=root)


def work_trees(call: Call) -> list[str]:
    """The existing work trees: the current one, the main one and linked ones."""
    repository = call.place.repository
    if repository is None or not in_a_project(call):
        return []
    common, found = repository.common_dir, [repository.worktree]
    if os.path.basename(common) == ".git":
        found.append(os.path.dirname(common))
    linked = os.path.join(common, "worktrees")
    for name in sorted(os.listdir(linked)) if os.path.isdir(linked) else ():
        pointer = (text_edit.read(os.path.join(linked, name, "gitdir")) or "").strip()
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
    """Refuses unless a person confirms with --yes."""
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
