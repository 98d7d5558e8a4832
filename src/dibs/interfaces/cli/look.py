"""The verbs that look: status, log, who, watch, wait."""

from __future__ import annotations

import os

from dibs.board import views
from dibs.core import checks
from dibs.core.instants import SECOND
from dibs.core.refusals import Refused, bad_argument
from dibs.interfaces import payloads
from dibs.interfaces.cli import pages
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import KEY, LIMIT, Answer, Call, Verb
from dibs.interfaces.cli.say import count
from dibs.interfaces.surfaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.heads import Head
    from dibs.core.instants import Instant

KEPT_MAX = 1_000_000
"""Characters of kept heads that are read."""


def status(call: Call) -> Answer | Iterator[Answer]:
    if call["watch"]:
        every = checks.duration(call["every"] or "2s", "--every")
        return status_again(call, max(1, every / SECOND))
    if call["every"]:
        raise bad_argument("--every goes with --watch")
    return status_now(call)


def status_now(call: Call, *, afresh: bool = False) -> Answer:
    from dibs.board import waiting

    seen = waiting.status(call.board)
    return Answer(payloads.status(seen), pages.status(seen), afresh=afresh)


def status_again(call: Call, seconds: float) -> Iterator[Answer]:
    """Whenever the board has changed, and when the time is over: leases expire without a change."""
    from dibs.board import watching

    while True:
        felt = watching.pulse(call.board)
        yield status_now(call, afresh=True)
        watching.wait_for_change(call.board, felt, seconds)


def typed(call: Call, name: str) -> Instant | None:
    if call[name] is None:
        return None
    from dibs.interfaces.cli import times

    return times.instant(call[name], f"--{name}", views.now(call.board))


def log(call: Call) -> Answer:
    for name, look in {"head": head, "verify": verify}.items():
        if call[name]:
            if any(call[other] for other in (*FILTERS, *NOT_WITH[name])):
                raise bad_argument(f"--{name} looks at the whole ledger: it goes with nothing else")
            return look(call)
    if call["against"]:
        raise bad_argument("--against goes with --verify")
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


FILTERS = ("key", "forced", "refused", "actor", "since", "until")
NOT_WITH = {"head": ("verify", "against"), "verify": ("head",)}


def head(call: Call) -> Answer:
    """One line that can be kept as it is."""
    from dibs.board import heads

    found = heads.head(call.board)
    payload = payloads.answer(board=views.uid(call.board), head=str(found), **found.named())
    return Answer(payload, (str(found),))


def verify(call: Call) -> Answer:
    from dibs.board import heads

    proof = heads.prove(call.board, kept_heads(call["against"]))
    found, faults = proof.found, proof.faults
    summary = f"{count(found.events, 'event')}, {count(found.tasks, 'task')}"
    against = [
        {"head": str(one.head), "ok": not one.fault, "fault": one.fault or None}
        for one in proof.compared
    ]
    payload = payloads.answer(
        ok=not faults,
        events=found.events,
        tasks=found.tasks,
        faults=list(faults),
        against=against,
    )
    if faults:
        lines = (
            f"the ledger is NOT sound: {summary}, {count(len(faults), 'fault')}",
            *faults,
        )
        return Answer(payload, lines, exit=REFUSED)
    fits = f", {count(len(against), 'kept head')} fit" if against else ""
    fits += "s" if len(against) == 1 else ""
    return Answer(payload, (f"the ledger is sound: {summary}{fits}",))


def kept_heads(given: str | None) -> tuple[Head, ...]:
    """A head, a file of them, or standard input."""
    if given is None:
        return ()
    from dibs.board import heads

    return heads.parsed(given if heads.is_head(given) else kept_text(given))


def kept_text(path: str) -> str:
    import sys

    try:
        if path == "-":
            return "" if sys.stdin is None else sys.stdin.read(KEPT_MAX)
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(KEPT_MAX)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its name is not a path"
        raise bad_argument(
            f"--against is {checks.quoted(path)}: neither a head like 42:9f86..., nor a file "
            f"that can be read ({why})"
        ) from None


