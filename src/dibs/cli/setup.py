"""`dibs setup`: the board, git hooks and harness hooks; installs, checks, prints and removes them."""

from __future__ import annotations

import os
import sys

from dibs.cli import text
from dibs.cli.call import Call, Verb, VerbResult, argument, refuse_inapplicable
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refused, bad_argument
from dibs.harness_table import HARNESSES
from dibs.integrations.install import INSTALLED, LEVELS, MISSING, PROJECT, USER
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.integrations.install.git import GitHooksSetup
    from dibs.integrations.install.harness import HarnessSetup, PlannedChange, SetupFinding
    from dibs.integrations.install.manifest import Manifest

    Row = tuple[str, str, str, str]

MODES = ("check", "remove", "print")
GIT = "git"
TARGETS = (GIT, *HARNESSES)

HEAD = ("PART", "WHAT", "STATE", "WHERE")
NO_HARNESS = "no harness found; dibs setup claude (codex, gemini, cursor) sets one up anyway"
RESTART = "running sessions do not use the new hooks: restart them"


def setup(call: Call) -> VerbResult:
    for choices in (MODES, LEVELS):
        if sum(bool(call[choice]) for choice in choices) > 1:
            raise bad_argument(f"{' and '.join(f'--{one}' for one in choices)}: one at a time")
    target = call["target"]
    if target is None:
        return setup_all(call)
    levelled = dict.fromkeys(LEVELS, tuple(HARNESSES))
    refuse_inapplicable(call.arguments, VERBS["setup"].arguments, levelled, target)
    if target not in TARGETS:
        raise bad_argument(f"{quoted(target)} cannot be set up; there are {', '.join(TARGETS)}")
    return setup_git(call) if target == GIT else setup_harness(call, target)


# git.


def setup_git(call: Call) -> VerbResult:
    from dibs.integrations.install.git import setup_of

    hooks = setup_of(call.place.repository, sys.executable)
    if call["print"]:
        files = dict(hooks.planned())
        return VerbResult(payloads.answer(way=hooks.way, files=files), file=file_texts(files))
    if call["remove"]:
        gone = hooks.remove()
        lines = tuple(f"removed: {path}" for path in gone)
        return VerbResult(payloads.answer(removed=gone), lines or ("no hooks of dibs found",))
    if not call["check"]:
        hooks.install()
        hooks = setup_of(call.place.repository, sys.executable)
    found = hooks.states()
    whole = all(each.state == INSTALLED for each in found)
    rows = [(each.hook, each.state, each.note) for each in found]
    payload = payloads.answer(ok=whole, way=hooks.way, hooks=[each.named() for each in found])
    lines = text.table(rows, ("HOOK", "STATE", "WHERE"))
    return VerbResult(payload, lines, exit=0 if whole else REFUSED)


def git_hooks(call: Call) -> GitHooksSetup | None:
    """The git hooks setup; `None` outside a repository."""
    from dibs.integrations.install.git import GitHooksSetup

    repository = call.place.repository
    return None if repository is None else GitHooksSetup(repository, sys.executable)


# One harness.


def setup_harness(call: Call, name: str) -> VerbResult:
    from dibs.integrations.install.harness import install, remove, setup_of

    manifest = user_manifest()
    found = setup_of(call.place, name, level_of(call), manifest)
    if call["print"]:
        return printed({}, [found])
    if call["remove"]:
        changes = found.planned_removal()
        remove(changes, manifest)
        changed = [change for change in changes if change.changes]
        lines = tuple(map(removed_line, changed))
        notes = tuple(f"{change.path}: {change.note}" for change in changed if change.note)
        payload = payloads.answer(removed=[change.path for change in changed])
        return VerbResult(payload, lines or (f"no hooks of dibs in {found.settings}",), notes)
    if call["check"]:
        return checked(found)
    install(found.planned(), manifest)
    result, trust = checked(found), found.harness.trust
    return result.but(lines=(*result.lines, RESTART, *((trust,) if trust else ())))


def level_of(call: Call) -> str:
    return PROJECT if call["project"] else USER


def user_manifest() -> Manifest:
    from dibs.integrations.install.manifest import Manifest

    return Manifest.of_user(os.environ)


def checked(setup: HarnessSetup) -> VerbResult:
    found = setup.findings()
    whole = all(each.state == INSTALLED for each in found)
    lines = text.table(rows_of(setup, found), ("HARNESS", "PART", "STATE", "WHERE"))
    payload = payloads.answer(ok=whole, parts=[each.named() for each in found])
    warnings = manifest_warnings(setup.manifest, setup.lost_records(found))
    return VerbResult(payload, lines, warnings, exit=0 if whole else REFUSED)


def manifest_warnings(manifest: Manifest, lost: list[str]) -> tuple[str, ...]:
    return (manifest.problem,) if manifest.problem else tuple(lost)


