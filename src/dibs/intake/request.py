"""`IntakeRequest`: the stored part of a request, and how each channel normalises its ref.

| channel | the ref is | normalised to |
|---|---|---|
| `github` | an issue, or a comment on one | `owner/repo#12`, `owner/repo#12/comment/345`: lower case, since GitHub is case-insensitive there; on other servers `host/owner/repo#12`. Links to them give the same ref |
| `email` | the `Message-ID` | the text between its angle brackets, which by RFC 5322 (3.6.4) are not part of it. Case is kept on both sides: the RFC has no other rule for comparing, and the right side need not be a domain |
| others | a link | by RFC 3986 (6.2.2): scheme and host in lower case, no default port, `%7e` as `~`, other characters as `%XX`; user and password removed. Path, query and fragment stay |
| others | any other text | trimmed, in NFC |

A rule merges only refs that are certainly the same: two tasks for one request are a nuisance, one task for
two requests loses one of them.
"""

from __future__ import annotations

from functools import cache

from dibs.domain import checks
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refused
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from json import JSONDecoder
    from typing import Any

PAYLOAD_MAX = 1024 * 1024
"""An issue has at most 65,536 characters, and an edited one comes with its former text."""
URL_LENGTH = 2_000
DELIVERY_LENGTH = 128
UNTREATED_LENGTH = 4 * checks.REF_LENGTH
"""A longer text is refused before any rule is applied."""

GITHUB, EMAIL = "github", "email"
GITHUB_HOSTS = ("github.com", "www.github.com")
PORTS = {"http": 80, "https": 443}
NO_HOST = frozenset("\\%<>\"'`{}|^[]")

JOINERS = "\u200c\u200d"
"""Not printable for Python, but some words and emoji need them."""
VISIBLE = "\u00a0\u3000" + JOINERS


class BadPayload(Exception):  # noqa: N818 - what it is about is in the name
    """A rejected payload; `what` is the reason."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class NoRequest(Value):
    """A valid payload that contains no request."""

    why: str


class IntakeRequest(Value):
    """One request, as stored. Its text is not part of it."""

    channel: str
    ref: str
    title: str
    url: str
    delivery: str
    """The channel's id of this delivery; empty if it has none."""
    digest: str
    """SHA-256 of the raw payload, in hexadecimal."""
    formerly: str = ""
    """The ref of the same request before it was moved."""
    untitled: bool = False
    """It had no title: its origin serves as title."""
    cut: bool = False
    """Its title was truncated."""


def build_request(
    channel: str,
    ref: str,
    payload: bytes,
    *,
    title: str = "",
    url: str = "",
    delivery: str = "",
    formerly: str = "",
) -> IntakeRequest:
    """An `IntakeRequest` from its parts, each validated. Without a title its origin is the title."""
    from hashlib import sha256

    name = channel_name(channel)
    normalised = normalised_ref(name, ref)
    line = _line(title)
    return IntakeRequest(
        channel=name,
        ref=normalised,
        title=one_line(line) or one_line(f"{name} {normalised}"),
        url=address(url) if url else "",
        delivery=delivery_id(delivery),
        digest=sha256(payload).hexdigest(),
        formerly=normalised_ref(name, formerly) if formerly else "",
        untitled=not line,
        cut=len(line) > checks.TITLE_LENGTH,
    )


def add_arguments(request: IntakeRequest) -> dict[str, Any]:
    """The arguments of the command `Add` that a request determines, apart from its terms."""
    return {
        "channel": request.channel,
        "origin_ask_ref": request.ref,
        "url": request.url,
        "digest": request.digest,
        "delivery": request.delivery,
        "formerly": request.formerly,
    }


def check_size(payload: bytes, most: int = PAYLOAD_MAX) -> None:
    if len(payload) > most:
        raise BadPayload(f"it has {len(payload)} bytes; the most is {most}")


def channel_name(text: str) -> str:
    try:
        return checks.actor_name(text.strip().casefold())
    except Refused as why:
        raise BadPayload(f"the channel: {why}") from None


def one_line(text: str) -> str:
    """Text as a title: one line, without control characters, truncated."""
    line, most = _line(text), checks.TITLE_LENGTH
    return line if len(line) <= most else line[: most - 1] + "…"


