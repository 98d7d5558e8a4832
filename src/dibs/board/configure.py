"""Change settings: which file each belongs to. Everything is checked before anything is written."""

from __future__ import annotations

import os
from os.path import exists, join

from dibs.board import settings as known
from dibs.board import toml_files
from dibs.board.locate import ON_SERVER, Place
from dibs.domain import checks
from dibs.domain.refusals import Refused, refused
from dibs.domain.values import Value
from dibs.safe_files import replace, unsafe_storage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from dibs.board.execute import Board
    from dibs.board.identity import Identity

AGENT = 2
"""The length of the keys of one agent's table: `agents`, and its name."""

NOT_TEXT = "it is a text in quotes"
MARK = "The board of this clone is on a server: dibs config says on which.\n"


class Setting(Value):
    """One setting by name: the keys that lead to it in a file, and how its value is checked."""

    name: str
    keys: tuple[str, ...]
    check: Callable[[Any], Any]

    @property
    def is_personal(self) -> bool:
        return known.is_personal(self.name)


def setting_named(name: str) -> Setting:
    """The setting; an unknown one is refused."""
    table, _, rest = name.partition(".")
    if name in known.SETTINGS:
        check = check_url if name == "url" else known.SETTINGS[name].check
        return Setting(name, tuple(name.split(".")), check)
    if table == "areas" and rest:
        return Setting(name, (table, rest), lambda globs: known.areas_of(name, {rest: globs}))
    if table == "agents" and rest:
        return setting_of_agent(name, rest)
    what = f"there is no setting {checks.quoted(name)}"
    raise refused("unknown_setting", what, setting=name, known=list(known.SETTINGS))


def setting_of_agent(name: str, rest: str) -> Setting:
    """`agents.NAME.KEY`, or the whole table `agents.NAME`. A name may contain dots."""
    from dibs.board.settings import AGENT, agent_of

    agent, _, key = rest.rpartition(".")
    if agent and key in AGENT:
        return Setting(name, ("agents", agent, key), AGENT[key].check)

    def check(table: Any) -> Any:
        if agent and not isinstance(table, dict):
            what = f"an agent has no setting {checks.quoted(key)}; it has {', '.join(AGENT)}"
            raise refused("bad_setting", what)
        return agent_of(name, rest, table)

    return Setting(name, ("agents", rest), check)


def check_url(value: object) -> str:
    from dibs.storage.address import parse_untrusted

    if not isinstance(value, str):
        raise refused("bad_setting", NOT_TEXT)
    return str(parse_untrusted(value, "it"))


def typed(setting: Setting, text: str) -> Any:
    """Parses typed text as TOML (a number, a list, true), if the setting accepts
    that; else it is plain text.
    """
    import tomllib

    tried: list[Any] = [text]
    try:
        stated = tomllib.loads(f"x = {text}")
        tried = [*stated.values(), text] if len(stated) == 1 else tried
    except (ValueError, RecursionError):
        pass
    problems = []
    for value in tried:
        try:
            setting.check(value)
        except Refused as problem:
            problems.append(str(problem))
        else:
            return value
    why = problems[0] if problems[0] != NOT_TEXT else problems[-1]
    shown = "" if setting.name == "url" else f" {checks.short(text, 40)}"
    raise refused("bad_setting", f"{setting.name}{shown}: {why}", setting=setting.name)


# Writing a setting.


def write(
    place: Place,
    setting: Setting,
    value: Any,
    board: Callable[[], Board],
    who: Callable[[], Identity],
) -> str:
    """Sets the value where it belongs, or removes it (None); returns the file or server."""
    if setting.name == "url":
        return write_url(place, value)
    if setting.is_personal:
        return write_personal(place, setting, value, uid_of(board()))
    store = board().store
    if store.remote:
        return write_on_server(board(), setting, value, who())
    uid_of(board())  # refuses if there is no board
    path = join(store.where, known.FILE)
    if os.path.islink(path):  # an agent's sandbox may be able to put one there
        raise unsafe_storage(path, "is a symbolic link")
    toml_files.rewrite(path, changing(setting, value, path, known.of_stated))
    return path


