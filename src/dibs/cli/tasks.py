"""The task verbs: add, edit, list, show, why, depend, scope, note."""

from __future__ import annotations

import sys

from dibs.board import command_builder
from dibs.cli import text as say
from dibs.cli.call import KEY, LIMIT, REASON, TOKEN, Call, Verb, VerbResult, argument
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.model import HOLDABLE, NOT_FINAL, STATES, Terms
from dibs.domain.refusals import bad_argument, several
from dibs.domain.values import Instant
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dibs.board.queries import Listing
    from dibs.domain.model import State, Task

PRIORITY = argument("--priority", metavar="N", help="0 (most urgent) to 4; default 2")
FOR = argument("--for", dest="audience", metavar="WHOM", help="human, agent or any")
TIER = argument("--tier", metavar="N", help="the minimum tier of its holder")
NEEDS = argument(
    "--needs",
    action="append",
    metavar="CAPABILITY",
    help="a capability that its holder needs; may be repeated; '' for none",
)
ALLOW = argument(
    "--allow",
    action="append",
    metavar="ACTION",
    help="what the holder may do: edit, commit, push, complete, drop; may be repeated; '' for all",
)
ATTEMPTS = argument("--max-attempts", metavar="N", help="the maximum number of attempts")
SCOPE = argument(
    "--scope", action="append", metavar="GLOB", help="paths that it may change; may be repeated"
)
NOT_BEFORE = argument(
    "--not-before", metavar="WHEN", help="2026-11-15T14:30:00Z, 15:30 (local), 2h (from now)"
)
BILLABLE = argument("--billable", action="store_true", help="its time is billed")
NOT_BILLABLE = argument("--not-billable", action="store_true", help="its time is not billed")
CODE = argument("--charge-code", metavar="CODE", help="the charge code of its time; '' for none")
TERMS = (
    PRIORITY, FOR, TIER, NEEDS, ALLOW, ATTEMPTS, NOT_BEFORE, BILLABLE, NOT_BILLABLE, CODE,
)  # fmt: skip


def given_terms(call: Call) -> dict[str, Any]:
    """The terms as given on the command line; `None` for those that were not."""
    return {
        "priority": call["priority"],
        "audience": call["audience"],
        "tier": call["tier"],
        "capabilities": without_empty(call["needs"]),
        "constraints": without_empty(call["allow"]),
        "max_attempts": call["max_attempts"],
        "not_before": not_before(call),
        "billable": billable(call),
        "charge_code": call["charge_code"],
    }


def without_empty(values: list[str] | None) -> list[str] | None:
    """The values of an option where `''` stands for none."""
    return None if values is None else [value for value in values if value]


def new_terms(call: Call, title: str) -> Terms:
    given = given_terms(call)
    given["not_before"] = given["not_before"] or None
    return command_builder.terms(title, call.board.settings.max_attempts, **given)


def billable(call: Call) -> bool | None:
    """`None` if neither option was given."""
    if call["billable"] and call["not_billable"]:
        raise bad_argument("--billable does not combine with --not-billable")
    return True if call["billable"] else False if call["not_billable"] else None


def not_before(call: Call) -> Instant | None:
    """Parses a future time; `''` clears it."""
    typed = call["not_before"]
    if not typed:
        return None if typed is None else Instant(0)
    from dibs.board import queries
    from dibs.cli import typed_times

    return typed_times.future_instant(typed, "--not-before", queries.now(call.board))


def add(call: Call) -> VerbResult:
    terms = new_terms(call, call["title"])
    return call.do(
        call.build(c.Add, terms=terms, scope=call["scope"] or (), after=call["after"] or ())
    )


def depend(call: Call) -> VerbResult:
    command = call.build(c.Depend, on=call["on"] or (), not_on=call["not_on"] or ())
    on, not_on = command.on, command.not_on
    if not on and not not_on:
        raise bad_argument("add --on KEY or --not-on KEY")
    if both := {key.casefold() for key in on} & {key.casefold() for key in not_on}:
        raise bad_argument(f"{min(both).upper()} is given with both --on and --not-on")
    return call.do(command)


def why(call: Call) -> VerbResult:
    from dibs.board import explain
    from dibs.cli import pages

    steps, now = explain.why(call.board, call.key)
    return VerbResult(payloads.why(steps, now), pages.why(steps))


def edit(call: Call) -> VerbResult:
    given = given_terms(call)
    if call["title"] is None and not any(value is not None for value in given.values()):
        raise bad_argument("no changes given")
    return call.do(call.build(c.Edit, **given))


