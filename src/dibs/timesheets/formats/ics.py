"""Stints as a calendar (iCalendar, RFC 5545): one event per stint, in UTC.

A calendar has whole seconds: both ends are truncated, so that adjacent stints stay adjacent. The exact
instants are in `X-DIBS-START` and `X-DIBS-END`.
"""

from __future__ import annotations

from dibs.domain.values import SECOND, Instant, iso, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dibs.domain.model import ActorId, TaskKey
    from dibs.domain.stints import WorkedStint

OCTETS = 75
"""The longest line, without its end; a longer one continues on the next, after a space."""


def render(
    stints: Iterable[WorkedStint],
    now: Instant,
    board: str,
    names: Mapping[ActorId, str],
    titles: Mapping[TaskKey, str],
) -> str:
    return "".join(lines(stints, now, board, names, titles))


def lines(
    stints: Iterable[WorkedStint],
    now: Instant,
    board: str,
    names: Mapping[ActorId, str],
    titles: Mapping[TaskKey, str],
) -> Iterator[str]:
    """The lines, each with its line end, streamed while the stints come."""
    yield from map(folded, ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//dibs//timesheet//EN"))
    for stint in stints:
        name = names.get(stint.actor) or str(stint.actor)
        yield from map(folded, _event(stint, now, board, name, titles.get(stint.key, "")))
    yield folded("END:VCALENDAR")


def _event(stint: WorkedStint, now: Instant, board: str, name: str, title: str) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{escaped(_uid(stint))}@{escaped(board)}"
    yield f"DTSTAMP:{stamp(now)}"
    yield f"DTSTART:{stamp(stint.start)}"
    if stint.end // SECOND > stint.start // SECOND:  # DTEND must be later; without it: 0 s
        yield f"DTEND:{stamp(stint.end)}"
    yield f"SUMMARY:{escaped(f'{stint.key} {title}'.strip())}"
    yield f"DESCRIPTION:{escaped(name)}"
    about = (stint.area, stint.charge_code, "billable" if stint.billable else "", stint.source)
    yield f"CATEGORIES:{','.join(escaped(one) for one in about if one)}"
    yield f"X-DIBS-START:{iso(stint.start)}"
    yield f"X-DIBS-END:{iso(stint.end)}"
    yield "END:VEVENT"


def _uid(stint: WorkedStint) -> str:
    """A stable UID: the same stint is the same event in every export; parts cut at midnight differ."""
    if stint.number is not None:
        return f"stint-{stint.number}-{stamp(stint.start)}"
    return f"{stint.key}-{stint.actor}-{stint.start}"


def stamp(instant: Instant) -> str:
    """`20261115T143000Z`."""
    return iso(Instant(instant - instant % SECOND)).replace("-", "").replace(":", "")


def escaped(text: str) -> str:
    """Text as an iCalendar value, with separators and line breaks escaped."""
    parts = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    plain = "\n".join(map(safe, parts)).replace("\\", "\\\\")
    return plain.replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def folded(line: str) -> str:
    """The line folded into parts of at most 75 octets, never within a character."""
    if len(line) <= OCTETS and line.isascii():
        return f"{line}\r\n"
    parts, part, room = [], "", OCTETS
    for character in line:
        size = len(character.encode())
        if size > room:
            parts.append(part)
            part, room = " ", OCTETS - 1
        part += character
        room -= size
    return "\r\n".join([*parts, part]) + "\r\n"
