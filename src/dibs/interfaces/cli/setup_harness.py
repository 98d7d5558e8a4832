"""`dibs setup claude` and its kin: the hooks of a harness."""

from __future__ import annotations

import os
import sys

from dibs.core.refusals import bad_argument
from dibs.harness.install import INSTALLED, PROJECT, USER, Setup, apply
from dibs.harness.table import HARNESSES
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.call import Answer, Call
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.harness.install import Change, Finding

RESTART = "sessions that run already know nothing of it: start new ones"


def one(call: Call, name: str) -> Answer:
    setup = setup_of(call, name, PROJECT if call["project"] else USER)
    if call["print"]:
        return printed(setup)
    if call["remove"]:
        return removed(setup)
    if call["check"]:
        return looked_at(setup)
    apply(setup.planned())
    told = looked_at(setup)
    trust = setup.harness.trust
    return told.but(lines=(*told.lines, RESTART, *((trust,) if trust else ())))


def setup_of(call: Call, name: str, level: str) -> Setup:
    repository = call.place.repository
    root = repository.worktree if repository is not None else ""
    if level == PROJECT and not root:
        raise bad_argument("--project needs a git repository around the current directory")
    return Setup(HARNESSES[name], level, home(), root, installed(), board_folder(call))


def home() -> str:
    where = os.path.expanduser("~")
    if not os.path.isabs(where):
        raise bad_argument("nobody knows where your home is: set HOME")
    return where


def installed() -> str:
    """The command by its whole path: no search, and no shim in front of it."""
    beside = os.path.join(os.path.dirname(sys.executable), "dibs")
    return beside if os.path.exists(beside) else os.path.abspath(sys.argv[0])


def board_folder(call: Call) -> str:
    """The folder of the board, if it is there and a file."""
    place = call.place
    is_file = not place.server and os.path.exists(os.path.join(place.folder, "board.db"))
    return place.folder if is_file else ""


def printed(setup: Setup) -> Answer:
    return shown({}, [setup])


def shown(files: dict[str, str], setups: list[Setup]) -> Answer:
    """What would be written, whole; and what is to be put in by hand, where a file cannot be changed."""
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
        return Answer(payload, ("nothing is to be written",))
    return Answer(payload, file=text + "".join(whys))


def removed(setup: Setup) -> Answer:
    changes = setup.unplanned()
    apply(changes)
    lines = tuple(line_of(change) for change in changes)
    told = [change.path for change in changes]
    return Answer(payloads.answer(removed=told), lines or (nothing_in(setup),))


def nothing_in(setup: Setup) -> str:
    return f"nothing of dibs is in {setup.settings}"


def line_of(change: Change) -> str:
    return f"{'gone' if change.after is None else 'taken out'}: {change.path}"


def looked_at(setup: Setup) -> Answer:
    found = setup.findings()
    whole = all(each.state == INSTALLED for each in found)
    lines = say.table(rows_of(setup, found), ("HARNESS", "PART", "STATE", "WHERE"))
    payload = payloads.answer(ok=whole, parts=[each.named() for each in found])
    return Answer(payload, lines, exit=0 if whole else REFUSED)


def rows_of(setup: Setup, found: list[Finding]) -> list[tuple[str, str, str, str]]:
    return [(setup.harness.name, each.what, each.state, each.path) for each in found]
