"""`dibs setup claude|codex|gemini|cursor`: the hooks of one harness."""

from __future__ import annotations

import os
import sys

from dibs.cli import text as say
from dibs.cli.call import Call, VerbResult
from dibs.domain.refusals import bad_argument
from dibs.harnesses import HARNESSES
from dibs.integrations.harness.install import INSTALLED, PROJECT, USER, HarnessSetup, apply
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.integrations.harness.install import PlannedChange, SetupFinding

RESTART = "sessions that run already know nothing of it: start new ones"


def one(call: Call, name: str) -> VerbResult:
    setup = setup_of(call, name, PROJECT if call["project"] else USER)
    if call["print"]:
        return printed(setup)
    if call["remove"]:
        return removed(setup)
    if call["check"]:
        return check_result(setup)
    apply(setup.planned())
    told = check_result(setup)
    trust = setup.harness.trust
    return told.but(lines=(*told.lines, RESTART, *((trust,) if trust else ())))


def setup_of(call: Call, name: str, level: str) -> HarnessSetup:
    repository = call.place.repository
    root = repository.worktree if repository is not None else ""
    if level == PROJECT and not root:
        raise bad_argument("--project needs a git repository around the current directory")
    return HarnessSetup(HARNESSES[name], level, home(), root, installed(), board_folder(call))


def home() -> str:
    where = os.path.expanduser("~")
    if not os.path.isabs(where):
        raise bad_argument("nobody knows where your home is: set HOME")
    return where


def installed() -> str:
    """The absolute path of the dibs command: hooks need no PATH lookup, and run no shim in front of it."""
    beside = os.path.join(os.path.dirname(sys.executable), "dibs")
    return beside if os.path.exists(beside) else os.path.abspath(sys.argv[0])


def board_folder(call: Call) -> str:
    """The folder of a file board that exists; else ""."""
    place = call.place
    is_file = not place.server and os.path.exists(os.path.join(place.folder, "board.db"))
    return place.folder if is_file else ""


def printed(setup: HarnessSetup) -> VerbResult:
    return shown({}, [setup])


def shown(files: dict[str, str], setups: list[HarnessSetup]) -> VerbResult:
    """Prints the files to write, and snippets to add by hand where a file cannot be edited."""
    by_hand: dict[str, str] = {}
    whys: list[str] = []
    for setup in setups:
        changes, pieces = setup.shown()
        files = {**files, **{change.path: change.after or "" for change in changes}}
        by_hand |= {piece.path: piece.text for piece in pieces}
        whys += [f"# {piece.why}; to put in by hand:\n{piece.text}\n" for piece in pieces]
    payload = payloads.answer(files=files, by_hand=by_hand)
    text = "".join(f"# {path}\n{content}\n" for path, content in files.items())
    if not files and not whys:
        return VerbResult(payload, ("nothing is to be written",))
    return VerbResult(payload, file=text + "".join(whys))


def removed(setup: HarnessSetup) -> VerbResult:
    changes = setup.planned_removal()
    apply(changes)
    lines = tuple(line_of(change) for change in changes)
    told = [change.path for change in changes]
    return VerbResult(payloads.answer(removed=told), lines or (nothing_in(setup),))


def nothing_in(setup: HarnessSetup) -> str:
    return f"nothing of dibs is in {setup.settings}"


def line_of(change: PlannedChange) -> str:
    return f"{'gone' if change.after is None else 'taken out'}: {change.path}"


def check_result(setup: HarnessSetup) -> VerbResult:
    found = setup.findings()
    whole = all(each.state == INSTALLED for each in found)
    lines = say.table(rows_of(setup, found), ("HARNESS", "PART", "STATE", "WHERE"))
    payload = payloads.answer(ok=whole, parts=[each.named() for each in found])
    return VerbResult(payload, lines, exit=0 if whole else REFUSED)


def rows_of(setup: HarnessSetup, found: list[SetupFinding]) -> list[tuple[str, str, str, str]]:
    return [(setup.harness.name, each.what, each.state, each.path) for each in found]
