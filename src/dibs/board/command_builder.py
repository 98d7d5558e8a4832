"""Builds commands from arguments, for the command line and the library alike.

Every field of a command has one check. It parses text as typed, and refuses Python values of the wrong type.
"""

from __future__ import annotations

from dibs.domain import checks
from dibs.domain.model import TTL_MAX, TTL_MIN, Terms
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta
    from typing import Any, TypeVar

    from dibs.domain.commands import Command
    from dibs.domain.model import TaskKey

    Kind = TypeVar("Kind", bound=Command)
    Texts = Iterable[str] | str


def build(kind: type[Kind], /, **arguments: Any) -> Kind:
    """Builds a command; `None` is an argument that was not given, where the field allows it."""
    return kind(
        **{
            field: None
            if value is None and kind.defaults.get(field, "") is None
            else check_of(kind, field)(value)
            for field, value in arguments.items()
        }
    )


def check_of(kind: type[Command], field: str) -> Callable[[Any], Any]:
    return CHECKS.get(f"{kind.verb} {field}") or CHECKS[field]


def terms(title: str, default_attempts: int, /, **given: Any) -> Terms:
    """The terms of a new task; `None` is a term that was not given."""
    return Terms(checks.title(title), max_attempts=default_attempts).but(**changes(**given))


def changes(**given: Any) -> dict[str, Any]:
    """Checks the terms that are given."""
    return {name: CHECKS[name](value) for name, value in given.items() if value is not None}


# Checks of Python values.


def texts(given: Texts, what: str) -> tuple[str, ...]:
    """Several texts. A single string is one text, not its letters."""
    if isinstance(given, str):
        return (given,)
    try:
        values = tuple(given)
    except TypeError:
        raise bad_argument(f"{what}: {checks.short(repr(given), 40)} is no list of texts") from None
    for value in values:
        checks.is_text(value, what)
    return values


def keys(given: Texts) -> tuple[TaskKey, ...]:
    return tuple(dict.fromkeys(checks.task_key(key) for key in texts(given, "the keys")))


def names(given: Texts) -> tuple[str, ...]:
    return tuple(checks.actor_name(name) for name in texts(given, "a name"))


def scope(given: Texts) -> tuple[str, ...]:
    return checks.scope(texts(given, "a scope"))


def removed_scope(given: Texts) -> tuple[str, ...]:
    """Paths to remove: they may have been valid once, so that only their text is checked."""
    return tuple(
        checks.text(path, "a scope", checks.SCOPE_LENGTH) for path in texts(given, "a scope")
    )


def ttl(given: str | timedelta) -> Duration:
    """Parses `"5m"`, or takes a `timedelta`, which may have a fraction of a second."""
    if isinstance(given, str):
        return checks.ttl(given)
    found = microseconds(given, "the ttl")
    if not TTL_MIN <= found <= TTL_MAX:
        raise bad_argument(f"the ttl is {given}; it must be between 1 s and 30 d")
    return found


def wait(given: str | timedelta, what: str = "the wait") -> Duration:
    """A time to wait: as a ttl, but zero is allowed."""
    if isinstance(given, str):
        return checks.duration(given, what)
    found = microseconds(given, what)
    if found < 0:
        raise bad_argument(f"{what} is {given}; it is not below zero")
    return found


def microseconds(given: timedelta, what: str) -> Duration:
    from datetime import timedelta

    checks.is_a(given, timedelta, what, 'text like "5m", or a timedelta')
    return Duration(given // timedelta(microseconds=1))


def most(given: str | int) -> int:
    return checks.whole(given, "the most", 1, 10_000)


def event_number(given: str | int) -> int:
    return checks.whole(given, "the number of the event", 1, 10**checks.NUMBER_DIGITS - 1)


def stint_number(given: str | int) -> int:
    return checks.whole(given, "the number of the stint", 1, 10**18)


def certainty(given: str) -> str:
    from dibs.domain.stints import CERTAINTIES

    return checks.one_of(given, "the source", CERTAINTIES)


def actor_or_caller(given: str) -> str:
    """The name of an actor; `""` is the caller, or nobody."""
    return checks.actor_name(given) if given else ""


def unchecked(given: Any) -> Any:
    return given


CHECKS: dict[str, Callable[[Any], Any]] = {
    "task": checks.task_key, "key": checks.task_key, "tasks": keys, "after": keys, "on": keys, "not_on": keys,
    "token": checks.token, "ttl": ttl, "reason": checks.reason, "note": checks.note,
    "note note": lambda given: checks.text(given, "the note", checks.NOTE_LENGTH),
    "block on": lambda given: checks.optional_text(given, "the cause", checks.NAME_LENGTH),
    "to": checks.actor_name, "reset to": actor_or_caller, "allow to": actor_or_caller,
    "actor": checks.actor_name, "add_stint actor": actor_or_caller,
    "scope": scope, "add": scope, "remove": removed_scope, "seq": event_number,
    "most": most, "grace": lambda given: wait(given, "the grace"),
    "limit": lambda given: checks.whole(given, "the limit", 1, 10_000),
    # Terms of a task.
    "title": checks.title, "priority": checks.priority, "audience": checks.audience, "tier": checks.tier,
    "capabilities": lambda given: checks.capabilities(texts(given, "a capability")),
    "constraints": lambda given: checks.constraints(texts(given, "a constraint")),
    "max_attempts": checks.attempts, "billable": checks.flag,
    "charge_code": lambda given: given and checks.charge_code(given),
    # Stints and actors.
    "number": stint_number, "tokens": checks.tokens, "cost": checks.millionths,
    "spending": certainty, "name": checks.actor_name, "kind": checks.kind, "add_aliases": names, "remove_aliases": names,
    # Flags, and what was checked before.
    **dict.fromkeys(
        (
            "reserve", "force", "keep", "only", "redo", "mine", "park", "yes", "backdated", "terms", "paths", "span",
            "not_before", "started", "ended", "since", "until", "zone", "label", "channel", "origin_ask_ref", "url", "digest", "delivery", "formerly",
        ),
        unchecked,
    ),
}  # fmt: skip
"""The check of each field of a command; `"VERB FIELD"` where one name means two things."""
