"""Parses the fields of a workgraph task: words, numbers and times."""

from __future__ import annotations

from dibs.backlogs.formats.pointer import pointer_of
from dibs.domain.checks import TITLE_LENGTH, quoted, short
from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    IN_PROGRESS,
    OPEN,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    REVIEW,
)
from dibs.domain.values import LAST_INSTANT, Instant, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.backlogs.item import Pointer
    from dibs.domain.model import State

    Fields = Mapping[str, Any]

STATES: dict[str, State] = {
    "open": OPEN,
    "incomplete": OPEN,  # released by an agent: `wg ready` offers it again
    "waiting": OPEN,  # with a gate: for a message, a time, a task or a file, set by `wg wait`
    "in-progress": IN_PROGRESS,
    "blocked": BLOCKED,
    "pending-validation": REVIEW,
    "pending-eval": REVIEW,
    "failed": FAILED,
    "done": COMPLETE,
    "pending-review": COMPLETE,  # in old graphs: `wg` itself reads it as done
    "abandoned": DROPPED,
}
"""The state of each status word. The first word of a state is written; any other is kept."""

WORDS: dict[State, str] = {state: word for word, state in reversed(STATES.items())}

PRIORITIES = {"critical": 100, "high": 50, "normal": 10, "low": 5, "idle": 0}
TIERS = ((51, 0), (11, 1), (6, 2), (1, 3), (0, PRIORITY_MAX))
"""Lowest number (higher is more urgent there) of each priority here."""


EDGES = ("after", "blocked_by", "before", "blocks")
NAMING = (list, str, type(None))
"""Valid types of an edge field: a list of ids, one id, or nothing."""


def ids(fields: Fields, *keys: str) -> list[str]:
    """The ids in these fields; a single text is one id."""
    found: list[str] = []
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            found += [id_ for id_ in value if isinstance(id_, str) and id_]
    return found


def odd_edges(fields: Fields) -> list[str]:
    """The edge fields with an invalid type."""
    return [key for key in EDGES if not isinstance(fields.get(key), NAMING)]


def status_word(fields: Fields) -> str:
    """Its status; `open` if missing."""
    status = fields.get("status")
    if status is None:
        return WORDS[OPEN]
    return cleaned(status) if isinstance(status, str) else str(status)


def state_of(fields: Fields) -> State | None:
    """None for an unknown word."""
    word = status_word(fields)
    return STATES.get(word) or STATES.get(word.lower().replace("_", "-"))


def title_of(fields: Fields) -> str:
    """The full title: a board shortens it."""
    return text_of(fields.get("title")).strip() or str(fields["id"])


def shown(title: str) -> str:
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "\u2026"


def oddities(
    fields: Fields, title: str, state: State | None, pointer: Pointer | None
) -> list[tuple[str, str]]:
    """Invalid fields, and how each was handled."""
    odd = []
    if len(title) > TITLE_LENGTH:
        odd.append((f"the title has {len(title)} characters", f"{TITLE_LENGTH} of them are shown"))
    if state is None:
        odd.append(
            (f"the status {quoted(status_word(fields))} is not known", "the task is not offered")
        )
    for key in odd_edges(fields):
        value = short(repr(fields[key]), 40)
        odd.append((f"{key!r} is {value}, and no list of ids", "the task is not offered"))
    if pointer is None and fields.get("dibs") is not None:
        odd.append(("the key 'dibs' cannot be read", "it counts for nothing"))
    return odd


def text_of(value: object) -> str:
    return cleaned(value) if isinstance(value, str) else ""


def cleaned(text: str) -> str:
    """Text that can be stored: JSON can encode characters that are not valid text."""
    if text.isascii() and "\0" not in text:
        return text
    bare = text.replace("\0", "\ufffd")
    return bare.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def priority_of(value: object) -> int:
    number = PRIORITIES.get(value.lower(), -1) if isinstance(value, str) else value
    if type(number) is int:
        for lowest, priority in TIERS:
            if number >= lowest:
                return priority
    return PRIORITY_DEFAULT


def gate_of(fields: Fields, state: State | None, now: Instant) -> str:
    """Why workgraph itself would not start it, apart from dependencies; empty if it would."""
    if state is None:
        return f"its status is {quoted(status_word(fields))}"
    if fields["id"][0] == ".":
        return "it is one of workgraph's own, and its service runs it"
    if fields.get("status") == "waiting":
        return "it waits, as wg wait said"
    if fields.get("paused") is True:
        return "it is paused"
    if fields.get("cron_enabled") is True:
        return "workgraph starts it at its times"
    for key in odd_edges(fields):
        return f"what it is linked with is unknown: its {key!r} is no list of ids"
    begin = begin_of(fields)
    return f"not before {iso(begin)}" if begin is not None and now < begin else ""


def begin_of(fields: Fields) -> Instant | None:
    stated = (instant_of(fields[key]) for key in ("not_before", "ready_after") if key in fields)
    return max((begin for begin in stated if begin is not None), default=None)


def pointer_in(fields: Fields) -> Pointer | None:
    text = fields.get("dibs")
    return pointer_of(text) if isinstance(text, str) else None


# Instants, as workgraph writes them.


def instant_of(text: object) -> Instant | None:
    """Parses RFC 3339 with nanoseconds; None if invalid."""
    if not isinstance(text, str):
        return None
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except ValueError:
        return None
    instant = passed // timedelta(microseconds=1)
    return Instant(instant) if 0 <= instant <= LAST_INSTANT else None


def stamp(instant: Instant) -> str:
    return iso(instant).removesuffix("Z") + "+00:00"
