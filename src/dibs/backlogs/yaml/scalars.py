"""The subset of YAML that frontmatter needs: texts, and lists of texts.

Parsed by hand because positions matter, and because foreign content is skipped. Whatever YAML readers
could
interpret in two ways raises `Unreadable`.
"""

from __future__ import annotations

from dibs.domain.values import Value
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

    Node: TypeAlias = "str | list[Node] | dict[str, Node] | UnsupportedNode | None"

DEPTH = 20
"""Nesting limit of lists."""

NULLS = ("", "~", "null", "Null", "NULL")
INDICATORS = frozenset(",[]{}#&*!|>'\"%@`")
"""Characters that a plain text cannot begin with."""

FLOW = frozenset(",[]{}")
SPACE = " \t"
ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip
CODES = {"x": 2, "u": 4, "U": 8}
HEX = "0123456789abcdefABCDEF"
LAST_CHARACTER = 0x10FFFF


class UnsupportedNode(Value):
    """Possibly valid YAML, but neither a text nor a list of texts."""

    what: str


def unfinished(quote: str) -> NoReturn:
    raise Unreadable(f"{quote} is not closed")


# Lines.


def is_filler(body: str) -> bool:
    """Whether a line is blank or a comment. `body` is the line without its indentation."""
    return not body or body[0] == "#" or body.isspace()


def is_dash(body: str) -> bool:
    return body[0] == "-" and (len(body) == 1 or body[1] in SPACE)


def comment_at(text: str) -> int:
    """Where the text before a comment or trailing spaces ends."""
    at = text.find("#")
    while at > 0 and text[at - 1] not in SPACE:
        at = text.find("#", at + 1)
    return len((text if at < 0 else text[:at]).rstrip(SPACE))


def key_of(line: str, start: int) -> tuple[str, int] | None:
    """The key at `start`, and the position after its colon; None if there is none."""
    at = line.find(":", start)
    key = line[start : max(at, start)]
    if key.isidentifier() and line[at + 1 : at + 2] in SPACE:
        return key, at + 1
    if line[start] in "\"'":
        try:
            key, at = quoted(line, start)
        except Unreadable:
            return None
        while at < len(line) and line[at] in SPACE:
            at += 1
        return (
            (key, at + 1) if line[at : at + 1] == ":" and line[at + 1 : at + 2] in " \t" else None
        )
    while at >= 0 and line[at + 1 : at + 2] not in " \t":
        at = line.find(":", at + 1)
    key = line[start : max(at, start)].rstrip(SPACE)
    if (
        not key
        or key[0] in INDICATORS
        or key[0] == "\t"
        or comment_at(key) < len(key)
        or key[:4] in ("--- ", "... ")
    ):
        return None
    if key[0] in "-?" and key[1:2] in " \t":
        return None
    return key, at + 1


def scalar_width(lines: list[str], first: int, header: str, indent: int) -> int:
    """The indentation of a block scalar: from its header, or its first line."""
    for sign in header[1:3]:
        if sign.isdigit():
            return indent + int(sign)
    for here in range(first, len(lines)):
        line = lines[here]
        body = line.lstrip(" ")
        if body:
            return max(len(line) - len(body), indent + 1)
    return indent + 1


# Texts in quotes.


def quoted(text: str, at: int) -> tuple[str, int]:
    """The quoted text at `at`, and the position after it."""
    end = quoted_end(text, at)
    inner = text[at + 1 : end - 1]
    if "\n" not in inner and "\\" not in inner and text[at] not in inner:
        return inner, end
    return _unquoted(inner, text[at]), end


def quoted_end(text: str, at: int) -> int:
    """The position after the quotes, whatever they contain."""
    quote, look = text[at], at + 1
    while (end := text.find(quote, look)) >= 0:
        look = end + 1
        if quote == "'" and text[look : look + 1] == quote:
            look += 1
        elif quote == "'" or _slashes(text, at, end) % 2 == 0:
            return look
    unfinished(quote)


def _slashes(text: str, first: int, end: int) -> int:
    at = end
    while at > first and text[at - 1] == "\\":
        at -= 1
    return end - at


