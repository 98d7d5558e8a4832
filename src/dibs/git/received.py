"""Commits that arrive where others build on them: each is made under a lease that still counts.

For each task that they name, the highest token among them is the task's own, and its lease runs, or
was ended by its own holder. What they change lies in its scope. What names no task changes nothing that
somebody holds, unless the holder has put a commit of its own on top.
"""

from __future__ import annotations

import os
from itertools import groupby

from dibs.board.bounded import lines
from dibs.board.guarding import NOBODY
from dibs.core import checks
from dibs.core.ground import ALLOW, OFF, WARN
from dibs.core.guarding import PUSH, Known, allows, judge, needs_task, path_held, work_for
from dibs.core.refusals import Refusal, Refused, areas_unknown, in_quotes, several, undecided
from dibs.core.reserved import Reserved
from dibs.core.scopes import TooManySteps
from dibs.core.values import Value
from dibs.git.changes import RAW, Unasked, moved_to
from dibs.git.leave import Leave
from dibs.git.message import KEY, TOKEN
from dibs.git_runner import git, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dibs.board.execute import Board
    from dibs.core.facts import Rival
    from dibs.core.guarding import Verdict
    from dibs.core.model import Actor, ActorId, Allowance, Task, Token
    from dibs.core.scopes import Work
    from dibs.stores.transaction import ReadTransaction

ENDED_BY_HOLDER = ("complete", "submit", "fail", "release", "block")
"""How a holder ends its own lease: what it made until then counts."""

SHALLOW_MAX = 64 << 20
"""Bytes of the file that names where a shallow clone is cut off."""

NOT_WORK = ("refs/tags/", "refs/notes/")
REPLACE = "refs/replace/"
"""Objects that git shows in the place of others; here it never does."""
SHORT, REFERENCE = 10, 200
HEAD = b"\x01"
FORMAT = "%x01%H%x02%P%x02" + "%x02".join(
    f"%(trailers:key={name},valueonly,unfold,separator=%x2C)" for name in (KEY, TOKEN)
)
AS_THEY_ARE = (
    "--topo-order",
    "--root",
    "--diff-merges=separate",
    "--no-show-signature",
    "--no-notes",
    "--no-mailmap",
)
"""Whatever the caller's git is set to show; parents before children. A merge: once for each parent."""

SECONDS = 600
"""How long git may take to list what is pushed."""


class Commit(Value):
    """A commit: its parents, the tasks and tokens that it states, and what it changes."""

    id: str
    parents: tuple[str, ...]
    keys: tuple[str, ...]
    tokens: tuple[str, ...]
    paths: tuple[str, ...]
    """Of a merge: what it has as none of its parents has it."""
    joined: tuple[str, ...] = ()
    """Of a merge: what it has not as all of its parents have it."""

    @property
    def short(self) -> str:
        return self.id[:SHORT]

    @property
    def merges(self) -> bool:
        return len(self.parents) > 1


class Finding(Value):
    """What is wrong with a commit; whether it is only worth a warning."""

    commit: str
    refusal: Refusal
    warns: bool = False
    advice: str = ""
    """What helps here, if that is something else than usual."""


def arriving(updates: Iterable[str]) -> list[Commit]:
    """The commits that a push brings, from lines of `OLD NEW REF`."""
    tips = dict.fromkeys(new for new, ref in moved_to(updates) if not ref.startswith(NOT_WORK))
    # What came only with a tag was not looked at: it is new to a branch.
    known = ("--not", *(f"--exclude={start}*" for start in (*NOT_WORK, REPLACE)), "--all")
    return commits(*tips, *known) if tips else []


def replacing(updates: Iterable[str]) -> list[Finding]:
    """Pushes that would show one object in the place of another. Where case is ignored, in any case."""
    found = []
    for new, ref in moved_to(updates):
        if ref.lower().startswith(REPLACE):
            message = f"{checks.short(ref, REFERENCE)!r} would replace an object by {new[:SHORT]}"
            found.append(Finding(new, Refusal("replaces_object", message, {"ref": ref})))
    return found


