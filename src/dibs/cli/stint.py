"""`dibs stint`: lists and corrects periods of work, and records their usage. Totals are never typed."""

from __future__ import annotations

from dibs.board import queries, stints
from dibs.cli.arguments import argument, refuse_inapplicable
from dibs.cli.call import Call, Verb, VerbResult
from dibs.cli.output import text
from dibs.cli.time import period, stint_payload, zone_of
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.instants import SECOND, Duration, Instant, brief, iso
from dibs.domain.model import EndedStint
from dibs.domain.refusals import Refusal, Refused, bad_argument
from dibs.domain.stints import CERTAINTIES, UNKNOWN
from dibs.output import payloads
from dibs.timesheets import zones
from dibs.timesheets.formats import hms, money

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dibs.board.outcome import Outcome
    from dibs.board.stints import Before, Touched

DAYS_TOLD = 3
"""Limit on daily totals in the message; the facts contain more."""


def stint(call: Call) -> VerbResult:
    action = call["action"]
    if action not in ACTIONS:
        said = f"{checks.quoted(action)}: say {', '.join([*ACTIONS][:-1])} or {[*ACTIONS][-1]}"
        raise bad_argument(said)
    refuse_inapplicable(call.arguments, VERBS["stint"].arguments, HOMES, f"stint {action}")
    return ACTIONS[action](call)


def list_(call: Call) -> VerbResult:
    if call["what"] is not None:
        raise bad_argument(f"{checks.quoted(call['what'])}: a list takes no KEY; say --actor")
    zone, now = zone_of(call), queries.now(call.board)
    since, until = period(call, zone, now)
    record = stints.worked(call.board, since, until, call["actor"])
    spends = any(one.spending for one in record.stints)
    wall = zones.wall(zone)

    def clock(at: Instant) -> str:
        return brief(at, record.now) if zone == "UTC" else " ".join(wall(at))

    rows = [
        (
            str(one.number or ""),
            record.actors[one.actor].name,
            one.key,
            clock(one.start),
            "" if one.source == "open" else clock(one.end),
            hms(Duration(one.end - one.start)),
            one.source,
            one.cause.replace("_", " "),
            *((amount(one.tokens), cost(one.cost), one.spending) if spends else ()),
        )
        for one in record.stints
    ]
    head: tuple[str, ...] = ("NUMBER", "ACTOR", "TASK", "FROM", "TO", "TIME", "SOURCE", "CAUSE")
    head += ("TOKENS", "COST", "KNOWN") if spends else ()
    lines = text.table(rows, head) if rows else ("no work in this period",)
    if rows and zone != "UTC":
        lines += (f"times of {zone}",)
    told = [stint_payload(one, record) for one in record.stints]
    return VerbResult(payloads.answer(stints=told), lines)


def amount(tokens: int | None) -> str:
    return "" if tokens is None else str(tokens)


def cost(millionths: int | None) -> str:
    return "" if millionths is None else money(millionths)


# Corrections: previewed first, written only with --yes.


def add(call: Call) -> VerbResult:
    key = checks.task_key(call["what"] or "")
    if not (call["since"] and call["until"]):
        raise bad_argument("say when: --from and --to")
    name = "" if call["actor"] is None else checks.actor_name(call["actor"])
    actor = stints.actor_called(call.board, name or call.who().name)
    zone = call["tz"] if call["tz"] is not None else actor.zone if actor else "UTC"
    now = queries.now(call.board)
    started = zones.moment(zone, call["since"], "--from", now)
    ended = zones.moment(zone, call["until"], "--to", now, started)
    command = c.AddStint(key, started, ended, name, **confirmed(call))
    new = EndedStint(0, actor.id, started, ended, "added") if actor else None
    return carried_out(call, command, zone, None, new)


def amend(call: Call) -> VerbResult:
    before = stints.before(call.board, number(call))
    old, now = before.stint, queries.now(call.board)
    zone = before.actor.zone if call["tz"] is None else call["tz"]
    since, until = call["since"], call["until"]
    started = None if since is None else zones.moment(zone, since, "--from", now, old.started)
    begins = old.started if started is None else started
    ended = None if until is None else zones.moment(zone, until, "--to", now, begins)
    command = c.AmendStint(old.seq, started, ended, **confirmed(call))
    new = old.but(started=begins, ended=old.ended if ended is None else ended)
    return carried_out(call, command, zone, before, new)


def confirmed(call: Call) -> dict[str, Any]:
    return {"yes": call["yes"], "backdated": call["backdated"], "reason": call.reason}


def carried_out(
    call: Call,
    command: c.AddStint | c.AmendStint,
    zone: str,
    before: Before | None,
    new: EndedStint | None,
) -> VerbResult:
    """Executes the correction; without --yes refuses it with a preview in local time and UTC."""
    zones.zone(zone)
    try:
        outcome = call.execute(command)
    except Refused as problem:
        if problem.code != "unconfirmed" or new is None:
            raise
        old = before.stint if before else None
        touched = stints.days_with(call.board, zones.local_days(zone), new, old)
        raise Refused(shown(problem.refusal, zone, old, new, touched)) from None
    return render_correction(call, outcome, zone)


