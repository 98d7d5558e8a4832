"""The verbs about the board itself: init, config, actor, doctor."""

from __future__ import annotations

from dibs.board import views
from dibs.board.settings import Settings
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.instants import iso
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.interfaces import payloads
from dibs.interfaces.cli import say
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, Verb
from dibs.interfaces.surfaces import REFUSED, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


DEFAULTS = Settings().named()
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
    from dibs.board.settings import load
    from dibs.opening import backlog_at, is_here

    backlog = None if is_here(call.place) else backlog_at(call.place, load(call.place.folder))
    if backlog is not None:
        from dibs.interfaces.cli.files import check_not_elsewhere

        check_not_elsewhere(backlog)


def config(call: Call) -> Answer:
    if call["load"] is not None:
        return load_config(call)
    from dibs.board import settings
    from dibs.opening import wrong_in_committed

    path = f"{call.place.folder}/{settings.FILE}"
    stated: dict[str, Any] = {}
    problems: list[Refused] = []
    try:
        stated, problems = settings.checked(call.place.folder)
    except Refused as unreadable:
        problems = [unreadable]
    wrong = tuple(problem.refusal.message for problem in problems)
    values = settings.Settings(**stated)
    source, hint = "settings", f"to change one, write it to {path}"
    if is_on_a_server(call):
        from dibs.opening import settings_now

        values, source = settings_now(call.place, call.board), "board"
        stated = {name: value for name, value in values.named().items() if value != DEFAULTS[name]}
        hint = "to change them, write all of them to a file: dibs config --load FILE"
    implied: dict[str, str] = {}
    if wants_names(call, values):
        values, implied = values.but(identity=settings.STRICT), {"identity": "kano backlog"}
    rows = [
        (name, value, source if is_stated else implied.get(name, "default"), means)
        for name, value, is_stated, means in each_setting(values, stated)
    ]
    rows += area_rows(call, values, source)
    told = {name: {"value": value, "source": where} for name, value, where, _ in rows}
    lines = (*say.table(rows, ("SETTING", "VALUE", "FROM", "MEANS")), hint)
    payload = payloads.answer(settings=told, file=path, wrong=list(wrong))
    not_followed = tuple(wrong_in_committed(call.place, values))
    return Answer(payload, lines, wrong + not_followed, exit=USAGE if wrong else 0)


def wants_names(call: Call, values: Settings) -> bool:
    """Whether item files ask that everybody says who they are, where no setting decides."""
    from dibs.opening import backlog_at

    backlog = None if values.identity else backlog_at(call.place, values)
    return backlog is not None and backlog.is_strict


def each_setting(values: Settings, stated: dict[str, Any]) -> Iterator[tuple[str, str, bool, str]]:
    """Its name, its value, whether it is stated, and what it means."""
    from dibs.board import settings

    for name, setting in settings.SETTINGS.items():
        field = settings.field_of(name)
        yield name, setting.show(getattr(values, field)), field in stated, setting.means
    if values.agents:
        from dibs.board.agents import rows

        yield from rows(values.agents)


def area_rows(call: Call, values: Settings, source: str) -> list[tuple[str, str, str, str]]:
    """What each area stands for, and where that is said: the board's own settings come first."""
    from dibs.opening import COMMITTED, committed_areas

    committed, _ = committed_areas(call.place, values)
    areas = {name: (globs, COMMITTED) for name, globs in committed.items()}
    areas |= {name: (globs, source) for name, globs in values.areas.items()}
    return [
        (f"areas.{name[1:]}", ", ".join(globs), where, f"what {name} stands for in a scope")
        for name, (globs, where) in areas.items()
    ]


def is_on_a_server(call: Call) -> bool:
    """Whether the board's settings are kept with it; a board may have moved there."""
    try:
        call.board.settle()
    except Refused as problem:
        if problem.code != "no_board" and "setting" not in problem.code:
            raise
        return False
    return call.board.store.remote


def load_config(call: Call) -> Answer:
    """The settings of a board on a server, from a file: for all machines at once."""
    from dibs.board.boards import load_settings

    try:
        with open(call["load"], encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise bad_argument(f"{call['load']} cannot be read: {error}") from None
    load_settings(call.board, text, call.who())
    where = call.board.store.where
    return Answer(payloads.answer(board=where), (f"the settings of {where} are those of the file",))


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
    from dibs.board.doctor import findings
    from dibs.opening import wrong_in_committed

    found = findings(call.board)
    not_followed = wrong_in_committed(call.place, call.board.settings)
    if not_followed:
        from dibs.backlogs.checkup import committed

        found += committed(not_followed)
    if call.board.backlog is not None:
        from dibs.backlogs.checkup import findings as of_files

        found += of_files(call.board)
    found += of_git(call) + of_harnesses(call)
    wrong = [finding for finding in found if finding.level == "wrong"]
    lines = say.table([(f.level, f.what, f.found) for f in found], ("", "WHAT", "FOUND"))
    told = [{"what": f.what, "found": f.found, "level": f.level} for f in found]
    return Answer(payloads.answer(ok=not wrong, findings=told), lines, exit=REFUSED if wrong else 0)


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
    "config": Verb(
        config,
        (
            argument(
                "--load",
                metavar="FILE",
                help="make these the settings of a board on a server: people only",
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
