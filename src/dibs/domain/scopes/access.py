"""Path access: may a caller touch these paths now? Hooks check before a file or branch is written."""

from __future__ import annotations

from dibs.domain.model import AREA, Actor, ActorId, Allowance, Task, TaskKey
from dibs.domain.refusals import Refusal, in_quotes, several
from dibs.domain.scopes.overlap import (
    STEPS,
    StepBudget,
    TooManySteps,
    compiled,
    folded_path,
    is_plain,
    lies_in,
    names_of,
)
from dibs.domain.scopes.policy import ALLOW, REFUSE, WARN, ScopePolicy
from dibs.domain.values import Instant, Value, brief, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dibs.domain.facts import ScopeReservation
    from dibs.domain.scopes.overlap import Pattern

# An index from paths to scopes: looks up which of many scopes contain a path, without testing them all.


BELOW = "/**"


class ScopeIndex:
    """An index of many scopes, each identified by its position. Only globs are matched one by one."""

    def __init__(
        self,
        scopes: Iterable[tuple[str, ...]],
        *,
        fold: bool = False,
        work: StepBudget | None = None,
    ) -> None:
        self._fold = fold
        self._work = work or StepBudget()
        self._whole: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        self._wild: dict[str, list[tuple[str, int]]] = {}
        """Glob patterns by the literal folders that they begin with."""
        self._ready: dict[str, list[tuple[Pattern, int]]] = {}
        """The compiled patterns of the folders that were looked up."""
        for place, scope in enumerate(scopes):
            for pattern in scope:
                self._add(place, pattern)

    def _add(self, place: int, pattern: str) -> None:
        if pattern.startswith(AREA):
            return
        if is_plain(pattern):
            self._whole.setdefault(folded_path(pattern.rstrip("/"), self._fold), []).append(place)
        elif pattern.endswith(BELOW) and is_plain(pattern[: -len(BELOW)]):
            name = folded_path(pattern[: -len(BELOW)], self._fold)
            self._below.setdefault(name, []).append(place)
        else:
            self._wild.setdefault(self._start(pattern), []).append((pattern, place))

    def _start(self, pattern: str) -> str:
        """The literal folders that every matching path begins with."""
        names = pattern.split("/")
        plain = next(place for place, name in enumerate(names) if not is_plain(name))
        return folded_path("/".join(names[:plain]), self._fold)

    def _below_start(self, start: str) -> list[tuple[Pattern, int]]:
        if start not in self._ready:
            wild = self._wild.get(start, ())
            self._work.spend(sum(len(text) for text, _ in wild))
            self._ready[start] = [(compiled(text, self._fold), place) for text, place in wild]
        return self._ready[start]

    def of(self, path: str) -> list[int]:
        """The positions of all scopes that contain the path, in order. Raises `TooManySteps`."""
        found, is_all = self.known(path)
        if not is_all:
            raise TooManySteps
        return found

    def known(self, path: str) -> tuple[list[int], bool]:
        """The same within the step limit, and whether the list is complete. Literal scopes cost no steps."""
        if not (self._whole or self._below or self._wild):
            return [], True
        text = folded_path(path, self._fold)
        found: list[int] = []
        starts = [""]
        end = text.find("/")
        while end >= 0:
            above = text[:end]
            found += self._whole.get(above, ())
            found += self._below.get(above, ())
            if above in self._wild:
                starts.append(above)
            end = text.find("/", end + 1)
        found += self._whole.get(text, ())
        is_all = self._add_wild(path, starts, found)
        return (sorted(set(found)) if len(found) > 1 else found), is_all

    def _add_wild(self, path: str, starts: list[str], found: list[int]) -> bool:
        """Appends the matching globs; False if the step limit was reached before all were tested."""
        try:
            wild = [each for start in starts for each in self._below_start(start)]
            names = names_of(path, self._fold) if wild else ()
            for pattern, place in wild:
                if lies_in(pattern, names, self._work):
                    found.append(place)
        except TooManySteps:
            return False
        return True


EDIT, COMMIT, PUSH = "edit", "commit", "push"
MANY = 20
"""Step limit for commits and pushes of many files, as a multiple of an edit's, which an agent waits for."""
SHOWN = 5
"""The most tasks that a message names with their scopes."""


