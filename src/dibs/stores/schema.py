"""The fingerprints of the schema, read off the migrations: `queries.py` has them ready."""

from __future__ import annotations

WIDTH = 31
"""Bits of a fingerprint: SQLite keeps it as a signed number of 32."""


def computed() -> dict[int, int]:
    """The fingerprints as the migrations have them, in the words of both databases."""
    from hashlib import sha256

    from dibs.stores.definitions import definition
    from dibs.stores.queries import migrations

    digest, found = sha256(), {}
    for number, (shared, own) in migrations("sqlite").items():
        texts = (shared + own, definition(*migrations("postgres")[number]))
        digest.update("\0".join(map(plain, texts)).encode())
        found[number] = int.from_bytes(digest.digest()[:4], "big") >> (32 - WIDTH)
    return found


def plain(text: str) -> str:
    """SQL without its comments and its layout: what the database makes of it stays the same."""
    return " ".join(" ".join(line.partition("--")[0] for line in text.splitlines()).split())
