"""Renders untrusted text for terminals and models: as data, never as instructions.

Anybody can write titles, scopes, paths, notes, reasons and names. Invisible characters in them are escaped;
inside our own messages the text is quoted and truncated.
"""

from __future__ import annotations

LONGEST = 200
"""The most characters of one text inside a message."""

SPACES = "\u00a0\u3000"
"""Not printable for Python, but harmless."""
JOINERS = "\u200c\u200d"
"""Some words and emoji need these joiners. Allowed only between two visible characters."""
EMOJI = "\ufe0f"
"""Variation selector that requests the emoji form of the character before it."""
UNSEEN = frozenset(
    map(
        chr,
        (
            0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164,
            *range(0xFE00, 0xFE10), 0xFFA0, *range(0xE0100, 0xE01F0),
        ),
    )
)  # fmt: skip
"""Printable for Python, but invisible: variation selectors, fillers, the blank braille pattern."""


def safe(text: str) -> str:
    """Escapes every character that moves the cursor, sets a title, changes the direction or is hidden."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(text, place) for place in range(len(text)))


def quoted(text: str, longest: int = LONGEST) -> str:
    """The text quoted and truncated, for use as data inside a message."""
    escaped = safe(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped if len(escaped) <= longest else escaped[: longest - 3] + "..."}"'


def _shown(text: str, place: int) -> str:
    character = text[place]
    if _is_seen(character) or character in SPACES:
        return character
    before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
    wide = _is_seen(before) and not before.isascii()
    if character in JOINERS and wide and _is_seen(after) and not after.isascii():
        return character
    if character == EMOJI and wide and not before.isalnum():
        return ""
    if character in JOINERS and before == EMOJI and _is_seen(after) and not after.isascii():
        return character
    return character.encode("unicode_escape").decode()


def _is_seen(character: str) -> bool:
    return bool(character) and character.isprintable() and character not in UNSEEN
