"""What is known where many requests are taken in: which of them are known already."""

from __future__ import annotations

from dibs.board.known import first_digest, fresh_uid, of_request
from dibs.core import commands as c
from dibs.core.facts import Asked, Facts
from dibs.core.model import TaskKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.stores.transaction import ReadTransaction


def facts_for_intake(tx: ReadTransaction, facts: Facts, command: c.Intake, prefix: str) -> Facts:
    number = tx.board.keys
    places: dict[tuple[str | None, str | None], int] = {}
    asked: list[Asked] = []
    for place, ask in enumerate(command.asks):
        origin = (ask.channel, ask.origin_ask_ref)
        before = places.setdefault(origin, place)
        if before != place:
            asked.append(asked[before].but(ask=ask, before=before))
            continue
        task = of_request(tx, ask)
        if task is not None:
            asked.append(Asked(ask, task, task.key, task.uid, first_digest(tx, task)))
            continue
        number += 1
        while tx.task(TaskKey(f"{prefix}-{number}")) is not None:
            number += 1
        asked.append(Asked(ask, None, TaskKey(f"{prefix}-{number}"), fresh_uid()))
    return facts.but(asked=tuple(asked), last_number=number)