def _line(text: str) -> str:
    if not text.isprintable():
        text = "".join(c for c in text if c.isprintable() or c.isspace() or c in JOINERS)
    return " ".join(text.split())


def delivery_id(text: str) -> str:
    return _shown(text.strip(), "the id of the delivery", DELIVERY_LENGTH)


def address(text: str) -> str:
    """A link for people to follow: http and https only."""
    return _shown(link(_shown(text.strip(), "the url", URL_LENGTH)), "the url", URL_LENGTH)


def normalised_ref(channel: str, text: str) -> str:
    """The canonical ref of a request. Raises `BadPayload`."""
    given = _shown(text.strip(), "the ref", UNTREATED_LENGTH)
    ref = RULES.get(channel, plain)(given)
    if not ref:
        raise BadPayload("the ref is empty")
    return _shown(ref, "the ref", checks.REF_LENGTH)


def _shown(text: str, what: str, longest: int) -> str:
    """The text, if it can be stored and displayed unchanged."""
    if len(text) > longest:
        raise BadPayload(f"{what} has {len(text)} characters; the most is {longest}")
    if not text.isprintable() and not all(c.isprintable() or c in VISIBLE for c in text):
        raise BadPayload(f"{what} contains characters that cannot be displayed")
    return text


# Normalisation rules.


def plain(text: str) -> str:
    from unicodedata import normalize

    if text[:8].lower().startswith(("http://", "https://")):
        return link(text)
    return normalize("NFC", text).strip()


def link(text: str) -> str:
    """A web address in canonical form. Credentials are removed: user and password must not be stored."""
    from unicodedata import normalize
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(normalize("NFC", text))
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        raise BadPayload("the url cannot be read") from None
    if scheme not in PORTS or not host or not _is_host(host):
        raise BadPayload("the url does not begin with http:// or https:// and a host")
    place = f"[{host}]" if ":" in host else normalize("NFC", host)
    place += "" if port in (None, PORTS[scheme]) else f":{port}"
    query = f"?{_escaped(parts.query)}" if parts.query else ""
    fragment = f"#{_escaped(parts.fragment)}" if parts.fragment else ""
    return f"{scheme}://{place}{_escaped(parts.path) or '/'}{query}{fragment}"


def _is_host(text: str) -> bool:
    return len(text.split()) == 1 and not set(text) & NO_HOST


def _escaped(part: str) -> str:
    """The part with normalised escapes: no needless ones, and a stray `%` is escaped."""
    import re
    from urllib.parse import quote

    def treated(found: re.Match[str]) -> str:
        if not found[1]:
            return "%25"
        character = chr(int(found[1], 16))
        bare = character.isascii() and (character.isalnum() or character in "-._~")
        return character if bare else found[0].upper()

    once = re.sub(r"%([0-9A-Fa-f]{2})?", treated, part) if "%" in part else part
    return quote(once, safe="%/?:@!$&'()*+,;=#[]")


def message_id(text: str) -> str:
    """The id without brackets. Comments around it are dropped; some programs write it without brackets."""
    before, opened, rest = text.partition("<")
    inside, closed, after = rest.partition(">")
    if not opened:
        inside = text
    elif not closed or not _is_comment(before) or not _is_comment(after):
        raise BadPayload("the Message-ID is not one text in angle brackets")
    inside = inside.strip()
    if any(c.isspace() or c in "<>" for c in inside):
        raise BadPayload("the Message-ID is not one text in angle brackets")
    return inside


def _is_comment(text: str) -> bool:
    text = text.strip()
    return not text or (text[0] == "(" and text[-1] == ")" and "<" not in text)


def github_ref(text: str) -> str:
    """The short form of an issue or comment; other text is normalised like any other ref."""
    ref = plain(text)
    return github_issue(ref) or ref


