"""Checks pushed commits: each must be made under a lease that still counts.

For each task named, the highest token among the commits must be the current one, of a lease that is running
or was ended by its own holder. Changed paths must be in the task's scope. A commit without a task must not
change what somebody holds, unless the holder put a commit on top of it.
"""

from __future__ import annotations

import os
from itertools import groupby

from dibs.board.path_access import NOBODY
from dibs.domain import checks
from dibs.domain.events.tasks import Allowed
from dibs.domain.refusals import Refusal, Refused, areas_unknown, in_quotes, several, undecided
from dibs.domain.scopes.access import (
    PUSH,
    AccessFacts,
    ScopeIndex,
    allows,
    check_access,
    needs_task,
    path_held,
    work_for,
)
from dibs.domain.scopes.overlap import TooManySteps
from dibs.domain.scopes.policy import ALLOW, OFF, WARN
from dibs.domain.values import DAY, Duration, Value, later
from dibs.domain.verbs import ended_by
from dibs.git_runner import git, line
from dibs.integrations.git.commit_guard import RAW, GitQueryFailed, moved_to
from dibs.integrations.git.trailers import KEY, TOKEN
from dibs.safe_files import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dibs.board.execute import Board
    from dibs.domain.facts import ScopeReservation
    from dibs.domain.model import Actor, ActorId, Allowance, Task, TaskKey, Token
    from dibs.domain.scopes.access import Verdict
    from dibs.domain.scopes.overlap import StepBudget
    from dibs.domain.values import Instant
    from dibs.storage.transaction import ReadTransaction

SHALLOW_MAX = 64 << 20
"""Limit on the file `shallow` of a shallow clone, in bytes."""

NOT_WORK = ("refs/tags/", "refs/notes/")
REPLACE = "refs/replace/"
"""Refs by which git substitutes objects; dibs ignores them."""
SHORT, REFERENCE = 10, 200
HEAD = b"\x01"
FORMAT = "%x01%H%x02%P%x02" + "%x02".join(
    f"%(trailers:key={name},valueonly,unfold,separator=%x2C)" for name in (KEY, TOKEN)
)
FIXED_LOG_OPTIONS = (
    "--topo-order",
    "--root",
    "--diff-merges=separate",
    "--no-show-signature",
    "--no-notes",
    "--no-mailmap",
)
"""Fixed output whatever the caller's configuration; parents first. A merge appears once per parent."""

ALLOWANCE_MAX = Duration(DAY)
"""Maximum duration of an allowance."""

TREE_OPTIONS = (
    "-r",
    "-z",
    "--name-only",
    "--no-renames",
    "--no-ext-diff",
    "--ignore-submodules=none",
)

SECONDS = 600
"""Timeout for listing the pushed commits."""


class Commit(Value):
    """A commit: its parents, the tasks and tokens in its trailers, and the paths it changes."""

    id: str
    parents: tuple[str, ...]
    keys: tuple[str, ...]
    tokens: tuple[str, ...]
    paths: tuple[str, ...]
    """For a merge: paths that differ from all parents."""
    joined: tuple[str, ...] = ()
    """For a merge: paths that differ from at least one parent."""

    @property
    def short(self) -> str:
        return self.id[:SHORT]

    @property
    def merges(self) -> bool:
        return len(self.parents) > 1


class CommitFinding(Value):
    """A problem with a commit; `warns` if it does not stop the push."""

    commit: str
    refusal: Refusal
    warns: bool = False
    advice: str = ""
    """Overrides the usual advice."""


def pushed_commits(updates: Iterable[str]) -> list[Commit]:
    """The commits that a push brings, from lines of `OLD NEW REF`."""
    tips = dict.fromkeys(new for new, ref in moved_to(updates) if not ref.startswith(NOT_WORK))
    # Tags are excluded: commits that arrived only with a tag were not checked, and are new to a branch.
    known = ("--not", *(f"--exclude={start}*" for start in (*NOT_WORK, REPLACE)), "--all")
    return commits("--stdin", *known, fed="\n".join(tips).encode()) if tips else []


