"""Facts for bulk intake: which of the requests already have a task."""

from __future__ import annotations

from dibs.board.facts.task import first_digest, fresh_uid, of_request
from dibs.domain import commands as c
from dibs.domain.facts import BatchedRequest, Facts
from dibs.domain.model import TaskKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.storage.transaction import ReadTransaction


def facts_for_intake(tx: ReadTransaction, facts: Facts, command: c.Intake, prefix: str) -> Facts:
    number = tx.board.keys
    places: dict[tuple[str | None, str | None], int] = {}
    asked: list[BatchedRequest] = []
    for place, ask in enumerate(command.asks):
        origin = (ask.channel, ask.origin_ask_ref)
        before = places.setdefault(origin, place)
        if before != place:
            asked.append(asked[before].but(ask=ask, before=before))
            continue
        task = of_request(tx, ask)
        if task is not None:
            asked.append(BatchedRequest(ask, task, task.key, task.uid, first_digest(tx, task)))
            continue
        number += 1
        while tx.task(TaskKey(f"{prefix}-{number}")) is not None:
            number += 1
        asked.append(BatchedRequest(ask, None, TaskKey(f"{prefix}-{number}"), fresh_uid()))
    return facts.but(asked=tuple(asked), last_number=number)
