"""E-mail intake: the `Message-ID` is the ref, the subject is the title.

Only the headers are parsed, with the standard library's parser. The body is only part of the digest, so it
may be of any kind, and malformed.
"""

from __future__ import annotations

from dibs.domain.checks import quoted
from dibs.intake.request import (
    EMAIL,
    BadPayload,
    IntakeRequest,
    NoRequest,
    build_request,
    check_size,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match

MESSAGE_MAX = 32 * 1024 * 1024
"""More than other payloads: mails have screenshots attached, and mail servers allow about as much."""
HEADERS_MAX = 256 * 1024

REPLIES = frozenset(["auto-replied", "auto_reply"])
BULK = frozenset(["bulk", "junk"])
"""`list` is not among them: a team's address is often a mailing list that people write to."""

PYTHONS_OWN = frozenset(
    ["idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "unicode_escape"]
)
"""Python-specific codecs, which no message uses."""


def read(
    message: bytes, *, automatic: bool = False, delivery: str = ""
) -> IntakeRequest | NoRequest:
    """The request in a message. Raises `BadPayload`.

    A message sent by a program counts only if `automatic`. An automatic reply never does: two auto-responders
    would fill the board.
    """
    check_size(message, MESSAGE_MAX)
    headers = headers_of(message)
    if why := reply_of_a_program(headers):
        return NoRequest(f"a program answered: {why}")
    if not automatic and (why := sent_by_a_program(headers)):
        return NoRequest(f"a program sent it: {why}")
    subject = headers.get("subject", [""])[0]
    return build_request(
        EMAIL, _message_id(headers), message, title=decoded(subject), delivery=delivery
    )


# Headers.


def headers_of(message: bytes) -> dict[str, list[str]]:
    """The headers by lower-case name, with all values of each."""
    from email.parser import BytesHeaderParser
    from email.policy import default

    parsed = BytesHeaderParser(policy=default).parsebytes(_head(message))
    headers: dict[str, list[str]] = {}
    for name, value in parsed.raw_items():
        headers.setdefault(name.lower(), []).append(_unfolded(value))
    return headers


def _head(message: bytes) -> bytes:
    """The header section.

    A line ends with LF or CRLF. Programs disagree on whether a lone CR ends a line, so it is refused: it
    would allow header injection through a subject.
    """
    start = message[: HEADERS_MAX + 1].replace(b"\r\n", b"\n")
    head, ended, _ = start.partition(b"\n\n")
    if not ended and len(message) > HEADERS_MAX:
        raise BadPayload(f"its headers have more than {HEADERS_MAX} bytes")
    if b"\r" in head or b"\0" in head:
        raise BadPayload("its headers contain a carriage return without a line feed, or a NUL")
    return head + b"\n\n"


def _unfolded(value: str) -> str:
    """The value on one line. Non-ASCII bytes come as surrogates: decoded as UTF-8, or else as Latin-1."""
    line = value.replace("\n", "").strip()
    raw = line.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _message_id(headers: dict[str, list[str]]) -> str:
    given = {value for value in headers.get("message-id", []) if value}
    if not given:
        raise BadPayload("it has no Message-ID, so a second delivery could not be detected")
    if len(given) > 1:
        raise BadPayload("it has several Message-IDs")
    return given.pop()


# Automatic messages.


def reply_of_a_program(headers: dict[str, list[str]]) -> str:
    """The header that marks an automatic reply (RFC 3834, RFC 6522); empty if it is none."""
    for name in ("auto-submitted", "precedence"):
        if (word := _word(headers, name)) in REPLIES:
            return f"{name} is {word}"
    if _word(headers, "content-type") == "multipart/report":
        return "it is a report on another message"
    return ""


def sent_by_a_program(headers: dict[str, list[str]]) -> str:
    """The header that marks an automatic message; empty if a person seems to have sent it."""
    if (word := _word(headers, "auto-submitted")) not in ("", "no"):
        return f"auto-submitted is {quoted(word)}"
    if (word := _word(headers, "precedence")) in BULK:
        return f"precedence is {word}"
    if headers.get("return-path", [""])[0].replace(" ", "") == "<>":
        return "return-path is empty"
    return ""


def _word(headers: dict[str, list[str]], name: str) -> str:
    """The first word of a header in lower case, without parameters and comments."""
    value = headers.get(name, [""])[0]
    return value.partition(";")[0].partition("(")[0].strip().lower()


# Subjects.


def decoded(subject: str) -> str:
    """Decodes RFC 2047 words. Some programs split a character between two words, so adjacent words of one
    charset are joined first. What cannot be decoded stays as it is.
    """
    import re

    word = re.compile(r"=\?([^?\s]{1,64})\?([qb])\?([^?]*)\?=", re.IGNORECASE)
    pieces: list[str] = []
    charset, collected, end = "", b"", 0
    for found in word.finditer(subject):
        data = _bytes_of(found)
        if data is None:
            continue
        between, named = subject[end : found.start()], found[1].partition("*")[0].lower()
        adjacent = end and not between.strip()
        if not adjacent or named != charset:
            pieces += [_text_of(collected, charset), "" if adjacent else between]
            charset, collected = named, b""
        collected, end = collected + data, found.end()
    return "".join([*pieces, _text_of(collected, charset), subject[end:]])


def _bytes_of(word: Match[str]) -> bytes | None:
    from binascii import a2b_base64, a2b_qp

    text = word[3].encode("ascii", "replace")
    if word[2] in "qQ":
        return a2b_qp(text, header=True)
    try:
        return a2b_base64(text + b"=" * (-len(text) % 4))
    except ValueError:
        return None


def _text_of(data: bytes, charset: str) -> str:
    import codecs

    try:
        codec = codecs.lookup(charset or "ascii").name
        return data.decode("utf-8" if codec in PYTHONS_OWN else codec, "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")
