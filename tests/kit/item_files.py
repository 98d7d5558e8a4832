"""What may differ between two versions of an item file: an oracle that shares no code with dibs.

It cuts files into lines by itself, and reads values with PyYAML, one key at a time.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import yaml

ABSENT = "(absent)"
RECORD = (
    "assignee_agent", "assignee_tier", "assigned_at", "lease_ttl", "lease_expires_at",
    "handoff_reason",
)  # fmt: skip
OWNED = {
    "kano": frozenset(
        {"state", "owner", "updated", "dibs", "dibs_owner", "scope", "constraints", *RECORD}
    ),
    "wrk": frozenset({"status", "locked_by", "locked_at", "dibs"}),
}
"""Keys that dibs may write; everything else belongs to others."""

KEY = re.compile(r"""(?:"([^"\n]+)"|'([^'\n]+)'|([^\W\d][\w-]*))[ \t]*:(?=[ \t\r\n]|$)""")
COMMENT = re.compile(r"[ \t]+#.*$")
TOLD = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d \[agent=(?P<agent>\S+)\] \[model=\S+\] (?P<word>\w+): (?P<verb>[a-z ]+?)"
    r"(?:: (?P<text>.*))? \(dibs (?P<token>\d+\.\d+) #(?P<seq>\d+)\)"
)
"""A line of the Worklog as dibs writes it."""


class Parts(NamedTuple):
    """A file: its first line, the lines of its block, and all from the closing line on."""

    opening: str
    block: list[str]
    rest: str

    @property
    def body(self) -> str:
        return self.rest.partition("\n")[2]


class Changed(NamedTuple):
    """What is different: the keys of the block, and the lines that the Worklog has more."""

    keys: frozenset[str]
    steps: list[re.Match[str]]


def cut(data: bytes) -> Parts:
    opening, *lines = data.decode().split("\n")
    end = next(n for n, line in enumerate(lines) if line.rstrip() in ("---", "..."))
    return Parts(opening, lines[:end], "\n".join(lines[end:]))


def spans(block: list[str]) -> dict[str, tuple[int, int]]:
    """Each key with its lines; comments and blank lines between two keys belong to none."""
    found: dict[str, tuple[int, int]] = {}
    key = ""
    for number, line in enumerate(block):
        match = KEY.match(line)
        if match:
            key = next(name for name in match.groups() if name)
            assert key not in found, f"{key} stands twice"
            found[key] = (number, number + 1)
        elif key and line.strip() and not line.lstrip().startswith("#"):
            found[key] = (found[key][0], number + 1)
    return found


def values(data: bytes) -> dict[str, Any]:
    """The value of each key that YAML can read; instants and days as text."""
    block = cut(data).block
    found = {}
    for key, (first, last) in spans(block).items():
        try:
            [found[key]] = read("\n".join(block[first:last])).values()
        except (yaml.YAMLError, AttributeError):
            continue
    return {key: plain(value) for key, value in found.items()}


def read(text: str) -> Any:
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat() if isinstance(value, date) else value


def others(data: bytes, owned: frozenset[str]) -> Any:
    """The whole block as YAML, but for our keys; nothing if YAML cannot read it."""
    try:
        found = read("".join(f"{line}\n" for line in cut(data).block).replace("\r", ""))
    except yaml.YAMLError:
        return None
    return {key: value for key, value in found.items() if key not in owned}


def changes(before: bytes, after: bytes, dialect: str) -> Changed:
    """What differs. Fails if anything does that belongs to others."""
    owned = OWNED[dialect]
    old, new = cut(before), cut(after)
    assert new.opening == old.opening, "the opening line, with its BOM, is kept"
    keys = changed_keys(old.block, new.block, owned)
    assert others(after, owned) == others(before, owned), "another key reads differently"
    added = added_lines(old.rest, new.rest)
    assert not added or dialect == "kano", "only kano has a Worklog"
    assert after.endswith(b"\n") == before.endswith(b"\n"), "the final newline is kept"
    same_newlines(before, after)
    return Changed(keys, added)