def replace_ref_findings(updates: Iterable[str]) -> list[CommitFinding]:
    """Findings for pushed replace refs, in any letter case (a file system may ignore it)."""
    found = []
    for new, ref in moved_to(updates):
        if ref.lower().startswith(REPLACE):
            message = f"{checks.short(ref, REFERENCE)!r} would replace an object by {new[:SHORT]}"
            found.append(CommitFinding(new, Refusal("replaces_object", message, {"ref": ref})))
    return found


def commits(*words: str, fed: bytes = b"") -> list[Commit]:
    """The commits of a `git log` range, oldest first. `fed`: revisions for `--stdin`; a push may bring more than a command line holds."""
    log = ("log", "--reverse", f"--format={FORMAT}", *FIXED_LOG_OPTIONS, *RAW)
    status, out = git(*log, *words, "--", seconds=SECONDS, fed=fed)
    if status != 0:
        raise GitQueryFailed(f"git does not know {checks.quoted(' '.join(words))} here")
    heads: list[bytes] = []
    paths: list[list[str]] = []
    fields = iter(out.split(b"\0"))
    for field in fields:
        if field.startswith(HEAD):
            heads.append(field)
            paths.append([])
        elif field.lstrip(b"\n").startswith(b":"):
            # A path is read only after its own `:MODE ...`, so a path that looks like a header is safe.
            paths[-1].append(os.fsdecode(next(fields)))
        elif field.strip(b"\n"):
            raise GitQueryFailed("git printed something else than commits")
    return [
        commit_of(head, [side for _, side in sides])
        for head, sides in groupby(zip(heads, paths), lambda each: each[0])
    ]


def check_is_whole(found: Iterable[Commit]) -> None:
    """Raises if a shallow clone cuts the range off."""
    path = line("rev-parse", "--git-path", "shallow")
    cut = set(lines(path, SHALLOW_MAX))
    at = next((one for one in found if one.id in cut), None)
    if at is not None:
        raise GitQueryFailed(
            f"this clone is shallow, and what comes before {at.short} is not here to be checked:"
            " git fetch --unshallow, or a whole clone in CI"
        )


def commit_of(head: bytes, sides: list[list[str]]) -> Commit:
    """Parses a header and its changes. A trailer that contains a separator was not written by dibs."""
    id_, parents, *stated = head.decode("utf-8", "replace")[1:].split("\x02")
    keys, tokens = stated if len(stated) == len((KEY, TOKEN)) else ("?", "?")
    made = Commit(id_, tuple(parents.split()), words_of(keys), words_of(tokens), tuple(sides[0]))
    if not made.merges:
        return made
    # git omits a parent without differences: then no path differs from all of them.
    own = set(sides[0]).intersection(*sides) if len(sides) == len(made.parents) else set()
    joined = dict.fromkeys(path for side in sides for path in side)
    return made.but(paths=tuple(path for path in joined if path in own), joined=tuple(joined))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


# Checks.


def judged(board: Board, arrived: Sequence[Commit]) -> list[CommitFinding]:
    """All problems, in order of the commits. Refuses if it cannot be decided what others hold."""
    try:
        return findings(board, arrived)
    except TooManySteps:
        paths = [path for commit in arrived for path in commit.paths]
        raise Refused(undecided(paths)) from None


def findings(board: Board, arrived: Sequence[Commit]) -> list[CommitFinding]:
    found = []
    work = work_for(PUSH)
    with board.read() as tx:
        known = tasks_named(tx, arrived)
        highest = highest_tokens(arrived)
        unnamed = UnnamedCommitCheck(tx, board, tasks_confirmed_above(arrived, known), work)
        allowances = AllowanceCheck(tx, fold=board.settings.rules.ground.fold)
        for commit in arrived:
            wrong = (
                trailer_refusal(commit, known)
                or token_refusal(tx, commit, known, highest)
                or not_allowed(commit, known)
                or scope_refusal(tx, board, commit, known, allowances, work)
            )
            if wrong is not None:
                found.append(CommitFinding(commit.id, wrong, advice=what_helps(wrong, known)))
            elif not commit.keys:
                found += unnamed.findings(commit)
        if not found:
            check_areas(board, (*known.values(), *unnamed.known.rivals))
    return found


