"""The board verbs: init, actor, doctor, board."""

from __future__ import annotations

from dibs.board import queries, server_boards
from dibs.board.command_builder import build
from dibs.board.transfer import move as moving
from dibs.cli import text
from dibs.cli.call import REASON, Call, Verb, VerbResult, argument, refuse_inapplicable
from dibs.cli.text import count, progress_bar
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import SECOND, iso, rough_duration
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


CHANGES = ("kind", "tier", "capability", "zone", "alias", "no_alias", "rename")


def init(call: Call) -> VerbResult:
    from dibs.opening import create_at

    if not call["new"]:
        check_not_lost(call)
    board, made = create_at(call.place)
    call.adopt(board)
    uid = queries.uid(board)
    done = "was created" if made else "already exists"
    where = board.store.where
    lines: tuple[str, ...] = (f"the board {done}: {where}", f"board id {uid}")
    if board.backlog is not None:
        lines += ("this repository has backlog files: import them with dibs sync",)
    return VerbResult(payloads.answer(board=uid, folder=where, created=made), lines)


def check_not_lost(call: Call) -> None:
    """Refuses to replace a lost board silently, if item files still name it."""
    from dibs.opening import kept_uid

    uid = kept_uid(call.place)
    if uid:
        what = f"the board {uid} was here, but its database is gone; item files still refer to it"
        raise refused("board_lost", what, board=uid)
    from dibs.opening import backlog_here, has_database

    backlog = None if has_database(call.place) else backlog_here(call.place)
    if backlog is not None:
        from dibs.cli.files import check_not_elsewhere

        check_not_elsewhere(backlog)


def actor(call: Call) -> VerbResult:
    if call["action"] == "list":
        return actor_list(call)
    if call["action"] == "set":
        return actor_set(call)
    raise bad_argument(f"{checks.quoted(call['action'])}: use list, or set NAME")


def actor_list(call: Call) -> VerbResult:
    if any(call[name] is not None for name in ("name", *CHANGES)):
        raise bad_argument("dibs actor list takes no other arguments")
    everybody, aliases = queries.actors(call.board)
    rows = [
        (a.name, a.kind, str(a.tier), ",".join(a.capabilities), a.zone, ",".join(aliases[a.id]))
        for a in everybody
    ]
    head = ("NAME", "KIND", "TIER", "CAPABILITIES", "ZONE", "ALIASES")
    listed = [payloads.actor(a, aliases[a.id]) for a in everybody]
    return VerbResult(
        payloads.answer(actors=listed), text.table(rows, head) if rows else ("nobody yet",)
    )


def actor_set(call: Call) -> VerbResult:
    if call["name"] is None:
        raise bad_argument("dibs actor set needs NAME")
    zone, capabilities = call["zone"], call["capability"]
    if zone is not None:
        from dibs.timesheets import zones

        zones.zone(zone)
    if capabilities is not None:
        capabilities = [name for name in capabilities if name]
    command = build(
        c.SetActor,
        actor=call["name"],
        name=call["rename"],
        kind=call["kind"],
        tier=call["tier"],
        capabilities=capabilities,
        zone=zone,
        add_aliases=call["alias"] or (),
        remove_aliases=call["no_alias"] or (),
    )
    outcome = call.execute(command)
    assert outcome.actor is not None, "an actor was set"
    changed = outcome.actor
    aliases = queries.aliases(call.board, changed)
    also = f", also {', '.join(aliases)}" if aliases else ""
    skills = f", {', '.join(changed.capabilities)}" if changed.capabilities else ""
    line = f"{changed.name}: {changed.kind}, tier {changed.tier}{skills}, {changed.zone}{also}"
    return call.render_with(outcome, (line,), actor=payloads.actor(changed, aliases))


def doctor(call: Call) -> VerbResult:
    if call["set_clock"]:
        return set_clock(call)
    if call["reason"]:
        raise bad_argument("--reason requires --set-clock")
    found = of_board(call) + of_git(call) + of_harnesses(call)
    wrong = [finding for finding in found if finding.level == "wrong"]
    lines = text.table([(f.level, f.what, f.found) for f in found], ("", "WHAT", "FOUND"))
    listed = [{"what": f.what, "found": f.found, "level": f.level} for f in found]
    return VerbResult(
        payloads.answer(ok=not wrong, findings=listed), lines, exit=REFUSED if wrong else 0
    )


def of_board(call: Call) -> list[Any]:
    """Findings about the board and its files. An unreachable server is a finding, not an error."""
    from dibs.board.verify import findings, of_server, of_settings
    from dibs.opening import wrong_in_committed

    try:
        found = findings(call.board)
    except Refused as problem:
        server = of_server(problem.refusal)
        if server is None:
            raise
        return [server]
    if call.ignored:
        found.append(of_settings(call.ignored))
    not_followed = wrong_in_committed(call.place, call.board.settings)
    if not_followed:
        from dibs.backlogs.doctor import committed

        found += committed(not_followed)
    if call.board.backlog is not None:
        from dibs.backlogs.doctor import findings as of_files

        found += of_files(call.board)
    return found


def of_git(call: Call) -> list[Any]:
    """Findings about the git hooks of this repository."""
    import sys

    from dibs.integrations.install.git import doctor_findings

    return doctor_findings(call.place.repository, sys.executable)


def of_harnesses(call: Call) -> list[Any]:
    """Findings about harness setups on this machine and in this repository."""
    import os

    from dibs.integrations.install.harness import doctor_findings

    return doctor_findings(call.place, os.environ)


