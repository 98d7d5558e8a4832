"""Writes texts and lists of texts so that every YAML reader reads them back unchanged."""

from __future__ import annotations

from dibs.backlogs.yaml.scalars import INDICATORS, SPACE, is_dash, is_filler, value
from dibs.safe_files import Unreadable

SINGLE, DOUBLE = "'", '"'

WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Words that some readers do not take for texts."""

OF_NUMBERS = frozenset("eEtTzZxXoObB")
"""The letters of numbers and times: any other letter makes it a text."""

ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Raw(str):
    """A value written verbatim: a date, a time, a number."""

    __slots__ = ()


class Removed:
    """In place of a value: removes the key with its lines."""


REMOVED = Removed()


def written(new: str | tuple[str, ...] | bool | None, style: str = "") -> str:
    """The value in YAML, in quotes of this style if possible."""
    if new is None:
        return "null"
    if isinstance(new, bool):
        return "true" if new else "false"
    if isinstance(new, tuple):
        return "[" + ", ".join([_text(item, style, brackets=True) for item in new]) + "]"
    return _text(new, style)


def style_of(source: list[str]) -> str:
    """The quotes of a value; of a list, those of its first item."""
    for line in source:
        body = line.lstrip(SPACE)
        while not is_filler(body) and (body[0] == "[" or is_dash(body)):
            body = body[1:].lstrip(SPACE)
        if not is_filler(body):
            return body[0] if body[0] in (SINGLE, DOUBLE) else ""
    return ""


def item_written(text: str, style: str) -> str:
    """One item of a list below its key."""
    return _text(text, style)


def _text(text: str, style: str, *, brackets: bool = False) -> str:
    if isinstance(text, Raw):
        return style + _checked(text) + style
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("it has half a character")
    if style == SINGLE and (text.isprintable() or not text):
        return "'" + text.replace("'", "''") + "'"
    if (
        style == ""
        and is_plain(text)
        and not (brackets and any(sign in ",[]{}:?" for sign in text))
    ):
        return text
    return '"' + "".join([_escaped(sign) for sign in text]) + '"'


def _checked(raw: Raw) -> str:
    """Only a single plain value can be written verbatim."""
    try:
        read = value([raw], 0)
    except Unreadable as why:
        raise ValueError(f"{raw!r} cannot be written as it is: {why}") from None
    if read != raw or not raw.isprintable() or any(sign in ",[]{}" for sign in raw):
        raise ValueError(f"{raw!r} cannot be written as it is")
    return str(raw)


def _escaped(sign: str) -> str:
    if sign in ESCAPES:
        return ESCAPES[sign]
    if sign.isprintable():
        return sign
    code = ord(sign)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def is_plain(text: str) -> bool:
    """Whether every reader takes it for this text without quotes: YAML 1.1 and 1.2, in block style."""
    if not text or not text.isprintable() or text != text.strip(" "):
        return False
    if text.lower() in WORDS or ": " in text or text[-1] == ":" or " #" in text:
        return False
    first = text[0]
    if first.isascii() and not first.isalnum():
        return first in "/_(" and first not in INDICATORS
    if not first.isdecimal():
        return True
    letters = [sign for sign in text if sign.isalpha()]
    return text[:2].lower() != "0x" and any(sign not in OF_NUMBERS for sign in letters)