def check_areas(board: Board, held: Iterable[Task | ScopeReservation]) -> None:
    """Refuses if nothing is wrong only because the globs of an area are unknown."""
    ground = board.settings.rules.ground
    unknown = sorted({area for one in held for area in ground.unknown(one.scope)})
    if unknown:
        raise Refused(areas_unknown(ground.unread, unknown))


def with_left_out(commit: Commit) -> Commit:
    """The merge with the paths that it undoes. Runs git several times, so only where it matters."""
    undone = undone_paths(commit.id, commit.parents)
    return commit.but(
        paths=tuple(path for path in commit.joined if path in {*commit.paths, *undone})
    )


def what_helps(wrong: Refusal, known: Mapping[str, Task]) -> str:
    """Advice after a lost lease: the holder may push a former holder's work with a commit on top."""
    if wrong.code != "lease_lost":
        return ""
    task = known[str(wrong.facts["task"])]
    if task.lease is None:
        return f"dibs claim {task.key}, and put a commit of your own on top; or leave it"
    return (
        f"who holds {task.key} now puts a commit of their own on top, which names its token"
        f" {task.token}; everybody else stops: dibs show {task.key} says who has it"
    )


# Commits without a task.


class UnnamedCommitCheck:
    """Checks commits that name no task; nobody can tell who made them."""

    def __init__(
        self,
        tx: ReadTransaction,
        board: Board,
        vouched: Mapping[str, frozenset[str]],
        work: StepBudget,
    ) -> None:
        self.needs = needs(board)
        self.work = work
        self.vouched = vouched
        ground = board.settings.rules.ground
        held = tx.held_scopes() if ground.conflict != OFF else []
        rivals = tuple(one for one in held if one.bars(NOBODY, "", tx.now))
        self.known = AccessFacts(ground, rivals=rivals)
        self.actors: Mapping[ActorId, Actor] = tx.actors() if rivals else {}
        self.now = tx.now
        # An allowance counts whoever got it: a commit does not prove who made it.
        self.allowed: tuple[Allowance, ...] = tuple(tx.allowances()) if rivals else ()

    def findings(self, commit: Commit) -> list[CommitFinding]:
        own = self.vouched.get(commit.id, frozenset())
        verdict = self.judged(commit.joined or commit.paths, own)
        if (verdict.held or verdict.undecided) and commit.merges:
            verdict = self.judged(with_left_out(commit).paths, own)
        if verdict.held:
            return [
                self.held(commit, path_held(verdict.held, self.actors, self.now), verdict.warns)
            ]
        if verdict.undecided:
            raise TooManySteps
        if self.needs == ALLOW or commit.merges:
            return []
        return [CommitFinding(commit.id, needs_task("push"), warns=self.needs == WARN)]

    def judged(self, paths: Sequence[str], own: frozenset[str]) -> Verdict:
        others = tuple(one for one in self.known.rivals if one.key not in own)
        known = self.known.but(rivals=others, allowed=self.allowed)
        return check_access(known, paths, PUSH, self.work)

    def held(self, commit: Commit, problem: Refusal, warns: bool) -> CommitFinding:
        message = f"{commit.short} names no task, and {problem.message}"
        refusal = Refusal(problem.code, message, {**problem.facts, "commit": commit.id})
        key = problem.facts["other"]
        advice = (
            f"who holds {key} puts a commit of their own on top, with the hooks of dibs setup git;"
            f" everybody else waits: dibs wait {key} --for free"
        )
        return CommitFinding(commit.id, refusal, warns, advice)


def tasks_confirmed_above(
    arrived: Sequence[Commit], known: Mapping[str, Task]
) -> dict[str, frozenset[str]]:
    """For each commit, the tasks whose holder put a commit on top of it.

    For a merge also those whose holder made a commit that it joins, as merges name no task.
    """
    found: dict[str, frozenset[str]] = {}
    for commit in reversed(arrived):
        above = found.get(commit.id, frozenset()) | held_by_its_maker(commit, known)
        for parent in commit.parents if above else ():
            found[parent] = found.get(parent, frozenset()) | above
    below: dict[str, frozenset[str]] = {}
    for commit in arrived:
        joins = (below[parent] for parent in commit.parents if parent in below)
        below[commit.id] = held_by_its_maker(commit, known).union(*joins)
        if commit.merges:
            found[commit.id] = found.get(commit.id, frozenset()) | below[commit.id]
    return found