def rows_of(setup: HarnessSetup, found: list[SetupFinding]) -> list[Row]:
    return [(setup.harness.name, each.what, each.state, each.path) for each in found]


def removed_line(change: PlannedChange) -> str:
    return f"{'deleted' if change.after is None else 'removed from'}: {change.path}"


def printed(files: dict[str, str], setups: list[HarnessSetup]) -> VerbResult:
    """Prints the files to write, and snippets to add by hand where a file cannot be edited."""
    by_hand: dict[str, str] = {}
    whys: list[str] = []
    for setup in setups:
        changes, snippets = setup.planned_or_by_hand()
        files = {**files, **{change.path: change.after or "" for change in changes}}
        by_hand |= {one.path: one.text for one in snippets}
        whys += [f"# {one.why}; add by hand:\n{one.text}\n" for one in snippets]
    payload = payloads.answer(files=files, by_hand=by_hand)
    if not files and not whys:
        return VerbResult(payload, ("nothing to write",))
    return VerbResult(payload, file=file_texts(files) + "".join(whys))


def file_texts(files: dict[str, str]) -> str:
    return "".join(f"# {path}\n{content}\n" for path, content in files.items())


# Everything.


def setup_all(call: Call) -> VerbResult:
    """Installs what is missing (with --check nothing) and reports the state of each part."""
    if call["remove"]:
        raise bad_argument(
            "dibs uninstall removes everything; dibs setup TARGET --remove removes one part"
        )
    if call["print"]:
        return printed_all(call)
    changes, manifest = not call["check"], user_manifest()
    rows = [board_row(call, create=changes)]
    found = setups_found(call, manifest)
    notes = install_all(call, found, manifest) if changes else []
    hooks = git_hooks(call)
    rows += [(GIT, each.hook, each.state, each.note) for each in hooks.states()] if hooks else []
    lost: list[str] = []
    for setup in found:
        try:
            parts = setup.findings()
        except Refused as problem:
            rows.append((setup.harness.name, "hooks", str(problem), setup.settings))
        else:
            rows += rows_of(setup, parts)
            lost += setup.lost_records(parts)
    whole = all(state == INSTALLED for _, _, state, _ in rows)
    notes = [RESTART, *notes] if changes and found else notes
    lines = (*text.table(rows, HEAD), *(() if found else (NO_HARNESS,)), *notes)
    parts_found = [dict(zip(("part", "what", "state", "where"), row)) for row in rows]
    payload = payloads.answer(ok=whole, parts=parts_found)
    return VerbResult(
        payload, lines, manifest_warnings(manifest, lost), exit=0 if whole else REFUSED
    )


def install_all(call: Call, setups: list[HarnessSetup], manifest: Manifest) -> list[str]:
    """Installs all hooks in one batch; returns what a person must still do.

    Skips files that cannot be edited.
    """
    from dibs.integrations.install.file_changes import FileChanges
    from dibs.integrations.install.harness import stage_install

    hooks, changes, notes = git_hooks(call), [], []
    for setup in setups:
        try:
            changes += setup.planned()
        except Refused:
            continue  # its findings give the reason
        notes += [setup.harness.trust] if setup.harness.trust else []
    with FileChanges() as files:
        if hooks is not None:
            hooks.stage(files)
        stage_install(changes, manifest, files)
    return notes


def printed_all(call: Call) -> VerbResult:
    """Prints every file that would be written, and where a board would be created."""
    _, _, state, where = board_row(call, create=False)
    hooks = git_hooks(call)
    files = {} if state == INSTALLED else {where: "a board would be created here"}
    files |= {} if hooks is None else dict(hooks.planned())
    return printed(files, setups_found(call, user_manifest()))


def setups_found(call: Call, manifest: Manifest) -> list[HarnessSetup]:
    """The setups of all harnesses found on this machine."""
    from dibs.integrations.install.harness import is_found, setup_of

    found = [name for name, each in HARNESSES.items() if is_found(each, os.environ)]
    return [setup_of(call.place, name, level_of(call), manifest) for name in found]


def board_row(call: Call, *, create: bool) -> Row:
    from dibs.opening import create_at

    state, where = board_state(call)
    if create and state == MISSING and not call.place.server:
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


VERBS = {
    "setup": Verb(
        setup,
        (
            argument(
                "target",
                nargs="?",
                metavar="TARGET",
                help=f"{', '.join(TARGETS)}; default: a board, git and every harness found",
            ),
            argument("--user", action="store_true", help="for all your projects (the default)"),
            argument("--project", action="store_true", help="for this project, with instructions"),
            argument(
                "--check",
                action="store_true",
                help="change nothing: exit 1 if something is missing",
            ),
            argument("--remove", action="store_true", help="remove what was set up"),
            argument("--print", action="store_true", help="only print what would be written"),
        ),
    ),
}
