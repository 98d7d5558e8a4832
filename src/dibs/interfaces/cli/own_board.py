"""The verbs about the board itself: init, actor, doctor."""

from __future__ import annotations

from dibs.board import views
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.instants import iso
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, Verb
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


CHANGES = ("kind", "tier", "capability", "zone", "alias", "no_alias", "rename")


def init(call: Call) -> Answer:
    from dibs.opening import create_at

    if not call["new"]:
        check_not_lost(call)
    board, made = create_at(call.place)
    call.adopt(board)
    uid = views.uid(board)
    done = "made" if made else "there already"
    where = board.store.where
    lines: tuple[str, ...] = (f"the board is {done}: {where}", f"board id {uid}")
    if board.backlog is not None:
        lines += ("there are backlog files here: dibs sync takes them in",)
    return Answer(payloads.answer(board=uid, folder=where, created=made), lines)


def check_not_lost(call: Call) -> None:
    """A board whose item files remember it is not replaced by another one in silence."""
    from dibs.opening import kept_uid

    uid = kept_uid(call.place)
    if uid:
        what = f"the board {uid} was here, and its database is gone; item files remember it"
        raise refused("board_lost", what, board=uid)
    from dibs.opening import backlog_here, is_here

    backlog = None if is_here(call.place) else backlog_here(call.place)
    if backlog is not None:
        from dibs.interfaces.cli.files import check_not_elsewhere

        check_not_elsewhere(backlog)


def actor(call: Call) -> Answer:
    if call["action"] == "list":
        return actor_list(call)
    if call["action"] == "set":
        return actor_set(call)
    raise bad_argument(f"{checks.quoted(call['action'])}: say list, or set NAME")


def actor_list(call: Call) -> Answer:
    if any(call[name] is not None for name in ("name", *CHANGES)):
        raise bad_argument("dibs actor list shows everybody: it goes with nothing else")
    everybody, aliases = views.actors(call.board)
    rows = [
        (a.name, a.kind, str(a.tier), ",".join(a.capabilities), a.zone, ",".join(aliases[a.id]))
        for a in everybody
    ]
    head = ("NAME", "KIND", "TIER", "CAPABILITIES", "ZONE", "ALIASES")
    told = [payloads.actor(a, aliases[a.id]) for a in everybody]
    return Answer(payloads.answer(actors=told), say.table(rows, head) if rows else ("nobody yet",))


def actor_set(call: Call) -> Answer:
    if call["name"] is None:
        raise bad_argument("dibs actor set NAME: who?")
    capabilities = call["capability"]
    if capabilities is not None:
        capabilities = checks.capabilities(tuple(name for name in capabilities if name))
    command = c.SetActor(
        actor=checks.actor_name(call["name"]),
        name=None if call["rename"] is None else checks.actor_name(call["rename"]),
        kind=None if call["kind"] is None else checks.kind(call["kind"]),
        tier=None if call["tier"] is None else checks.tier(call["tier"]),
        capabilities=capabilities,
        zone=None if call["zone"] is None else zone(call["zone"]),
        add_aliases=tuple(checks.actor_name(name) for name in call["alias"] or ()),
        remove_aliases=tuple(checks.actor_name(name) for name in call["no_alias"] or ()),
    )
    outcome = call.execute(command)
    assert outcome.actor is not None, "an actor was set"
    changed = outcome.actor
    aliases = views.aliases(call.board, changed)
    also = f", also {', '.join(aliases)}" if aliases else ""
    skills = f", {', '.join(changed.capabilities)}" if changed.capabilities else ""
    line = f"{changed.name}: {changed.kind}, tier {changed.tier}{skills}, {changed.zone}{also}"
    return call.told_beside(outcome, (line,), actor=payloads.actor(changed, aliases))


def zone(name: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise bad_argument(
            f"{checks.quoted(name)} is no time zone; one looks like Europe/Berlin"
        ) from None
    return name


def doctor(call: Call) -> Answer:
    if call["set_clock"]:
        return set_clock(call)
    if call["reason"]:
        raise bad_argument("--reason goes with --set-clock")
    found = of_board(call) + of_git(call) + of_harnesses(call)
    wrong = [finding for finding in found if finding.level == "wrong"]
    lines = say.table([(f.level, f.what, f.found) for f in found], ("", "WHAT", "FOUND"))
    told = [{"what": f.what, "found": f.found, "level": f.level} for f in found]
    return Answer(payloads.answer(ok=not wrong, findings=told), lines, exit=REFUSED if wrong else 0)


def of_board(call: Call) -> list[Any]:
    """How the board is, and its files. A server that cannot be asked is a finding."""
    from dibs.board.doctor import findings, of_server, of_settings
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
        from dibs.backlogs.checkup import committed

        found += committed(not_followed)
    if call.board.backlog is not None:
        from dibs.backlogs.checkup import findings as of_files

        found += of_files(call.board)
    return found


def of_git(call: Call) -> list[Any]:
    """The hooks of this repository."""
    import sys

    from dibs.git.checkup import findings

    return findings(call.place.repository, sys.executable)


def of_harnesses(call: Call) -> list[Any]:
    """What is set up for agents on this machine and in this repository."""
    import os

    from dibs.harness.checkup import findings
    from dibs.interfaces.cli.setup_harness import board_folder, home, installed

    repository = call.place.repository
    root = repository.worktree if repository is not None else ""
    return findings(home(), root, installed(), board_folder(call), os.environ)


def set_clock(call: Call) -> Answer:
    outcome = call.execute(c.SetClock(reason=call.reason))
    now = iso(outcome.now)
    line = f"the board's clock is set to {now}; running leases moved with it"
    return call.told_beside(outcome, (line,), now=now, event=outcome.entries[0].seq)


VERBS = {
    "init": Verb(
        init,
        (
            argument(
                "--new",
                action="store_true",
                help="make one, though item files name another board that is not here",
            ),
        ),
    ),
    "actor": Verb(
        actor,
        (
            argument("action", metavar="list|set", help="list everybody, or set one actor"),
            argument("name", nargs="?", metavar="NAME", help="whom to set"),
            argument("--kind", metavar="KIND", help="human, agent or service"),
            argument("--tier", metavar="N", help="0 to 9; a task may ask for one"),
            argument(
                "--capability",
                action="append",
                metavar="NAME",
                help="all of its capabilities; may be repeated; '' for none",
            ),
            argument("--zone", metavar="ZONE", help="its time zone, like Europe/Berlin"),
            argument("--alias", action="append", metavar="NAME", help="one more name for it"),
            argument("--no-alias", action="append", metavar="NAME", help="one name less"),
            argument("--rename", metavar="NAME", help="a new name; the old one stays an alias"),
        ),
    ),
    "doctor": Verb(
        doctor,
        (
            argument(
                "--set-clock", action="store_true", help="believe this machine's clock: people only"
            ),
            REASON,
        ),
    ),
}
