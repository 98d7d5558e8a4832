"""The frontmatter of a Markdown file: read and edited by key, preserving everything else."""

from __future__ import annotations

from dibs.backlogs.yaml import sections
from dibs.backlogs.yaml.layout import Entry, entries
from dibs.backlogs.yaml.scalars import (
    SPACE,
    UnsupportedNode,
    comment_at,
    flow,
    is_dash,
    is_filler,
    quoted_end,
    value,
)
from dibs.backlogs.yaml.writing import REMOVED, Raw, Removed, item_written, style_of, written
from dibs.safe_files import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.backlogs.yaml.scalars import Node

__all__ = ["REMOVED", "Document", "Raw", "Removed"]

BOM = "\ufeff"
BREAKS = ("\r", "\x85", "\u2028", "\u2029")
"""Line breaks to some YAML readers and not to others."""


class Document:
    """A file as bytes, with its keys and sections. Immutable: edits return new bytes.

    Parses only what is requested: another key may contain anything, as long as its end is clear.
    """

    def __init__(self, data: bytes) -> None:
        """Raises `Unreadable` for a file that is empty, not text, or has no unambiguous frontmatter."""
        self.data = data
        self._sections: sections.Sections | None = None
        text = _decoded(data)
        start = _opening(text)
        end = _closing(text, start)
        self._text, self._start, self._end = text, start, end
        self._newline = "\r\n" if text[start - 2 : start - 1] == "\r" else "\n"
        block = text[start : end - 1] if end > start else ""
        self._block = block.replace("\r\n", "\n").removesuffix("\r")
        _one_kind_of_line(self._block)
        self._lines = self._block.split("\n")
        try:
            self._entries = entries(self._block) if end > start else []
        except Unreadable as why:
            raise Unreadable(str(why), why.line + 2) from None
        for entry in self._entries:
            if entry.key == "<<":
                raise Unreadable("keys are merged from elsewhere (<<)", entry.first + 2)

    # Reading.

    def keys(self) -> tuple[str, ...]:
        """The keys in order, with duplicates."""
        return tuple([entry.key for entry in self._entries])

    def has(self, key: str) -> bool:
        return key in self.keys()

    def line(self, key: str) -> int:
        """The line number of the key; 0 if missing."""
        entry = self._entry(key)
        return entry.first + 2 if entry else 0

    def text(self, key: str) -> str:
        """The value as text; "" if null, empty or missing. Raises for a list or a mapping."""
        found = self._value(key)
        if isinstance(found, list | dict):
            raise self._unreadable(key, "it is not one text")
        return found or ""

    def texts(self, key: str) -> tuple[str, ...]:
        """The value as a list of texts; one text is a list of one. Null items are skipped."""
        return _texts(self._value(key), key, self.line(key))

    def nested(self, key: str, inner: str) -> tuple[str, ...]:
        """The list of texts under `inner` in the mapping under `key`, if any."""
        entry = self._entry(key)
        if entry is None:
            return ()
        try:
            return self._nested(entry, inner)
        except Unreadable as why:
            raise Unreadable(f"{key}.{inner}: {why}", entry.first + 2) from None

    def section(self, title: str) -> str:
        """What stands below the first heading that begins with `title`, in any case of letters, up to
        the next heading of its level or above; "" if there is nothing but comments.
        """
        if self._sections is None:
            self._sections = sections.Sections(self._body)
        return self._sections.text(title)

    # Writing.

    def with_values(
        self, values: Mapping[str, str | tuple[str, ...] | bool | Removed | None]
    ) -> bytes:
        """The file with these values, and every other byte preserved.

        An equal value keeps its format, and so do quotes, and lists with an item per line. A new key becomes
        the last line of the block; `REMOVED` removes a key.
        """
        raw = self._text[self._start : self._end].split("\n")
        added = []
        changed: list[tuple[Entry, list[str]]] = []
        for key, new in values.items():
            entry = self._entry(key)
            if entry is None:
                if not isinstance(new, Removed):
                    added.append(f"{written(key)}: {written(new)}{self._newline[:-1]}")
            elif isinstance(new, Removed):
                changed.append((entry, []))
            elif not self._same(entry, new):
                changed.append((entry, self._changed(entry, new)))
        if not added and not changed:
            return self.data
        for entry, lines in sorted(changed, key=lambda change: -change[0].first):
            ending = "\r" if raw[entry.first].endswith("\r") else ""
            kept = {line.removesuffix("\r"): line for line in raw[entry.first : entry.last]}
            raw[entry.first : entry.last] = [kept.get(line, line + ending) for line in lines]
        raw[-1:] = [*added, ""]
        return self._bytes(self._text[: self._start] + "\n".join(raw) + self._text[self._end :])

    def with_line(self, heading: str, line: str) -> bytes:
        """The file with a line appended to a section, which is created if missing."""
        if "\n" in line or "\r" in line:
            raise ValueError("it is more than one line")
        body = self._body
        after = sections.with_line(body, heading, line, self._newline)
        return self._bytes(self._text[: len(self._text) - len(body)] + after)

    # Inside.

    @property
    def _body(self) -> str:
        """From the end of the closing line, including its newline: the body may be empty."""
        at = self._text.find("\n", self._end)
        return "" if at < 0 else self._text[at - (self._text[at - 1] == "\r") :]

    def _entry(self, key: str) -> Entry | None:
        found = [entry for entry in self._entries if entry.key == key]
        if len(found) > 1:
            first, second = found[0].first + 2, found[1].first + 2
            raise Unreadable(f"{key} stands twice, in lines {first} and {second}", second)
        return found[0] if found else None

    def _unreadable(self, key: str, why: str) -> Unreadable:
        return Unreadable(f"{key}: {why}", self.line(key))

    def _source(self, entry: Entry) -> list[str]:
        """The value's own lines; the first is the rest of the key's line."""
        lines = self._lines[entry.first : entry.last]
        lines[0] = lines[0][entry.at :]
        return lines

    def _value(self, key: str) -> str | list[Node] | dict[str, Node] | None:
        entry = self._entry(key)
        if entry is None:
            return None
        try:
            found = value(self._source(entry), 0)
        except Unreadable as why:
            raise self._unreadable(key, str(why)) from None
        if isinstance(found, UnsupportedNode):
            raise self._unreadable(key, f"it is {found.what}")
        return found

    def _nested(self, entry: Entry, inner: str) -> tuple[str, ...]:
        source = self._source(entry)
        found = value(source, 0)
        if isinstance(found, dict):
            return _texts(found.get(inner), inner)
        if found is None:
            return ()
        first = next((line for line in source[1:] if not is_filler(line.lstrip(" "))), "")
        if (
            not isinstance(found, UnsupportedNode)
            or not is_filler(source[0].lstrip(SPACE))
            or not first
        ):
            raise Unreadable("it is not a mapping")
        block = "\n".join(source[1:])
        indent = len(first) - len(first.lstrip(" "))
        places = [place for place in entries(block, indent) if place.key == inner]
        if not places:
            return ()
        if len(places) > 1:
            raise Unreadable("it stands twice")
        lines = block.split("\n")[places[0].first : places[0].last]
        lines[0] = lines[0][places[0].at :]
        return _texts(value(lines, indent), inner)

    def _same(self, entry: Entry, new: str | tuple[str, ...] | bool | None) -> bool:
        """Whether it already equals the new value. A mapping is never replaced: its content is not ours."""
        found = self._value(entry.key)
        if isinstance(found, dict):
            raise self._unreadable(entry.key, "it is a mapping, which is not replaced")
        if isinstance(new, tuple):
            return self.texts(entry.key) == new
        if isinstance(found, list):
            return False
        if isinstance(new, bool):
            source = self._source(entry)[0].lstrip(SPACE)
            return source[:1] not in ("'", '"') and (found or "").lower() == str(new).lower()
        return (found or "") == (new or "")

    def _changed(self, entry: Entry, new: str | tuple[str, ...] | bool | None) -> list[str]:
        """The key's lines with the new value."""
        if isinstance(new, tuple) and is_filler(self._source(entry)[0].lstrip(SPACE)):
            lines = self._list(entry, new)
            if lines is not None:
                return lines
        return [self._line(entry, new)]

    def _list(self, entry: Entry, new: tuple[str, ...]) -> list[str] | None:
        """A list with an item per line: what stays in it keeps its line. None: it is written otherwise."""
        head, *below = self._lines[entry.first : entry.last]
        items = [line for line in below if not is_filler(line.lstrip(" "))]
        old = self.texts(entry.key)
        if len(items) != len(below) or len(items) != len(old):
            return None  # comments between the items, or texts of several lines
        dashes = [line for line in items if is_dash(line.lstrip(" "))]
        if len(dashes) != len(items):
            return None
        lines = dict(zip(old, items, strict=True))
        first = items[0] if items else "  - "
        lead = first[: len(first) - len(first.lstrip(" "))] + "- "
        style = style_of(items) or "'"
        return [head, *(lines.get(one) or lead + item_written(one, style) for one in new)]

    def emptied(self, key: str) -> str | Removed | None:
        """What empties a key that dibs may have added: `dibs` is the first that it adds, so a key below that
        one is removed, and one that was there before stays, empty in its quotes, or null.
        """
        entry = self._entry(key)
        if entry is None or self.is_below(key, "dibs"):
            return REMOVED
        return "" if style_of(self._source(entry)) else None

    def is_below(self, key: str, other: str) -> bool:
        """Whether both are there, and `key` after `other`."""
        return self.line(key) > self.line(other) > 0

    def _line(self, entry: Entry, new: str | tuple[str, ...] | bool | None) -> str:
        """The key's line with the new value, keeping quotes and comment."""
        line, source = self._lines[entry.first], self._source(entry)
        inline = source[0].lstrip(SPACE)
        before = (
            line[: len(line) - len(inline)] if inline[:1] not in ("", "#") else line[: entry.at]
        )
        if before[-1] not in SPACE:
            before += " "
        return before + written(new, style_of(source)) + _tail(source)

    def _bytes(self, text: str) -> bytes:
        return text.encode()


