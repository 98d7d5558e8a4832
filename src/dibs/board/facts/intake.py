"""Facts for requests, one or many: which of them already have a task."""

from __future__ import annotations

from dibs.board.facts.task import found, fresh_uid
from dibs.domain import commands as c
from dibs.domain.facts import AddFacts, BatchedRequest, Facts, IntakeFacts
from dibs.domain.model import Task, TaskKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.storage.transaction import ReadTransaction


def load_requests(tx: ReadTransaction, basis: Facts, prefix: str) -> AddFacts | IntakeFacts:
    command = basis.command
    if isinstance(command, c.Add):
        return load_request(tx, basis, command, prefix)
    assert isinstance(command, c.Intake), command.verb
    return load_batch(tx, basis, command, prefix)


def load_request(tx: ReadTransaction, basis: Facts, command: c.Add, prefix: str) -> AddFacts:
    causes = {task.key: task.state for task in (found(tx, key) for key in command.after)}
    facts = basis.widened(AddFacts, on=tuple(causes), causes=causes)
    known = of_request(tx, command)
    if known is not None:
        return facts.but(task=known, first=first_digest(tx, known))
    if command.key is not None:
        taken = tx.task(command.key) is not None
        return facts.but(fresh_uid=fresh_uid(), key_is_taken=taken)
    number = free_number(tx, prefix, tx.board.keys)
    return facts.but(fresh_uid=fresh_uid(), fresh_key=TaskKey(f"{prefix}-{number}"))


def load_batch(tx: ReadTransaction, basis: Facts, command: c.Intake, prefix: str) -> IntakeFacts:
    number = tx.board.keys
    places: dict[tuple[str | None, str | None], int] = {}
    requests: list[BatchedRequest] = []
    for place, ask in enumerate(command.asks):
        origin = (ask.channel, ask.origin_ask_ref)
        before = places.setdefault(origin, place)
        if before != place:
            requests.append(requests[before].but(ask=ask, before=before))
            continue
        task = of_request(tx, ask)
        if task is not None:
            first = first_digest(tx, task)
            requests.append(BatchedRequest(ask, task, task.key, task.uid, first))
            continue
        number = free_number(tx, prefix, number)
        requests.append(BatchedRequest(ask, None, TaskKey(f"{prefix}-{number}"), fresh_uid()))
    return basis.widened(IntakeFacts, requests=tuple(requests), last_number=number)


def free_number(tx: ReadTransaction, prefix: str, last: int) -> int:
    """The next number that was never issued nor used by an imported key."""
    number = last + 1
    while tx.task(TaskKey(f"{prefix}-{number}")) is not None:
        number += 1
    return number


def of_request(tx: ReadTransaction, ask: c.Add) -> Task | None:
    """The task that a request already has, whatever its state."""
    if ask.channel is None:
        return None
    found = (tx.task_of_origin(ask.channel, ref) for ref in ask.refs)
    return next((task for task in found if task is not None), None)


def first_digest(tx: ReadTransaction, task: Task) -> str:
    """The digest of the payload with which the request first arrived."""
    digest: str = getattr(tx.first_event(task.id), "digest", "")
    return digest