def show(call: Call) -> VerbResult:
    from dibs.board import queries
    from dibs.cli import pages

    seen = queries.show(call.board, call.key)
    item = call.item_of(seen.task)
    return VerbResult(payloads.with_item(payloads.view(seen), item), pages.task(seen, item))


def list_(call: Call) -> VerbResult:
    from dibs.board import queries

    if call["ready"]:
        if any(call[name] for name in ("free", "held", "mine", "state", "all")):
            raise bad_argument(
                "--ready does not combine with --free, --held, --mine, --state or --all"
            )
        return listed(queries.ready(call.board, call.limit))
    if call["free"] and (call["held"] or call["mine"]):
        raise bad_argument("--free does not combine with --held or --mine")
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
                f"{checks.quoted(state)} is not a state; the states are {', '.join(STATES)}"
            )
    holdable = call["held"] or call["free"]
    return tuple(state for state in states if state in HOLDABLE) if holdable else states


def listed(found: Listing) -> VerbResult:
    lines = say.tasks(found.tasks, found.actors, found.now) or ("no tasks",)
    more = ("more exist: raise --limit",) if found.more else ()
    tasks = [payloads.task(task, found.actors, found.now) for task in found.tasks]
    return VerbResult(payloads.answer(tasks=tasks, more=found.more), lines + more)


def scope(call: Call) -> VerbResult:
    if call["add"] or call["remove"]:
        command = call.build(c.Scope, add=call["add"] or (), remove=call["remove"] or ())
        return rescoped(call, command, not_there(call, command.remove))
    if call["token"] is not None:
        raise bad_argument("--token requires --add or --remove")
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
    return call.render(
        outcome.but(warnings=(*outcome.warnings, warning))
        if warning and not outcome.replayed
        else outcome
    )


def note(call: Call) -> VerbResult:
    if call["redact"] is not None:
        return redact(call)
    if call["reason"]:
        raise bad_argument("--reason requires --redact")
    if call["text"] is None:
        raise bad_argument("the following arguments are required: TEXT")
    text = from_stdin() if call["text"] == "-" else call["text"]
    return call.do(call.build(c.Note, note=text))


def redact(call: Call) -> VerbResult:
    if call["text"] is not None:
        raise bad_argument("TEXT does not combine with --redact")
    command = call.build(c.Redact, seq=call["redact"])
    outcome = call.execute(command)
    answer = call.render(outcome)
    if outcome.events or outcome.task is None:
        return answer
    # It was redacted before; now the store has overwritten what was left of its text.
    return answer.but(lines=(f"{outcome.task.key} no longer has the text of event {command.seq}",))


def from_stdin() -> str:
    if sys.stdin is None:
        return ""
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    text = sys.stdin.read(checks.NOTE_LENGTH + 1)
    if len(text) > checks.NOTE_LENGTH:  # the rest was not read: nobody knows how many it has
        raise bad_argument(f"the note has more than {checks.NOTE_LENGTH} characters")
    return text


VERBS = {
    "add": Verb(
        add,
        (
            argument("title", metavar="TITLE", help="one line, at most 200 characters"),
            argument("--key", metavar="KEY", help="your own key; default: the next T-N"),
            argument(
                "--after",
                action="append",
                metavar="KEY",
                help="wait until this task is complete; may be repeated",
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
                "--state",
                action="append",
                metavar="STATE",
                help="only tasks in this state; may be repeated",
            ),
            argument("--all", action="store_true", help="include complete and dropped tasks"),
            argument(
                "--free",
                action="store_true",
                help="only tasks that can be claimed now (by you, with --agent or --as)",
            ),
            argument(
                "--ready", action="store_true", help="only tasks that next offers, in its order"
            ),
            argument("--held", action="store_true", help="only tasks with a lease"),
            argument("--mine", action="store_true", help="only tasks held by this session"),
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
            argument(
                "--on", action="append", metavar="KEY", help="add a dependency; may be repeated"
            ),
            argument(
                "--not-on",
                action="append",
                metavar="KEY",
                help="remove a dependency; may be repeated",
            ),
            TOKEN,
        ),
    ),
    "scope": Verb(
        scope,
        (
            KEY,
            argument("--add", action="append", metavar="GLOB", help="add a path; may be repeated"),
            argument(
                "--remove", action="append", metavar="GLOB", help="remove a path; may be repeated"
            ),
            TOKEN,
        ),
    ),
    "note": Verb(
        note,
        (
            KEY,
            argument("text", nargs="?", metavar="TEXT", help="the note; - reads it from stdin"),
            argument(
                "--redact", metavar="SEQ", help="remove the text of a note, by its event number"
            ),
            REASON,
        ),
    ),
}
