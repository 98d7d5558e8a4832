"""The settings: their defaults, how each is checked, and which file each is read from.

`settings.toml` beside the board, or the text stored on a server, configures the board. Settings that start
programs or name servers (`PERSONAL`) are read only from the user's own folder (`board/user_config.py`);
elsewhere, they are proposals that a person may adopt. An unknown key is an error.
"""

from __future__ import annotations

import os
from os.path import join

from dibs.domain import checks
from dibs.domain.facts import Rules
from dibs.domain.model import AREA, GRACE, IDLE_AFTER, TTL_AGENT, TTL_HUMAN, TTL_KEEPER, folded_name
from dibs.domain.refusals import Refused, refused
from dibs.domain.scopes.policy import BLOCK, CONFLICTS, NEEDS, REFUSE, WARN, ScopePolicy
from dibs.domain.values import HOUR, MINUTE, SECOND, Duration, Value, exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from dibs.board.user_config import User


FILE = "settings.toml"
NORMAL, STRICT = "normal", "strict"
RELEASE, KEEP = "release", "keep"
PREFIX_LENGTH = 32


class Settings(Value):
    """All settings, with their defaults."""

    identity: str = ""
    ttl_agent: Duration = TTL_AGENT
    ttl_human: Duration = TTL_HUMAN
    ttl_keeper: Duration = TTL_KEEPER
    default_tier: int = 1
    max_attempts: int = 3
    self_review: bool = False
    key_prefix: str = "T"
    write_wait: Duration = Duration(5 * SECOND)
    url: str = ""
    mirror_root: str = ""
    dispatch_tick: Duration = Duration(5 * SECOND)
    dispatch_max: int = 10
    dispatch_grace: Duration = GRACE
    dispatch_log_dir: str = ""
    notify_command: tuple[str, ...] = ()
    charge_codes: tuple[str, ...] = ()
    idle_after: Duration = IDLE_AFTER
    scope_conflict: str = BLOCK
    ignore_case: bool | None = None
    commits_need_task: str = ""
    fence_refs: bool = False
    guard_failure: str = WARN
    session_end: str = RELEASE
    agents: tuple[Agent, ...] = ()
    areas: Mapping[str, tuple[str, ...]] = {}
    areas_unread: str = ""
    """Why not all areas of the repository could be read, if so."""
    proposed: Mapping[str, Any] = {}
    """Settings that start programs or name servers, found outside the user's folder: they are ignored."""
    proposed_in: str = ""
    """The file of `proposed`."""

    @property
    def rules(self) -> Rules:
        ground = ScopePolicy(
            self.areas, bool(self.ignore_case), self.scope_conflict, self.areas_unread
        )
        return Rules(
            self.ttl_agent, self.ttl_human, self.self_review, self.max_attempts, ground,
            self.charge_codes, self.idle_after,
        )  # fmt: skip


class Setting(Value):
    """How one setting is checked, rendered and explained."""

    check: Callable[[Any], Any]
    show: Callable[[Any], str]
    means: str


