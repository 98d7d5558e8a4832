"""Agents that a dispatcher starts: the tables `[agents.NAME]` of the settings."""

from __future__ import annotations

from dibs.board.settings import Setting, check_by, command_words, number, shown_words
from dibs.domain import checks
from dibs.domain.model import folded_name
from dibs.domain.refusals import Refused, refused
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def rows(agents: tuple[Agent, ...]) -> list[tuple[str, str, bool, str]]:
    """Each setting of each agent: its name, its value, whether it is stated, what it means."""
    return [
        (f"agents.{agent.name}.{key}", setting.show(value), key in stated(agent), setting.means)
        for agent in agents
        for key, setting in AGENT.items()
        if (value := agent.named()[key]) is not None
    ]


def stated(agent: Agent) -> set[str]:
    """The settings that differ from the defaults."""
    defaults = Agent.defaults
    return {key for key, value in agent.named().items() if value != defaults.get(key)}
