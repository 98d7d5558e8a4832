"""Validates user and program input. Each check returns the value or refuses it with the reason."""

from __future__ import annotations

from dibs.domain.model import (
    ACTIONS,
    ATTEMPTS_MAX,
    AUDIENCES,
    KINDS,
    PRIORITY_MAX,
    TIER_MAX,
    TTL_MAX,
    TTL_MIN,
    TaskKey,
    Token,
)
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import UNITS, Duration, rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal

    from dibs.domain.model import Audience, Kind

TITLE_LENGTH = 200
NOTE_LENGTH = 20_000
REASON_LENGTH = 2_000
KEY_LENGTH = 64
NAME_LENGTH = 64
SESSION_LENGTH = 128
REQUEST_LENGTH = 128
REF_LENGTH = 1_000
SCOPE_LENGTH = 256
SCOPES = 64
DOUBLE_STARS = 16
CLASSES = 32
CLASS_LENGTH = 64
LIST_LENGTH = 32
CHARGE_CODE_LENGTH = 64
CHARGE_CODES_MAX = 1_000
TOKENS_MAX = 10**15
COST_MAX = 10**9
NUMBER_DIGITS = 18

PLACEHOLDERS = frozenset(
    [
        "user",
        "username",
        "name",
        "agent",
        "agentname",
        "agent_name",
        "agent-name",
        "yourname",
        "your-name",
        "your_name",
        "you",
        "me",
        "self",
        "human",
        "person",
        "someone",
        "somebody",
        "nobody",
        "anyone",
        "anonymous",
        "unknown",
        "none",
        "null",
        "nil",
        "undefined",
        "default",
        "auto",
        "todo",
        "tbd",
        "placeholder",
        "example",
        "assistant",
        "bot",
    ]
)


def is_a(value: object, kind: type, what: str, wanted: str) -> None:
    """Refuses a value of the wrong type: library callers may pass anything."""
    if not isinstance(value, kind):
        raise bad_argument(f"{what} is {short(repr(value), 40)}; it is {wanted}")


def is_text(value: object, what: str) -> None:
    is_a(value, str, what, "text")


def text(value: str, what: str, longest: int) -> str:
    """Free text, unchanged: not empty, not too long, and storable."""
    is_text(value, what)
    if not value.strip():
        raise bad_argument(f"{what} is empty")
    return optional_text(value, what, longest)


def optional_text(value: str, what: str, longest: int) -> str:
    is_text(value, what)
    if len(value) > longest:
        raise bad_argument(f"{what} has {len(value)} characters; the most is {longest}")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise bad_argument(f"{what} holds characters that are not text")
    return value


def title(value: str) -> str:
    return text(value, "the title", TITLE_LENGTH).strip()


def note(value: str, what: str = "the note") -> str:
    return optional_text(value, what, NOTE_LENGTH)


def reason(value: str) -> str:
    return optional_text(value, "the reason", REASON_LENGTH)


def task_key(value: str) -> TaskKey:
    """A letter, then letters, digits, `-`, `_` and `.`: `T-42`, `WRK-157`."""
    is_text(value, "the key of a task")
    plain = value.isascii() and value.replace("-", "").replace("_", "").replace(".", "").isalnum()
    if not plain or not value[0].isalpha() or len(value) > KEY_LENGTH:
        raise bad_argument(f"{quoted(value)} is not the key of a task; one looks like T-42")
    return TaskKey(value)


def actor_name(value: str) -> str:
    """Nobody acts anonymously: a real name, not a placeholder, written in one script."""
    name = _identifier(value, "a name", NAME_LENGTH, also="._@+-")
    if not name.isascii():
        _check_scripts(name)
    return name


TOGETHER = ({"CJK", "HIRAGANA", "KATAKANA"}, {"CJK", "BOPOMOFO"}, {"CJK", "HANGUL"})
"""Scripts that may be mixed within one name, also with Latin letters."""


def _check_scripts(name: str) -> None:
    """Refuses mixed scripts: lookalike letters would make two names look the same."""
    from unicodedata import name as called
    from unicodedata import normalize

    letters = [letter for letter in normalize("NFKC", name) if letter.isalpha()]
    scripts = {called(letter, "?").replace("-", " ").split()[0] for letter in letters}
    if len(scripts) < 2 or any(scripts - {"LATIN"} <= these for these in TOGETHER):
        return
    mixed = ", ".join(sorted(one.capitalize() for one in scripts))
    raise bad_argument(
        f"{short(name, 40)!a} mixes scripts ({mixed}): a name is written in one, so that nobody"
        " is taken for somebody else"
    )


