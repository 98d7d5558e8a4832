"""Path checks for guards: may this session touch these paths; and where paths really lead.

Guards only read. Nothing is written or locked here: the claim decides who may.
"""

from __future__ import annotations

import os
from os.path import abspath, dirname, isabs, join, lexists, normpath, realpath, relpath

from dibs.board.locate import find_repository
from dibs.domain.model import ActorId, Caller
from dibs.domain.refusals import Refusal, Refused, areas_unknown, in_quotes, undecided
from dibs.domain.scopes.access import (
    AccessFacts,
    ScopeIndex,
    Verdict,
    check_access,
    refusal_of,
    shared_at,
)
from dibs.domain.scopes.overlap import TooManySteps
from dibs.domain.scopes.policy import ALLOW, OFF, REFUSE
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dibs.board.identity import Identity
    from dibs.board.locate import Repository
    from dibs.board.retry import ReadableBoard, RetryingRead
    from dibs.domain.facts import ScopeReservation
    from dibs.domain.model import Actor, Allowance, Task
    from dibs.domain.values import Instant
    from dibs.storage.readiness import ReadinessQueries

NOBODY = ActorId(0)


class PathVerdict(Value):
    """A verdict on paths, and the facts behind it."""

    verdict: Verdict
    known: AccessFacts
    actors: Mapping[ActorId, Actor]
    now: Instant
    action: str
    shared: tuple[Allowance, ...] = ()
    """Allowances: who else may touch these paths now, granted by a person."""
    doubt: Refusal | None = None
    """Why it is unknown what others hold, if so."""
    links: Mapping[str, str] = {}
    """By the path that a link leads to: the path that was named."""

    @property
    def refusal(self) -> Refusal | None:
        """The first objection, even if it only deserves a warning."""
        verdict = self.verdict
        if verdict.is_clear:
            return None
        found = refusal_of(verdict, self.known, self.actors, self.now, self.action)
        named = [path for path, _ in verdict.held] or [path for path, _ in verdict.forbidden]
        led = [path for path in named or verdict.outside if path in self.links]
        if verdict.lost or not led:
            return found
        leads = f"{in_quotes([self.links[led[0]]])} leads to {in_quotes(led[:1])}"
        return Refusal(found.code, f"{found.message} ({leads})", found.facts)


def check_paths(
    board: ReadableBoard, who: Identity | None, paths: Sequence[str], action: str
) -> PathVerdict:
    """Checks whether a caller may touch these paths, relative to the repository. `who` None holds nothing."""
    with read_for_guard(board, who) as tx:
        known = known_to(tx, board, who)
        verdict = check_access(known, paths, action)
        shared = shared_at(known, paths)
        ids = {rival.actor for _, rival in verdict.held} | {one.actor for one in shared}
        actors = tx.actors() if ids else {}
        named = {number: actors[number] for number in ids}
        doubt = undecided(verdict.undecided) if verdict.undecided else None
        found = PathVerdict(verdict, known, named, tx.now, action, tuple(shared), doubt)
        return doubted(found)


def doubted(found: PathVerdict) -> PathVerdict:
    """Adds a doubt if scopes use areas whose definitions could not be read.

    Whether a path is outside the caller's own scope is then unknown, too.
    """
    known, ground = found.known, found.known.ground
    mine, others = (
        {area for one in held for area in ground.unknown(one.scope)}
        for held in (known.mine, known.rivals)
    )
    if not mine and not others:
        return found
    verdict = found.verdict.but(outside=()) if mine else found.verdict
    return found.but(verdict=verdict, doubt=areas_unknown(ground.unread, sorted(mine | others)))


def read_for_guard(board: ReadableBoard, who: Identity | None) -> RetryingRead:
    """A read transaction: on the fast path, unless item files or a person's aliases are needed."""
    is_short = board.backlog is None and not (who is not None and who.person)
    return board.read_fast() if is_short else board.read()


def known_caller(tx: ReadinessQueries, board: ReadableBoard, who: Identity) -> Caller | None:
    """The caller; `None` if it is not registered, and so holds nothing."""
    actor = tx.actor_named(who.name)
    if actor is None:
        return None
    if not who.person and not actor.is_human:
        return Caller(actor, who.session, who.harness)
    from dibs.board.identity import caller_of

    return caller_of(tx, who, board.settings)[0]  # type: ignore[arg-type]  # full, for a person