class AccessFacts(Value):
    """The facts for an access check."""

    ground: ScopePolicy
    mine: tuple[Task, ...] = ()
    """The tasks that the caller's session holds, with leases that have not ended."""
    rivals: tuple[ScopeReservation, ...] = ()
    """Live leases of other sessions that reserve paths."""
    allowed: tuple[Allowance, ...] = ()
    """The allowances that let the caller touch paths of others."""
    shared: tuple[Allowance, ...] = ()
    """The allowances that let others touch paths that the caller reserves."""
    items: frozenset[str] = frozenset()
    """The item files of the tasks it holds."""
    lost: tuple[TaskKey, ...] = ()
    """The tasks that the caller's session lost and has not acknowledged."""
    needs: str = ALLOW
    """What happens if the caller holds no task."""


class Verdict(Value):
    """The result of an access check. If every field is empty, access is granted."""

    held: tuple[tuple[str, ScopeReservation], ...] = ()
    """Paths that another session reserves."""
    outside: tuple[str, ...] = ()
    """Paths in no scope of the caller's tasks."""
    forbidden: tuple[tuple[str, TaskKey], ...] = ()
    """Paths whose task does not allow this action."""
    lost: tuple[TaskKey, ...] = ()
    """The tasks that the caller lost, if it holds nothing now."""
    needs: str = ALLOW
    """`warn` or `refuse`: the caller holds no task, and should."""
    warns: bool = False
    """Whether paths held by others only cause a warning."""
    undecided: tuple[str, ...] = ()
    """Paths whose check exceeded the step limit."""

    @property
    def is_clear(self) -> bool:
        return self.but(undecided=()) == CLEAR

    @property
    def stops(self) -> bool:
        held = self.held and not self.warns
        return bool(held or self.outside or self.forbidden or self.lost or self.needs == REFUSE)


CLEAR = Verdict()


def work_for(action: str) -> StepBudget:
    """The step budget for a check of this action."""
    return StepBudget() if action == EDIT else StepBudget(MANY * STEPS)


def check_access(
    known: AccessFacts, paths: Sequence[str], action: str, work: StepBudget | None = None
) -> Verdict:
    """Checks each path by itself. Only a commit also checks for lost leases and for holding no task."""
    mine, ground, work = known.mine, known.ground, work or work_for(action)
    own = ScopeIndex((ground.patterns(task.scope) for task in mine), fold=ground.fold, work=work)
    free = [place for place, task in enumerate(mine) if not task.scope]
    scopes = (ground.patterns(one.scope) for one in known.rivals)
    others = ScopeIndex(scopes, fold=ground.fold, work=work)
    allowed = ScopeIndex((one.paths for one in known.allowed), fold=ground.fold, work=work)
    held: list[tuple[str, ScopeReservation]] = []
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


def shared_at(known: AccessFacts, paths: Sequence[str]) -> list[Allowance]:
    """The allowances by which others may touch these paths of the caller."""
    if not known.shared:
        return []
    others = ScopeIndex((one.paths for one in known.shared), fold=known.ground.fold)
    try:
        places = sorted({place for path in paths for place in others.of(path)})
    except TooManySteps:
        return []  # only informs the holder: no decision depends on it
    return [known.shared[place] for place in places]


# Refusals.


def refusal_of(
    verdict: Verdict, known: AccessFacts, actors: Mapping[ActorId, Actor], now: Instant, action: str
) -> Refusal:
    """The refusal for the first finding: lost, held by another, not allowed, outside the scope, no task."""
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
    held: tuple[tuple[str, ScopeReservation], ...], actors: Mapping[ActorId, Actor], now: Instant
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
            "paths": [reservation_facts(one, of, actors[of.actor]) for one, of in held],
        },
    )


def reservation_facts(path: str, rival: ScopeReservation, holder: Actor) -> dict[str, object]:
    """The facts about the lease that reserves a path."""
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
        f"{in_quotes(paths)} is outside the scope of what you hold ({scopes})",
        {"task": mine[0].key, "paths": list(paths), "tasks": [task.key for task in mine]},
    )


def needs_task(action: str) -> Refusal:
    return Refusal("needs_task", f"you hold no task: to {action} here you need one", {})