def session_name(value: str) -> str:
    name = _identifier(value, "a session", SESSION_LENGTH, also="._@+-:/")
    if name.endswith("/") or "//" in name:
        raise bad_argument(f"{quoted(value)} cannot be a session")
    return name


def board_id(value: str) -> str:
    """The UUID of a board."""
    digits = value.replace("-", "")
    if len(value) != 36 or len(digits) != 32 or not set(digits) <= set("0123456789abcdef"):
        raise bad_argument(f"{quoted(value)} is not the id of a board")
    return value


def request_id(value: str) -> str:
    return _identifier(value, "a request id", REQUEST_LENGTH, also="._@+-:/")


def _identifier(value: str, what: str, longest: int, also: str) -> str:
    is_text(value, what)
    if not value.strip():
        raise bad_argument(f"{what} is empty")
    if value.strip("<>{}$[]%").casefold() in PLACEHOLDERS:
        raise bad_argument(f"{quoted(value)} is a placeholder, not {what}")
    if len(value) > longest:
        raise bad_argument(f"{what} has {len(value)} characters; the most is {longest}")
    if not value[0].isalnum() or not all(letter.isalnum() or letter in also for letter in value):
        raise bad_argument(
            f"{quoted(value)} cannot be {what}: letters, digits and {' '.join(also)} can"
        )
    return value


def whole(value: str | int, what: str, lowest: int, highest: int) -> int:
    digits = _digits(value)
    if not digits.isascii() or not digits.isdigit() or len(digits) > NUMBER_DIGITS:
        raise bad_argument(f"{what} is {quoted(digits)}; it is a number from {lowest} to {highest}")
    number = int(digits)
    if not lowest <= number <= highest:
        raise bad_argument(f"{what} is {number}; it must be between {lowest} and {highest}")
    return number


def _digits(value: str | int) -> str:
    huge = isinstance(value, int) and abs(value) >= 10**NUMBER_DIGITS
    return "a huge number" if huge else str(value)


def priority(value: str | int) -> int:
    """`0` is the most urgent; `P1` means `1`."""
    given = _digits(value)
    number = given[1:] if given[:1] in ("P", "p") else given
    try:
        return whole(number, "the priority", 0, PRIORITY_MAX)
    except Refused:
        raise bad_argument(
            f"the priority is {quoted(given)}; it is a number from 0 to {PRIORITY_MAX}"
        ) from None


def tier(value: str | int) -> int:
    return whole(value, "the tier", 0, TIER_MAX)


def attempts(value: str | int) -> int:
    return whole(value, "the number of attempts", 1, ATTEMPTS_MAX)


def duration(value: str, what: str = "the duration") -> Duration:
    """A duration like `90s`, `30m`, `2h` or `7d`."""
    is_text(value, what)
    digits, unit = value[:-1], value[-1:]
    if unit not in UNITS or not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise bad_argument(f"{what} is {quoted(value)}; write it like 90s, 30m, 2h or 7d")
    return Duration(int(digits) * UNITS[unit])


def ttl(value: str | Duration) -> Duration:
    given = value if isinstance(value, int) else duration(value, "the ttl")
    if not TTL_MIN <= given <= TTL_MAX:
        raise bad_argument(f"the ttl is {rough_duration(given)}; it must be between 1 s and 30 d")
    return given


def token(value: str) -> Token:
    is_text(value, "a token")
    epoch, _, number = value.partition(".")
    for part in (epoch, number):
        if not part.isascii() or not part.isdigit() or len(part) > NUMBER_DIGITS:
            raise bad_argument(f"{quoted(value)} is not a token; one looks like 1.7")
    return Token(int(epoch), int(number))


def charge_code(value: str) -> str:
    code = text(value, "the charge code", CHARGE_CODE_LENGTH).strip()
    if not code.isprintable():
        raise bad_argument(f"{quoted(value)} is not a charge code; one looks like ACME-1")
    return code