def known_to(tx: ReadinessQueries, board: ReadableBoard, who: Identity | None) -> AccessFacts:
    settings = board.settings
    actor, session = NOBODY, ""
    mine: tuple[Task, ...] = ()
    known = AccessFacts(settings.rules.ground, needs=settings.commits_need_task or ALLOW)
    if who is not None:
        caller = known_caller(tx, board, who)
        needs = settings.commits_need_task or (REFUSE if who.harness else ALLOW)
        known = known.but(needs=needs)
        if caller is not None:
            actor, session = caller.actor.id, caller.holding_session
            mine = tuple(tx.tasks_held_by(actor, session))
            known = known.but(mine=mine)
        if caller is not None and not mine:
            known = known.but(lost=tuple(tx.tasks_lost_by(actor, session)))
    if board.backlog is not None and mine:
        known = known.but(items=board.backlog.paths(tx, mine))  # type: ignore[arg-type]
    if known.ground.conflict == OFF:
        return known
    rivals = [one for one in tx.held_scopes() if one.bars(actor, session, tx.now)]
    keys = {task.key for task in mine if task.scope}
    if not rivals and not keys:
        return known
    allowed = tx.allowances()
    return known.but(
        rivals=tuple(rivals),
        allowed=tuple(one for one in allowed if one.actor == actor),
        shared=tuple(one for one in allowed if one.actor != actor and one.task in keys),
    )


def holders(
    board: ReadableBoard, paths: Sequence[str]
) -> tuple[list[tuple[str, ScopeReservation, Actor]], list[str], Instant]:
    """The holders of each path, live or expired, and the paths that nobody holds."""
    with board.read() as tx:
        held, ground = tx.held_scopes(), board.settings.rules.ground
        reserved = ScopeIndex((ground.patterns(one.scope) for one in held), fold=ground.fold)
        found, free = [], []
        for path in paths:
            try:
                places = reserved.of(path)
            except TooManySteps:
                raise Refused(undecided(paths)) from None
            found += [(path, held[place], tx.actor(held[place].actor)) for place in places]
            free += [] if places else [path]
        return found, free, tx.now


# Path resolution.


def in_repository(paths: Iterable[str], start: str, repository: Repository) -> dict[str, list[str]]:
    """Each path as typed, with its forms relative to the work tree that contains it.

    Links are followed: a link and its target both count. A path in another work tree of the same
    repository is the same path there. One outside of the repository has no form and is not guarded.
    """
    return {path: forms(path, start, repository) for path in paths}


def forms(path: str, start: str, repository: Repository) -> list[str]:
    """As it is named, then what that leads to."""
    found: list[str] = []
    for one in spellings(path if isabs(path) else join(abspath(start), path)):
        form = below(one, repository)
        if form and form not in found:
            found.append(form)
    return found


def spellings(full: str) -> list[str]:
    """An absolute path without links and dots, in each way that it may be resolved.

    `link/../x` is `x` if the text is normalized first, and something else to the kernel.
    """
    found: dict[str, None] = {}
    for one in dict.fromkeys((normpath(full), full)):
        name = os.path.basename(one)
        found |= dict.fromkeys(
            (normpath(one), normpath(join(realpath(dirname(one)), name)), realpath(one))
        )
    return list(found)


def below(path: str, repository: Repository) -> str:
    """A path relative to its work tree, or "" if it is in none of the repository's."""
    root = tree_of(path, repository)
    form = relpath(path, root).replace(os.sep, "/") if root else "."
    return "" if form.split("/")[0] in (".", ".git") else form


def tree_of(path: str, repository: Repository) -> str:
    for root in (repository.worktree, realpath(repository.worktree)):
        if is_below(path, root):
            return root
    above = dirname(path)
    while above != dirname(above) and not lexists(above):
        above = dirname(above)
    return other_tree(above, repository)


def is_below(path: str, root: str) -> bool:
    return bool(root) and (path == root or path.startswith(root.rstrip(os.sep) + os.sep))


def other_tree(start: str, repository: Repository) -> str:
    """The work tree around a folder, if it belongs to the same repository."""
    try:
        other = find_repository(start)
    except Refused:
        return ""
    same = other is not None and other.common_dir == repository.common_dir
    return other.worktree if other is not None and same else ""
