"""Paths typed by people: who holds them, and `guard allow`, which lets an actor touch held paths."""

from __future__ import annotations

from os.path import dirname

from dibs.board import path_access
from dibs.board.command_builder import build
from dibs.board.locate import Repository
from dibs.cli.call import Call, VerbResult, current_directory
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.refusals import bad_argument, refused
from dibs.domain.scopes.access import reservation_facts as facts_of
from dibs.domain.values import DAY, MINUTE, Duration, brief, exact, iso, later
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.facts import ScopeReservation
    from dibs.domain.model import Actor, TaskKey
    from dibs.domain.values import Instant

LONGEST = Duration(DAY)
SHORTEST = MINUTE


def repository_of(call: Call) -> Repository:
    """The repository; without one, the folder that contains the board's folder."""
    place = call.place
    return place.repository or Repository(dirname(place.folder), "", "")


def in_the_tree(call: Call, typed: list[str]) -> dict[str, list[str]]:
    """Maps each typed path to its forms inside the repository; refuses one outside it."""
    for path in typed:
        if not path or any(ord(character) < 32 for character in path):
            raise bad_argument(f"{checks.quoted(path)} is not a path")
    found = path_access.in_repository(typed, current_directory(), repository_of(call))
    for path, forms in found.items():
        if not forms:
            raise bad_argument(f"{checks.quoted(path)} is outside the repository", path=path)
    return found


def owners(call: Call, tasks: list[str], typed: list[str]) -> VerbResult:
    """Prints the owner of each task, and the holders of each path or of what it links to."""
    from dibs.board import queries
    from dibs.cli import pages

    found = [queries.who(call.board, checks.task_key(key)) for key in tasks]
    listed, lines = [], [pages.owner(owner) for owner in found]
    for path, forms in in_the_tree(call, typed).items():
        holders, _, now = path_access.holders(call.board, forms)
        listed.append({"path": path, "holders": [holder_payload(*one, now) for one in holders]})
        lines += [holder_line(path, *one, now) for one in holders] or [f"{path}: nobody"]
    payload = payloads.answer(paths=listed)
    if found:
        payload["tasks"] = [payloads.owner(owner) for owner in found]
    return VerbResult(payload, tuple(lines))


def holder_payload(
    path: str, rival: ScopeReservation, holder: Actor, now: Instant
) -> dict[str, object]:
    return facts_of(path, rival, holder) | {"expired": now > rival.expires}


def holder_line(typed: str, path: str, rival: ScopeReservation, holder: Actor, now: Instant) -> str:
    session = f" (session {rival.session})" if rival.session else ""
    unbound = " (assigned, not taken up)" if rival.session is None else ""
    also = "" if path == typed else f" ({path})"
    expired = "expired at" if now > rival.expires else "until"
    when = f"{expired} {brief(rival.expires, now)}"
    return f"{typed}{also}: {holder.name}{session}{unbound} with {rival.key}, {when}"


# Allowances.


def allow(call: Call, typed: list[str]) -> VerbResult:
    """Lets an actor touch paths held by another for a limited time, for instance for a hotfix."""
    if not typed:
        raise bad_argument("name the paths to allow")
    span = checks.duration(call["span"], "--for")
    if not SHORTEST <= span <= LONGEST:
        raise bad_argument(
            f"--for is {exact(span)}; it must be between {exact(SHORTEST)} and {exact(LONGEST)}"
        )
    own = call.who().name
    to = own if call["to"] is None else checks.actor_name(call["to"])
    forms = [form for all_ in in_the_tree(call, typed).values() for form in all_]
    found, _, now = path_access.holders(call.board, forms)
    by_task: dict[TaskKey, tuple[Actor, list[str]]] = {}
    for path, rival, holder in found:
        if now <= rival.expires:
            by_task.setdefault(rival.key, (holder, []))[1].append(path)
    if not by_task:
        what = f"nobody holds {', '.join(typed)}: nothing to allow"
        raise refused("not_reserved", what, paths=typed)
    allowed, lines = [], []
    for key, (holder, paths) in by_task.items():
        receiver = (
            "" if to == own else to
        )  # the caller may be new: executing the command registers it
        command = build(
            c.Allow, task=key, paths=tuple(paths), to=receiver, span=span, reason=call["reason"]
        )
        outcome = call.execute(command)
        until = later(outcome.now, span)
        allowed.append({"task": key, "holder": holder.name, "paths": paths, "until": iso(until)})
        lines.append(
            f"{to} may touch {', '.join(paths)} of {key} ({holder.name}) "
            f"until {brief(until, outcome.now)}; a note on {key} informs its holder"
        )
    return VerbResult(payloads.answer(to=to, allowed=allowed), tuple(lines))
