"""Stints as a calendar (iCalendar, RFC 5545): one event for each, in UTC.

A calendar knows whole seconds: both ends are cut to them, so that what met still meets. The exact
instants stand beside, as `X-DIBS-START` and `X-DIBS-END`.
"""

from __future__ import annotations

from dibs.core.display import safe
from dibs.core.instants import SECOND, Instant, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dibs.core.model import ActorId, TaskKey
    from dibs.core.worked import Worked

OCTETS = 75
"""The longest line, without its end; a longer one goes on in the next, after a space."""


def written(
    stints: Iterable[Worked],
    now: Instant,
    board: str,
    names: Mapping[ActorId, str],
    titles: Mapping[TaskKey, str],
) -> str:
    return "".join(lines(stints, now, board, names, titles))


def lines(
    stints: Iterable[Worked],
    now: Instant,
    board: str,
    names: Mapping[ActorId, str],
    titles: Mapping[TaskKey, str],
) -> Iterator[str]:
    """The lines as they are to be written, each with its end, while the stints come."""
    yield from map(folded, ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//dibs//timesheet//EN"))
    for stint in stints:
        name = names.get(stint.actor) or str(stint.actor)
        yield from map(folded, _event(stint, now, board, name, titles.get(stint.key, "")))
    yield folded("END:VCALENDAR")


def _event(stint: Worked, now: Instant, board: str, name: str, title: str) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{escaped(_uid(stint))}@{escaped(board)}"
    yield f"DTSTAMP:{stamp(now)}"
    yield f"DTSTART:{stamp(stint.start)}"
    if stint.end // SECOND > stint.start // SECOND:  # an end must be later; without one it is 0 s
        yield f"DTEND:{stamp(stint.end)}"
    yield f"SUMMARY:{escaped(f'{stint.key} {title}'.strip())}"
    yield f"DESCRIPTION:{escaped(name)}"
    about = (stint.area, stint.charge_code, "billable" if stint.billable else "", stint.source)
    yield f"CATEGORIES:{','.join(escaped(one) for one in about if one)}"
    yield f"X-DIBS-START:{iso(stint.start)}"
    yield f"X-DIBS-END:{iso(stint.end)}"
    yield "END:VEVENT"


def _uid(stint: Worked) -> str:
    """The same stint is the same event, whenever it is written; its parts, cut at midnight, are several."""
    if stint.number is not None:
        return f"stint-{stint.number}-{stamp(stint.start)}"
    return f"{stint.key}-{stint.actor}-{stint.start}"


def stamp(instant: Instant) -> str:
    """`20261115T143000Z`."""
    return iso(Instant(instant - instant % SECOND)).replace("-", "").replace(":", "")


def escaped(text: str) -> str:
    """Text as a value: what would end it, or break the line, is written otherwise."""
    parts = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    plain = "\n".join(map(safe, parts)).replace("\\", "\\\\")
    return plain.replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def folded(line: str) -> str:
    """The line in parts of at most 75 octets, none of which ends within a character."""
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