def set_clock(call: Call) -> VerbResult:
    outcome = call.execute(call.build(c.SetClock))
    now = iso(outcome.now)
    line = f"the board's clock is set to {now}; live leases moved with it"
    return call.render_with(outcome, (line,), now=now, event=outcome.entries[0].seq)


# board: lists, moves, backs up and restores whole boards, and grants access to them.


def board(call: Call) -> VerbResult:
    action = ACTIONS.get(call["action"])
    if action is None:
        known = ", ".join(ACTIONS)
        raise bad_argument(f"{checks.quoted(call['action'])}: use one of {known}")
    refuse_inapplicable(call.arguments, VERBS["board"].arguments, HOMES, f"board {call['action']}")
    return action(call)


def list_boards(call: Call) -> VerbResult:
    nothing_more(call)
    found = server_boards.all_boards(call.board_or_none())
    rows = [(b.name, b.uid, str(b.tasks), str(b.events), b.state) for b in found]
    listed = [each.named() for each in found]
    head = ("NAME", "BOARD", "TASKS", "EVENTS", "")
    return VerbResult(payloads.answer(boards=listed), text.table(rows, head))


def move(call: Call) -> VerbResult:
    if not call["to"]:
        raise bad_argument(
            "dibs board move needs --to postgresql://host/database#board, or a folder"
        )
    nothing_more(call)
    dry = bool(call["check"])
    moved = moving.move(call.board, call["to"], call.who(), progress_bar("rows"), dry=dry)
    carried = ", ".join(
        (count(moved.tasks, "task"), count(moved.events, "event"), count(moved.rows, "row"))
    )
    role = f"all clients will connect as {moved.role}, the role in the address: leave it out if others use their own role"
    hint = (role,) if moved.role else ()
    if dry:
        line = f"the board can be moved from {moved.source} to {moved.target}: {carried}"
        if moved.source == moved.target:
            line = f"the board is already in {moved.target}"
        return VerbResult(payloads.answer(moved=False, **moved.named()), (line, *hint))
    done = f"the board was moved to {moved.target}" + (f": {carried}" if moved.rows else "")
    off = f"lease times shifted by {rough_duration(moved.shifted)}: the clocks differ"
    lines = (done, off) if abs(moved.shifted) >= SECOND else (done,)
    return VerbResult(payloads.answer(moved=True, **moved.named()), (*lines, *hint))


def backup(call: Call) -> VerbResult:
    if not call["what"]:
        raise bad_argument("dibs board backup needs FILE")
    saved = moving.backup(call.board, call["what"], progress_bar("rows"))
    line = (
        f"saved {count(saved.tasks, 'task')} and {count(saved.events, 'event')} to {saved.target}"
    )
    return VerbResult(payloads.answer(file=saved.target, **saved.named()), (line,))


def restore(call: Call) -> VerbResult:
    if bool(call["what"]) == bool(call["in_place"]):
        raise bad_argument("use dibs board restore FILE, or dibs board restore --in-place")
    call.refuse_request_id()
    if call["in_place"]:
        done = moving.restore_in_place(call.board, call.who(), call.reason)
        line = f"every lease has ended; new tokens start with {done.epoch}"
    else:
        done = moving.restore(
            call.board_or_none(), call["what"], call.who(), call.reason, progress_bar("rows")
        )
        line = f"{done.target} is restored from {done.source}; every lease has ended, and new tokens start with {done.epoch}"
    return VerbResult(payloads.answer(**done.named()), (line,))


def grant(call: Call) -> VerbResult:
    if not call["what"]:
        raise bad_argument("dibs board grant needs ROLE")
    server_boards.grant(call.board, call["what"])
    line = f"{call['what']} may use the boards of this database; it cannot change the ledger or the schema"
    return VerbResult(payloads.answer(role=call["what"]), (line,))


def nothing_more(call: Call) -> None:
    if call["what"] is not None:
        what = checks.quoted(call["what"])
        raise bad_argument(f"{what}: dibs board {call['action']} takes no more arguments")


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
    "init": Verb(
        init,
        (
            argument(
                "--new",
                action="store_true",
                help="create a board although item files refer to another one",
            ),
        ),
    ),
    "actor": Verb(
        actor,
        (
            argument("action", metavar="list|set", help="list all actors, or change one"),
            argument("name", nargs="?", metavar="NAME", help="the actor to change"),
            argument("--kind", metavar="KIND", help="human, agent or service"),
            argument("--tier", metavar="N", help="0 to 9; a task may require one"),
            argument(
                "--capability",
                action="append",
                metavar="NAME",
                help="all of its capabilities; may be repeated; '' for none",
            ),
            argument("--zone", metavar="ZONE", help="its time zone, like Europe/Berlin"),
            argument(
                "--alias", action="append", metavar="NAME", help="add an alias; may be repeated"
            ),
            argument(
                "--no-alias",
                action="append",
                metavar="NAME",
                help="remove an alias; may be repeated",
            ),
            argument("--rename", metavar="NAME", help="a new name; the old one stays an alias"),
        ),
    ),
    "doctor": Verb(
        doctor,
        (
            argument(
                "--set-clock", action="store_true", help="trust this machine's clock: people only"
            ),
            REASON,
        ),
    ),
    "board": Verb(
        board,
        (
            argument("action", metavar="|".join(ACTIONS), help="what to do"),
            argument("what", nargs="?", metavar="FILE|ROLE", help="the file, or the role"),
            argument("--to", metavar="ADDRESS", help="the new place: an address, or a folder"),
            argument("--check", action="store_true", help="only check whether it can be moved"),
            argument(
                "--in-place",
                action="store_true",
                help="the server was restored: end every lease",
            ),
            REASON,
        ),
    ),
}
