"""Whether somebody may touch some paths now: asked by guards, before a file or a branch is written."""

from __future__ import annotations

from dibs.core.ground import ALLOW, REFUSE, WARN, Ground
from dibs.core.instants import Instant, brief, iso
from dibs.core.model import Actor, ActorId, Allowance, Task, TaskKey
from dibs.core.refusals import Refusal, in_quotes, several
from dibs.core.reserved import Reserved
from dibs.core.scopes import STEPS, TooManySteps, Work
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dibs.core.facts import Rival

EDIT, COMMIT, PUSH = "edit", "commit", "push"
MANY = 20
"""So many times as much as an edit, which an agent waits for, may cost what is about many files."""
SHOWN = 5
"""How many tasks a message names with their scopes."""


class Known(Value):
    """What a guard reads before it judges."""

    ground: Ground
    mine: tuple[Task, ...] = ()
    """What the caller's session holds; the lease of none of them has ended."""
    rivals: tuple[Rival, ...] = ()
    """Live leases of other sessions that reserve paths."""
    allowed: tuple[Allowance, ...] = ()
    """What the caller is let touch all the same."""
    shared: tuple[Allowance, ...] = ()
    """What others are let touch of what the caller holds."""
    items: frozenset[str] = frozenset()
    """The item files of what it holds."""
    lost: tuple[TaskKey, ...] = ()
    """What was taken from the caller's session, and it has not said that it knows."""
    needs: str = ALLOW
    """What follows if it holds nothing."""


class Verdict(Value):
    """What stands against it. Nothing in any field: it may."""

    held: tuple[tuple[str, Rival], ...] = ()
    """Paths that another session reserves."""
    outside: tuple[str, ...] = ()
    """Paths in no scope of what the caller holds."""
    forbidden: tuple[tuple[str, TaskKey], ...] = ()
    """Paths whose task does not allow this action."""
    lost: tuple[TaskKey, ...] = ()
    """The caller lost these, and holds nothing."""
    needs: str = ALLOW
    """`warn` or `refuse`: the caller holds nothing, and should."""
    warns: bool = False
    """Whether what is held by others is only worth a warning."""
    undecided: tuple[str, ...] = ()
    """Paths of which it takes too long to find out."""

    @property
    def is_clear(self) -> bool:
        return self.but(undecided=()) == CLEAR

    @property
    def stops(self) -> bool:
        held = self.held and not self.warns
        return bool(held or self.outside or self.forbidden or self.lost or self.needs == REFUSE)


CLEAR = Verdict()


def work_for(action: str) -> Work:
    """What a decision about an action may cost."""
    return Work() if action == EDIT else Work(MANY * STEPS)


def judge(known: Known, paths: Sequence[str], action: str, work: Work | None = None) -> Verdict:
    """Each path by itself. Only a commit asks whether the caller lost what it held, or holds nothing."""
    mine, ground, work = known.mine, known.ground, work or work_for(action)
    own = Reserved((ground.patterns(task.scope) for task in mine), fold=ground.fold, work=work)
    free = [place for place, task in enumerate(mine) if not task.scope]
    scopes = (ground.patterns(one.scope) for one in known.rivals)
    others = Reserved(scopes, fold=ground.fold, work=work)
    allowed = Reserved((one.paths for one in known.allowed), fold=ground.fold, work=work)
    held: list[tuple[str, Rival]] = []
    outside: list[str] = []
    forbidden: list[tuple[str, TaskKey]] = []
    undecided: list[str] = []
    for path in paths:
        if path in known.items:
            continue
        theirs, is_all = others.known(path)
        let = {known.allowed[place].task for place in allowed.known(path)[0]} if theirs else set()
        barred = next(
            (one for place in theirs if (one := known.rivals[place]).key not in let), None
        )
        if barred is not None:
            held.append((path, barred))
        elif not is_all:
            undecided.append(path)
        if theirs or not mine or not is_all:
            continue
        inside, is_all = own.known(path)
        if not inside and not is_all:
            undecided.append(path)
            continue
        under = [mine[place] for place in inside or free]
        if not under:
            outside.append(path)
        elif not any(allows(task, action) for task in under):
            forbidden.append((path, under[0].key))
    return Verdict(
        tuple(held),
        tuple(outside),
        tuple(forbidden),
        known.lost if action == COMMIT and not mine else (),
        known.needs if action == COMMIT and not mine else ALLOW,
        warns=bool(held) and ground.conflict == WARN,
        undecided=tuple(undecided),
    )


