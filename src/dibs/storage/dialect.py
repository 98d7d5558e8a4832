"""Translates the shared SQL to PostgreSQL: its parameter style, and a schema before every table name, so that
the tables do not depend on `search_path`.
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
