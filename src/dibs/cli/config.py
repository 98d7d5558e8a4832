"""`dibs config`: shows settings with their sources, changes one, adopts settings found elsewhere."""

from __future__ import annotations

import os
import sys

from dibs.board import configure, settings
from dibs.board.identity import CallerEnvironment, agents_run, harness_of
from dibs.board.settings import Settings
from dibs.board.toml_files import parse
from dibs.cli import text as say
from dibs.cli.call import Call, Verb, VerbResult, argument
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import safe
from dibs.machine import this_machine
from dibs.output import payloads
from dibs.output.error_map import USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.configure import Proposal
    from dibs.board.execute import Board

DEFAULT = "default"
HINT = "to change a setting: dibs config SETTING VALUE, or dibs config --unset SETTING"


def config(call: Call) -> VerbResult:
    ways = [name for name in ("load", "unset", "key") if call[name] is not None]
    ways += ["adopt"] if call["adopt"] else []
    if len(ways) > 1:
        raise bad_argument("use only one of SETTING VALUE, --unset, --adopt, --load")
    if call["yes"] and not call["adopt"]:
        raise bad_argument("--yes requires --adopt")
    if call["load"] is not None:
        return load(call)
    if call["adopt"]:
        return adopt(call)
    if call["unset"] is not None:
        return change(call, call["unset"], None)
    if call["value"] is not None:
        return change(call, call["key"], call["value"])
    return show(call, call["key"])


# Showing.


def show(call: Call, name: str | None) -> VerbResult:
    """Prints every setting, or one, with its value and source."""
    from dibs.opening import wrong_in_committed

    values, sources, wrong = in_force(call)
    rows = list(each_setting(values, sources))
    rows += area_rows(call, values, sources.get("areas", DEFAULT))
    if name is not None:
        configure.setting_named(name)
        rows = [row for row in rows if row[0] == name or row[0].startswith(f"{name}.")]
    listed = {each: {"value": value, "source": where} for each, value, where, _ in rows}
    lines = say.table(rows, ("SETTING", "VALUE", "FROM", "MEANS")) if rows else ("not set",)
    path = os.path.join(call.place.folder, settings.FILE)
    messages = tuple(problem.refusal.message for problem in wrong)
    payload = payloads.answer(settings=listed, file=path, wrong=list(messages))
    not_followed = tuple(wrong_in_committed(call.place, values))
    code = USAGE if wrong else 0
    return VerbResult(
        payload, lines if name else (*lines, HINT), messages + not_followed, exit=code
    )


def in_force(call: Call) -> tuple[Settings, dict[str, str], list[Refused]]:
    """The effective settings, the source of each, and the problems found in them."""
    board, wrong = opened(call)
    path = os.path.join(call.place.folder, settings.FILE)
    try:
        beside, problems = settings.checked(call.place.folder)
    except Refused as unreadable:
        beside, problems = {}, [unreadable]
    if board is None:
        values, shared = Settings(**beside), dict.fromkeys(beside, path)
        wrong = problems or wrong
    else:
        values, wrong = board.settings, []
        shared = from_server(board) if board.store.remote else dict.fromkeys(beside, path)
    sources = shared | personal_sources(call, board)
    url, source = address_in_force(call, board)
    if source:
        sources["url"] = source
    if values.identity == settings.STRICT and "identity" not in shared:
        sources["identity"] = "kano backlog"
    if "ignore_case" not in shared:
        values = values.but(ignore_case=None)
    return values.but(url=url), sources, wrong


def opened(call: Call) -> tuple[Board | None, list[Refused]]:
    """The board; or None and the reasons, if there is none or a setting is invalid."""
    try:
        call.board.follow_if_moved()
    except Refused as problem:
        if problem.code not in ("no_board", "unaccepted_server") and "setting" not in problem.code:
            raise
        return None, [] if problem.code == "no_board" else [problem]
    return call.board, []


def from_server(board: Board) -> dict[str, str]:
    """Sources of the settings that the server stores for the board."""
    stated = parse(board.store.stated_settings() or "", board.store.where)
    return {settings.field_of(key): "board" for key, _ in settings.leaves(stated)}


def personal_sources(call: Call, board: Board | None) -> dict[str, str]:
    if board is None:
        return {}
    uid = configure.uid_of(board)
    stated = settings.leaves(call.place.user.stated(uid))
    sources = {settings.field_of(key): call.place.user.board_file(uid) for key, _ in stated}
    rest = [settings.field_of(key) for key in settings.PERSONAL if key != "notify"]
    return dict.fromkeys((*rest, "notify_command"), DEFAULT) | sources


def address_in_force(call: Call, board: Board | None) -> tuple[str, str]:
    """The URL of a board on a server, and its source; "" for a file. DIBS_URL takes precedence."""
    place = call.place
    if place.url:
        return place.url, "DIBS_URL"
    if place.server:
        return place.server, place.user.servers_file
    if board is not None and board.store.remote:
        return board.store.where, "moved"
    return "", ""