def uid_of(board: Board) -> str:
    with board.read() as tx:
        return tx.board.uid


def write_personal(place: Place, setting: Setting, value: Any, uid: str) -> str:
    path = place.user.board_file(uid)
    place.user.change(path, changing(setting, value, path, known.personal_values))
    return path


def write_on_server(board: Board, setting: Setting, value: Any, who: Identity) -> str:
    from dibs.board.server_boards import load_settings

    where = board.store.where
    change = changing(setting, value, where, known.of_stated)
    load_settings(board, change(board.store.stated_settings() or ""), who, where)
    return where


def write_url(place: Place, value: Any) -> str:
    """Sets the server of the clone's board. A marker file beside the board tells hooks that there is one."""
    mark = join(place.folder, ON_SERVER)
    if value is None:
        place.user.unset_url(place.folder)
        if exists(mark):
            os.unlink(mark)
    else:
        place.user.set_url(place.folder, check_url(value))
        os.makedirs(place.folder, mode=0o700, exist_ok=True)
        replace(mark, MARK)
    return place.user.servers_file


def changing(
    setting: Setting, value: Any, where: str, check: Callable[[dict[str, Any], str], object]
) -> Callable[[str], str]:
    """A function that makes the new text of a file, and refuses it if the result would be invalid."""

    def change(text: str) -> str:
        after = with_all(text, setting.keys, value, where)
        check(toml_files.parse(after, where), where)
        return after

    return change


def with_all(text: str, keys: tuple[str, ...], value: Any, where: str) -> str:
    """Writes the value, or each value of an agent's table; None removes it."""
    if value is None or (keys[0] == "agents" and isinstance(value, dict) and len(keys) == AGENT):
        text = toml_files.without_value(text, keys, where)
        for key, inner in (value or {}).items():
            text = toml_files.with_value(text, (*keys, key), inner, where)
        return text
    return toml_files.with_value(text, keys, value, where)


# Adopting proposals.


class Proposal(Value):
    """A setting that starts programs or names a server, and the file that proposes it."""

    name: str
    value: Any
    where: str


def proposals(place: Place, board: Board | None, committed: Mapping[str, Any]) -> list[Proposal]:
    """What a person may adopt: from beside the board, its server and the repository. The first one counts."""
    found: dict[str, Proposal] = {}
    beside = known.load(place.folder)
    sources = [(beside.proposed, beside.proposed_in)]
    if board is not None:
        sources.append((board.settings.proposed, board.settings.proposed_in))
    sources.append((committed, "dibs.toml"))
    stated = adopted(place, board)
    for proposed, where in sources:
        for name, value in proposed.items():
            if stated.get(name) != value:
                found.setdefault(name, Proposal(name, value, where))
    return list(found.values())


def adopted(place: Place, board: Board | None) -> dict[str, Any]:
    stated = {} if board is None else place.user.stated(uid_of(board))
    return {**dict(known.proposals(stated)), "url": place.user.url_of(place.folder)}


def adopt(
    place: Place, found: list[Proposal], board: Callable[[], Board]
) -> Iterator[tuple[str, str]]:
    """Copies proposals to the user's folder; the server first, since it knows the board's id."""
    ordered = sorted(found, key=lambda one: one.name != "url")
    settings = [setting_named(each.name) for each in ordered]
    for setting, each in zip(settings, ordered, strict=True):
        check_proposed(setting, each)
    for setting, each in zip(settings, ordered, strict=True):
        if each.name == "url":
            yield each.name, write_url(place, each.value)
        else:
            yield each.name, write_personal(place, setting, each.value, uid_of(board()))


def check_proposed(setting: Setting, each: Proposal) -> None:
    try:
        setting.check(each.value)
    except Refused as problem:
        what = f"{each.where}: {each.name}: {problem}"
        raise refused("bad_setting", what, setting=each.name) from None
