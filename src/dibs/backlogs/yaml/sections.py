"""The sections of a Markdown text by heading."""

from __future__ import annotations

from dibs.domain.values import Value
from dibs.safe_files import Unreadable

FENCES = ("```", "~~~")


class Heading(Value):
    """A line with one to six `#` and a text."""

    line: int
    level: int
    text: str


class Sections:
    """A text with its headings, parsed once."""

    def __init__(self, body: str) -> None:
        self._lines = body.replace("\r\n", "\n").split("\n")
        self._headings, _ = _headings(self._lines)

    def text(self, title: str) -> str:
        """The text below the heading, or below the next equal one; "" if missing, or only comments."""
        first = _find(self._headings, title)
        if first is None:
            return ""
        same = [each for each in self._headings if each.text.casefold() == first.text.casefold()]
        return next(filter(None, map(self._below, same)), "")

    def _below(self, heading: Heading) -> str:
        end = _end(self._headings, heading, len(self._lines))
        text = "\n".join(self._lines[heading.line + 1 : end]).strip()
        return text if _without_comments(text) else ""


def with_line(body: str, title: str, line: str, newline: str) -> str:
    """The text with a line appended to that section.

    Raises `Unreadable` if the line would be inside unclosed code or an unclosed comment.
    """
    lines = body.split("\n")
    headings, open_since = _headings([each.removesuffix("\r") for each in lines])
    found = _find([each for each in headings if _names(each, title)], title)
    end = _end(headings, found, len(lines)) if found else len(lines)
    if open_since and end == len(lines):
        raise Unreadable(f"its text has code or a comment that does not end: {open_since}")
    if not found:
        return _with_section(body, title, line, newline)
    last = end - 1
    while not lines[last].strip():
        last -= 1
    extra = [line]
    if last == found.line:
        extra = ["", line]
        if end == len(lines) and last + 2 < end:
            last, extra = last + 1, [line]
    return _inserted(lines, last, extra, newline)


def _inserted(lines: list[str], last: int, extra: list[str], newline: str) -> str:
    """Inserts `extra` after the line `last`. A file without a final newline stays so."""
    if last == len(lines) - 1:
        return "\n".join(lines) + "".join([newline + each for each in extra])
    ends = newline[:-1]
    return "\n".join([*lines[: last + 1], *[each + ends for each in extra], *lines[last + 1 :]])


def _with_section(body: str, title: str, line: str, newline: str) -> str:
    """Appends the section after a blank line. A file without a final newline stays so."""
    whole = body.endswith("\n")
    start = body if whole else body + newline
    lines = start.split("\n")
    gap = "" if len(lines) > 2 and not lines[-2].strip() else newline
    return f"{start}{gap}# {title}{newline}{newline}{line}{newline if whole else ''}"


def _headings(lines: list[str]) -> tuple[list[Heading], str]:
    """The headings, and the line of code or comment that is still open at the end."""
    found = []
    fence = opened = ""
    for number, line in enumerate(lines):
        body = line.strip()
        if fence == "-->":
            fence = "" if fence in body else fence
        elif fence:
            fence = "" if body.startswith(fence) and not body.strip(fence[0]) else fence
        elif body.startswith("<!--") and "-->" not in body[4:]:
            fence, opened = "-->", body
        elif body.startswith(FENCES) and not (body[0] == "`" and "`" in body.lstrip("`")):
            fence, opened = body[: len(body) - len(body.lstrip(body[0]))], body
        elif body.startswith("#") and not line.startswith(("    ", "\t")):
            level = len(body) - len(body.lstrip("#"))
            if level <= 6 and body[level : level + 1] in " \t":
                found.append(Heading(number, level, body[level:].strip().rstrip("#").strip()))
    return found, opened if fence else ""


def _find(headings: list[Heading], title: str) -> Heading | None:
    """The exact heading, or the first that begins with the title."""
    title = title.casefold()
    for heading in headings:
        if heading.text.casefold() == title:
            return heading
    return next((each for each in headings if each.text.casefold().startswith(title)), None)


def _names(heading: Heading, title: str) -> bool:
    """Whether it is that title, perhaps with a remark: `Worklog (latest last)`, not `Worklog of others`."""
    return not heading.text[len(title) :].strip()[:1].isalnum()


def _end(headings: list[Heading], of: Heading, length: int) -> int:
    for heading in headings:
        if heading.line > of.line and heading.level <= of.level:
            return heading.line
    return length


def _without_comments(text: str) -> str:
    kept, at = "", 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find("-->", start + 4)
        kept += text[at:start]
        at = end + 3 if end >= 0 else len(text)
    return (kept + text[at:]).strip()