def tokens(value: str | int, what: str = "tokens") -> int:
    return whole(value, what, 0, TOKENS_MAX)


def millionths(value: str | Decimal, what: str = "the cost") -> int:
    """An exact amount of money, like `1.25`, in millionths."""
    text = _amount(value)
    units, _, fraction = text.partition(".")
    digits, decimals = units + fraction, fraction.rstrip("0")
    fits = digits.isascii() and digits.isdigit() and len(digits) < 40 and len(decimals) <= 6
    if not fits or int(units or 0) > COST_MAX:
        message = f"{what} is {quoted(text)}; write an amount like 1.25, with up to six decimals"
        raise bad_argument(message)
    found = int(units or 0) * 1_000_000 + int(decimals.ljust(6, "0"))
    if found > COST_MAX * 1_000_000:
        raise bad_argument(f"{what} is {quoted(text)}; the most is {COST_MAX}")
    return found


def _amount(value: str | Decimal) -> str:
    """The amount in plain decimal notation. A number with a huge exponent is not expanded."""
    if isinstance(value, str | int):
        return _digits(value)
    from decimal import Decimal

    plain = isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 20
    return f"{value:f}" if plain else str(value)


def flag(value: bool) -> bool:
    is_a(value, bool, "billable", "True or False")
    return value


def audience(value: str) -> Audience:
    return one_of(value, "the audience (--for)", AUDIENCES)  # type: ignore[return-value]


def kind(value: str) -> Kind:
    return one_of(value, "the kind", KINDS)  # type: ignore[return-value]


def one_of(value: str, what: str, choices: tuple[str, ...]) -> str:
    is_text(value, what)
    if value not in choices:
        raise bad_argument(f"{what} is {quoted(value)}; it is one of {', '.join(choices)}")
    return value


def capabilities(values: tuple[str, ...]) -> tuple[str, ...]:
    named = _each_once(values, "capabilities", LIST_LENGTH)
    return tuple(_identifier(value, "a capability", NAME_LENGTH, also="._+-:/") for value in named)


def constraints(values: tuple[str, ...]) -> tuple[str, ...]:
    named = _each_once(values, "constraints", LIST_LENGTH)
    return tuple(one_of(value, "a constraint", ACTIONS) for value in named)


def scope(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(scope_path(value) for value in _each_once(values, "scopes", SCOPES))


def scope_path(value: str) -> str:
    """A glob relative to the repository, or the name of an area (`@web`); never a path outside."""
    path = text(value, "a scope", SCOPE_LENGTH)
    parts = path.split("/")
    if path[0] in "/~" or "\\" in path or ":" in parts[0] or ".." in parts:
        raise bad_argument(f"the scope {quoted(value)} leads out of the repository")
    if any(ord(character) < 32 or ord(character) == 127 for character in path):
        raise bad_argument(f"the scope {quoted(value)} holds control characters")
    if parts.count("**") > DOUBLE_STARS:
        raise bad_argument(f"the scope {quoted(value)} has more than {DOUBLE_STARS} times **")
    _check_classes(path)
    if "" in parts[:-1] or "." in parts or path == "@":
        raise bad_argument(f"the scope {quoted(value)} is not a plain path or glob")
    return path


def _check_classes(path: str) -> None:
    """Limits the number and the length of character classes like `[a-z]`."""
    if path.count("[") <= CLASSES and len(path) <= CLASS_LENGTH:
        return
    from dibs.domain.scopes.overlap import classes

    found = classes(path)
    if len(found) > CLASSES:
        raise bad_argument(
            f"the scope {quoted(path)} has {len(found)} classes like [a-z]; the most is {CLASSES}"
        )
    longest = max(map(len, found), default=0)
    if longest > CLASS_LENGTH:
        raise bad_argument(
            f"the scope {quoted(path)} has a class of {longest} characters; the most is"
            f" {CLASS_LENGTH}"
        )


def _each_once(values: tuple[str, ...], what: str, most: int) -> tuple[str, ...]:
    once = tuple(dict.fromkeys(values))
    if len(once) > most:
        raise bad_argument(f"{len(once)} {what} are given; the most is {most}")
    return once


def quoted(value: str) -> str:
    """User input, quoted and shortened for a message."""
    return repr(short(value, 40))


def short(text: str, longest: int = 300) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
