"""`Ask`: what is kept of a request; and what it is known by, one rule for each channel.

| channel | the ref is | and is written |
|---|---|---|
| `github` | an issue, or a comment on one | `owner/repo#12`, `owner/repo#12/comment/345`: in lower case, as GitHub tells no case apart there; on a server of one's own `host/owner/repo#12`. Links to them mean the same |
| `email` | the `Message-ID` | what stands between its angle brackets, which RFC 5322 (3.6.4) says are no part of it. Case is kept on both sides: the RFC has no other rule for comparing, and the right side need not be a domain |
| others | a link | by RFC 3986 (6.2.2): scheme and host in lower case, no default port, `%7e` as `~`, other characters as `%XX`; and no user or password. Path, query and fragment stay |
| others | any other text | trimmed, in NFC |

A rule joins only what is the same for certain: two tasks for one request are a nuisance, one task for two
requests loses one of them.
"""

from __future__ import annotations

from dibs.core import checks
from dibs.core.refusals import Refused
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAYLOAD_MAX = 1024 * 1024
"""An issue has at most 65,536 characters, and an edited one comes with its former text."""
URL_LENGTH = 2_000
DELIVERY_LENGTH = 128
UNTREATED_LENGTH = 4 * checks.REF_LENGTH
"""No rule is tried on a longer text."""

GITHUB, EMAIL = "github", "email"
GITHUB_HOSTS = ("github.com", "www.github.com")
PORTS = {"http": 80, "https": 443}
NO_HOST = frozenset("\\%<>\"'`{}|^[]")

JOINERS = "\u200c\u200d"
"""Not printable for Python, but without them some words and emoji are others."""
VISIBLE = "\u00a0\u3000" + JOINERS


class Unacceptable(Exception):  # noqa: N818 - what it is about is in the name
    """A payload that cannot be taken in, and why."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Nothing(Value):
    """A payload that is in order, and asks for nothing."""

    why: str


class Ask(Value):
    """One request, as it is taken in. Nothing of its text is in it."""

    channel: str
    ref: str
    title: str
    url: str
    delivery: str
    """The id that the channel gave to this delivery; empty if it has none."""
    digest: str
    """SHA-256 of the payload as it came, in hexadecimal."""
    formerly: str = ""
    """The ref that the same request had before it was moved."""
    untitled: bool = False
    """It named no title: it is called by its origin."""
    cut: bool = False
    """Its title was longer than one may be."""


def ask_of(
    channel: str,
    ref: str,
    payload: bytes,
    *,
    title: str = "",
    url: str = "",
    delivery: str = "",
    formerly: str = "",
) -> Ask:
    """The ask of these parts, each of them checked; without a title it is called by its origin."""
    from hashlib import sha256

    name = channel_name(channel)
    known_by = normalised_ref(name, ref)
    line = _line(title)
    return Ask(
        channel=name,
        ref=known_by,
        title=one_line(line) or one_line(f"{name} {known_by}"),
        url=address(url) if url else "",
        delivery=delivery_id(delivery),
        digest=sha256(payload).hexdigest(),
        formerly=normalised_ref(name, formerly) if formerly else "",
        untitled=not line,
        cut=len(line) > checks.TITLE_LENGTH,
    )


def check_size(payload: bytes, most: int = PAYLOAD_MAX) -> None:
    if len(payload) > most:
        raise Unacceptable(f"it has {len(payload)} bytes; the most is {most}")


def channel_name(text: str) -> str:
    try:
        return checks.actor_name(text.strip().casefold())
    except Refused as why:
        raise Unacceptable(f"the channel: {why}") from None


def one_line(text: str) -> str:
    """Text as a title: no control characters, no line ends, not too long."""
    line, most = _line(text), checks.TITLE_LENGTH
    return line if len(line) <= most else line[: most - 1] + "…"


def _line(text: str) -> str:
    if not text.isprintable():
        text = "".join(c for c in text if c.isprintable() or c.isspace() or c in JOINERS)
    return " ".join(text.split())


def delivery_id(text: str) -> str:
    return _shown(text.strip(), "the id of the delivery", DELIVERY_LENGTH)


def address(text: str) -> str:
    """The address of a page, for people to follow: the web only."""
    return _shown(link(_shown(text.strip(), "the url", URL_LENGTH)), "the url", URL_LENGTH)


def normalised_ref(channel: str, text: str) -> str:
    """What a request is known by, however it was written. Raises `Unacceptable`."""
    given = _shown(text.strip(), "the ref", UNTREATED_LENGTH)
    ref = RULES.get(channel, plain)(given)
    if not ref:
        raise Unacceptable("the ref is empty")
    return _shown(ref, "the ref", checks.REF_LENGTH)


def _shown(text: str, what: str, longest: int) -> str:
    """The text, if it can be stored and shown as it stands."""
    if len(text) > longest:
        raise Unacceptable(f"{what} has {len(text)} characters; the most is {longest}")
    if not text.isprintable() and not all(c.isprintable() or c in VISIBLE for c in text):
        raise Unacceptable(f"{what} holds characters that cannot be shown")
    return text


# The rules.


def plain(text: str) -> str:
    from unicodedata import normalize

    if text[:8].lower().startswith(("http://", "https://")):
        return link(text)
    return normalize("NFC", text).strip()


def link(text: str) -> str:
    """An address of the web in its usual form. Who may read it is nobody's business: no user, no
    password.
    """
    from unicodedata import normalize
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(normalize("NFC", text))
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        raise Unacceptable("the url cannot be read") from None
    if scheme not in PORTS or not host or not _is_host(host):
        raise Unacceptable("the url does not begin with http:// or https:// and a host")
    place = f"[{host}]" if ":" in host else normalize("NFC", host)
    place += "" if port in (None, PORTS[scheme]) else f":{port}"
    query = f"?{_escaped(parts.query)}" if parts.query else ""
    fragment = f"#{_escaped(parts.fragment)}" if parts.fragment else ""
    return f"{scheme}://{place}{_escaped(parts.path) or '/'}{query}{fragment}"


def _is_host(text: str) -> bool:
    return len(text.split()) == 1 and not set(text) & NO_HOST


def _escaped(part: str) -> str:
    """Escapes in one form: what needs none has none, and a `%` that begins none is escaped."""
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
    """Comments may stand around it. Without brackets it is what some programs write."""
    before, opened, rest = text.partition("<")
    inside, closed, after = rest.partition(">")
    if not opened:
        inside = text
    elif not closed or not _is_comment(before) or not _is_comment(after):
        raise Unacceptable("the Message-ID is not one text in angle brackets")
    inside = inside.strip()
    if any(c.isspace() or c in "<>" for c in inside):
        raise Unacceptable("the Message-ID is not one text in angle brackets")
    return inside


def _is_comment(text: str) -> bool:
    text = text.strip()
    return not text or (text[0] == "(" and text[-1] == ")" and "<" not in text)


def github_ref(text: str) -> str:
    """What is neither an issue nor a comment is a ref like any other."""
    ref = plain(text)
    return github_issue(ref) or ref


def github_issue(text: str) -> str | None:
    """An issue, or a comment on one, by its short name; nothing if the text names none."""
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
    said = f"/comment/{found['comment']}" if found["comment"] else ""
    return f"{server}{found['owner']}/{found['repo']}".lower() + f"#{found['number']}{said}"


RULES: dict[str, Callable[[str], str]] = {GITHUB: github_ref, EMAIL: message_id}
