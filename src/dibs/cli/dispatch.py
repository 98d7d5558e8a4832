"""`dibs dispatch`: starts the configured agents on ready tasks, and reports each event."""

from __future__ import annotations

import gc
import json
import sys
from contextlib import suppress

from dibs.board import matching, settings
from dibs.cli.arguments import argument
from dibs.cli.call import REASON, Call, Verb, VerbResult
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.display import safe
from dibs.domain.instants import iso
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from dibs.board.queries import LogLine
    from dibs.domain.instants import Duration
    from dibs.workers.pool import DispatchEvent, Emit

    Checked = TypeVar("Checked")


def dispatch(call: Call) -> VerbResult | Iterator[VerbResult]:
    ways = ("once", "dry_run", "pause", "resume")
    given = [f"--{way.replace('_', '-')}" for way in ways if call[way]]
    if len(given) > 1:
        raise bad_argument(f"{' and '.join(given)} are two different things")
    if call["reason"] and not call["pause"]:
        raise bad_argument("--reason goes with --pause")
    if call["pause"]:
        return pause(call)
    if call["resume"]:
        return resume(call)
    return preview_tick(call) if call["dry_run"] else work(call)


# Pause and resume.


def pause(call: Call) -> VerbResult:
    outcome = call.execute(c.Pause(reason=call.reason))
    did = bool(outcome.entries)  # else it was paused before; that pause may be over by now
    who, why = (
        (outcome.caller.actor.name, call.reason.strip()) if did else matching.paused_by(call.board)
    )
    done = f"paused by {who}" + (f": {why}" if why else "")
    lines: tuple[str, ...] = (
        done if did else f"it was {done}",
        "to go on: dibs dispatch --resume",
    )
    if not who:
        lines = ("nobody has paused it any more",)
    return call.render_with(outcome, lines, paused=bool(who), by=who or None, reason=why or None)


def resume(call: Call) -> VerbResult:
    outcome = call.execute(c.Resume())
    line = "work is offered again" if outcome.entries else "nobody had paused it"
    return call.render_with(outcome, (line,), paused=False, changed=bool(outcome.entries))


# Dry run and work.


def preview_tick(call: Call) -> VerbResult:
    """Prints what one tick would do now; starts and writes nothing."""
    check(call)
    board, agents = call.board, call.board.settings.agents
    swept = board.plan(call.who(), c.Sweep(board.settings.dispatch_grace)).decision.others
    ends = [(change.key, event.cause) for change in swept for event in change.events]
    found = matching.matches(board, agents, most(call) or board.settings.dispatch_max)
    starts = [(key, agent.name) for agent, key in found.starts]
    lines = [f"would end the lease of {key} ({cause})" for key, cause in ends]
    lines += [f"would start {key} with {name}" for key, name in starts]
    if found.paused:
        lines.append(f"paused by {found.paused}")
    payload = payloads.answer(
        dry_run=True,
        ends=[{"task": key, "cause": cause} for key, cause in ends],
        starts=[{"task": key, "agent": name} for key, name in starts],
        paused=found.paused or None,
    )
    warnings = tuple(matching.check_agents(board, agents))
    return VerbResult(payload, tuple(lines) or ("nothing to do",), warnings)


def work(call: Call) -> Iterator[VerbResult]:
    """Runs the dispatcher. It prints events as they happen, so there is no final result."""
    from dibs.opening import settings_now
    from dibs.workers.dispatch import Dispatcher, Options

    gc.enable()  # it may run for weeks
    check(call)
    board, options = call.board, Options(tick(call), most(call))
    dispatcher = Dispatcher(board, call.who(), reporter(call), as_json, options)
    if call["once"]:
        dispatcher.once()
    else:
        dispatcher.run(lambda: settings_now(call.place, board))
    return iter(())


def check(call: Call) -> None:
    """Checks the options, and refuses if no agent is configured."""
    if call.request_id is not None:
        raise bad_argument("--request-id belongs to one change: --pause or --resume")
    tick(call), most(call)
    call.board.follow_if_moved()
    if not call.board.settings.agents:
        raise refused("no_agents", "no agent is configured: there is nobody to start")


def tick(call: Call) -> Duration | None:
    return None if call["tick"] is None else typed("--tick", settings.tick, call["tick"])


def most(call: Call) -> int | None:
    return None if call["max"] is None else typed("--max", settings.most, call["max"])


def typed(name: str, check: Callable[[str], Checked], value: str) -> Checked:
    try:
        return check(value)
    except Refused as problem:
        raise bad_argument(f"{name} {checks.quoted(value)}: {problem}") from None


# Reporting.


def reporter(call: Call) -> Emit:
    """A function that prints each event as a line or as JSON. Write errors do not stop the work."""
    machine = call.board.store.machine
    in_json, dated = call["json"], not call["once"]

    def tell(happened: DispatchEvent) -> None:
        at = iso(machine.wall())
        line = f"{at[:19]}Z {happened.line}" if dated else happened.line
        facts = payloads.answer(at=at, event=happened.what, message=happened.line, **happened.facts)
        with suppress(OSError, AttributeError, ValueError):
            print(json.dumps(facts) if in_json else safe(line), file=sys.stdout, flush=True)

    return tell


def as_json(line: LogLine) -> str:
    """The input of a `[notify]` command: one event as JSON."""
    return json.dumps(payloads.answer(**payloads.event(line)))


VERBS = {
    "dispatch": Verb(
        dispatch,
        (
            argument("--once", action="store_true", help="one look; do not wait for the work"),
            argument("--dry-run", action="store_true", help="only say what would be done"),
            argument("--pause", action="store_true", help="nothing is offered until --resume"),
            argument("--resume", action="store_true", help="work is offered again"),
            REASON,
            argument("--tick", metavar="TIME", help="how often to look, if nothing changes"),
            argument("--max", metavar="N", help="how many tasks its agents may hold together"),
        ),
    ),
}
