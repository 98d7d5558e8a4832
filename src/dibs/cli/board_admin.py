"""`dibs board`: list, move, back up and restore whole boards, and grant access to them."""

from __future__ import annotations

from dibs.board import server_boards
from dibs.board.transfer import move as moving
from dibs.cli.arguments import argument, refuse_inapplicable
from dibs.cli.call import REASON, Call, Verb, VerbResult
from dibs.cli.output import text
from dibs.cli.output.progress import bar
from dibs.cli.output.text import count
from dibs.domain import checks
from dibs.domain.instants import SECOND, rough_duration
from dibs.domain.refusals import bad_argument
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def board(call: Call) -> VerbResult:
    action = ACTIONS.get(call["action"])
    if action is None:
        known = ", ".join(ACTIONS)
        raise bad_argument(f"{checks.quoted(call['action'])}: say one of {known}")
    refuse_inapplicable(call.arguments, VERBS["board"].arguments, HOMES, f"board {call['action']}")
    return action(call)


def list_boards(call: Call) -> VerbResult:
    nothing_more(call)
    found = server_boards.all_boards(call.board_or_none())
    rows = [(b.name, b.uid, str(b.tasks), str(b.events), b.state) for b in found]
    told = [each.named() for each in found]
    head = ("NAME", "BOARD", "TASKS", "EVENTS", "")
    return VerbResult(payloads.answer(boards=told), text.table(rows, head))


def move(call: Call) -> VerbResult:
    if not call["to"]:
        raise bad_argument("dibs board move --to postgresql://host/database#board, or a folder")
    nothing_more(call)
    dry = bool(call["check"])
    moved = moving.move(call.board, call["to"], call.who(), bar("rows"), dry=dry)
    carried = ", ".join(
        (count(moved.tasks, "task"), count(moved.events, "event"), count(moved.rows, "row"))
    )
    role = f"everybody follows as {moved.role}, which the address names: leave it out if others have a role of their own"
    told = (role,) if moved.role else ()
    if dry:
        line = f"the board can be moved from {moved.source} to {moved.target}: {carried}"
        if moved.source == moved.target:
            line = f"the board is in {moved.target} already"
        return VerbResult(payloads.answer(moved=False, **moved.named()), (line, *told))
    done = f"the board is in {moved.target} now" + (f": {carried}" if moved.rows else "")
    off = f"lease times moved by {rough_duration(moved.shifted)}, as the clocks differ"
    lines = (done, off) if abs(moved.shifted) >= SECOND else (done,)
    return VerbResult(payloads.answer(moved=True, **moved.named()), (*lines, *told))


def backup(call: Call) -> VerbResult:
    if not call["what"]:
        raise bad_argument("dibs board backup FILE: to which file?")
    saved = moving.backup(call.board, call["what"], bar("rows"))
    line = (
        f"saved {count(saved.tasks, 'task')} and {count(saved.events, 'event')} to {saved.target}"
    )
    return VerbResult(payloads.answer(file=saved.target, **saved.named()), (line,))


def restore(call: Call) -> VerbResult:
    if bool(call["what"]) == bool(call["in_place"]):
        raise bad_argument("dibs board restore FILE, or dibs board restore --in-place")
    call.refuse_request_id()
    if call["in_place"]:
        done = moving.restore_in_place(call.board, call.who(), call.reason)
        line = f"every lease has ended; tokens begin with {done.epoch} from now on"
    else:
        done = moving.restore(
            call.board_or_none(), call["what"], call.who(), call.reason, bar("rows")
        )
        line = f"{done.target} is as it was in {done.source}; every lease has ended, and tokens begin with {done.epoch}"
    return VerbResult(payloads.answer(**done.named()), (line,))


def grant(call: Call) -> VerbResult:
    if not call["what"]:
        raise bad_argument("dibs board grant ROLE: to whom?")
    server_boards.grant(call.board, call["what"])
    line = f"{call['what']} may use the boards of this database; it cannot change the ledger or the schema"
    return VerbResult(payloads.answer(role=call["what"]), (line,))


def nothing_more(call: Call) -> None:
    if call["what"] is not None:
        what = checks.quoted(call["what"])
        raise bad_argument(f"{what}: dibs board {call['action']} goes with nothing else")


HOMES: dict[str, tuple[str, ...]] = {
    "to": ("board move",),
    "check": ("board move",),
    "in_place": ("board restore",),
    "reason": ("board restore",),
}
"""The action that each option goes with."""

ACTIONS: dict[str, Callable[[Call], VerbResult]] = {
    "list": list_boards,
    "move": move,
    "backup": backup,
    "restore": restore,
    "grant": grant,
}

VERBS = {
    "board": Verb(
        board,
        (
            argument("action", metavar="|".join(ACTIONS), help="what to do"),
            argument("what", nargs="?", metavar="FILE|ROLE", help="the file, or the role"),
            argument("--to", metavar="ADDRESS", help="where to move: an address, or a folder"),
            argument("--check", action="store_true", help="only say whether it can be moved"),
            argument(
                "--in-place",
                action="store_true",
                help="the server itself was restored: end every lease",
            ),
            REASON,
        ),
    ),
}
