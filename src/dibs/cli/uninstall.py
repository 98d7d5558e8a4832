"""`dibs uninstall`: removes everything that was set up, and lists what remains."""

from __future__ import annotations

import os

from dibs.board.locate import linked_trees
from dibs.cli.call import Call, Verb, VerbResult, argument
from dibs.cli.setup import git_hooks, removed_line, user_manifest
from dibs.domain.refusals import Refused, refused
from dibs.harness_table import HARNESSES
from dibs.integrations.install import MISSING, PROJECT, USER
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.integrations.install.file_changes import FileChanges
    from dibs.integrations.install.harness import HarnessSetup
    from dibs.integrations.install.manifest import Manifest

HELD_MAX = 1_000
"""How many held tasks are counted before a board is deleted."""


def uninstall(call: Call) -> VerbResult:
    """Removes hooks, instructions and the board. Collects and checks everything before the first change."""
    from dibs.board.board_files import contents, delete
    from dibs.integrations.install.file_changes import FileChanges
    from dibs.integrations.install.harness import board_folder

    dry, folder, manifest = call["dry_run"], board_folder(call.place), user_manifest()
    found = contents(folder) if folder and not call["keep_board"] else None
    if found is not None and not dry:
        check_may_delete(call, folder)
    with FileChanges() as files:
        lines, unedited, notes = remove_harnesses(call, manifest, files, dry=dry)
        lines += remove_git_hooks(call, files, dry=dry)
    others: list[str] = []
    if found is not None:
        if not dry:
            call.close()
            delete(found)
        others = [os.path.join(folder, name) for name in found.others]
        lines.append(f"deleted: {folder}" if not others else f"deleted: the board in {folder}")
    stays = [*unedited, *notes, *(f"{path}: not created by dibs" for path in others)]
    stays += remaining(call, "" if found is not None else folder)
    shown = [f"would be {line}" for line in lines] if dry else lines
    shown = [*(shown or ["nothing to remove"]), *(f"stays: {one}" for one in stays)]
    done, would_be = ([], lines) if dry else (lines, [])
    payload = payloads.answer(removed=done, would_be_removed=would_be, stays=stays, dry_run=dry)
    return VerbResult(payload, tuple(shown), exit=REFUSED if unedited else 0)


def remove_harnesses(
    call: Call, manifest: Manifest, files: FileChanges, *, dry: bool
) -> tuple[list[str], list[str], list[str]]:
    """Stages the removal from all harness files.

    Returns what is removed, what cannot be edited, and what else remains.
    """
    from dibs.integrations.install.harness import stage_removal

    changes, unedited, notes = [], [], []
    for setup in every_setup(call, manifest):
        try:
            changes += setup.planned_removal()
            notes += [setup.unrecorded_folder()] if setup.level == USER else []
        except Refused as problem:
            unedited.append(str(problem))
    if not dry:
        stage_removal(changes, manifest, files)
    changed = [change for change in changes if change.changes]
    handled = {os.path.realpath(change.path) for change in changes}
    notes += [f"{change.path}: {change.note}" for change in changed if change.note]
    notes += [manifest.problem]
    notes += [
        f"{path}: set up for another project"
        for path in manifest.entries
        if path not in handled and not any(path in one for one in unedited)
    ]
    return [removed_line(change) for change in changed], unedited, list(filter(None, notes))


def every_setup(call: Call, manifest: Manifest) -> Iterator[HarnessSetup]:
    """Yields the user setup of every harness, and the project setups in each work tree."""
    from dibs.integrations.install.harness import setup_of

    for name in HARNESSES:
        yield setup_of(call.place, name, USER, manifest)
    for root in work_trees(call):
        for name in HARNESSES:
            yield setup_of(call.place, name, PROJECT, manifest).but(root=root)


def work_trees(call: Call) -> list[str]:
    """The existing work trees: the current one, the main one and linked ones."""
    repository = call.place.repository
    if repository is None or not in_project(call):
        return []
    common, found = repository.common_dir, [repository.worktree]
    if os.path.basename(common) == ".git":
        found.append(os.path.dirname(common))
    found += sorted(root for _, root in linked_trees(common))
    there = {
        os.path.realpath(root): root
        for root in reversed(found)
        if os.path.lexists(os.path.join(root, ".git"))
    }
    return list(reversed(there.values()))


def in_project(call: Call) -> bool:
    return call.place.repository is not None and bool(call.place.repository.worktree)


def remove_git_hooks(call: Call, files: FileChanges, *, dry: bool) -> list[str]:
    hooks = git_hooks(call)
    if hooks is None:
        return []
    if dry:
        there = [each for each in hooks.states() if each.state != MISSING]
        return [f"removed: git hook {each.hook}" for each in there]
    return [f"removed: {path}" for path in hooks.stage_removal(files)]


def check_may_delete(call: Call, folder: str) -> None:
    """Refuses unless a person confirms with --yes."""
    if not call.who().person:
        raise refused("people_only", "only a person may delete a board; --keep-board keeps it")
    if not call["yes"]:
        with call.board.read() as tx:
            held = len(tx.tasks_held(HELD_MAX))
        what = f"{folder} would be deleted with all its tasks and its ledger (held now: {held})"
        raise refused("unconfirmed", f"{what}: use --yes, or --keep-board", board=folder)


def remaining(call: Call, folder: str) -> Iterator[str]:
    if folder:
        yield f"the board in {folder}"
    if call.place.server:
        yield "the board on its server"
    if in_project(call):
        yield "item files and dibs.toml of this repository, and other repositories' boards"
    yield "the program itself: remove it as you installed it (pip uninstall dibs)"


VERBS = {
    "uninstall": Verb(
        uninstall,
        (
            argument("--dry-run", action="store_true", help="only print what would be removed"),
            argument("--keep-board", action="store_true", help="remove the hooks, keep the board"),
            argument("--yes", action="store_true", help="delete the board: people only"),
        ),
    )
}