def each_setting(values: Settings, sources: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yields name, value, source and meaning of each setting."""
    for name, setting in settings.SETTINGS.items():
        field = settings.field_of(name)
        value = setting.show(getattr(values, field))
        yield name, value, sources.get(field, DEFAULT), setting.means
    if values.agents:
        from dibs.board.settings import agent_rows

        for name, value, is_stated, means in agent_rows(values.agents):
            yield name, value, sources["agents"] if is_stated else DEFAULT, means


def area_rows(call: Call, values: Settings, source: str) -> list[tuple[str, str, str, str]]:
    """The globs of each area and their source; the board's own settings take precedence."""
    from dibs.board.locate import COMMITTED
    from dibs.opening import committed_areas

    committed, _ = committed_areas(call.place, values)
    areas = {name: (globs, COMMITTED) for name, globs in committed.items()}
    own = {name: globs for name, globs in values.areas.items() if committed.get(name) != globs}
    areas |= {name: (globs, source) for name, globs in own.items()}
    return [
        (f"areas.{name[1:]}", ", ".join(globs), where, f"the paths that {name} means in a scope")
        for name, (globs, where) in areas.items()
    ]


# Changing.


def change(call: Call, name: str, text: str | None) -> VerbResult:
    check_person(call)
    call.refuse_request_id()
    setting = configure.setting_named(name)
    value = None if text is None else configure.typed(setting, text)
    where = configure.write(call.place, setting, value, lambda: call.board, call.who)
    done = "set" if text is not None else "unset"
    lines: tuple[str, ...] = (f"{name} is {done}: {where}",)
    if name == "url" and call.place.url:
        lines += ("DIBS_URL is set, and takes precedence",)
    return VerbResult(payloads.answer(setting=name, file=where, set=text is not None), lines)


def check_person(call: Call) -> None:
    """Refuses agents: they may not set what starts programs, nor the rules that bind them."""
    mark = harness_of(os.environ)
    if mark:
        what = f"only people may change settings: {mark} shows that this runs inside an agent's harness"
        raise refused("people_only", what, variable=mark)
    agent = call["agent"] or os.environ.get("DIBS_AGENT")
    if agent and call["person"] is None:
        raise refused("people_only", "only people may change settings", actor=agent)
    run = run_of_agent(call)
    if run:
        what = f"only people may change settings, and this is part of {run}"
        raise refused("people_only", what, variable=run)


def run_of_agent(call: Call) -> str:
    """The agent's `dibs run` around this process; without a board, judged by the environment alone."""
    try:
        return call.agents_run()
    except Refused:
        around = CallerEnvironment(os.environ, this_machine())
        return agents_run(around, None)


def adopt(call: Call) -> VerbResult:
    """Copies proposed settings (beside the board, on its server, in the repository) after confirmation."""
    from dibs.opening import committed_proposals

    check_person(call)
    call.refuse_request_id()
    board, wrong = opened(call)
    for problem in wrong:
        if problem.code != "unaccepted_server":
            raise problem
    found = configure.proposals(call.place, board, committed_proposals(call.place))
    if not found:
        return VerbResult(payloads.answer(adopted=[]), ("nothing to adopt",))
    lines = tuple(safe(line) for line in map(shown, found))
    confirm(call, lines)
    done = list(configure.adopt(call.place, found, lambda: call.board))
    adopted = [{"setting": name, "file": where} for name, where in done]
    return VerbResult(
        payloads.answer(adopted=adopted), tuple(f"{name} adopted: {w}" for name, w in done)
    )


def shown(each: Proposal) -> str:
    from dibs.board.settings import SETTINGS
    from dibs.board.toml_files import shown as as_toml

    value = SETTINGS["url"].show(str(each.value)) if each.name == "url" else as_toml(each.value)
    return f"{each.name} = {value}  (from {each.where})"


def confirm(call: Call, lines: tuple[str, ...]) -> None:
    if call["yes"]:
        return
    if call["json"] or sys.stdin is None or not sys.stdin.isatty():
        what = f"this would be copied to your own configuration: {'; '.join(lines)}; confirm with --yes"
        raise refused("unconfirmed", what)
    print(
        "\n".join(("to your own configuration:", *(f"  {line}" for line in lines))), file=sys.stderr
    )
    print("copy them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise refused("unconfirmed", "nothing was copied")


def load(call: Call) -> VerbResult:
    """Loads the settings of a board on a server from a file: for all machines at once."""
    from dibs.board.server_boards import load_settings

    call.refuse_request_id()
    try:
        with open(call["load"], encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise bad_argument(f"{call['load']} cannot be read: {error}") from None
    load_settings(call.board, text, call.who(), call["load"])
    where = call.board.store.where
    return VerbResult(
        payloads.answer(board=where), (f"loaded the settings of {where} from the file",)
    )


VERBS = {
    "config": Verb(
        config,
        (
            argument("key", nargs="?", metavar="SETTING", help="the setting to show or to change"),
            argument("value", nargs="?", metavar="VALUE", help="its new value: people only"),
            argument("--unset", metavar="SETTING", help="reset it to its default: people only"),
            argument(
                "--adopt",
                action="store_true",
                help="copy proposed programs and servers to your own configuration",
            ),
            argument(
                "--yes", action="store_true", help="with --adopt: do not ask for confirmation"
            ),
            argument(
                "--load",
                metavar="FILE",
                help="load the settings of a board on a server: people only",
            ),
        ),
    ),
}