def commits(*words: str) -> list[Commit]:
    """Oldest first."""
    log = ("log", "--reverse", f"--format={FORMAT}", *AS_THEY_ARE, *RAW)
    status, said = git(*log, *words, "--", seconds=SECONDS)
    if status != 0:
        raise Unasked(f"git does not know {checks.quoted(' '.join(words))} here")
    heads: list[bytes] = []
    paths: list[list[str]] = []
    fields = iter(said.split(b"\0"))
    for field in fields:
        if field.startswith(HEAD):
            heads.append(field)
            paths.append([])
        elif field.lstrip(b"\n").startswith(b":"):
            # A path is read only after its own `:MODE ...`: one that looks like a head is none.
            paths[-1].append(os.fsdecode(next(fields)))
        elif field.strip(b"\n"):
            raise Unasked("git says something else than which commits there are")
    return [
        commit_of(head, [side for _, side in sides])
        for head, sides in groupby(zip(heads, paths), lambda each: each[0])
    ]


def check_is_whole(found: Iterable[Commit]) -> None:
    """In a shallow clone the commits are missing that come before where it is cut off."""
    path = line("rev-parse", "--git-path", "shallow")
    cut = set(lines(path, SHALLOW_MAX))
    at = next((one for one in found if one.id in cut), None)
    if at is not None:
        raise Unasked(
            f"this clone is shallow, and what comes before {at.short} is not here to be checked:"
            " git fetch --unshallow, or a whole clone in CI"
        )


def commit_of(head: bytes, sides: list[list[str]]) -> Commit:
    """From its line and what it changes. A trailer with a separator in it is none that dibs wrote."""
    id_, parents, *stated = head.decode("utf-8", "replace")[1:].split("\x02")
    keys, tokens = stated if len(stated) == len((KEY, TOKEN)) else ("?", "?")
    made = Commit(id_, tuple(parents.split()), words_of(keys), words_of(tokens), tuple(sides[0]))
    if not made.merges:
        return made
    # git leaves out a parent from which nothing differs: then nothing differs from all of them.
    own = set(sides[0]).intersection(*sides) if len(sides) == len(made.parents) else set()
    joined = dict.fromkeys(path for side in sides for path in side)
    return made.but(paths=tuple(path for path in joined if path in own), joined=tuple(joined))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


# The verdict.


def judged(board: Board, arrived: Sequence[Commit]) -> list[Finding]:
    """All that is wrong with them, in their order. Refused, if it is not known what others hold."""
    try:
        return findings(board, arrived)
    except TooManySteps:
        paths = [path for commit in arrived for path in commit.paths]
        raise Refused(undecided(paths)) from None


def findings(board: Board, arrived: Sequence[Commit]) -> list[Finding]:
    found = []
    work = work_for(PUSH)
    with board.read() as tx:
        known = tasks_named(tx, arrived)
        highest = highest_tokens(arrived)
        unnamed = Unnamed(tx, board, vouched(arrived, known), work)
        leave = Leave(tx, fold=board.settings.rules.ground.fold)
        for commit in arrived:
            wrong = (
                stated_wrongly(commit, known)
                or not_current(tx, commit, known, highest)
                or not_allowed(commit, known)
                or outside(tx, board, commit, known, leave, work)
            )
            if wrong is not None:
                found.append(Finding(commit.id, wrong, advice=what_helps(wrong, known)))
            elif not commit.keys:
                found += unnamed.findings(commit)
        if not found:
            check_areas(board, (*known.values(), *unnamed.known.rivals))
    return found


def check_areas(board: Board, held: Iterable[Task | Rival]) -> None:
    """Refused, if nothing is wrong only because nobody knows what an area stands for."""
    ground = board.settings.rules.ground
    unknown = sorted({area for one in held for area in ground.unknown(one.scope)})
    if unknown:
        raise Refused(areas_unknown(ground.unread, unknown))


def with_left_out(commit: Commit) -> Commit:
    """A merge with what it undoes. This asks git several times: only of one that would matter."""
    from dibs.git.merges import left_out

    undone = left_out(commit.id, commit.parents)
    return commit.but(
        paths=tuple(path for path in commit.joined if path in {*commit.paths, *undone})
    )


def what_helps(wrong: Refusal, known: Mapping[str, Task]) -> str:
    """The holder may push what a former one made: with a commit of its own on top."""
    if wrong.code != "lease_lost":
        return ""
    task = known[str(wrong.facts["task"])]
    if task.lease is None:
        return f"dibs claim {task.key}, and put a commit of your own on top; or leave it"
    return (
        f"who holds {task.key} now puts a commit of their own on top, which names its token"
        f" {task.token}; everybody else stops: dibs show {task.key} says who has it"
    )


