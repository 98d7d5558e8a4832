"""Loads the SQL: named queries, and numbered migrations (`0001_board.sql` and what follows)."""

from __future__ import annotations

import os
from os.path import dirname, join

FOLDER = join(dirname(__file__), "sql")

FINGERPRINTS = {
    1: 0x2331C373,
}
"""Of each migration: a fingerprint of all tables and rules that were made up to it.

A board keeps both, so that one with other tables is refused before anything is read from it. Written by
`make docs`: nothing is hashed when a board is opened.
"""

NEWEST = max(FINGERPRINTS)


class Queries(dict[str, str]):
    """Each query by its name. Its parts are put in when it is first asked for: a command asks for few."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._parts: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        for block in text.split("\n-- ")[1:]:
            head, _, body = block.partition("\n")
            kind, _, name = head.partition(": ")
            if kind == "part":
                self._parts[name] = self._whole(body)
            elif kind == "name":
                self._texts[name] = body

    def __missing__(self, name: str) -> str:
        query = self[name] = self._whole(self._texts[name])
        return query

    def _whole(self, text: str) -> str:
        text = text.strip()
        if "{" in text:
            for part, columns in self._parts.items():
                text = text.replace("{" + part + "}", columns)
        return text

    def all(self) -> dict[str, str]:
        return {name: self[name] for name in self._texts}


def load(database: str) -> Queries:
    """The shared queries, and the database's own."""
    texts = [script(join(FOLDER, name)) for name in ("queries.sql", f"{database}.sql")]
    return Queries("\n".join(texts))


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


def script(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
