"""The task verbs: add, edit, list, show, why, depend, scope, note."""

from __future__ import annotations

import sys

from dibs.cli.arguments import argument
from dibs.cli.call import KEY, LIMIT, REASON, TOKEN, Call, Verb, VerbResult
from dibs.cli.output import text as say
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.instants import Instant
from dibs.domain.model import HOLDABLE, NOT_FINAL, STATES, Terms
from dibs.domain.refusals import bad_argument, several
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dibs.board.queries import Listing
    from dibs.domain.model import State, Task

PRIORITY = argument("--priority", metavar="N", help="0 (first) to 4; 2 if not given")
FOR = argument("--for", dest="audience", metavar="WHOM", help="human, agent or any")
TIER = argument("--tier", metavar="N", help="the lowest tier that may claim it")
NEEDS = argument(
    "--needs",
    action="append",
    metavar="CAPABILITY",
    help="a capability that it needs; may be repeated; '' for none",
)
ALLOW = argument(
    "--allow",
    action="append",
    metavar="ACTION",
    help="what the holder may do: edit, commit, push, complete, drop; may be repeated; '' for all",
)
ATTEMPTS = argument("--max-attempts", metavar="N", help="how often it may be tried")
SCOPE = argument(
    "--scope", action="append", metavar="GLOB", help="paths that it may touch; may be repeated"
)
NOT_BEFORE = argument(
    "--not-before", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (from now)"
)
BILLABLE = argument("--billable", action="store_true", help="its time is billed")
NOT_BILLABLE = argument("--not-billable", action="store_true", help="its time is not billed")
CODE = argument("--charge-code", metavar="CODE", help="what its time is booked on; '' for nothing")
TERMS = (
    PRIORITY, FOR, TIER, NEEDS, ALLOW, ATTEMPTS, NOT_BEFORE, BILLABLE, NOT_BILLABLE, CODE,
)  # fmt: skip


def each(values: list[str] | None) -> tuple[str, ...]:
    return tuple(values or ())


def terms(call: Call, title: str) -> Terms:
    wanted = Terms(checks.title(title), max_attempts=call.board.settings.max_attempts)
    changes = {field: value for field, value in changed(call).items() if value is not None}
    if changes.get("not_before") == 0:
        del changes["not_before"]
    return wanted.but(**changes)


def changed(call: Call) -> dict[str, object]:
    """The terms given on the command line; `None` for those that were not."""

    def given(name: str, check: Callable[..., object]) -> object:
        value = call[name]
        if isinstance(value, list):
            return check(tuple(part for part in value if part))
        return None if value is None else check(value)

    return {
        "priority": given("priority", checks.priority),
        "audience": given("audience", checks.audience),
        "tier": given("tier", checks.tier),
        "capabilities": given("needs", checks.capabilities),
        "constraints": given("allow", checks.constraints),
        "max_attempts": given("max_attempts", checks.attempts),
        "not_before": given("not_before", lambda typed: instant(call, typed)),
        "billable": billable(call),
        "charge_code": given("charge_code", lambda code: code and checks.charge_code(code)),
    }


def billable(call: Call) -> bool | None:
    """`None` if neither option was given."""
    if call["billable"] and call["not_billable"]:
        raise bad_argument("--billable and --not-billable are both given")
    return True if call["billable"] else False if call["not_billable"] else None


def instant(call: Call, typed: str) -> Instant:
    """Parses a future time; `''` clears it."""
    if not typed:
        return Instant(0)
    from dibs.board import queries
    from dibs.cli import times

    return times.future_instant(typed, "--not-before", queries.now(call.board))


def add(call: Call) -> VerbResult:
    key = None if call["key"] is None else checks.task_key(call["key"])
    after = tuple(dict.fromkeys(checks.task_key(one) for one in each(call["after"])))
    return call.do(
        c.Add(terms(call, call["title"]), checks.scope(each(call["scope"])), key, after=after)
    )


