"""Translates the shared SQL to PostgreSQL: queries, and the tables of the migrations.

Queries get the driver's parameter style, and a schema before every table name, so that they do not depend on
`search_path`.

Tables get PostgreSQL's type names, and a faster form of their constraints. PostgreSQL parses every CHECK of a
table again for each statement that writes to it; for a task that was half of the work. Domains and functions it
parses once per connection. So a CHECK on one column becomes a domain, the column's type; CHECKs on several
columns of a task move to its trigger function. They refuse the same rows (`tests/storage/test_schema.py`).
"""

from __future__ import annotations

import re

SCHEMA = "dibs"
TABLES = (
    "board", "home", "migration", "actor_name", "actor", "session", "task", "dependency", "ended_lease",
    "lease_process", "event", "stint", "allowance", "approval", "note", "request", "refusal",
)  # fmt: skip

_TABLE = re.compile(
    rf"\b(FROM|JOIN|INTO|UPDATE|TABLE|REFERENCES|ON)(\s+)({'|'.join(TABLES)})\b(?!\.)"
)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)\b")


def query(text: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", qualified(text).replace("%", "%%"))


def qualified(text: str) -> str:
    return _TABLE.sub(rf"\1\2{SCHEMA}.\3", text)


# Tables.


_TYPES = {
    r"\bINTEGER\b": "BIGINT",
    r"\bTEXT\b": 'TEXT COLLATE "C"',
    r"\) STRICT(, WITHOUT ROWID)?;": ");",
}
_CREATED = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\) STRICT[^;]*;", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^    (\w+) +(INTEGER|TEXT)\b", re.MULTILINE)
_CHECK = re.compile(r",?\s*\b(CHECK) \(")
_MADE = re.compile(rf"^CREATE (TABLE|FUNCTION|DOMAIN|TRIGGER) (?:{SCHEMA}\.)?(\w+)", re.MULTILINE)
_QUOTED = re.compile(r"('[^']*')")

RULES_OF_TASK = "{rules of task}"
"""The placeholder for them in the trigger function of a task."""


def definition(shared: str, own: str) -> str:
    """A whole migration: the shared text, then PostgreSQL's own."""
    together: list[str] = []
    shared = _CREATED.sub(lambda found: with_domains(found[1], found[0], together), shared)
    for pattern, named in _TYPES.items():
        shared = re.sub(pattern, named, shared)
    return qualified(shared) + own.replace(RULES_OF_TASK, "\n        AND ".join(together))


def made_by(text: str) -> set[tuple[str, str]]:
    """Kind and name of every object in a migration that can contain code."""
    return set(_MADE.findall(text))


def with_domains(table: str, text: str, together: list[str]) -> str:
    """A table after its column domains. CHECKs on several columns of a task go to `together`."""
    columns = [column for column, _ in _COLUMN.findall(text)]
    domains = []
    place = 0
    while found := _CHECK.search(text, place):
        place = end_of(text, found.end())
        rule = " ".join(text[found.end() : place - 1].split())
        line = text.rfind("\n", 0, found.start(1)) + 1
        column = _COLUMN.match(text, line)
        if column and renamed(rule, columns, "") == renamed(rule, [column[1]], ""):
            domain = f"{SCHEMA}.{column[1]}_of_{table}"
            stated = renamed(rule, [column[1]], "VALUE")
            domains.append(f"CREATE DOMAIN {domain} AS {column[2]} CHECK ({stated});\n")
            kept = text[: column.start(2)] + domain + text[column.end(2) : found.start()]
        elif table == "task":
            together.append("(" + renamed(rule, columns, r"new.\1") + ")")
            kept = text[: found.start()]
        else:
            continue
        text, place = kept + text[place:], len(kept)
    return "".join(domains) + text


def end_of(text: str, place: int) -> int:
    """The position after the parenthesis that was opened before `place`."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place


def renamed(rule: str, columns: list[str], to: str) -> str:
    """Renames columns in a CHECK, except inside quotes."""
    named = re.compile(rf"\b({'|'.join(columns)})\b")
    parts = _QUOTED.split(rule)
    return "".join(part if part.startswith("'") else named.sub(to, part) for part in parts)