def github_issue(text: str) -> str | None:
    """The short form of an issue or of a comment on one; `None` if the text is neither."""
    import re

    place = r"(?P<host>[\w.-]+(?::\d+)?)/"
    issue = r"(?P<owner>[\w-]+)/(?P<repo>[\w.-]+)"
    number, comment = r"(?P<number>[1-9]\d{0,17})", r"(?P<comment>[1-9]\d{0,17})"
    page = rf"https?://{place}{issue}/(?:issues|pull)/{number}/?(?:\?[^#]*)?"
    forms = (
        rf"(?:{place})?{issue}#{number}(?:/comment/{comment})?",
        rf"{page}(?:#issuecomment-{comment}|#issue-\d+)?",
    )
    found = next((one for form in forms if (one := re.fullmatch(form, text, re.ASCII))), None)
    if found is None:
        return None
    host = (found["host"] or "").lower()
    server = "" if host in ("", *GITHUB_HOSTS) else f"{host}/"
    comment = f"/comment/{found['comment']}" if found["comment"] else ""
    return f"{server}{found['owner']}/{found['repo']}".lower() + f"#{found['number']}{comment}"


RULES: dict[str, Callable[[str], str]] = {GITHUB: github_ref, EMAIL: message_id}


# Strict parsing of untrusted JSON, and lookup by path (`issue.number`, `data.0.id`).


KINDS = {dict: "an object", list: "a list", str: "text", bool: "a yes or no", type(None): "null"}


class Missing(BadPayload):
    """The payload has no value at a path."""


class Number(str):
    """A number as its digits, so that any size is exact."""

    __slots__ = ()


class Fraction(Number):
    __slots__ = ()


def object_of(data: bytes, most: int = PAYLOAD_MAX) -> dict[str, Any]:
    """The JSON object in the bytes. Refuses duplicate keys. Raises `BadPayload`."""
    from json import JSONDecodeError

    check_size(data, most)
    try:
        value = _decoder().decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadPayload(f"it is not UTF-8 (byte {error.start})") from None
    except JSONDecodeError as error:
        raise BadPayload(f"it is not JSON: {error.msg} (character {error.pos})") from None
    except RecursionError:
        raise BadPayload("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadPayload(f"it is {kind_of(value)}, and no object")
    return value


@cache
def _decoder() -> JSONDecoder:
    """A shared decoder: creating one takes longer than parsing a line."""
    from json import JSONDecoder

    return JSONDecoder(
        object_pairs_hook=_each_key_once,
        parse_int=Number,
        parse_float=Fraction,
        parse_constant=_no_constant,
    )


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadPayload(f"the key {quoted(key)} occurs twice")
            seen.add(key)
    return value


def _no_constant(word: str) -> None:
    raise BadPayload(f"it is not JSON: {word}")


def kind_of(value: object) -> str:
    return KINDS.get(type(value), "a number")


def at(value: Any, steps: Sequence[str]) -> Any:
    """The value at a path. Raises `Missing` if it is absent or null, `Unacceptable` if the path leads
    through a scalar.
    """
    path = ".".join(steps)
    for place, step in enumerate(steps):
        here = ".".join(steps[:place]) or "the payload"
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list):
            index = int(step) if step.isascii() and step.isdigit() else None
            if index is None:
                raise BadPayload(f"there is no {path}: {here} is a list, {step} is no place in it")
            value = value[index] if index < len(value) else None
        else:
            raise BadPayload(f"there is no {path}: {here} is {kind_of(value)}")
        if value is None:
            raise Missing(f"there is no {path}: {here} has no {step}")
    return value


def text_at(value: Any, path: str) -> str:
    found = at(value, path.split("."))
    if type(found) is not str:
        raise BadPayload(f"{path} is {kind_of(found)}; it is text")
    return found


def number_at(value: Any, path: str) -> str:
    """A positive whole number, as digits."""
    found = at(value, path.split("."))
    if type(found) is not Number:
        raise BadPayload(f"{path} is {_kind_of_number(found)}; it is a whole number")
    if len(found) > 18 or found[0] in "-0":
        raise BadPayload(f"{path} is not between 1 and 18 digits long, or not above zero")
    return str(found)


def scalar_at(value: Any, steps: Sequence[str]) -> str:
    """Text, or a whole number as digits."""
    found = at(value, steps)
    if type(found) not in (str, Number):
        raise BadPayload(
            f"{'.'.join(steps)} is {_kind_of_number(found)}; it is text or a whole number"
        )
    return str(found)


def _kind_of_number(value: object) -> str:
    return "a number with a fraction" if isinstance(value, Fraction) else kind_of(value)