def depend(call: Call) -> VerbResult:
    on, not_on = (
        tuple(checks.task_key(key) for key in each(call[name])) for name in ("on", "not_on")
    )
    if not on and not not_on:
        raise bad_argument("say --on KEY or --not-on KEY")
    if both := {key.casefold() for key in on} & {key.casefold() for key in not_on}:
        raise bad_argument(f"{min(both).upper()} is given with --on and with --not-on; which one?")
    return call.do(c.Depend(call.key, token=call.token, on=on, not_on=not_on))


def why(call: Call) -> VerbResult:
    from dibs.board import explain
    from dibs.cli.output import pages

    steps, now = explain.why(call.board, call.key)
    return VerbResult(payloads.why(steps, now), pages.why(steps))


def edit(call: Call) -> VerbResult:
    title = None if call["title"] is None else checks.title(call["title"])
    wanted = changed(call)
    if title is None and not any(value is not None for value in wanted.values()):
        raise bad_argument("nothing to change is given")
    return call.do(c.Edit(task=call.key, token=call.token, title=title, **wanted))  # type: ignore[arg-type]


def show(call: Call) -> VerbResult:
    from dibs.board import queries
    from dibs.cli.output import pages

    seen = queries.show(call.board, call.key)
    return VerbResult(payloads.view(seen), pages.task(seen))


def list_(call: Call) -> VerbResult:
    from dibs.board import queries

    if call["ready"]:
        if any(call[name] for name in ("free", "held", "mine", "state", "all")):
            raise bad_argument("--ready goes with none of --free, --held, --mine, --state, --all")
        return listed(queries.ready(call.board, call.limit))
    if call["free"] and (call["held"] or call["mine"]):
        raise bad_argument("--free goes neither with --held nor with --mine")
    states = wanted_states(call)
    mine = None
    if call["mine"]:
        mine = frozenset(task.key for task in queries.held_by(call.board, call.who()))
    free: Callable[[Any, Task], bool] = queries.is_free
    if call["free"] and (call["agent"] or call["person"]):
        free = queries.is_free_for(call.board, call.who())

    def wanted(tx: Any, task: Task) -> bool:
        if call["free"]:
            return free(tx, task)
        return (not call["held"] or task.lease is not None) and (mine is None or task.key in mine)

    return listed(queries.listing(call.board, states, wanted, call.limit))


def wanted_states(call: Call) -> tuple[State, ...]:
    states: tuple[State, ...] = tuple(call["state"] or (STATES if call["all"] else NOT_FINAL))
    for state in states:
        if state not in STATES:
            raise bad_argument(
                f"{checks.quoted(state)} is no state; the states are {', '.join(STATES)}"
            )
    holdable = call["held"] or call["free"]
    return tuple(state for state in states if state in HOLDABLE) if holdable else states


def listed(found: Listing) -> VerbResult:
    lines = say.tasks(found.tasks, found.actors, found.now) or ("no tasks",)
    more = ("there are more: raise --limit",) if found.more else ()
    tasks = [payloads.task(task, found.actors, found.now) for task in found.tasks]
    return VerbResult(payloads.answer(tasks=tasks, more=found.more), lines + more)


def scope(call: Call) -> VerbResult:
    add, remove = each(call["add"]), each(call["remove"])
    if add or remove:
        gone = tuple(checks.text(path, "a scope", checks.SCOPE_LENGTH) for path in remove)
        command = c.Scope(call.key, token=call.token, add=checks.scope(add), remove=gone)
        return rescoped(call, command, not_there(call, gone))
    if call["token"] is not None:
        raise bad_argument("--token goes with --add or --remove")
    from dibs.board import queries

    task = queries.task_by_key(call.board, call.key)
    return VerbResult(
        payloads.answer(task=task.key, scope=list(task.scope)), task.scope or ("no scope",)
    )