# Commits that name no task.


class Unnamed:
    """What stands against commits that name no task. Who made them nobody can tell."""

    def __init__(
        self, tx: ReadTransaction, board: Board, vouched: Mapping[str, frozenset[str]], work: Work
    ) -> None:
        self.needs = needs(board)
        self.work = work
        self.vouched = vouched
        ground = board.settings.rules.ground
        held = tx.held_scopes() if ground.conflict != OFF else []
        rivals = tuple(one for one in held if one.bars(NOBODY, "", tx.now))
        self.known = Known(ground, rivals=rivals)
        self.actors: Mapping[ActorId, Actor] = tx.actors() if rivals else {}
        self.now = tx.now
        # A person's word lets a path through, whoever it is for: a commit does not say who made it.
        self.allowed: tuple[Allowance, ...] = tuple(tx.allowances()) if rivals else ()

    def findings(self, commit: Commit) -> list[Finding]:
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
        return [Finding(commit.id, needs_task("push"), warns=self.needs == WARN)]

    def judged(self, paths: Sequence[str], own: frozenset[str]) -> Verdict:
        others = tuple(one for one in self.known.rivals if one.key not in own)
        known = self.known.but(rivals=others, allowed=self.allowed)
        return judge(known, paths, PUSH, self.work)

    def held(self, commit: Commit, problem: Refusal, warns: bool) -> Finding:
        message = f"{commit.short} names no task, and {problem.message}"
        refusal = Refusal(problem.code, message, {**problem.facts, "commit": commit.id})
        key = problem.facts["other"]
        advice = (
            f"who holds {key} puts a commit of their own on top, with the hooks of dibs setup git;"
            f" everybody else waits: dibs wait {key} --for free"
        )
        return Finding(commit.id, refusal, warns, advice)


def vouched(arrived: Sequence[Commit], known: Mapping[str, Task]) -> dict[str, frozenset[str]]:
    """Of each commit, the tasks whose holder has put a commit of its own on top of it.

    A merge names no task: of it also those whose holder has brought a commit that it joins.
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


def stated_wrongly(commit: Commit, known: dict[str, Task]) -> Refusal | None:
    """A task that is none, or a token that is none."""
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


def not_current(
    tx: ReadTransaction, commit: Commit, known: dict[str, Task], highest: dict[str, Token]
) -> Refusal | None:
    """Told of the commits that have the highest token; the others were made before."""
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
    if last is not None and last.token == task.token and last.cause in ENDED_BY_HOLDER:
        return ""
    return f"ended ({last.cause})" if last is not None else "ended"


def not_allowed(commit: Commit, known: dict[str, Task]) -> Refusal | None:
    for key in commit.keys:
        if not allows(known[key], PUSH):
            message = f"the constraints of {key} do not allow it to push ({commit.short})"
            return Refusal("action_not_allowed", message, {"task": key, "commit": commit.id})
    return None


def outside(
    tx: ReadTransaction,
    board: Board,
    commit: Commit,
    known: dict[str, Task],
    leave: Leave,
    work: Work,
) -> Refusal | None:
    """Paths in the scope of none of the tasks that the commit names, which no person let it touch."""
    tasks = tuple(known[key] for key in commit.keys)
    if not tasks or not all(task.scope for task in tasks):
        return None
    ground = board.settings.rules.ground
    if any(ground.unknown(task.scope) for task in tasks):
        return None
    scopes = (ground.patterns(task.scope) for task in tasks)
    reserved = Reserved(scopes, fold=ground.fold, work=work)
    if not all(map(reserved.of, commit.joined)):
        commit = with_left_out(commit)
    items = board.backlog.paths(tx, tasks) if board.backlog is not None else frozenset()
    paths = tuple(path for path in commit.paths if not (reserved.of(path) or path in items))
    leases = [(known[key], checks.token(text)) for key, text in zip(commit.keys, commit.tokens)]
    paths = tuple(path for path in paths if not any(leave.covers(*one, path) for one in leases))
    if not paths:
        return None
    stated = "; ".join(f"{task.key}: {in_quotes(task.scope)}" for task in tasks)
    message = (
        f"{commit.short} changes {in_quotes(paths)}, outside the scope of what it names ({stated})"
    )
    facts = {"commit": commit.id, "task": tasks[0].key, "paths": list(paths)}
    return Refusal("outside_scope", message, facts)
