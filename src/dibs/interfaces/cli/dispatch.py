"""`dibs dispatch`: starts the configured agents on what is ready, and says what happens."""

from __future__ import annotations

import gc
import json
import sys
from contextlib import suppress

from dibs.board import matching, settings
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.display import safe
from dibs.core.instants import iso
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.interfaces import payloads
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from dibs.board.views import LogLine
    from dibs.core.instants import Duration
    from dibs.workers.crew import Happened, Tell

    Checked = TypeVar("Checked")


def dispatch(call: Call) -> Answer | Iterator[Answer]:
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
    return look_ahead(call) if call["dry_run"] else work(call)


# Pause and resume.


def pause(call: Call) -> Answer:
    outcome = call.execute(c.Pause(reason=call.reason))
    did = bool(outcome.entries)  # else somebody had paused it before; by now it may be over
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
    return call.told_beside(outcome, lines, paused=bool(who), by=who or None, reason=why or None)


def resume(call: Call) -> Answer:
    outcome = call.execute(c.Resume())
    line = "work is offered again" if outcome.entries else "nobody had paused it"
    return call.told_beside(outcome, (line,), paused=False, changed=bool(outcome.entries))


# What would be, and what is.


def look_ahead(call: Call) -> Answer:
    """What a tick would do now; nothing is started, nothing is written."""
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
    return Answer(payload, tuple(lines) or ("nothing to do",), warnings)


def work(call: Call) -> Iterator[Answer]:
    """Everything is said when it happens; at the end there is nothing to add."""
    from dibs.opening import settings_now
    from dibs.workers.dispatch import Dispatcher, Options

    gc.enable()  # it may run for weeks
    check(call)
    board, options = call.board, Options(tick(call), most(call))
    dispatcher = Dispatcher(board, call.who(), teller(call), as_json, options)
    if call["once"]:
        dispatcher.once()
    else:
        dispatcher.run(lambda: settings_now(call.place, board))
    return iter(())


def check(call: Call) -> None:
    """There is somebody to start."""
    if call.request_id is not None:
        raise bad_argument("--request-id belongs to one change: --pause or --resume")
    tick(call), most(call)
    call.board.settle()
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


# How it is told.


def teller(call: Call) -> Tell:
    """A line, or an object, for each thing that happens. If nobody reads them, work goes on."""
    machine = call.board.store.machine
    in_json, dated = call["json"], not call["once"]

    def tell(happened: Happened) -> None:
        at = iso(machine.wall())
        line = f"{at[:19]}Z {happened.line}" if dated else happened.line
        facts = payloads.answer(at=at, event=happened.what, message=happened.line, **happened.facts)
        with suppress(OSError, AttributeError, ValueError):
            print(json.dumps(facts) if in_json else safe(line), file=sys.stdout, flush=True)

    return tell


def as_json(line: LogLine) -> str:
    """What a command of `[notify]` reads."""
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