def allows(task: Task, action: str) -> bool:
    allowed = task.terms.constraints
    return not allowed or action in allowed


def shared_at(known: Known, paths: Sequence[str]) -> list[Allowance]:
    """Who else may touch these paths of one's own, by a person's word."""
    if not known.shared:
        return []
    others = Reserved((one.paths for one in known.shared), fold=known.ground.fold)
    try:
        places = sorted({place for path in paths for place in others.of(path)})
    except TooManySteps:
        return []  # it is only told to the holder: nothing is decided by it
    return [known.shared[place] for place in places]


# In words.


def refusal_of(
    verdict: Verdict, known: Known, actors: Mapping[ActorId, Actor], now: Instant, action: str
) -> Refusal:
    """The first of what stands against it: lost, held by another, not allowed, outside, no task."""
    if verdict.lost:
        return lost(verdict.lost)
    if verdict.held:
        return path_held(verdict.held, actors, now)
    if verdict.forbidden:
        return forbidden(verdict.forbidden, action)
    if verdict.outside:
        return outside_scope(verdict.outside, known.mine)
    return needs_task(action)


def lost(keys: tuple[TaskKey, ...]) -> Refusal:
    return Refusal(
        "work_lost",
        f"the lease of {several(keys)} was taken from this session, which holds nothing now",
        {"task": keys[0], "tasks": list(keys)},
    )


def path_held(
    held: tuple[tuple[str, Rival], ...], actors: Mapping[ActorId, Actor], now: Instant
) -> Refusal:
    path, rival = held[0]
    holder = actors[rival.actor].name
    who = f"{holder} (session {rival.session})" if rival.session else holder
    others = len(held) - 1
    more = f"; {others} more {'is' if others == 1 else 'are'} held too" if others else ""
    return Refusal(
        "path_held",
        f"{in_quotes([path])} is held by {who} with {rival.key} until {brief(rival.expires, now)}{more}",
        {
            "path": path,
            "other": rival.key,
            "holder": holder,
            "expires_at": iso(rival.expires),
            "paths": [told(one, of, actors[of.actor]) for one, of in held],
        },
    )


def told(path: str, rival: Rival, holder: Actor) -> dict[str, object]:
    """Who reserves a path, as facts."""
    return {
        "path": path,
        "task": rival.key,
        "holder": holder.name,
        "session": rival.session if rival.session != "" else holder.name,
        "scope": list(rival.scope),
        "expires_at": iso(rival.expires),
    }


def forbidden(paths: tuple[tuple[str, TaskKey], ...], action: str) -> Refusal:
    path, key = paths[0]
    return Refusal(
        "action_not_allowed",
        f"the constraints of {key} do not allow it to {action} ({in_quotes([p for p, _ in paths])})",
        {"task": key, "action": action, "path": path, "paths": [one for one, _ in paths]},
    )


def outside_scope(paths: tuple[str, ...], mine: tuple[Task, ...]) -> Refusal:
    scopes = "; ".join(f"{task.key}: {in_quotes(task.scope)}" for task in mine[:SHOWN])
    return Refusal(
        "outside_scope",
        f"{in_quotes(paths)} lies outside the scope of what you hold ({scopes})",
        {"task": mine[0].key, "paths": list(paths), "tasks": [task.key for task in mine]},
    )


def needs_task(action: str) -> Refusal:
    return Refusal("needs_task", f"to {action} here one holds a task, and you hold none", {})