def _unquoted(text: str, quote: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and quote == '"':
            part, at = _escaped(text, at + 1)
        elif sign in " \t\n":
            part, at = _folded(text, at)
        else:
            part, at = sign, at + (2 if sign == quote else 1)
        parts.append(part)
    return _whole("".join(parts))


def _whole(text: str) -> str:
    """Joins surrogate pairs; a lone surrogate is invalid."""
    if not any("\ud800" <= sign <= "\udfff" for sign in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Unreadable("an escape in quotes is half a character") from None


def _escaped(text: str, at: int) -> tuple[str, int]:
    sign = text[at : at + 1]
    if sign == "\n":
        _, after = _spaces(text, at + 1)
        return "\n" * text.count("\n", at + 1, after), after
    if sign in CODES:
        end = at + 1 + CODES[sign]
        code = text[at + 1 : end]
        if len(code) < CODES[sign] or code.strip(HEX) or int(code, 16) > LAST_CHARACTER:
            raise Unreadable(f"\\{text[at:end]} is no character")
        return chr(int(code, 16)), end
    if sign not in ESCAPES:
        raise Unreadable(f"\\{sign} means nothing in quotes")
    return ESCAPES[sign], at + 1


def _spaces(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] in " \t\n":
        end += 1
    return text[at:end], end


def _folded(text: str, at: int) -> tuple[str, int]:
    """Folds: spaces stay; one line break with the spaces around it becomes a space, more become breaks."""
    spaces, end = _spaces(text, at)
    breaks = spaces.count("\n")
    return (spaces if not breaks else "\n" * (breaks - 1) or " "), end


# Lists and mappings in brackets.


def simple_list(line: str) -> list[str] | None:
    """Fast path for a simple list in one line; None: needs the full parser."""
    if line[-1:] != "]":
        return None
    inner = line[1:-1].strip(" ")
    if not inner:
        return []
    if inner[0] == '"':
        parts = inner.split('"')
        between = {part.strip(" ") for part in parts[2:-1:2]}
        ends = not parts[0] and not parts[-1]
        return parts[1::2] if ends and between <= {","} and "\\" not in inner else None
    items = [item.strip(" ") for item in inner.split(",")]
    simple = all(item.replace("-", "x").isalnum() and item[0] != "-" for item in items)
    return items if simple and not any(item in NULLS for item in items) else None


def _deeper(depth: int) -> int:
    if depth == DEPTH:
        raise Unreadable("it is nested too deeply")
    return depth + 1


def flow(text: str, at: int, depth: int = 0) -> tuple[Node, int]:
    """The value in the brackets at `at`, and the position after them."""
    ending = "]" if text[at] == "[" else "}"
    items: list[Node] = []
    pairs: dict[str, Node] = {}
    at = _next(text, at + 1)
    while text[at] != ending:
        node, at = _flow_node(text, at, depth)
        at = _next(text, at)
        paired = text[at] == ":"
        value: Node = None
        if paired:
            at = _next(text, at + 1)
            if text[at] not in ",]}":
                value, at = _flow_node(text, at, depth)
                at = _next(text, at)
        if ending == "]":
            items.append(UnsupportedNode("a mapping") if paired else node)
        elif not isinstance(node, str) or node in pairs:
            pairs[str(node)] = UnsupportedNode("a key that is no text, or stands twice")
        else:
            pairs[node] = value
        if text[at] == ",":
            at = _next(text, at + 1)
        elif text[at] != ending:
            raise Unreadable(f"{text[at]} stands where , or {ending} should")
    return (items if ending == "]" else pairs), at + 1


def _next(text: str, at: int) -> int:
    """Skips spaces, line breaks and comments."""
    while at < len(text):
        if text[at] == "#" and text[at - 1] in " \t\n":
            at = text.find("\n", at)
            if at < 0:
                break
        elif text[at] not in " \t\n":
            return at
        at += 1
    unfinished("a bracket")


def _after_anchor(text: str, at: int, depth: int) -> int:
    """The position after the node of an anchor or a tag, if any."""
    while at < len(text) and text[at] not in " \t\n,]}":
        at += 1
    at = _next(text, at)
    return at if text[at] in ",]}:" else _flow_node(text, at, _deeper(depth))[1]


def _flow_node(text: str, at: int, depth: int) -> tuple[Node, int]:
    sign = text[at]
    if sign in "[{":
        return flow(text, at, _deeper(depth))
    if sign in "\"'":
        try:
            return quoted(text, at)
        except Unreadable as why:
            return UnsupportedNode(str(why)), quoted_end(text, at)
    if sign in "&!":
        return UnsupportedNode("an anchor or a tag"), _after_anchor(text, at, depth)
    end = at
    while end < len(text):
        sign = text[end]
        if sign in FLOW or (sign == "#" and text[end - 1] in " \t\n"):
            break
        if sign == ":" and (text[end + 1 : end + 2] in " \t\n" or text[end + 1] in FLOW):
            break
        end += 1
    if end == at:
        raise Unreadable(f"{sign} stands where a value should")
    found = text[at:end].rstrip(" \t\n")
    return _plain(found.split("\n"), brackets=True), end


# Values.


def value(lines: list[str], indent: int, depth: int = 0) -> Node:
    """Parses a value: the rest of its key's line, then the lines below it.

    A mapping below is not parsed: it is an `UnsupportedNode`.
    """
    inline = lines[0].lstrip(SPACE)
    if is_filler(inline):
        below = [line for line in lines[1:] if not is_filler(line.lstrip(" "))]
        if not below:
            return None
        body = below[0].lstrip(" ")
        if is_dash(body):
            return _items(lines[1:], len(below[0]) - len(body), _deeper(depth))
        if key_of(body, 0) is not None:
            return UnsupportedNode("a mapping")
        inline, lines = body, [body, *lines[lines.index(below[0], 1) + 1 :]]
    sign = inline[0]
    if sign in "|>":
        return _scalar(lines[1:], inline, indent)
    if sign not in "[{\"'":
        return _plain([inline, *lines[1:]])
    simple = simple_list(inline) if sign == "[" and len(lines) == 1 else None
    if simple is not None:
        return [*simple]
    text = "\n".join([inline, *lines[1:]])
    node, end = quoted(text, 0) if sign in "\"'" else flow(text, 0)
    rest = text[end:].split("\n")
    if not is_filler(rest[0].lstrip(SPACE)) or rest[0][:1] == "#" or not _fillers(rest[1:]):
        raise Unreadable("something stands after its end")
    return node


def _fillers(lines: list[str]) -> bool:
    return all(is_filler(line.lstrip(" ")) for line in lines)


def _items(lines: list[str], indent: int, depth: int) -> Node:
    items: list[list[str]] = []
    for line in lines:
        body = line.lstrip(" ")
        width = len(line) - len(body)
        if body and width == indent and is_dash(body):
            items.append([body[1:]])
        elif items and (width > indent or is_filler(body)):
            items[-1].append(line)
        elif not is_filler(body):
            raise Unreadable("a list has a line that is no item")
    return [value(_without_end(item), indent, depth) for item in items]


def _without_end(lines: list[str]) -> list[str]:
    """Without trailing comments and blank lines, unless they may be part of the text."""
    last = len(lines)
    if lines[0].lstrip(SPACE)[:1] not in ("|", ">"):
        while last > 1 and is_filler(lines[last - 1].lstrip(" ")):
            last -= 1
    return lines[:last]


def _plain(lines: list[str], *, brackets: bool = False) -> Node:
    first, final = lines[0], len(lines) - 1
    if first[0] in "&*!":
        return UnsupportedNode("an anchor, an alias or a tag")
    alone = first[0] in "-?:" and first[1:2] in " \t"
    if first[0] in INDICATORS or alone or (brackets and first[0] == "?"):
        raise Unreadable(f"{first[0]} cannot begin a text without quotes")
    text, breaks = "", 0
    for number, line in enumerate(lines):
        part = line[: comment_at(line)].strip(SPACE)
        hidden = len(line.rstrip(SPACE)) - comment_at(line)
        if (hidden and number < final) or (hidden and not part) or part[:1] == "#":
            raise Unreadable("a comment stands in the middle of a text")
        if not brackets and (": " in part or ":\t" in part or part.endswith(":")):
            raise Unreadable("a text with a colon needs quotes")
        if not part:
            breaks += 1
            continue
        text += ("\n" * breaks or " ") + part if number else part
        breaks = 0
    return None if text in NULLS else text


def _scalar(lines: list[str], header: str, indent: int) -> str:
    """A block scalar: literal (|), or folded (>)."""
    signs = header[1 : comment_at(header)]
    digit = signs.strip("+-")
    if digit not in ("", *"123456789") or len(signs) - len(digit) > 1:
        raise Unreadable(f"{header} begins no text")
    width = scalar_width(lines, 0, header, indent)
    parts = [line[width:] for line in lines]
    end = len(parts)
    while end and not parts[end - 1]:
        end -= 1
    text, gap, before = "", 0, ""
    for part in parts[:end]:
        if not part:
            gap += 1
            continue
        folds = header[0] == ">" and before and before[0] not in SPACE and part[0] not in SPACE
        text += ("\n" * gap or " ") if folds else "\n" * (gap + (1 if before else 0))
        text, gap, before = text + part, 0, part
    if "-" in signs:
        return text
    trailing = len(parts) - end if "+" in signs else 0
    return text + "\n" * (trailing + (1 if end else 0))
