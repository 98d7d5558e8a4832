"""Loads the named queries of `sql/queries.sql`."""

from __future__ import annotations

from os.path import dirname, join

FOLDER = join(dirname(__file__), "sql")


def load() -> dict[str, str]:
    """Each query by its name, with its parts put in."""
    with open(join(FOLDER, "queries.sql"), encoding="utf-8") as file:
        return parse(file.read())


def parse(text: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    parts: dict[str, str] = {}
    for block in text.split("\n-- ")[1:]:
        head, _, body = block.partition("\n")
        kind, colon, name = head.partition(": ")
        body = body.strip()
        if not colon or kind not in ("part", "name"):
            continue
        for part, columns in parts.items():
            body = body.replace("{" + part + "}", columns)
        (parts if kind == "part" else queries)[name] = body
    return queries
