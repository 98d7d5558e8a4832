"""Parses times typed by people: local, with a zone, or relative; and prints them in UTC and local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dibs.domain import checks
from dibs.domain.refusals import bad_argument
from dibs.domain.values import LAST_INSTANT, UNITS, Instant, iso

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(text: str, what: str, now: Instant, when: str = "ago") -> Instant:
    """`2026-11-15T14:30:00Z`, `2026-11-15 15:30` (local), `15:30` (today, local), `2h` (ago)."""
    if text[-1:] in UNITS and text[:-1].isdigit():
        return in_range(now - checks.duration(text, what), text, what)
    try:
        typed = datetime.fromisoformat(_with_date(text))
        moment = (typed if typed.tzinfo else typed.astimezone()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_argument(
            f"{what} is {checks.quoted(text)}; write it like 2026-11-15T14:30:00Z, "
            f"2026-11-15 15:30, 15:30, or 2h for two hours {when}"
        ) from None
    return in_range((moment - EPOCH) // timedelta(microseconds=1), text, what)


def future_instant(text: str, what: str, now: Instant) -> Instant:
    """Like `instant`, but `2h` means from now."""
    if text[-1:] in UNITS and text[:-1].isdigit():
        return in_range(now + checks.duration(text, what), text, what)
    return instant(text, what, now, "from now")


def in_range(microseconds: int, text: str, what: str) -> Instant:
    if not 0 <= microseconds <= LAST_INSTANT:
        raise bad_argument(f"{what} is {checks.quoted(text)}: out of range")
    return Instant(microseconds)


def _with_date(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d} {text}" if ":" in text[:3] else text  # noqa: DTZ005 - local


def both(moment: Instant) -> str:
    """The instant in UTC and local time."""
    try:
        local = (EPOCH + timedelta(microseconds=moment)).astimezone()
    except (ValueError, OverflowError):
        return iso(moment)
    return f"{iso(moment)} ({local:%Y-%m-%d %H:%M:%S %Z})"
