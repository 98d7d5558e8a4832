"""Parses the key `dibs` of a file into a pointer."""

from __future__ import annotations

from dibs.backlogs.item import PERSON, UNBOUND, Pointer
from dibs.domain import checks
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import MICROSECOND, Duration

BOARD_LENGTH = 128


def pointer_of(text: str) -> Pointer | None:
    """Parses `BOARD TOKEN [ACTOR SESSION TTL]`; None if it is anything else."""
    parts = text.split(" ")
    try:
        if len(parts) == 2:
            return Pointer(_board(parts[0]), checks.token(parts[1]))
        if len(parts) == 5:
            board, token, actor, session, ttl = parts
            return Pointer(
                _board(board),
                checks.token(token),
                checks.actor_name(actor),
                session if session in (PERSON, UNBOUND) else checks.session_name(session),
                checks.ttl(_duration(ttl)),
            )
    except Refused:
        return None
    return None


def _board(text: str) -> str:
    if not text.isprintable():
        raise bad_argument("that is not a board")
    return checks.text(text, "the board", BOARD_LENGTH)


def _duration(text: str) -> Duration:
    """Accepts fractions of a second, which people do not type: `1.5s`."""
    whole, dot, part = text.removesuffix("s").partition(".")
    if not dot:
        return checks.duration(text)
    if not text.endswith("s") or not part.isascii() or not part.isdigit() or len(part) > 6:
        raise bad_argument("that is not a duration")
    return Duration(checks.duration(f"{whole}s") + int(part.ljust(6, "0")) * MICROSECOND)
