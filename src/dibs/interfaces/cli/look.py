"""The verbs that look: status, log, who."""

from __future__ import annotations

from dibs.board import views
from dibs.core import checks
from dibs.core.refusals import bad_argument
from dibs.interfaces import payloads
from dibs.interfaces.cli import pages
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import KEY, LIMIT, Answer, Call, Verb
from dibs.interfaces.cli.say import count
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.instants import Instant


def status(call: Call) -> Answer:
    from dibs.board import waiting

    seen = waiting.status(call.board)
    return Answer(payloads.status(seen), pages.status(seen))


def typed(call: Call, name: str) -> Instant | None:
    if call[name] is None:
        return None
    from dibs.interfaces.cli import times

    return times.instant(call[name], f"--{name}", views.now(call.board))


def log(call: Call) -> Answer:
    if call["verify"]:
        if any(call[name] for name in ("key", "forced", "refused", "actor", "since", "until")):
            raise bad_argument("--verify looks at the whole ledger: it goes with nothing else")
        return verify(call)
    wanted = views.LogFilter(
        task=None if call["key"] is None else call.key,
        actor=None if call["actor"] is None else checks.actor_name(call["actor"]),
        since=typed(call, "since"),
        until=typed(call, "until"),
        forced=call["forced"],
    )
    if call["refused"] and call["forced"]:
        raise bad_argument("--forced and --refused are two different lists")
    if call["refused"]:
        if wanted.task is not None:
            views.task_by_key(call.board, wanted.task)
        lines, more = views.refused_log(call.board, wanted, call.limit)
        told = [payloads.refused_line(line) for line in lines]
        return Answer(payloads.answer(refusals=told, more=more), pages.refusals(lines, more=more))
    found = views.log(call.board, wanted, call.limit)
    events = [payloads.event(line) for line in found.lines]
    echo = echoed("since", wanted.since) + echoed("until", wanted.until)
    return Answer(payloads.answer(events=events, more=found.more), echo + pages.log(found))


def echoed(name: str, at: Instant | None) -> tuple[str, ...]:
    """A typed time in UTC and in local time, so that it is plain how it was understood."""
    if at is None:
        return ()
    from dibs.interfaces.cli import times

    return (f"{name} {times.both(at)}",)


def verify(call: Call) -> Answer:
    from dibs.board import upkeep

    found = upkeep.verify(call.board)
    summary = f"{count(found.events, 'event')}, {count(found.tasks, 'task')}"
    payload = payloads.answer(
        ok=not found.faults, events=found.events, tasks=found.tasks, faults=list(found.faults)
    )
    if found.faults:
        lines = (
            f"the ledger is NOT sound: {summary}, {count(len(found.faults), 'fault')}",
            *found.faults,
        )
        return Answer(payload, lines, exit=REFUSED)
    return Answer(payload, (f"the ledger is sound: {summary}",))


def who(call: Call) -> Answer:
    at = typed(call, "at")
    owner = views.who(call.board, call.key, at)
    return Answer(payloads.owner(owner), (*echoed("at", at), pages.owner(owner)))


VERBS = {
    "status": Verb(status),
    "log": Verb(
        log,
        (
            argument("key", nargs="?", metavar="KEY", help="one task; else all"),
            argument(
                "--verify", action="store_true", help="recompute the chains, compare the rows"
            ),
            argument("--forced", action="store_true", help="only what people forced"),
            argument("--refused", action="store_true", help="the log of refusals instead"),
            argument("--actor", metavar="NAME", help="only what this actor did"),
            argument(
                "--since", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (ago)"
            ),
            argument("--until", metavar="WHEN", help="likewise"),
            LIMIT,
        ),
    ),
    "who": Verb(
        who,
        (
            KEY,
            argument("--at", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (ago)"),
        ),
    ),
}