def held_by_its_maker(commit: Commit, known: Mapping[str, Task]) -> frozenset[str]:
    """The tasks that it names with their current tokens."""
    return frozenset(
        key
        for key, text in zip(commit.keys, commit.tokens)
        if key in known and token_of(text) == known[key].token
    )


def needs(board: Board) -> str:
    return board.settings.commits_need_task or ALLOW


def tasks_named(tx: ReadTransaction, arrived: Iterable[Commit]) -> dict[str, Task]:
    keys = dict.fromkeys(key for commit in arrived for key in commit.keys)
    found = {}
    for key in keys:
        try:
            task = tx.task(checks.task_key(key))
        except Refused:
            continue
        if task is not None:
            found[key] = task
    return found


def highest_tokens(arrived: Iterable[Commit]) -> dict[str, Token]:
    found: dict[str, Token] = {}
    for commit in arrived:
        for key, text in zip(commit.keys, commit.tokens):
            token = token_of(text)
            if token is not None:
                found[key] = max(token, found.get(key, token))
    return found


def token_of(text: str) -> Token | None:
    try:
        return checks.token(text)
    except Refused:
        return None


def trailer_refusal(commit: Commit, known: dict[str, Task]) -> Refusal | None:
    """Refuses trailers with an unknown task or an invalid token."""
    for key in commit.keys:
        if key not in known:
            message = f"{commit.short} names {checks.quoted(key)}, which is no task of this board"
            return Refusal("bad_trailer", message, {"commit": commit.id, "task": key})
    if len(commit.keys) != len(commit.tokens) or None in map(token_of, commit.tokens):
        stated = checks.quoted(", ".join(commit.tokens))
        message = (
            f"{commit.short} names {several(commit.keys) or 'no task'} with the token {stated}"
        )
        return Refusal("bad_trailer", message, {"commit": commit.id})
    return None


def token_refusal(
    tx: ReadTransaction, commit: Commit, known: dict[str, Task], highest: dict[str, Token]
) -> Refusal | None:
    """Refuses a lost or unknown token. Checks only commits with the highest token; others are older."""
    for key, text in zip(commit.keys, commit.tokens):
        token, task = token_of(text), known[key]
        if token != highest[key]:
            continue
        assert token is not None, "looked at before"
        facts = {"commit": commit.id, "task": task.key, "token": text, "current": str(task.token)}
        if token > task.token:
            message = f"{commit.short} was made under {task.key} {text}, which the board never gave"
            return Refusal("token_ahead", message, facts)
        why = "" if token == task.token else f"it is {task.token} by now"
        why = why or ended_by_another(tx, task)
        if why:
            message = f"{commit.short} was made under {task.key} {text}, which was lost: {why}"
            return Refusal("lease_lost", message, facts)
    return None


def ended_by_another(tx: ReadTransaction, task: Task) -> str:
    if task.lease is not None:
        return ""
    last = tx.last_ended_lease(task.id)
    if last is not None and last.token == task.token and ended_by(last.cause).ends_own:
        return ""
    return f"ended ({last.cause})" if last is not None else "ended"


def not_allowed(commit: Commit, known: dict[str, Task]) -> Refusal | None:
    for key in commit.keys:
        if not allows(known[key], PUSH):
            message = f"the constraints of {key} do not allow it to push ({commit.short})"
            return Refusal("action_not_allowed", message, {"task": key, "commit": commit.id})
    return None