def who(call: Call) -> Answer:
    """Who owns a task; or, if it is none, who holds paths."""
    at, named = typed(call, "at"), call["what"]
    tasks = [what for what in named if is_task(call, what)]
    if at is None and named != tasks[:1]:
        from dibs.interfaces.cli.paths import owners

        return owners(call, tasks, [what for what in named if what not in tasks])
    if len(named) > 1:
        raise bad_argument("--at goes with one task")
    owner = views.who(call.board, checks.task_key(named[0]), at)
    return Answer(payloads.owner(owner), (*echoed("at", at), pages.owner(owner)))


def is_task(call: Call, what: str) -> bool:
    """A name that is a task's is the task: `./T-1` is the file. What is neither reads like a task."""
    try:
        key = checks.task_key(what)
    except Refused:
        return False
    return views.has_task(call.board, key) or not os.path.lexists(what)


def watch(call: Call) -> Iterator[Answer | None]:
    from dibs.board import watching

    wanted = views.LogFilter(
        task=None if call["key"] is None else call.key,
        actor=None if call["actor"] is None else checks.actor_name(call["actor"]),
    )
    left = opened_within(call)
    after = first_after(call)
    most = None if call["count"] is None else checks.whole(call["count"], "--count", 1, 10**9)
    told = 0
    for page in watching.stream(call.board, after, wanted, left):
        for line in page.lines:
            payload = payloads.answer(**payloads.event(line))
            yield Answer(payload, (pages.event_as_it_comes(line, page.actors, page.now),))
            told += 1
            if told == most:
                return
        if not page.lines:
            yield None


def first_after(call: Call) -> int:
    """The number of the event after which to begin: the newest, unless it is said."""
    from dibs.board import watching

    if call["from_start"] and call["since"] is not None:
        raise bad_argument("--since and --from-start are two beginnings")
    if call["since"] is not None:
        return checks.whole(call["since"], "--since", 0, 10**checks.NUMBER_DIGITS - 1)
    return 0 if call["from_start"] else watching.last_event(call.board)


def opened_within(call: Call) -> float:
    """Opens the board; how many seconds of the timeout are left. They hold for a server that is away, too."""
    if call["timeout"] is None:
        from dibs.board import watching

        return watching.FOREVER
    return call.opened_within(checks.duration(call["timeout"], "--timeout")) / SECOND


def wait(call: Call) -> Answer:
    from dibs.board import watching

    goal = checks.one_of(call["goal"], "--for", tuple(watching.GOALS))
    key, left = call.key, opened_within(call)
    seen = watching.wait_until(call.board, key, goal, left)
    payload = payloads.answer(task=payloads.task(seen.task, seen.actors, seen.now))
    return Answer(payload, (f"{seen.task.key} is {goal}",))


TIMEOUT = argument("--timeout", metavar="TIME", help="how long at most: 90s, 30m, 2h")

VERBS = {
    "status": Verb(
        status,
        (
            argument("--watch", action="store_true", help="again whenever the board changes"),
            argument("--every", metavar="TIME", help="with --watch: at the latest then (2s)"),
        ),
        looks=True,
    ),
    "log": Verb(
        log,
        (
            argument("key", nargs="?", metavar="KEY", help="one task; else all"),
            argument(
                "--verify", action="store_true", help="recompute the chains, compare the rows"
            ),
            argument(
                "--against",
                metavar="HEAD",
                help="with --verify: a head that was kept; or a file of them; - for standard input",
            ),
            argument(
                "--head", action="store_true", help="one digest of the whole ledger, to be kept"
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
        looks=True,
    ),
    "who": Verb(
        who,
        (
            argument(
                "what", nargs="+", metavar="KEY|PATH", help="a task, or paths; ./NAME is a path"
            ),
            argument("--at", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (ago)"),
        ),
        looks=True,
    ),
    "watch": Verb(
        watch,
        (
            argument("key", nargs="?", metavar="KEY", help="one task; else all"),
            argument("--since", metavar="SEQ", help="begin after the event of this number"),
            argument("--from-start", action="store_true", help="begin with the first event"),
            argument("--actor", metavar="NAME", help="only what this actor does"),
            argument("--count", metavar="N", help="end after so many events"),
            TIMEOUT,
        ),
    ),
    "wait": Verb(
        wait,
        (
            KEY,
            argument(
                "--for", metavar="GOAL", dest="goal", required=True, help="complete, free or ready"
            ),
            TIMEOUT,
        ),
    ),
}
