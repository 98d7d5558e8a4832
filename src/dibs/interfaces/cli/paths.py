"""Paths as people type them: who holds each, and how a person lets somebody touch one all the same."""

from __future__ import annotations

from os.path import dirname

from dibs.board import guarding
from dibs.board.locate import Repository
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.guarding import told as facts_of
from dibs.core.instants import DAY, MINUTE, Duration, brief, exact, iso, later
from dibs.core.refusals import bad_argument, refused
from dibs.interfaces import payloads
from dibs.interfaces.cli.call import Answer, Call, here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.facts import Rival
    from dibs.core.instants import Instant
    from dibs.core.model import Actor, TaskKey

LONGEST = Duration(DAY)
SHORTEST = MINUTE


def repository_of(call: Call) -> Repository:
    """The repository; where there is none, the folder that the board belongs to."""
    place = call.place
    return place.repository or Repository(dirname(place.folder), "", "")


def in_the_tree(call: Call, typed: list[str]) -> dict[str, list[str]]:
    """What was typed, and what it is within the repository. One outside it is refused."""
    for path in typed:
        if not path or any(ord(character) < 32 for character in path):
            raise bad_argument(f"{checks.quoted(path)} is not a path")
    found = guarding.in_repository(typed, here(), repository_of(call))
    for path, forms in found.items():
        if not forms:
            raise bad_argument(f"{checks.quoted(path)} lies outside the repository", path=path)
    return found


def owners(call: Call, tasks: list[str], typed: list[str]) -> Answer:
    """Who owns each task, and who holds each path, by its own name or by what it leads to."""
    from dibs.board import views
    from dibs.interfaces.cli import pages

    found = [views.who(call.board, checks.task_key(key)) for key in tasks]
    told, lines = [], [pages.owner(owner) for owner in found]
    for path, forms in in_the_tree(call, typed).items():
        holders, _, now = guarding.holders(call.board, forms)
        told.append({"path": path, "holders": [holder_told(*one, now) for one in holders]})
        lines += [holder_line(path, *one, now) for one in holders] or [f"{path}: nobody"]
    payload = payloads.answer(paths=told)
    if found:
        payload["tasks"] = [payloads.owner(owner) for owner in found]
    return Answer(payload, tuple(lines))


def holder_told(path: str, rival: Rival, holder: Actor, now: Instant) -> dict[str, object]:
    return facts_of(path, rival, holder) | {"expired": now > rival.expires}


def holder_line(typed: str, path: str, rival: Rival, holder: Actor, now: Instant) -> str:
    session = f" (session {rival.session})" if rival.session else ""
    unbound = " (assigned, not taken up)" if rival.session is None else ""
    also = "" if path == typed else f" ({path})"
    expired = "expired at" if now > rival.expires else "until"
    when = f"{expired} {brief(rival.expires, now)}"
    return f"{typed}{also}: {holder.name}{session}{unbound} with {rival.key}, {when}"


# Letting somebody in.


def allow(call: Call, typed: list[str]) -> Answer:
    """For a hotfix: paths that somebody holds may be touched by another, for a while."""
    if not typed:
        raise bad_argument("which paths may be touched? Name them")
    span = checks.duration(call["span"], "--for")
    if not SHORTEST <= span <= LONGEST:
        raise bad_argument(
            f"--for is {exact(span)}; it lies between {exact(SHORTEST)} and {exact(LONGEST)}"
        )
    own = call.who().name
    to = checks.actor_name(call["to"]) if call["to"] is not None else own
    forms = [form for all_ in in_the_tree(call, typed).values() for form in all_]
    found, _, now = guarding.holders(call.board, forms)
    by_task: dict[TaskKey, tuple[Actor, list[str]]] = {}
    for path, rival, holder in found:
        if now <= rival.expires:
            by_task.setdefault(rival.key, (holder, []))[1].append(path)
    if not by_task:
        what = f"nobody holds {', '.join(typed)}: there is nothing to allow"
        raise refused("not_reserved", what, paths=typed)
    told, lines = [], []
    for key, (holder, paths) in by_task.items():
        receiver = "" if to == own else to  # the caller may be new: who acts is registered by that
        command = c.Allow(key, tuple(paths), receiver, span, call.reason)
        outcome = call.execute(command)
        until = later(outcome.now, span)
        told.append({"task": key, "holder": holder.name, "paths": paths, "until": iso(until)})
        lines.append(
            f"{to} may touch {', '.join(paths)} of {key} ({holder.name}) "
            f"until {brief(until, outcome.now)}; {key} says so to its holder"
        )
    return Answer(payloads.answer(to=to, allowed=told), tuple(lines))