def scope_refusal(
    tx: ReadTransaction,
    board: Board,
    commit: Commit,
    known: dict[str, Task],
    allowances: AllowanceCheck,
    work: StepBudget,
) -> Refusal | None:
    """Refuses paths outside the scopes of all named tasks that no allowance covers."""
    tasks = tuple(known[key] for key in commit.keys)
    if not tasks or not all(task.scope for task in tasks):
        return None
    ground = board.settings.rules.ground
    if any(ground.unknown(task.scope) for task in tasks):
        return None
    scopes = (ground.patterns(task.scope) for task in tasks)
    reserved = ScopeIndex(scopes, fold=ground.fold, work=work)
    if not all(map(reserved.of, commit.joined)):
        commit = with_left_out(commit)
    items = board.backlog.paths(tx, tasks) if board.backlog is not None else frozenset()
    paths = tuple(path for path in commit.paths if not (reserved.of(path) or path in items))
    leases = [(known[key], checks.token(text)) for key, text in zip(commit.keys, commit.tokens)]
    paths = tuple(
        path for path in paths if not any(allowances.covers(*one, path) for one in leases)
    )
    if not paths:
        return None
    stated = "; ".join(f"{task.key}: {in_quotes(task.scope)}" for task in tasks)
    message = (
        f"{commit.short} changes {in_quotes(paths)}, outside the scope of what it names ({stated})"
    )
    facts = {"commit": commit.id, "task": tasks[0].key, "paths": list(paths)}
    return Refusal("outside_scope", message, facts)


# Allowances: paths outside its scope that a person let a holder touch (`dibs guard allow`).
#
# A commit is checked later than it was made, when the allowance may be over, and its time cannot be proven.
# So an allowance counts if it overlapped the lease that the commit names.


class OwnershipInterval(Value):
    """Ownership interval: who held a task under a token, from when until when."""

    actor: ActorId
    since: Instant
    until: Instant


class AllowanceCheck:
    """Checks paths against allowances; reads them once per lease, and only if a commit would be refused."""

    def __init__(self, tx: ReadTransaction, *, fold: bool) -> None:
        self._tx = tx
        self._fold = fold
        self._read: dict[tuple[TaskKey, Token], ScopeIndex] = {}

    def covers(self, task: Task, token: Token, path: str) -> bool:
        known = self._read.get((task.key, token))
        if known is None:
            known = ScopeIndex(self._paths(task, token), fold=self._fold)
            self._read[task.key, token] = known
        return bool(known.of(path))

    def _paths(self, task: Task, token: Token) -> Iterator[tuple[str, ...]]:
        held = self._interval(task, token)
        if held is None:
            return
        entries = self._tx.events_between(later(held.since, Duration(-ALLOWANCE_MAX)), held.until)
        for event in (entry.event for entry in entries if entry.verb == Allowed.verb):
            assert isinstance(event, Allowed), "by its verb"
            if event.to == held.actor and event.until >= held.since:
                yield event.paths

    def _interval(self, task: Task, token: Token) -> OwnershipInterval | None:
        if task.lease is not None and token == task.token:
            return OwnershipInterval(task.lease.actor, task.lease.acquired, self._tx.now)
        ended = (one for one in self._tx.ended_leases(task.id) if one.token == token)
        return next((OwnershipInterval(one.actor, one.acquired, one.ended) for one in ended), None)


# Merges: what a merge commit changes beyond joining its parents.


def undone_paths(commit: str, parents: Sequence[str]) -> frozenset[str]:
    """Paths that only one parent changed, and where the merge differs from that parent.

    Such a merge undoes work, though each file equals that of some parent. Where several parents changed a
    path, a merge may take any version.
    """
    base = line("merge-base", "--octopus", *parents)
    changed = [changes_between(base, parent) if base else files_of(parent) for parent in parents]
    found: set[str] = set()
    for place, parent in enumerate(parents):
        others = changed[:place] + changed[place + 1 :]
        found |= changed[place].difference(*others) & changes_between(parent, commit)
    return frozenset(found)


def changes_between(one: str, other: str) -> frozenset[str]:
    return names("diff-tree", *TREE_OPTIONS, one, other)


def files_of(commit: str) -> frozenset[str]:
    return names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)


def names(*words: str) -> frozenset[str]:
    status, out = git(*words)
    if status != 0:
        raise GitQueryFailed("git cannot list what a merge changes")
    return frozenset(os.fsdecode(out).split("\0")) - {""}
