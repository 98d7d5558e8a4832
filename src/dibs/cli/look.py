"""The read-only verbs: status, log, who, watch, wait."""

from __future__ import annotations

import os

from dibs.board import queries
from dibs.cli import pages
from dibs.cli.call import KEY, LIMIT, Call, Verb, VerbResult, argument
from dibs.cli.text import count
from dibs.domain import checks
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import SECOND
from dibs.output import payloads
from dibs.output.error_map import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.verify import Head
    from dibs.domain.values import Instant

KEPT_MAX = 1_000_000
"""Limit on the text of saved ledger heads, in characters."""


def status(call: Call) -> VerbResult | Iterator[VerbResult]:
    if call["watch"]:
        every = checks.duration(call["every"] or "2s", "--every")
        return status_again(call, max(1, every / SECOND))
    if call["every"]:
        raise bad_argument("--every requires --watch")
    return status_now(call)


def status_now(call: Call, *, afresh: bool = False) -> VerbResult:
    from dibs.board import explain

    seen = explain.status(call.board)
    return VerbResult(payloads.status(seen), pages.status(seen), afresh=afresh)


def status_again(call: Call, seconds: float) -> Iterator[VerbResult]:
    """Yields the status after each change, and at least every `seconds`: leases expire without a change."""
    from dibs.board import watch as watching

    while True:
        counter = watching.change_counter(call.board)
        yield status_now(call, afresh=True)
        watching.wait_for_change(call.board, counter, seconds)


def typed(call: Call, name: str) -> Instant | None:
    if call[name] is None:
        return None
    from dibs.cli import typed_times

    return typed_times.instant(call[name], f"--{name}", queries.now(call.board))


def log(call: Call) -> VerbResult:
    for name, look in {"head": head, "verify": verify}.items():
        if call[name]:
            if any(call[other] for other in (*FILTERS, *NOT_WITH[name])):
                raise bad_argument(
                    f"--{name} applies to the whole ledger and takes no other options"
                )
            return look(call)
    if call["against"]:
        raise bad_argument("--against requires --verify")
    wanted = queries.LogFilter(
        task=None if call["key"] is None else call.key,
        actor=None if call["actor"] is None else checks.actor_name(call["actor"]),
        since=typed(call, "since"),
        until=typed(call, "until"),
        forced=call["forced"],
    )
    if call["refused"] and call["forced"]:
        raise bad_argument("--forced does not combine with --refused")
    if call["refused"]:
        if wanted.task is not None:
            queries.task_by_key(call.board, wanted.task)
        lines, more = queries.refused_log(call.board, wanted, call.limit)
        refusals = [payloads.refused_line(line) for line in lines]
        return VerbResult(
            payloads.answer(refusals=refusals, more=more), pages.refusals(lines, more=more)
        )
    found = queries.log(call.board, wanted, call.limit)
    events = [payloads.event(line) for line in found.lines]
    echo = echoed("since", wanted.since) + echoed("until", wanted.until)
    return VerbResult(payloads.answer(events=events, more=found.more), echo + pages.log(found))


def echoed(name: str, at: Instant | None) -> tuple[str, ...]:
    """A typed time in UTC and local time, to show how it was understood."""
    if at is None:
        return ()
    from dibs.cli import typed_times

    return (f"{name} {typed_times.both(at)}",)


FILTERS = ("key", "forced", "refused", "actor", "since", "until")
NOT_WITH = {"head": ("verify", "against"), "verify": ("head",)}


def head(call: Call) -> VerbResult:
    """Prints the head digest of the ledger as one line, to be saved."""
    from dibs.board import verify

    found = verify.head(call.board)
    payload = payloads.answer(board=queries.uid(call.board), head=str(found), **found.named())
    return VerbResult(payload, (str(found),))


def verify(call: Call) -> VerbResult:
    from dibs.board import verify

    proof = verify.prove(call.board, kept_heads(call["against"]))
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
        return VerbResult(payload, lines, exit=REFUSED)
    matches = "matches" if len(against) == 1 else "match"
    fits = f", {count(len(against), 'saved head')} {matches}" if against else ""
    return VerbResult(payload, (f"the ledger is sound: {summary}{fits}",))


def kept_heads(given: str | None) -> tuple[Head, ...]:
    """Ledger heads to compare with: one head, a file of them, or standard input (`-`)."""
    if given is None:
        return ()
    from dibs.board import verify

    return verify.parse_heads(given if verify.is_head(given) else kept_text(given))


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


