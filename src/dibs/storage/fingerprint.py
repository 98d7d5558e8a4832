"""Computes the fingerprints of the schema from the migrations; `queries.py` contains the results."""

from __future__ import annotations

WIDTH = 31
"""Bits of a fingerprint: SQLite stores it as a signed 32-bit number."""


def computed() -> dict[int, int]:
    """Fingerprints of the current migrations, over the SQL of both databases."""
    from hashlib import sha256

    from dibs.storage.dialect import definition
    from dibs.storage.queries import migrations

    digest, found = sha256(), {}
    for number, (shared, own) in migrations("sqlite").items():
        texts = (shared + own, definition(*migrations("postgres")[number]))
        digest.update("\0".join(map(plain, texts)).encode())
        found[number] = int.from_bytes(digest.digest()[:4], "big") >> (32 - WIDTH)
    return found


def plain(text: str) -> str:
    """SQL without comments and layout, which do not affect the schema."""
    return " ".join(" ".join(line.partition("--")[0] for line in text.splitlines()).split())
