"""A message as the mail server hands it over: its `Message-ID` is the ref, its subject the title.

Only the headers are read, with the standard library's parser. The body is part of the digest, and nothing
else is done with it: it may be of any kind, and broken.
"""

from __future__ import annotations

from dibs.channels.ask import EMAIL, Ask, Nothing, Unacceptable, ask_of, check_size
from dibs.core.checks import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match

MESSAGE_MAX = 32 * 1024 * 1024
"""More than other payloads: screenshots are attached, and mail servers allow about as much."""
HEADERS_MAX = 256 * 1024

REPLIES = frozenset(["auto-replied", "auto_reply"])
BULK = frozenset(["bulk", "junk"])
"""`list` is not among them: a team's address is often a list, and people write to it."""

PYTHONS_OWN = frozenset(
    ["idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "unicode_escape"]
)
"""Encodings that no message is written in."""


def read(message: bytes, *, automatic: bool = False, delivery: str = "") -> Ask | Nothing:
    """What a message asks for. Raises `Unacceptable`.

    What a program sent asks for something only if `automatic`; what a program answered, never: two
    programs that answer each other would fill the board.
    """
    check_size(message, MESSAGE_MAX)
    headers = headers_of(message)
    if why := reply_of_a_program(headers):
        return Nothing(f"a program answered: {why}")
    if not automatic and (why := sent_by_a_program(headers)):
        return Nothing(f"a program sent it: {why}")
    subject = headers.get("subject", [""])[0]
    return ask_of(EMAIL, _message_id(headers), message, title=decoded(subject), delivery=delivery)


# Headers.


def headers_of(message: bytes) -> dict[str, list[str]]:
    """The headers by their names in lower case, each as often as it is there."""
    from email.parser import BytesHeaderParser
    from email.policy import default

    parsed = BytesHeaderParser(policy=default).parsebytes(_head(message))
    headers: dict[str, list[str]] = {}
    for name, value in parsed.raw_items():
        headers.setdefault(name.lower(), []).append(_unfolded(value))
    return headers


def _head(message: bytes) -> bytes:
    """The lines before the first empty one.

    A line ends with LF or CRLF. A lone CR would end one for some programs and not for others: whoever
    can put one into a subject could add headers of his own.
    """
    start = message[: HEADERS_MAX + 1].replace(b"\r\n", b"\n")
    head, ended, _ = start.partition(b"\n\n")
    if not ended and len(message) > HEADERS_MAX:
        raise Unacceptable(f"its headers have more than {HEADERS_MAX} bytes")
    if b"\r" in head or b"\0" in head:
        raise Unacceptable("its headers hold a carriage return without a line feed, or a NUL")
    return head + b"\n\n"


def _unfolded(value: str) -> str:
    """In one line. Bytes that are no ASCII come as surrogates: they are UTF-8, or else Latin-1."""
    line = value.replace("\n", "").strip()
    raw = line.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _message_id(headers: dict[str, list[str]]) -> str:
    given = {value for value in headers.get("message-id", []) if value}
    if not given:
        raise Unacceptable("it has no Message-ID, by which a second delivery would be known")
    if len(given) > 1:
        raise Unacceptable("it has several Message-IDs; which one is it?")
    return given.pop()


# Programs.


def reply_of_a_program(headers: dict[str, list[str]]) -> str:
    """By which header (RFC 3834, RFC 6522); empty if it is none."""
    for name in ("auto-submitted", "precedence"):
        if (word := _word(headers, name)) in REPLIES:
            return f"{name} is {word}"
    if _word(headers, "content-type") == "multipart/report":
        return "it is a report on another message"
    return ""


def sent_by_a_program(headers: dict[str, list[str]]) -> str:
    """By which header; empty if it seems to be a person's."""
    if (word := _word(headers, "auto-submitted")) not in ("", "no"):
        return f"auto-submitted is {quoted(word)}"
    if (word := _word(headers, "precedence")) in BULK:
        return f"precedence is {word}"
    if headers.get("return-path", [""])[0].replace(" ", "") == "<>":
        return "return-path is empty"
    return ""


def _word(headers: dict[str, list[str]], name: str) -> str:
    """The first word of a header, without parameters and comments."""
    value = headers.get(name, [""])[0]
    return value.partition(";")[0].partition("(")[0].strip().lower()


# Subjects.


def decoded(subject: str) -> str:
    """RFC 2047. A character may be cut in two by the end of a word: programs do that, so words of one
    charset are joined before they are read. What cannot be decoded stays as it is.
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