def who(call: Call) -> VerbResult:
    """Prints the owner of a task; for anything that is not a task, the holders of paths."""
    at, named = typed(call, "at"), call["what"]
    tasks = [what for what in named if is_task(call, what)]
    if at is None and named != tasks[:1]:
        from dibs.cli.paths import owners

        return owners(call, tasks, [what for what in named if what not in tasks])
    if len(named) > 1:
        raise bad_argument("--at takes exactly one task")
    owner = queries.who(call.board, checks.task_key(named[0]), at)
    return VerbResult(payloads.owner(owner), (*echoed("at", at), pages.owner(owner)))


def is_task(call: Call, what: str) -> bool:
    """Whether the name means a task rather than a path (`./T-1` is always the path).

    A name that is neither counts as a task, if it has the form of a key.
    """
    try:
        key = checks.task_key(what)
    except Refused:
        return False
    return queries.has_task(call.board, key) or not os.path.lexists(what)


def watch(call: Call) -> Iterator[VerbResult | None]:
    from dibs.board import watch as watching

    wanted = queries.LogFilter(
        task=None if call["key"] is None else call.key,
        actor=None if call["actor"] is None else checks.actor_name(call["actor"]),
    )
    left = opened_within(call)
    after = first_after(call)
    most = None if call["count"] is None else checks.whole(call["count"], "--count", 1, 10**9)
    shown = 0
    for page in watching.stream(call.board, after, wanted, left):
        for line in page.lines:
            payload = payloads.answer(**payloads.event(line))
            yield VerbResult(payload, (pages.event_as_it_comes(line, page.actors, page.now),))
            shown += 1
            if shown == most:
                return
        if not page.lines:
            yield None


def first_after(call: Call) -> int:
    """The sequence number after which to start: the newest event, unless an option says otherwise."""
    from dibs.board import watch as watching

    if call["from_start"] and call["since"] is not None:
        raise bad_argument("--since does not combine with --from-start")
    if call["since"] is not None:
        return checks.whole(call["since"], "--since", 0, 10**checks.NUMBER_DIGITS - 1)
    return 0 if call["from_start"] else watching.last_event(call.board)


def opened_within(call: Call) -> float:
    """Opens the board; returns the seconds left of --timeout, which also limits the wait for a server."""
    if call["timeout"] is None:
        from dibs.board import watch as watching

        return watching.FOREVER
    return call.opened_within(checks.duration(call["timeout"], "--timeout")) / SECOND


def wait(call: Call) -> VerbResult:
    from dibs.board import watch as watching

    goal = checks.one_of(call["goal"], "--for", tuple(watching.GOALS))
    key, left = call.key, opened_within(call)
    seen = watching.wait_until(call.board, key, goal, left)
    payload = payloads.answer(task=payloads.task(seen.task, seen.actors, seen.now))
    return VerbResult(payload, (f"{seen.task.key} is {goal}",))


TIMEOUT = argument("--timeout", metavar="TIME", help="the timeout: 90s, 30m, 2h")

VERBS = {
    "status": Verb(
        status,
        (
            argument("--watch", action="store_true", help="refresh whenever the board changes"),
            argument(
                "--every",
                metavar="TIME",
                help="with --watch: the longest time between refreshes (2s)",
            ),
        ),
        looks=True,
    ),
    "log": Verb(
        log,
        (
            argument("key", nargs="?", metavar="KEY", help="one task; else all"),
            argument(
                "--verify",
                action="store_true",
                help="recompute the hash chains, and compare the rows",
            ),
            argument(
                "--against",
                metavar="HEAD",
                help="with --verify: a saved head, or a file of them; - for standard input",
            ),
            argument(
                "--head",
                action="store_true",
                help="print one digest of the whole ledger, to be saved",
            ),
            argument("--forced", action="store_true", help="only forced takeovers"),
            argument("--refused", action="store_true", help="show the log of refusals instead"),
            argument("--actor", metavar="NAME", help="only events by this actor"),
            argument(
                "--since", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (ago)"
            ),
            argument("--until", metavar="WHEN", help="as --since"),
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
            argument("--since", metavar="SEQ", help="start after this event number"),
            argument("--from-start", action="store_true", help="start with the first event"),
            argument("--actor", metavar="NAME", help="only events by this actor"),
            argument("--count", metavar="N", help="stop after N events"),
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