def changed_keys(old: list[str], new: list[str], owned: frozenset[str]) -> frozenset[str]:
    was, now = spans(old), spans(new)
    removed = [key for key in was if key not in now]
    below = list(was)[list(was).index("dibs") + 1 :] if "dibs" in was else []
    assert (owned & set(below)).issuperset(removed), f"keys went that dibs did not add: {removed}"
    kept = [key for key in was if key in now]
    assert list(now)[: len(kept)] == kept, "the order of the keys is kept"
    added = list(now)[len(kept) :]
    assert owned.issuperset(added), f"keys came that are not ours: {added}"
    assert without(new, owned) == without(old, owned), "a line that is not ours is different"
    changed = {*added, *removed}
    for key in owned & set(kept):
        lines, after = old[slice(*was[key])], new[slice(*now[key])]
        if lines != after:
            changed.add(key)
            assert len(after) == 1, f"{key} is one line after a change"
            kept_around(key, lines, after[0])
    last = new[len(new) - len(added) :]
    assert [KEY.match(line) is not None for line in last] == [True] * len(added), "they come last"
    return frozenset(changed)


def kept_around(key: str, lines: list[str], after: str) -> None:
    """How the key is written, and the comment and the line's end after its value, stay."""
    [written, rewritten] = [KEY.match(line) for line in (lines[0], after)]
    assert written and rewritten and written[0] == rewritten[0], f"{key} is spelt differently"
    assert lines[-1].endswith("\r") == after.endswith("\r"), f"{key} has another newline"
    comment = COMMENT.search(lines[0].rstrip("\r"))
    if comment and len(lines) == 1 and "#" not in str(read(lines[0])):
        assert after.rstrip("\r").endswith(comment[0]), f"the comment after {key} is gone"


def without(block: list[str], owned: frozenset[str]) -> list[str]:
    gone = {number for key, span in spans(block).items() if key in owned for number in range(*span)}
    return [line for number, line in enumerate(block) if number not in gone]


def added_lines(old: str, new: str) -> list[re.Match[str]]:
    """The lines of the Worklog that came. Without them, and a heading made for them, all is as it was."""
    if old == new:
        return []
    lines = new.split("\n")
    came = [number for number, line in enumerate(lines) if is_new(line, old)]
    assert came, "the text is different, and nothing was told"
    assert came == list(range(came[0], came[-1] + 1)), "they stand together"
    kept = lines[: came[0]], lines[came[-1] + 1 :]
    assert old in possible(*kept), "the text around them is different"
    in_worklog(lines, came[0])
    found = [TOLD.fullmatch(lines[number].rstrip("\r")) for number in came]
    return [match for match in found if match]


def is_new(line: str, old: str) -> bool:
    return TOLD.fullmatch(line.rstrip("\r")) is not None and line.rstrip("\r") not in old


def possible(head: list[str], tail: list[str]) -> list[str]:
    """The texts that there may have been before: with the heading, without it, without its blank line."""
    texts = ["\n".join([*head, *tail])]
    bare = [line.rstrip("\r") for line in head]
    if not tail:  # the last line has no newline: that of the line before was added
        texts.append("\n".join(head).removesuffix("\r"))
    if bare[-1] == "":
        texts.append("\n".join([*head[:-1], *tail]))
        if not tail:
            texts.append("\n".join(head[:-1]).removesuffix("\r"))
    if bare[-2:] == ["# Worklog", ""]:
        for start in {len(head) - 2, len(head) - 2 - (bare[-3:-2] == [""])}:
            texts.append("\n".join([*head[:start], *tail]))
            if not tail:
                texts.append("\n".join(head[:start]).removesuffix("\r"))
    return texts


def in_worklog(lines: list[str], at: int) -> None:
    """Of the headings that the place stands below, code apart, one is that of the Worklog."""
    fence, above = "", {}
    for line in lines[:at]:
        bare = line.strip()
        if bare.startswith(("```", "~~~")) and (not fence or bare.startswith(fence)):
            fence = "" if fence else bare[:3]
        elif not fence and (match := re.match(r"(#{1,6})[ \t]", line)):
            level = len(match[1])
            above = {n: text for n, text in above.items() if n < level} | {level: bare}
    assert not fence, "it stands in code"
    named = [heading.strip("# ").casefold() for heading in above.values()]
    assert "worklog" in named, f"it stands below {named}"


def same_newlines(before: bytes, after: bytes) -> None:
    """A file with one kind of newline has no other kind afterwards."""
    assert b"\r" in before or b"\r" not in after, "a carriage return came"
    assert has_bare(before) or not has_bare(after), "a newline without carriage return came"


def has_bare(data: bytes) -> bool:
    return b"\n" in data.replace(b"\r\n", b"")