def _texts(found: Node, key: str, line: int = 0) -> tuple[str, ...]:
    items = found if isinstance(found, list) else [found]
    texts = [item for item in items if item is not None]
    for item in texts:
        if not isinstance(item, str):
            raise Unreadable(f"{key}: it is not a list of texts", line)
    return tuple([item for item in texts if isinstance(item, str)])


def _tail(source: list[str]) -> str:
    """What follows a value on its line: spaces and a comment."""
    inline = source[0].lstrip(SPACE)
    if inline[:1] in ("[", "{", '"', "'"):
        text = "\n".join([inline, *source[1:]])
        end = quoted_end(text, 0) if inline[0] in "\"'" else flow(text, 0)[1]
        return text[end:].split("\n")[0]
    if len(source) > 1 and not is_filler(inline) and inline[0] not in "|>":
        last = source[-1]
        return last[comment_at(last) :]
    tail = source[0][comment_at(source[0]) :]
    return tail if "#" in tail or inline else ""


def _decoded(data: bytes) -> str:
    if not data:
        raise Unreadable("the file is empty")
    if b"\0" in data:
        raise Unreadable("the file is not text", data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        return data.decode()
    except UnicodeDecodeError as why:
        line = data.count(b"\n", 0, why.start) + 1
        raise Unreadable("the file is not UTF-8", line) from None


def _opening(text: str) -> int:
    """The position after the opening line."""
    end = text.find("\n")
    first = text if end < 0 else text[:end]
    if first.removeprefix(BOM).rstrip(" \t\r") != "---":
        raise Unreadable("the file has no frontmatter: its first line is not ---", 1)
    if end < 0:
        raise Unreadable("the frontmatter is not closed", 1)
    return end + 1


def _closing(text: str, start: int) -> int:
    """The position of the closing line."""
    at = start
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        if text[at : at + 3] in ("---", "...") and not text[at + 3 : stop].strip(" \t\r"):
            return at
        at = stop + 1
    raise Unreadable("the frontmatter is not closed", 1)


def _one_kind_of_line(block: str) -> None:
    for sign in BREAKS:
        at = block.find(sign)
        if at >= 0:
            line = block.count("\n", 0, at) + 2
            raise Unreadable(f"readers differ on whether {sign!r} ends a line", line)
