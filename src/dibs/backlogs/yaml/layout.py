"""Which lines belong to which key of a block mapping."""

from __future__ import annotations

from dibs.backlogs.yaml.scalars import (
    SPACE,
    comment_at,
    flow,
    is_dash,
    is_filler,
    key_of,
    quoted_end,
    scalar_width,
    simple_list,
)
from dibs.domain.values import Value
from dibs.safe_files import Unreadable

BRACKETS = ("[", "{", '"', "'")
OPENING = (*BRACKETS, "|", ">")


class Entry(Value):
    """One key of a mapping: lines `first` to before `last`; `at`: the position after its colon."""

    key: str
    first: int
    last: int
    at: int


def entries(text: str, indent: int = 0) -> list[Entry]:
    """The keys of a block mapping. Raises for a line that belongs to none, with its number from 0."""
    lines, found = text.split("\n"), []
    here, offset = 0, 0
    while here < len(lines):
        line = lines[here]
        body = line.lstrip(" ")
        last = here + 1
        if not is_filler(body):
            key = key_of(line, indent) if len(line) - len(body) == indent else None
            if key is None:
                raise Unreadable(_no_key(body, len(line) - len(body) - indent), here)
            last = _last(text, lines, here, offset, key[1], indent)
            found.append(Entry(key[0], here, last, key[1]))
        offset += len(line) + 1
        for passed in range(here + 1, last):
            offset += len(lines[passed]) + 1
        here = last
    return found


def _no_key(body: str, deeper: int) -> str:
    if body[0] == "\t":
        return "a tab stands where a key should"
    if deeper:
        return "it is indented otherwise than the keys"
    if body[0] in "[{":
        return "the keys stand in brackets (flow style)"
    if is_dash(body):
        return "a list stands where keys should"
    return "it is neither a key nor a comment"


def _last(text: str, lines: list[str], here: int, offset: int, at: int, indent: int) -> int:
    """The line after a value; trailing comments and blank lines do not belong to it."""
    line = lines[here]
    inline = line[at:].lstrip(SPACE)
    after = lines[here + 1][:1] if here + 1 < len(lines) else "x"
    if after not in " -#\t" and _is_simple(inline):
        return here + 1
    if inline[:1] in ("|", ">"):
        return _scalar_last(lines, here, indent, inline)
    if inline[:1] in BRACKETS:
        try:
            end = closed(text, offset + len(line) - len(inline))
        except Unreadable as why:
            raise Unreadable(str(why), here) from None
        return _deeper(lines, here + text.count("\n", offset, end), indent, dashes=False)
    bare = is_filler(inline)
    last = _deeper(lines, here, indent, dashes=bare)
    if bare and last > here + 1:
        _nothing_is_open(lines, here + 1, last)
    return last


def _is_simple(inline: str) -> bool:
    sign = inline[:1]
    return sign not in OPENING or (sign == "[" and simple_list(inline) is not None)


def closed(text: str, at: int) -> int:
    """The position after a quoted text, or a list or mapping in brackets, that begins at `at`."""
    return quoted_end(text, at) if text[at] in "\"'" else flow(text, at)[1]


def _deeper(lines: list[str], here: int, indent: int, *, dashes: bool) -> int:
    last = look = here + 1
    while look < len(lines):
        body = lines[look].lstrip(" ")
        look += 1
        if is_filler(body):
            continue
        width = len(lines[look - 1]) - len(body)
        if width <= indent and not (dashes and width == indent and is_dash(body)):
            break
        last = look
    return last


def _scalar_last(lines: list[str], here: int, indent: int, header: str) -> int:
    width, last = scalar_width(lines, here + 1, header, indent), here + 1
    keep = "+" in header[: comment_at(header)]
    for look in range(here + 1, len(lines)):
        body = lines[look].lstrip(" ")
        if not body:
            last = look + 1 if keep else last
        elif len(lines[look]) - len(body) < width:
            break
        else:
            last = look + 1
    return last


def _nothing_is_open(lines: list[str], first: int, last: int) -> None:
    """Refuses an unclosed quote or bracket, which could swallow the keys after it in some readers."""
    below, text, offset = -1, "\n".join(lines[first:last]), -1
    for here in range(first, last):
        line = lines[here]
        offset += len(line) + 1
        body = line.lstrip(" ")
        width = len(line) - len(body)
        if not body or 0 <= below < width:
            continue
        below = -1
        while body and is_dash(body):
            body = body[1:].lstrip(SPACE)
        key = key_of(body, 0) if body else None
        if key is not None:
            body = body[key[1] :].lstrip(SPACE)
        if body[:1] in ("|", ">"):
            below = width
        elif body[:1] in BRACKETS:
            try:
                closed(text, offset - len(body))
            except Unreadable as why:
                raise Unreadable(str(why), here) from None