def not_there(call: Call, gone: tuple[str, ...]) -> str:
    """A warning about paths to remove that the scope does not contain; else "". They may be reserved."""
    from dibs.board import queries

    if not gone or not queries.has_task(call.board, call.key):
        return ""
    task = queries.task_by_key(call.board, call.key)
    missing = [path for path in gone if path not in task.scope]
    entries = f"its entries are {several(task.scope)}" if task.scope else "it is empty"
    return f"the scope of {task.key} has no entry {several(missing)}: {entries}" if missing else ""


def rescoped(call: Call, command: c.Scope, warning: str) -> VerbResult:
    """Executes the command. A replayed request gets no warning: its paths were removed the first time."""
    outcome = call.execute(command)
    return call.told(
        outcome.but(warnings=(*outcome.warnings, warning))
        if warning and not outcome.replayed
        else outcome
    )


def note(call: Call) -> VerbResult:
    if call["redact"] is not None:
        return redact(call)
    if call["reason"]:
        raise bad_argument("--reason goes with --redact")
    if call["text"] is None:
        raise bad_argument("the following arguments are required: TEXT")
    text = from_stdin() if call["text"] == "-" else call["text"]
    return call.do(c.Note(call.key, checks.text(text, "the note", checks.NOTE_LENGTH)))


def redact(call: Call) -> VerbResult:
    if call["text"] is not None:
        raise bad_argument("a note is either added or redacted: TEXT does not go with --redact")
    most = 10**checks.NUMBER_DIGITS - 1
    seq = checks.whole(call["redact"], "the number of the event", 1, most)
    outcome = call.execute(c.Redact(call.key, seq, call.reason))
    answer = call.told(outcome)
    if outcome.events or outcome.task is None:
        return answer
    # It was redacted before; now the store has overwritten what was left of its text.
    return answer.but(lines=(f"{outcome.task.key} has no text of event {seq} any more",))


def from_stdin() -> str:
    if sys.stdin is None:
        return ""
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    return sys.stdin.read(checks.NOTE_LENGTH + 1)


VERBS = {
    "add": Verb(
        add,
        (
            argument("title", metavar="TITLE", help="one line, at most 200 characters"),
            argument("--key", metavar="KEY", help="a key of your own; else dibs gives one"),
            argument(
                "--after",
                action="append",
                metavar="KEY",
                help="it waits until this is complete; may be repeated",
            ),
            SCOPE,
            *TERMS,
        ),
    ),
    "edit": Verb(
        edit, (KEY, argument("--title", metavar="TITLE", help="a new title"), *TERMS, TOKEN)
    ),
    "list": Verb(
        list_,
        (
            argument(
                "--state", action="append", metavar="STATE", help="only these; may be repeated"
            ),
            argument("--all", action="store_true", help="also complete and dropped ones"),
            argument(
                "--free",
                action="store_true",
                help="what can be claimed now (by you, with --agent or --as)",
            ),
            argument("--ready", action="store_true", help="what next would offer, in its order"),
            argument("--held", action="store_true", help="what has a lease"),
            argument("--mine", action="store_true", help="what this session holds"),
            LIMIT,
        ),
        looks=True,
    ),
    "show": Verb(show, (KEY,), looks=True),
    "why": Verb(why, (KEY,), looks=True),
    "depend": Verb(
        depend,
        (
            KEY,
            argument("--on", action="append", metavar="KEY", help="wait for it; may be repeated"),
            argument(
                "--not-on", action="append", metavar="KEY", help="not any more; may be repeated"
            ),
            TOKEN,
        ),
    ),
    "scope": Verb(
        scope,
        (
            KEY,
            argument("--add", action="append", metavar="GLOB", help="one more; may be repeated"),
            argument("--remove", action="append", metavar="GLOB", help="one less; may be repeated"),
            TOKEN,
        ),
    ),
    "note": Verb(
        note,
        (
            KEY,
            argument("text", nargs="?", metavar="TEXT", help="the note; - reads it from stdin"),
            argument(
                "--redact", metavar="SEQ", help="remove the text of a note: the number of its event"
            ),
            REASON,
        ),
    ),
}
