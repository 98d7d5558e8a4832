"""Events of the ledger as CloudEvents 1.0, one JSON object in a line: for pipelines that read those.

`source` and `id` together name an event for ever: the board, and the event's number in its ledger. A
board has no domain of its own, so its source is its UUID, and the types begin with `dibs.`.
"""

from __future__ import annotations

import json

from dibs.board import watching
from dibs.interfaces import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.board.execute import Board
    from dibs.board.views import LogLine
    from dibs.core.model import TaskKey

VERSION = "1.0"


def pages(board: Board, uid: str, since: int, task: TaskKey | None) -> Iterator[tuple[str, int]]:
    """Some lines at a time, and how many they are: a ledger of any length needs little memory."""
    for page in watching.all_after(board, since, task):
        yield "".join(line(one, uid) for one in page), len(page)


def line(one: LogLine, uid: str) -> str:
    return json.dumps(event(one, uid), separators=(",", ":")) + "\n"


def event(one: LogLine, uid: str) -> dict[str, Any]:
    """An event of the board itself has no subject."""
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
