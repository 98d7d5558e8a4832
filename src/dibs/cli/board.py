"""Verbs about the board itself: init, actor, doctor."""

from __future__ import annotations

from dibs.board import queries
from dibs.cli.arguments import argument
from dibs.cli.call import REASON, Call, Verb, VerbResult
from dibs.cli.output import text
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.instants import iso
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


CHANGES = ("kind", "tier", "capability", "zone", "alias", "no_alias", "rename")


def init(call: Call) -> VerbResult:
    from dibs.opening import create_at

    if not call["new"]:
        check_not_lost(call)
    board, made = create_at(call.place)
    call.adopt(board)
    uid = queries.uid(board)
    done = "made" if made else "there already"
    where = board.store.where
    lines: tuple[str, ...] = (f"the board is {done}: {where}", f"board id {uid}")
    if board.backlog is not None:
        lines += ("there are backlog files here: dibs sync takes them in",)
    return VerbResult(payloads.answer(board=uid, folder=where, created=made), lines)


def check_not_lost(call: Call) -> None:
    """Refuses to replace a lost board silently, if item files still name it."""
    from dibs.opening import kept_uid

    uid = kept_uid(call.place)
    if uid:
        what = f"the board {uid} was here, and its database is gone; item files remember it"
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
    raise bad_argument(f"{checks.quoted(call['action'])}: say list, or set NAME")


def actor_list(call: Call) -> VerbResult:
    if any(call[name] is not None for name in ("name", *CHANGES)):
        raise bad_argument("dibs actor list shows everybody: it goes with nothing else")
    everybody, aliases = queries.actors(call.board)
    rows = [
        (a.name, a.kind, str(a.tier), ",".join(a.capabilities), a.zone, ",".join(aliases[a.id]))
        for a in everybody
    ]
    head = ("NAME", "KIND", "TIER", "CAPABILITIES", "ZONE", "ALIASES")
    told = [payloads.actor(a, aliases[a.id]) for a in everybody]
    return VerbResult(
        payloads.answer(actors=told), text.table(rows, head) if rows else ("nobody yet",)
    )


def actor_set(call: Call) -> VerbResult:
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
    aliases = queries.aliases(call.board, changed)
    also = f", also {', '.join(aliases)}" if aliases else ""
    skills = f", {', '.join(changed.capabilities)}" if changed.capabilities else ""
    line = f"{changed.name}: {changed.kind}, tier {changed.tier}{skills}, {changed.zone}{also}"
    return call.render_with(outcome, (line,), actor=payloads.actor(changed, aliases))


def zone(name: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise bad_argument(
            f"{checks.quoted(name)} is no time zone; one looks like Europe/Berlin"
        ) from None
    return name


def doctor(call: Call) -> VerbResult:
    if call["set_clock"]:
        return set_clock(call)
    if call["reason"]:
        raise bad_argument("--reason goes with --set-clock")
    found = of_board(call) + of_git(call) + of_harnesses(call)
    wrong = [finding for finding in found if finding.level == "wrong"]
    lines = text.table([(f.level, f.what, f.found) for f in found], ("", "WHAT", "FOUND"))
    told = [{"what": f.what, "found": f.found, "level": f.level} for f in found]
    return VerbResult(
        payloads.answer(ok=not wrong, findings=told), lines, exit=REFUSED if wrong else 0
    )


def of_board(call: Call) -> list[Any]:
    """Findings about the board and its files. An unreachable server is a finding, not an error."""
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
    outcome = call.execute(c.SetClock(reason=call.reason))
    now = iso(outcome.now)
    line = f"the board's clock is set to {now}; running leases moved with it"
    return call.render_with(outcome, (line,), now=now, event=outcome.entries[0].seq)


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