def shown(
    refusal: Refusal, zone: str, old: EndedStint | None, new: EndedStint, touched: Touched
) -> Refusal:
    facts, days = dict(refusal.facts), touched.days
    becomes = f"{span(zone, old)} becomes {span(zone, new)}" if old else span(zone, new)
    now, was = (Duration(round(facts[f"total_{when}_seconds"] * SECOND)) for when in ("after", "before"))  # type: ignore[operator]  # fmt: skip
    totals = [f"{facts['task']} {hms(now)} (now {hms(was)})"]
    totals += [f"{one.day} {hms(one.after)} (now {hms(one.before)})" for one in days[:DAYS_TOLD]]
    untold = len(days[DAYS_TOLD:]) + touched.more
    more = f", and {text.count(untold, 'more day')}" if untold else ""
    message = (
        f"{facts['actor']} on {facts['task']}: {becomes}; it would add up to "
        f"{', '.join(totals)}{more}; nothing is written without --yes"
    )
    told = [
        {"day": one.day, "before_seconds": one.before / SECOND, "after_seconds": one.after / SECOND}
        for one in days
    ]
    return refusal.but(
        message=message, facts=facts | {"zone": zone, "days": told, "more_days": touched.more}
    )


def span(zone: str, one: EndedStint) -> str:
    return f"{zones.both(zone, one.started)} to {zones.both(zone, one.ended)}"


def render_correction(call: Call, outcome: Outcome, zone: str) -> VerbResult:
    answer = call.told(outcome)
    [entry], [event], task = outcome.entries, outcome.events, outcome.task
    assert task is not None, "a stint has a task"
    made = event.named()
    stint, replaced = made["stint"], made.get("amends")
    line = (
        f"{task.key}: the stint {entry.seq}, from {zones.both(zone, stint.started)} "
        f"to {zones.both(zone, stint.ended)}"
    )
    payload = answer.json() | {
        "stint": {
            "number": entry.seq,
            "task": task.key,
            "started_at": iso(stint.started),
            "ended_at": iso(stint.ended),
            "amends": replaced,
            "zone": zone,
        }
    }
    lines = (line + (f", counts in the place of {replaced}" if replaced else ""),)
    return answer.but(payload=payload, lines=lines)


# Usage.


def usage(call: Call) -> VerbResult:
    which, known = number(call), UNKNOWN if call["source"] is None else call["source"]
    if known not in CERTAINTIES:
        raise bad_argument(f"say --source {', '.join(CERTAINTIES[:-1])} or {CERTAINTIES[-1]}")
    tokens, spent = call["tokens"], call["cost"]
    if tokens is None and spent is None:
        raise bad_argument("say what was used: --tokens, --cost, or both")
    command = c.ReportUsage(
        which,
        None if tokens is None else checks.tokens(tokens, "--tokens"),
        None if spent is None else checks.millionths(spent, "--cost"),
        known,
    )
    outcome = call.execute(command)
    answer = call.told(outcome)
    assert outcome.task is not None, "a stint has a task"
    used = [f"{command.tokens} tokens"] if command.tokens is not None else []
    used += [f"cost {money(command.cost)}"] if command.cost is not None else []
    line = f"{outcome.task.key}: the stint {which} used {', '.join(used)} ({known})"
    return answer.but(lines=(line,))


def number(call: Call) -> int:
    if call["what"] is None:
        raise bad_argument("say which stint: its number, as dibs stint list has it")
    return checks.whole(call["what"], "the number of the stint", 1, 10**18)


ACTIONS = {"list": list_, "add": add, "amend": amend, "usage": usage}

LIST, ADD, AMEND, USAGE = (f"stint {action}" for action in ACTIONS)
HOMES = {
    "since": (LIST, ADD, AMEND), "until": (LIST, ADD, AMEND), "tz": (LIST, ADD, AMEND),
    "week": (LIST,), "month": (LIST,), "actor": (LIST, ADD),
    "reason": (ADD, AMEND), "yes": (ADD, AMEND), "backdated": (ADD, AMEND),
    "tokens": (USAGE,), "cost": (USAGE,), "source": (USAGE,),
}  # fmt: skip
"""The actions that each option goes with."""

VERBS = {
    "stint": Verb(
        stint,
        (
            argument("action", metavar="ACTION", help=", ".join(ACTIONS)),
            argument("what", nargs="?", metavar="KEY or NUMBER", help="add: the task; amend, usage: the stint"),
            argument("--from", dest="since", metavar="TIME", help="list: the first day; add, amend: when it began, 2026-11-15 09:00, or 09:00 (add: today; amend: on the stint's day)"),
            argument("--to", dest="until", metavar="TIME", help="list: the last day; add, amend: when it ended; 18:00 is on the day on which it began"),
            argument("--week", metavar="WEEK", help="list: an ISO week, 2026-W47"),
            argument("--month", metavar="MONTH", help="list: a month, 2026-11"),
            argument("--tz", metavar="ZONE", help="list, add, amend: the time zone, Europe/Berlin (else: list this machine's, add and amend the actor's)"),
            argument("--actor", metavar="NAME", help="list: only this one; add: whose it is"),
            argument("--reason", metavar="TEXT", default="", help="add, amend: why"),
            argument("--yes", action="store_true", help="add, amend: write it; else it is only shown"),
            argument("--backdated", action="store_true", help="add, amend: the work is older than its task"),
            argument("--tokens", metavar="N", help="usage: how many tokens"),
            argument("--cost", metavar="AMOUNT", help="usage: what it cost, 1.25"),
            argument("--source", metavar="WORD", help=f"usage: {', '.join(CERTAINTIES)}"),
        ),
    )
}  # fmt: skip
