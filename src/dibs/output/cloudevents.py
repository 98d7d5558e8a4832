"""Exports ledger events as CloudEvents 1.0, one JSON object per line, for event pipelines.

`source` and `id` identify an event permanently: the board, and the event's sequence number. A board has no
domain name, so `source` is its UUID; types begin with `dibs.`.
"""

from __future__ import annotations

import json

from dibs.board import watch
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.board.execute import Board
    from dibs.board.queries import LogLine
    from dibs.domain.model import TaskKey

VERSION = "1.0"


def pages(board: Board, uid: str, since: int, task: TaskKey | None) -> Iterator[tuple[str, int]]:
    """Yields pages of lines with their number: memory use does not grow with the ledger."""
    for page in watch.all_after(board, since, task):
        yield "".join(line(one, uid) for one in page), len(page)


def line(one: LogLine, uid: str) -> str:
    return json.dumps(event(one, uid), separators=(",", ":")) + "\n"


def event(one: LogLine, uid: str) -> dict[str, Any]:
    """One event; an event of the board itself has no subject."""
    data = payloads.event(one)
    about = {"subject": one.key} if one.key else {}
    return {
        "specversion": VERSION,
        "id": str(one.entry.seq),
        "source": f"urn:uuid:{uid}",
        "type": f"dibs.{one.entry.verb}",
        **about,
        "time": data["at"],
        "datacontenttype": "application/json",
        "data": data,
    }