def _text(check: Callable[[str], Any]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if not isinstance(value, str):
            raise refused("bad_setting", "it is a text in quotes")
        return check(value)

    return checked


def _one_of(*choices: str) -> Callable[[str], str]:
    def checked(value: str) -> str:
        if value not in choices:
            raise refused("bad_setting", f"it is {', '.join(choices[:-1])} or {choices[-1]}")
        return value

    return checked


def number(check: Callable[[int], int]) -> Callable[[Any], int]:
    def checked(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise refused("bad_setting", "it is a number")
        return check(value)

    return checked


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise refused("bad_setting", "it is true or false")
    return value


def _prefix(value: str) -> str:
    if len(value) > PREFIX_LENGTH:
        raise refused("bad_setting", f"it has at most {PREFIX_LENGTH} characters")
    checks.task_key(f"{value}-1")
    return value


def _within(lowest: int, highest: int) -> Callable[[str], Duration]:
    def checked(value: str) -> Duration:
        duration = checks.duration(value, "it")
        if not lowest <= duration <= highest:
            limits = f"{exact(Duration(lowest))} and {exact(Duration(highest))}"
            raise refused("bad_setting", f"it must be between {limits}")
        return duration

    return checked


tick = _within(SECOND, HOUR)
"""The polling interval of a dispatcher, parsed from text."""


def most(value: str | int) -> int:
    """How many tasks a dispatcher's agents may hold together."""
    return checks.whole(value, "it", 1, 1_000)


def _folder(value: str) -> str:
    if value and not os.path.isabs(value):
        raise refused("bad_setting", "it is an absolute path")
    return value


def command_words(value: Any) -> tuple[str, ...]:
    """A command: a list of words, or one text that is split as by a shell."""
    words = value
    if isinstance(value, str):
        from shlex import split

        try:
            words = split(value)
        except ValueError as error:
            raise refused("bad_setting", str(error).lower()) from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise refused("bad_setting", "it is a text in quotes, or a list of them")
    if not words or not words[0] or any("\0" in word for word in words):
        raise refused("bad_setting", "it names no program")
    return tuple(words)


def shown_words(words: tuple[str, ...]) -> str:
    from shlex import join as joined

    return joined(words) or "none"


def _url(value: str) -> str:
    """The address without its password."""
    if not value:
        return "none"
    from dibs.storage.address import parse

    return str(parse(value, "url"))


def _codes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise refused("bad_setting", "it is a list of texts in quotes")
    if len(value) > checks.CHARGE_CODES_MAX:
        raise refused("bad_setting", f"it names at most {checks.CHARGE_CODES_MAX} codes")
    return tuple(dict.fromkeys(checks.charge_code(code) for code in value if code))


SETTINGS = {
    "identity": Setting(
        _text(_one_of(NORMAL, STRICT)),
        lambda value: value or NORMAL,
        "strict: only --agent with --session, --as and DIBS_* say who you are",
    ),
    "ttl_agent": Setting(_text(checks.ttl), exact, "how long an agent's lease runs"),
    "ttl_human": Setting(_text(checks.ttl), exact, "how long a person's lease runs"),
    "ttl_keeper": Setting(
        _text(checks.ttl), exact, "how long a lease runs that a process keeps renewing"
    ),
    "default_tier": Setting(number(checks.tier), str, "the tier of an actor at first use"),
    "max_attempts": Setting(number(checks.attempts), str, "how often a new task may be tried"),
    "self_review": Setting(
        _flag, lambda flag: str(flag).lower(), "authors may accept their own work"
    ),
    "key_prefix": Setting(_text(_prefix), str, "what the keys of new tasks begin with"),
    "write_wait": Setting(
        _text(_within(SECOND, 60 * SECOND)), exact, "how long a command waits for its turn to write"
    ),
    "url": Setting(_text(str), _url, "the board is on a server: postgresql://host/database#board"),
    "charge_codes": Setting(
        _codes, lambda codes: ", ".join(codes) or "none", "what the time of tasks may be booked on"
    ),
    "idle_after": Setting(
        _text(_within(MINUTE, 24 * HOUR)),
        exact,
        "how long the session of a harness may be silent and still be at work",
    ),
    "mirror_root": Setting(
        _text(_folder),
        lambda folder: folder or "the main work tree",
        "the folder whose item files are kept in step with the board",
    ),
    "dispatch.tick": Setting(
        _text(tick), exact, "how often dibs dispatch looks, if nothing changes"
    ),
    "dispatch.max": Setting(number(most), str, "how many tasks its agents may hold in total"),
    "dispatch.grace": Setting(
        _text(_within(0, HOUR)), exact, "how long after a lease was seen expired it is ended"
    ),
    "dispatch.log_dir": Setting(
        _text(_folder),
        lambda folder: folder or "beside the board",
        "the folder for what its workers print",
    ),
    "notify.command": Setting(
        command_words, shown_words, "runs when a task is blocked, submitted, failed or taken over"
    ),
    "scope_conflict": Setting(
        _text(_one_of(*CONFLICTS)),
        str,
        "two live leases may touch the same path: block, warn or off",
    ),
    "ignore_case": Setting(
        _flag,
        lambda flag: "as the repository" if flag is None else str(flag).lower(),
        "paths that differ only in case are the same",
    ),
    "commits_need_task": Setting(
        _text(_one_of(*NEEDS)),
        lambda value: value or "refuse in a harness, else allow",
        "a commit by somebody who holds no task: allow, warn or refuse",
    ),
    "fence_refs": Setting(
        _flag,
        lambda flag: str(flag).lower(),
        "a session that lost its lease moves no branch, also not with --no-verify",
    ),
    "guard_failure": Setting(
        _text(_one_of(WARN, REFUSE)), str, "a guard that cannot read the board: warn or refuse"
    ),
    "session_end": Setting(
        _text(_one_of(RELEASE, KEEP)),
        str,
        "what a harness's session holds at its end: release or keep",
    ),
}

TABLES = ("dispatch", "notify")

PERSONAL = ("url", "mirror_root", "dispatch.log_dir", "notify", "agents")
"""Settings that start programs or name servers, with everything below them."""


def is_personal(key: str) -> bool:
    return any(key == one or key.startswith(f"{one}.") for one in PERSONAL)


def field_of(key: str) -> str:
    """The attribute of `Settings` for a setting."""
    return key.replace(".", "_")


def leaves(stated: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each setting by its full name; the agents, whose names are free, are one setting."""
    for key, value in stated.items():
        if key in TABLES and isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def from_text(text: str, where: str) -> Settings:
    """Parses settings stored on a server; `where` is named in error messages."""
    from dibs.board.toml_files import parse

    return of_stated(parse(text, where), where)


def load(folder: str) -> Settings:
    """The settings beside the board; refuses the first invalid one."""
    return of_stated(read_file(folder), join(folder, FILE))


def of_stated(stated: dict[str, Any], where: str) -> Settings:
    values, wrong = checked_values(stated, where)
    if wrong:
        raise wrong[0]
    proposed = dict(proposals(stated))
    return Settings(**values, proposed=proposed, proposed_in=where if proposed else "")


def checked(folder: str) -> tuple[dict[str, Any], list[Refused]]:
    """The valid settings of the file, and the problems of the others."""
    return checked_values(read_file(folder), join(folder, FILE))


def checked_values(stated: dict[str, Any], where: str) -> tuple[dict[str, Any], list[Refused]]:
    values, wrong = {}, []
    for key, value in leaves(stated):
        if is_personal(key):
            continue
        try:
            values[field_of(key)] = check_one(where, key, value)
        except Refused as problem:
            wrong.append(problem)
    return values, wrong


def proposals(stated: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings that are only proposals here, by name; each agent separately."""
    for key, value in leaves(stated):
        if key == "agents" and isinstance(value, dict):
            yield from ((f"agents.{name}", table) for name, table in value.items())
        elif is_personal(key):
            yield key, value


# The user's own settings.


def personal(settings: Settings, user: User, uid: str) -> Settings:
    """Adds the user's settings for this board; proposals that were adopted are no longer reported."""
    stated, path = user.stated(uid), user.board_file(uid)
    values = personal_values(stated, path)
    adopted = dict(proposals(stated))
    left = {
        key: value
        for key, value in settings.proposed.items()
        if key not in adopted or adopted[key] != value
    }
    return settings.but(**values, proposed=left)


def personal_values(stated: dict[str, Any], where: str) -> dict[str, Any]:
    """The settings of a user's file for a board, checked."""
    return {field_of(key): check_personal(where, key, value) for key, value in leaves(stated)}


def check_personal(where: str, key: str, value: Any) -> Any:
    if key == "url" or not is_personal(key):
        home = "servers.toml" if key == "url" else f"{FILE} beside the board"
        what = f"{where}: {checks.quoted(key)} is not read here, but in {home}: dibs config sets it"
        raise refused("unknown_setting", what, setting=key)
    return check_one(where, key, value)


def check_one(path: str, key: str, value: Any) -> Any:
    if key == "agents":
        return agents_of(path, value)
    if key == "areas":
        return areas_of(path, value)
    if key in TABLES:
        raise refused("bad_setting", f"{path}: {key} is a table: [{key}]", setting=key)
    return check_by(SETTINGS, path, key, key, value)


def areas_of(path: str, stated: Any) -> dict[str, tuple[str, ...]]:
    """The table `[areas]`: `web = ["src/web/**"]` defines the area `@web`."""
    if not isinstance(stated, dict):
        raise refused("bad_setting", f"{path}: areas is a table: [areas]", setting="areas")
    found = {}
    for name, globs in stated.items():
        texts = [globs] if isinstance(globs, str) else globs
        try:
            if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
                raise refused("bad_setting", "it is a list of globs")
            checked = checks.scope(tuple(texts))
            if any(one.startswith(AREA) for one in checked):
                raise refused("bad_setting", "an area lists globs, not other areas")
            found[checks.scope_path(f"{AREA}{name}")] = checked
        except Refused as problem:
            what = f"{path}: areas.{name} is {shown_value(globs)}: {problem}"
            raise refused("bad_setting", what, setting=f"areas.{name}") from None
    return found


def check_by(known: Mapping[str, Setting], path: str, setting: str, key: str, value: Any) -> Any:
    """Checks the value of `key` by a table of known settings; `setting` is its name in messages."""
    if key not in known:
        what = f"{path}: there is no setting {checks.quoted(setting)}"
        raise refused("unknown_setting", what, setting=setting, known=list(known))
    try:
        return known[key].check(value)
    except Refused as problem:
        what = f"{path}: {setting} is {shown_value(value)}: {problem}"
        raise refused("bad_setting", what, setting=setting) from None


def shown_value(value: Any) -> str:
    try:
        return checks.short(repr(value), 40)
    except ValueError:
        return "a huge number"
    except RecursionError:
        return "nested too deeply"


def read_file(folder: str) -> dict[str, Any]:
    """The contents of the file beside the board, unchecked; empty if there is no file."""
    path = join(folder, FILE)
    if not os.path.lexists(path):
        return {}
    from dibs.board.toml_files import read
    from dibs.safe_files import check_owner

    check_owner(folder)
    return read(path)


# Agents: the tables `[agents.NAME]`.


MOST = 100
"""The limit of tasks that one agent may hold at a time."""

RESERVED = "DIBS_"
"""The prefix of variables that dibs itself sets for a worker: settings cannot override them."""


class Agent(Value):
    """How an agent is started, and with which terms it is registered at first use."""

    name: str
    command: tuple[str, ...]
    tier: int | None = None
    capabilities: tuple[str, ...] | None = None
    max: int = 1
    env: tuple[tuple[str, str], ...] = ()


def _capabilities(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused("bad_setting", "it is a list of texts")
    return checks.capabilities(tuple(value))


def _most(value: int) -> int:
    return checks.whole(value, "it", 1, MOST)


def _environment(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise refused("bad_setting", "it is a table of texts")
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise refused("bad_setting", f"{checks.quoted(name)} cannot be a variable")
        if name.startswith(RESERVED):
            raise refused("bad_setting", f"{name}: dibs itself sets the variables {RESERVED}*")
    return tuple(value.items())


def _nothing_or(show: Any) -> Any:
    return lambda value: show(value) if value else "none"


AGENT = {
    "command": Setting(command_words, shown_words, "what works on a task: words, or one text"),
    "tier": Setting(number(checks.tier), str, "its tier, when it is registered"),
    "capabilities": Setting(
        _capabilities, _nothing_or(", ".join), "its capabilities, when it is registered"
    ),
    "max": Setting(number(_most), str, "how many tasks it may hold at a time"),
    "env": Setting(
        _environment,
        _nothing_or(lambda env: ", ".join(name for name, _ in env)),
        "variables for its command; only their names are shown",
    ),
}


def agents_of(path: str, tables: Any) -> tuple[Agent, ...]:
    """The agents of a file; refuses the first problem."""
    if not isinstance(tables, dict):
        raise refused("bad_setting", f"{path}: agents is a table for each agent: [agents.NAME]")
    found: dict[str, Agent] = {}
    for name, table in tables.items():
        agent = agent_of(path, name, table)
        other = found.setdefault(folded_name(name), agent)
        if other is not agent:
            raise refused("bad_setting", f"{path}: {other.name} and {name} are one name")
    return tuple(found.values())


def agent_of(path: str, name: str, table: Any) -> Agent:
    where = f"agents.{checks.short(name, checks.NAME_LENGTH)}"
    try:
        checks.actor_name(name)
    except Refused as problem:
        raise refused("bad_setting", f"{path}: [{where}]: {problem}", setting=where) from None
    if not isinstance(table, dict):
        raise refused("bad_setting", f"{path}: {where} is a table: [{where}]", setting=where)
    values = {key: check_by(AGENT, path, f"{where}.{key}", key, table[key]) for key in table}
    if "command" not in values:
        what = f"{path}: [{where}] has no command: what is to be started?"
        raise refused("bad_setting", what, setting=f"{where}.command")
    return Agent(name, **values)


def agent_rows(agents: tuple[Agent, ...]) -> list[tuple[str, str, bool, str]]:
    """Each setting of each agent: its name, its value, whether it is stated, what it means."""
    return [
        (f"agents.{agent.name}.{key}", setting.show(value), key in stated_by(agent), setting.means)
        for agent in agents
        for key, setting in AGENT.items()
        if (value := agent.named()[key]) is not None
    ]


def stated_by(agent: Agent) -> set[str]:
    """The settings that differ from the defaults."""
    defaults = Agent.defaults
    return {key for key, value in agent.named().items() if value != defaults.get(key)}
