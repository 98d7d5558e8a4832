"""Shared by the dialects: mapping of state names both ways, and parsing of common fields."""

from __future__ import annotations

from dibs.domain.checks import KEY_LENGTH, TITLE_LENGTH, task_key
from dibs.domain.model import OPEN, Task, TaskKey
from dibs.domain.refusals import Refused
from dibs.domain.values import SECOND, Duration, Instant, Value, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.domain.model import State

YES = ("true", "yes", "on", "1")


class Words(Value):
    """A backlog's state names: what each means, and which one is written."""

    means: Mapping[str, State]
    writes: Mapping[State, str]

    def state(self, word: str) -> State | None:
        """What the word means. A name that ends in `*` stands for every word that begins so."""
        folded = word.casefold()
        if folded in self.means:
            return self.means[folded]
        for name, state in self.means.items():
            if name.endswith("*") and folded.startswith(name[:-1]):
                return state
        return None

    def extended(self, own: Mapping[str, State]) -> Words:
        """With a backlog's own words, which have precedence."""
        means = {word.casefold(): state for word, state in own.items()}
        means = means | {word: state for word, state in self.means.items() if word not in means}
        stated: dict[State, str] = {}
        for word, state in own.items():
            stated.setdefault(state, word)
        writes = {
            state: word if means.get(word.casefold()) == state else stated.get(state, word)
            for state, word in self.writes.items()
        }
        return Words(means, writes)

    def agrees(self, word: str, state: State) -> bool:
        """Whether the word means this state, or the nearest one that has words."""
        return self.state(word) in (state, self.shown(state))

    def shown(self, state: State) -> State | None:
        """The state that readers of the file see: a state may have no word of its own."""
        return self.state(self.writes[state])

    def word_for(self, task: Task, now: str) -> str:
        """The word to write; the file's own word, if it means the same."""
        if self.agrees(now, task.state):
            return now
        said = task.item.said if task.item else ""
        if self.shown(task.state) == OPEN and self.state(said) == OPEN:
            return said  # the word that it had before
        return self.writes[task.state]


def stamp(instant: Instant) -> str:
    """ISO 8601 in whole seconds: `2026-11-15T14:30:00Z`."""
    return iso(Instant(instant - instant % SECOND))


def day_of(instant: Instant) -> str:
    return iso(instant)[:10]


def minute_of(instant: Instant) -> str:
    return iso(instant)[:16].replace("T", " ")


def instant_of(text: str) -> Instant | None:
    """Parses ISO 8601 with a zone; None if invalid."""
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return None
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return Instant(max(0, since // timedelta(microseconds=1)))
    except (ValueError, OverflowError):
        return None


def until(since: Instant | None, ttl: Duration) -> Instant | None:
    return None if since is None else Instant(since + ttl)


def title_of(text: str, otherwise: str) -> tuple[str, str]:
    """A title that a board accepts, and what was wrong with it, if anything."""
    title = "".join(letter for letter in text if letter.isprintable() or letter == "\t").strip()
    if not title:
        return otherwise, "it has no title"
    if len(title) > TITLE_LENGTH:
        return title[: TITLE_LENGTH - 1] + "…", f"its title has {len(title)} characters"
    return title, ""


def key_of(id_: str) -> tuple[TaskKey, bool]:
    """The key for an item's task, and whether it equals the id."""
    try:
        return task_key(id_), True
    except Refused:
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in id_)
        plain = plain.strip("-_.") or "item"
        if not plain[0].isalpha():
            plain = f"I-{plain}"
        return task_key(plain[:KEY_LENGTH]), False


def said_yes(text: str) -> bool:
    return text.casefold() in YES


def in_one_line(text: str, longest: int = 200) -> str:
    """Free text as one log line, without control characters (such as terminal escapes)."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
