"""Loads the SQL: named queries, and numbered migrations (`0001_board.sql` and what follows)."""

from __future__ import annotations

import os
from os.path import dirname, join

FOLDER = join(dirname(__file__), "sql")


def load(database: str) -> dict[str, str]:
    """Each query by its name, with its parts put in: the shared ones, and the database's own."""
    texts = [script(join(FOLDER, name)) for name in ("queries.sql", f"{database}.sql")]
    return parse("\n".join(texts))


def parse(text: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    parts: dict[str, str] = {}
    for block in text.split("\n-- ")[1:]:
        head, _, body = block.partition("\n")
        kind, colon, name = head.partition(": ")
        body = body.strip()
        if not colon or kind not in ("part", "name"):
            continue
        if "{" in body:
            for part, columns in parts.items():
                body = body.replace("{" + part + "}", columns)
        (parts if kind == "part" else queries)[name] = body
    return queries


def migrations(database: str) -> dict[int, tuple[str, str]]:
    """Each migration by its number: the shared text, then the database's own."""
    folder = join(FOLDER, "migrations")
    found = {}
    for name in sorted(os.listdir(folder)):
        stem, dot, _ = name.removesuffix(".sql").partition(".")
        if not dot:
            own = join(folder, f"{stem}.{database}.sql")
            found[int(stem.partition("_")[0])] = (script(join(folder, name)), script(own))
    return found


def grants() -> list[str]:
    """What a role is given, one statement each; `{role}` stands for it."""
    text = script(join(FOLDER, "grants.postgres.sql"))
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def newest() -> int:
    """The number of the newest migration, which is the same for every database."""
    return max(int(name.partition("_")[0]) for name in os.listdir(join(FOLDER, "migrations")))


def script(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
